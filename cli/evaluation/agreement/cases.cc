#include "cli/evaluation/agreement/cases.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace optrail::agreement {
namespace {

std::string Excerpt(const Answer& answer) {
  constexpr size_t kMost = 600;
  const std::string summary = TextOf(answer.Parsed(), "summary");
  return absl::StrCat(answer.question, " exited with ", answer.exit_code,
                      "\n    ",
                      summary.empty() ? answer.out.substr(0, kMost) : summary,
                      "\n    ", answer.err.substr(0, kMost));
}

std::vector<std::string> OfCandidates(const Json& gate, const char* field) {
  std::vector<std::string> texts;
  for (const Json& run : At(gate, "candidate_runs")) {
    texts.push_back(TextOf(run, field));
  }
  return texts;
}

}  // namespace

void Findings::ExpectExit(const Answer& answer, int code) {
  Expect(answer.exit_code == code,
         absl::StrCat("expected exit code ", code, ": ", Excerpt(answer)));
}

void Findings::ExpectExitIsNot(const Answer& answer, int code) {
  Expect(answer.exit_code != code,
         absl::StrCat("expected another exit code: ", Excerpt(answer)));
}

std::vector<MadeBenchmark> Benchmarks(int count) {
  std::vector<MadeBenchmark> benchmarks;
  for (int i = 0; i < count; ++i) {
    benchmarks.push_back({absl::StrCat("BM_", i), 1000. * (1 + i % 7)});
  }
  return benchmarks;
}

std::vector<MadeBenchmark> Slower(std::vector<MadeBenchmark> benchmarks,
                                  int which, double factor) {
  for (size_t i = 0; i < benchmarks.size(); ++i) {
    if (which < 0 || static_cast<int>(i) == which) {
      benchmarks[i].level_ns *= factor;
    }
  }
  return benchmarks;
}

std::vector<std::string> Commits(const Workbench& bench, int count) {
  std::vector<std::string> commits;
  for (int i = 0; i < count; ++i) {
    commits.push_back(bench.Commit(absl::StrCat("change ", i)));
  }
  return commits;
}

RunSpec CalmSpec(const std::vector<std::string>& commits, size_t i) {
  RunSpec spec;
  spec.commit = commits.at(i);
  spec.position = static_cast<int64_t>(i) + 1;
  spec.started_unix_ns = kStartNs + static_cast<int64_t>(i + 1) * kHourNs;
  spec.benchmarks = Benchmarks(4);
  return spec;
}

void RecordCalmLine(const Workbench& bench,
                    const std::vector<std::string>& commits, Rng* rng) {
  for (size_t i = 0; i < commits.size(); ++i) {
    bench.Record(MakeRun(CalmSpec(commits, i), rng));
  }
}

std::string GoogleBenchmarkText(
    const std::vector<std::pair<std::string, std::vector<double>>>& times,
    absl::string_view date) {
  Json rows = Json::array();
  for (const auto& [name, samples] : times) {
    for (size_t i = 0; i < samples.size(); ++i) {
      rows.push_back({{"name", name},
                      {"run_name", name},
                      {"run_type", "iteration"},
                      {"repetitions", samples.size()},
                      {"repetition_index", i},
                      {"threads", 1},
                      {"iterations", 100},
                      {"real_time", samples[i]},
                      {"cpu_time", samples[i]},
                      {"time_unit", "ns"}});
    }
  }
  const Json file = {{"context",
                      {{"date", std::string(date)},
                       {"executable", "./program"},
                       {"num_cpus", 2},
                       {"mhz_per_cpu", 2000},
                       {"caches", Json::array()}}},
                     {"benchmarks", rows}};
  return file.dump(1);
}

void RecordCommit(Workbench& bench, Rng* rng, int position, double factor) {
  RunSpec spec;
  spec.commit = MadeCommit(position);
  spec.position = position;
  spec.started_unix_ns = kStartNs + position * kHourNs;
  spec.benchmarks = Slower(Benchmarks(3), 1, factor);
  bench.Record(MakeRun(spec, rng));
}

std::vector<std::string> RecordSeries(Workbench& bench, int commits,
                                      uint64_t seed,
                                      const ChangeOfRun& change) {
  Rng rng(seed);
  std::vector<std::string> ids;
  for (int position = 1; position <= commits; ++position) {
    RunSpec spec;
    spec.commit = MadeCommit(position);
    spec.position = position;
    spec.started_unix_ns = kStartNs + position * kHourNs;
    spec.benchmarks = Benchmarks(3);
    change(spec, position);
    ids.push_back(bench.Record(MakeRun(spec, &rng)));
  }
  return ids;
}

std::vector<std::string> RecordLine(
    Workbench& bench, uint64_t seed,
    const std::function<void(RunSpec& spec, int i, bool last)>& change,
    int commits, int benchmarks) {
  Rng rng(seed);
  std::vector<std::string> ids;
  for (int i = 0; i < commits; ++i) {
    RunSpec spec;
    spec.commit = MadeCommit(i + 1);
    spec.position = i + 1;
    spec.started_unix_ns = kStartNs + (i + 1) * kHourNs;
    spec.benchmarks = Benchmarks(benchmarks);
    if (change) change(spec, i, i + 1 == commits);
    proto::Run run = MakeRun(spec, &rng);
    ids.push_back(bench.Record(std::move(run)));
  }
  return ids;
}

Json RowOf(const Json& rows, const std::string& name) {
  Json row = RowWith(rows, "benchmark", name);
  return row.is_null() ? RowWith(rows, "name", name) : row;
}

std::string VerdictOf(const Json& rows, const std::string& name) {
  return TextOf(RowOf(rows, name), "verdict");
}

Json ChangeAt(const Json& changes, const std::string& benchmark,
              const std::string& commit) {
  if (!changes.is_array()) return Json();
  for (const Json& row : changes) {
    if (TextOf(row, "benchmark") == benchmark &&
        absl::StartsWith(commit, TextOf(row, "first_commit_after")) &&
        !TextOf(row, "first_commit_after").empty()) {
      return row;
    }
  }
  return Json();
}

Json ReportOf(const Workbench& bench) {
  return bench.Ask({"report", "--report_format=json", "--out=-"}).Parsed();
}

Json ReportSeries(const Json& report, const std::string& name) {
  return RowWith(At(report, "series"), "name", name);
}

std::vector<proto::Run> RunsOf(const Workbench& bench) {
  auto loaded = bench.OpenHistory().LoadRuns();
  OPTRAIL_CHECK(loaded.ok()) << loaded.status();
  return std::move(loaded->runs);
}

std::vector<std::string> CandidateCommits(const Json& gate) {
  return OfCandidates(gate, "commit");
}

std::vector<std::string> CandidateHardware(const Json& gate) {
  return OfCandidates(gate, "hardware");
}

bool AreAll(const std::vector<std::string>& texts, absl::string_view text) {
  return !texts.empty() &&
         std::all_of(texts.begin(), texts.end(),
                     [&](const std::string& each) { return each == text; });
}

}  // namespace optrail::agreement
