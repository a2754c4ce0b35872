// One series over time: the gate's window, changes, show and detect on an
// export tell one story of it.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "base/file/file.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

// 60 commits of one imported program of two benchmarks, five processes each,
// with cpu_time beside time; the first is 25% slower from commit 57 on.
std::vector<std::string> RecordSixty(Workbench& bench) {
  Rng rng(51);
  std::vector<std::string> commits;
  for (int position = 1; position <= 60; ++position) {
    RunSpec spec;
    commits.push_back(MadeCommit(position));
    spec.commit = commits.back();
    spec.position = position;
    spec.started_unix_ns = kStartNs + position * kHourNs;
    spec.process_noise = .004;
    spec.benchmarks = {{"BM_Parse", position >= 57 ? 2640000. : 2110000.},
                       {"BM_Print", 500000}};
    proto::Run run = MakeRun(spec, &rng);
    run.set_source("google_benchmark");
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      for (proto::Measurement& process : *result.mutable_measurements()) {
        proto::MetricSamples* cpu_time = process.add_metrics();
        cpu_time->set_metric("cpu_time");
        cpu_time->set_unit("ns");
        cpu_time->set_direction(proto::LOWER_IS_BETTER);
        cpu_time->add_values(static_cast<double>(process.sample_ns(0)) / 1000);
      }
    }
    bench.Record(std::move(run));
  }
  return commits;
}

void CheckEvidence(const Workbench& bench, const Json& gate, Findings& found) {
  std::map<std::string, proto::Run> runs;
  for (const proto::Run& run : RunsOf(bench)) {
    runs[run.run_id()] = run;
  }
  for (const Json& row : At(gate, "rows")) {
    const Json side = At(row, "baseline");
    int processes = 0;
    std::set<std::string> commits;
    for (const Json& id : At(side, "run_ids")) {
      const proto::Run& run = runs[id.get<std::string>()];
      commits.insert(run.commit().id());
      for (const proto::BenchmarkResult& result : run.results()) {
        if (result.key().operator_name() == TextOf(row, "name")) {
          processes += result.measurements_size();
        }
      }
    }
    found.Expect(NumberOf(side, "processes") == processes,
                 absl::StrCat(TextOf(row, "name"), " ", TextOf(row, "metric"),
                              ": the named runs have ", processes,
                              " processes, the gate counts ",
                              NumberOf(side, "processes")));
    found.Expect(
        commits.empty() || commits.count(TextOf(side, "commit")) == 1,
        absl::StrCat(TextOf(row, "name"), ": commit ", TextOf(side, "commit"),
                     " is of no run that is named"));
  }
}

void SixtyCommitsHaveOneStory(Workbench& bench, Findings& found) {
  const auto commits = RecordSixty(bench);
  const Json changes = bench.AskJson({"changes"}).Parsed();
  const Json change = ChangeAt(changes, "BM_Parse", commits[56]);
  found.Expect(!change.is_null(), "changes does not know commit 57");
  const Answer answer = bench.AskJson({"gate", "--candidate=latest"});
  const Json gate = answer.Parsed();
  if (!gate.is_object()) return found.Expect(false, answer.out + answer.err);
  CheckEvidence(bench, gate, found);
  // It prints what `show` prints about the commit that the baseline names.
  for (const Json& row : At(gate, "rows")) {
    if (TextOf(row, "metric") != "time") continue;
    const Json side = At(row, "baseline");
    const std::string commit = TextOf(side, "commit");
    if (commit.empty()) continue;
    const Json shown = RowWith(bench.AskJson({"show", commit}).Parsed(),
                               "benchmark", TextOf(row, "name"));
    found.Expect(
        IsNear(NumberOf(side, "value"), NumberOf(shown, "value"), .02),
        absl::StrCat(TextOf(row, "name"), ": the gate says ",
                     NumberOf(side, "value"), " at commit ", Short(commit),
                     ", show says ", NumberOf(shown, "value")));
  }
  std::set<std::string> notes;
  for (const Json& note : At(gate, "notes")) {
    found.Expect(notes.insert(note.get<std::string>()).second,
                 absl::StrCat("said twice: ", note.get<std::string>()));
  }
}

// A red row's baseline is what its runs took, and says which commits those are.
void TheBaselineOfTheGateIsWhatItsRunsTook(Workbench& bench, Findings& found) {
  RecordSeries(bench, 40, 52, [](RunSpec& spec, int position) {
    if (position >= 37) spec.benchmarks = Slower(spec.benchmarks, 1, 1.25);
  });
  const Json gate = bench.AskJson({"gate", "--candidate=latest"}).Parsed();
  if (!gate.is_object()) return found.Expect(false, "no JSON");
  CheckEvidence(bench, gate, found);
  const Json row = RowWith(At(gate, "rows"), "name", "BM_1");
  const double level = NumberOf(At(row, "baseline"), "value");
  const bool first = IsNear(level, 2000, .03),
             second = IsNear(level, 2500, .03);
  found.Expect(first || second, absl::StrCat("a baseline of ", level));
  // The commit that it names has that level.
  const std::string commit = TextOf(At(row, "baseline"), "commit");
  const Json shown =
      RowWith(bench.AskJson({"show", commit}).Parsed(), "benchmark", "BM_1");
  found.Expect(IsNear(NumberOf(shown, "value"), level, .03),
               absl::StrCat("the gate says ", level, " at ", Short(commit),
                            ", show says ", NumberOf(shown, "value")));
}

// The commits at which detect on an export sees changes of a series.
std::set<std::string> DetectedCommits(const Workbench& bench,
                                      const std::string& benchmark) {
  const Answer exported = bench.Ask({"history", "export", "--out=all.csv"});
  const std::string csv = *ReadFile(bench.Path("all.csv"));
  const Json detected = bench.Ask({"detect", "--csv=all.csv"}).Parsed();
  std::set<std::string> commits;
  if (!detected.is_array()) return commits;
  const auto rows = ReadCsv(csv);
  for (const Json& series : detected) {
    const std::string id = TextOf(series, "id");
    if (!absl::StartsWith(id, absl::StrCat(benchmark, "|time|"))) continue;
    std::vector<std::string> of_series;
    for (const auto& row : rows) {
      if (row.at("id") == id) of_series.push_back(row.at("commit"));
    }
    for (const Json& point : At(series, "change_points")) {
      if (point.value("provisional", false)) continue;
      commits.insert(of_series.at(point["index"].get<size_t>()));
    }
  }
  return commits;
}

std::set<std::string> ChangedCommits(const Workbench& bench,
                                     const std::string& benchmark,
                                     int commits) {
  std::set<std::string> changed;
  const Json rows = bench.AskJson({"changes", "--min_effect=0"}).Parsed();
  for (int i = 1; i <= commits; ++i) {
    const Json row = ChangeAt(rows, benchmark, MadeCommit(i));
    if (row.is_null() ||
        absl::StartsWith(TextOf(row, "state"), "provisional") ||
        absl::StartsWith(TextOf(row, "state"), "creep")) {
      continue;
    }
    changed.insert(MadeCommit(i));
  }
  return changed;
}

void DetectOnAnExportSaysWhatChangesSays(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 53, [](RunSpec& spec, int position) {
    if (position >= 57) spec.benchmarks = Slower(spec.benchmarks, 0, 1.25);
    if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 1, 1.1);
  });
  for (const char* name : {"BM_0", "BM_1", "BM_2"}) {
    const auto changes = ChangedCommits(bench, name, 60);
    const auto detected = DetectedCommits(bench, name);
    found.Expect(changes == detected,
                 absl::StrCat(name, ": changes has ", changes.size(),
                              " changes, detect ", detected.size(),
                              ", or at other commits"));
  }
  found.Expect(!ChangedCommits(bench, "BM_0", 60).empty(),
               "changes misses +25% at commit 57");
}

void DetectDoesNotSeeEpochsAsChanges(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 54, [](RunSpec& spec, int position) {
    if (position < 31) return;
    spec.compiler = "g++ 13.1.0";
    spec.benchmarks = Slower(spec.benchmarks, -1, 1.2);
  });
  const auto detected = DetectedCommits(bench, "BM_0");
  found.Expect(detected.empty(),
               "detect calls a new compiler a change of the code");
  const Answer changes = bench.AskJson({"changes"});
  found.ExpectExit(changes, 0);
}

void AStepIsFoundHoweverManyPointsSurroundIt(Workbench& bench,
                                             Findings& found) {
  for (const int before : {8, 10, 12, 15}) {
    for (uint64_t seed = 55; seed < 58; ++seed) {
      bench.Delete(".optrail");
      RecordSeries(bench, 2 * before, seed, [&](RunSpec& spec, int position) {
        if (position > before) {
          spec.benchmarks = Slower(spec.benchmarks, 1, 1.3);
        }
      });
      // It may be provisional with so few points after it.
      const Json changes = bench.AskJson({"changes"}).Parsed();
      found.Expect(!ChangeAt(changes, "BM_1", MadeCommit(before + 1)).is_null(),
                   absl::StrCat("changes has no +30% after ", before, " of ",
                                2 * before, " commits, seed ", seed));
    }
  }
}

void BranchesAreSeparateStories(Workbench& bench, Findings& found) {
  Rng rng(65);
  for (const char* branch : {"main", "topic"}) {
    for (int position = 1; position <= 30; ++position) {
      RunSpec spec;
      spec.branch = branch;
      spec.commit = MadeCommit(position, branch);
      spec.position = position;
      spec.started_unix_ns = kStartNs + position * kHourNs;
      spec.benchmarks = Benchmarks(2);
      if (std::string(branch) == "topic" && position >= 15) {
        spec.benchmarks = Slower(spec.benchmarks, 0, 1.5);
      }
      bench.Record(MakeRun(spec, &rng));
    }
  }
  found.ExpectExit(bench.Ask({"changes", "--branch=main"}), 0);
  found.ExpectExit(bench.Ask({"changes", "--branch=topic"}), 1);
  const Json gate = bench
                        .AskJson({"gate", absl::StrCat("--candidate=",
                                                       MadeCommit(30, "main"))})
                        .Parsed();
  if (!gate.is_object()) return found.Expect(false, "no JSON");
  for (const Json& baseline : At(gate, "baselines")) {
    for (const Json& run : At(baseline, "runs")) {
      found.Expect(TextOf(run, "branch") == "main",
                   "a run of topic is a baseline of main");
    }
  }
}

void RunsWithoutACommitAreOrderedByTime(Workbench& bench, Findings& found) {
  Rng rng(70);
  std::vector<std::string> ids;
  for (int i = 1; i <= 14; ++i) {
    RunSpec spec;
    spec.started_unix_ns = kStartNs + i * kHourNs;
    spec.benchmarks = Benchmarks(3);
    if (i == 14) spec.benchmarks = Slower(spec.benchmarks, 1, 1.3);
    ids.push_back(bench.Record(MakeRun(spec, &rng)));
  }
  const Json rows = bench.AskJson({"compare", "latest~1", "latest"}).Parsed();
  found.Expect(
      TextOf(RowWith(rows, "benchmark", "BM_1"), "verdict") == "slower",
      "latest is not the newest run");
  found.Expect(bench.Ask({"show", "latest"}).Says(ids.back()),
               "show latest is another run");
}

void SeveralRunsOfACommitAreOnePoint(Workbench& bench, Findings& found) {
  Rng rng(71);
  for (int position = 1; position <= 5; ++position) {
    for (int repetition = 0; repetition < 3; ++repetition) {
      RunSpec spec;
      spec.commit = MadeCommit(position);
      spec.position = position;
      spec.started_unix_ns =
          kStartNs + position * kHourNs + repetition * 60 * kSecondNs;
      spec.process_noise = .05;
      spec.benchmarks = Benchmarks(2);
      bench.Record(MakeRun(spec, &rng));
    }
  }
  const std::string series = "BM_0|time|ns|amd-epyc-zen4-2c|main";
  const Json points = bench.AskJson({"show", series}).Parsed();
  const Json page = ReportSeries(ReportOf(bench), "BM_0");
  bench.Ask({"history", "export", "--out=all.csv"});
  std::vector<double> exported;
  for (const auto& row : ReadCsv(*ReadFile(bench.Path("all.csv")))) {
    if (row.at("id") == series) exported.push_back(std::stod(row.at("value")));
  }
  found.Expect(points.is_array() && points.size() == 5 &&
                   exported.size() == 5 && page.is_object() &&
                   At(page, "points").size() == 5,
               "five commits are not five points everywhere");
  if (!found.wrong().empty()) return;
  for (size_t i = 0; i < 5; ++i) {
    const double value = NumberOf(points[i], "value");
    found.Expect(NumberOf(points[i], "processes") == 15,
                 "a point has not all processes");
    found.Expect(
        IsNear(value, exported[i]) &&
            IsNear(value, NumberOf(At(page, "points")[i], "value")),
        absl::StrCat("point ", i, ": show ", value, ", export ", exported[i],
                     ", report ", NumberOf(At(page, "points")[i], "value")));
  }
}

// An export with the points that failed has them as rows without a value.
void FailedPointsOfAnExportMoveNoChange(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 72, [](RunSpec& spec, int position) {
    if (position >= 40) spec.benchmarks = Slower(spec.benchmarks, 1, 1.25);
    if (position % 9 == 4) spec.benchmarks[1].outcome = proto::CRASHED;
  });
  std::vector<std::multiset<double>> changes;
  for (const char* flag : {"--failed_points=false", "--failed_points"}) {
    const Answer exported =
        bench.Ask({"history", "export", flag, "--out=all.csv"});
    if (exported.exit_code == 2) return;  // there is no such flag
    auto& sizes = changes.emplace_back();
    for (const Json& series : bench.Ask({"detect", "--csv=all.csv"}).Parsed()) {
      for (const Json& change : At(series, "change_points")) {
        sizes.insert(NumberOf(change, "relative_change"));
      }
    }
  }
  found.Expect(changes[0].size() == 1 && changes[0] == changes[1],
               absl::StrCat("detect sees ", changes[0].size(),
                            " changes without failed points, ",
                            changes[1].size(), " or others with them"));
}

// A benchmark that crashes at the last three commits broke at the first of
// them.
void AFailureIsDatedByItsFirstCommit(Workbench& bench, Findings& found) {
  RecordSeries(bench, 20, 73, [](RunSpec& spec, int position) {
    if (position >= 18) spec.benchmarks[1].outcome = proto::CRASHED;
  });
  int rows = 0;
  for (const Json& row : bench.Ask({"changes", "--format=json"}).Parsed()) {
    if (TextOf(row, "state") != "failed") continue;
    ++rows;
    const auto is = [&](const char* field, int position) {
      const std::string commit = TextOf(row, field);
      return !commit.empty() && absl::StartsWith(MadeCommit(position), commit);
    };
    found.Expect(is("last_commit_before", 17) && is("first_commit_after", 18),
                 absl::StrCat("changes dates the crash by ", row.dump()));
  }
  found.Expect(rows == 1, absl::StrCat(rows, " rows of a failure"));
}

// A gate of an old commit knows what was known then.
void AnOldCandidateKnowsNoLaterPoints(Workbench& bench, Findings& found) {
  Rng rng(83);
  for (int i = 1; i <= 30; ++i) {
    RecordCommit(bench, &rng, i, i > 14 ? 1.3 : 1);
  }
  const Json gate =
      bench.AskJson({"gate", "--candidate=" + MadeCommit(16)}).Parsed();
  found.Expect(
      TextOf(RowWith(At(gate, "rows"), "name", "BM_1"), "verdict") == "slower",
      "+30% is not red at its second commit");
  for (const Json& change : At(gate, "open_changes")) {
    found.Expect(
        NumberOf(change, "points_since") <= 2 &&
            !At(change, "confirmed").get<bool>(),
        absl::StrCat("points after the candidate count: ", change.dump()));
  }
}

// Until a step is answered, the gate or `changes` is red.
void SomebodyAlwaysTellsOfALargeStep(Workbench& bench, Findings& found) {
  for (const int before : {7, 13}) {
    bench.Delete(".optrail");
    Rng rng(84);
    for (int i = 1; i <= before; ++i) RecordCommit(bench, &rng, i, 1);
    for (int since = 1; since <= 20; ++since) {
      RecordCommit(bench, &rng, before + since, 1.3);
      const int gate = bench.Ask({"gate", "--candidate=latest"}).exit_code;
      const int changes = bench.Ask({"changes"}).exit_code;
      found.Expect(
          gate == 1 || changes == 1,
          absl::StrCat("+30% after ", before, " points: gate ", gate,
                       ", changes ", changes, " at its point ", since));
    }
  }
}

}  // namespace

std::vector<Case> SeriesCases() {
  return {
      {"AnOldCandidateKnowsNoLaterPoints", AnOldCandidateKnowsNoLaterPoints},
      {"SomebodyAlwaysTellsOfALargeStep", SomebodyAlwaysTellsOfALargeStep},
      {"SixtyCommitsHaveOneStory", SixtyCommitsHaveOneStory},
      {"TheBaselineOfTheGateIsWhatItsRunsTook",
       TheBaselineOfTheGateIsWhatItsRunsTook},
      {"DetectOnAnExportSaysWhatChangesSays",
       DetectOnAnExportSaysWhatChangesSays},
      {"DetectDoesNotSeeEpochsAsChanges", DetectDoesNotSeeEpochsAsChanges},
      {"AStepIsFoundHoweverManyPointsSurroundIt",
       AStepIsFoundHoweverManyPointsSurroundIt},
      {"BranchesAreSeparateStories", BranchesAreSeparateStories},
      {"RunsWithoutACommitAreOrderedByTime",
       RunsWithoutACommitAreOrderedByTime},
      {"SeveralRunsOfACommitAreOnePoint", SeveralRunsOfACommitAreOnePoint},
      {"AFailureIsDatedByItsFirstCommit", AFailureIsDatedByItsFirstCommit},
      {"FailedPointsOfAnExportMoveNoChange",
       FailedPointsOfAnExportMoveNoChange},
  };
}

}  // namespace optrail::agreement
