// Measures the gate on identical code and on planted slow-downs, by resampling
// processes that were recorded once, and prints the tables of docs/gating.md.
//
//   bazel run //tracker/gate/evaluation:gate_evaluation -- \
//       --processes=$PWD/base/testdata/processes_xeon_2c.tsv
//
// --processes is a file of one line per benchmark: its name, then for each
// round (a run) the process medians in ns separated by spaces; the fields are
// separated by tabs. --history=DIR --export=FILE makes one from a history whose
// runs are of the same code.

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "tracker/compare/compare.h"
#include "tracker/compare/ratio.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/policy.h"
#include "tracker/history/history.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"

ABSL_FLAG(std::string, processes, "", "recorded processes, see above");
ABSL_FLAG(std::string, history, "", "history to make such a file from");
ABSL_FLAG(std::string, export, "", "where to write it");
ABSL_FLAG(int, runs, 10000, "gate runs of identical code per table row");
ABSL_FLAG(int, power_runs, 2000, "gate runs with a slow-down per table row");
ABSL_FLAG(double, slowdown, .05, "that is planted in one benchmark");
ABSL_FLAG(std::string, design, "",
          "measure false alarms only of designs whose name holds this");
ABSL_FLAG(uint64_t, seed, 1, "");

namespace optrail::tracker {
namespace {

struct Benchmark {
  std::string name;
  ProcessGroups rounds;
  std::vector<double> processes;  // of all rounds
  double spread = 0;              // of the logarithm, over all processes
};

absl::StatusOr<std::vector<Benchmark>> ReadProcesses(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<Benchmark> benchmarks;
  int line_number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    Benchmark benchmark;
    benchmark.name = std::string(fields[0]);
    for (size_t i = 1; i < fields.size(); ++i) {
      benchmark.rounds.emplace_back();
      for (const absl::string_view number :
           absl::StrSplit(fields[i], ' ', absl::SkipEmpty())) {
        double value;
        if (!absl::SimpleAtod(number, &value) || !(value > 0)) {
          return absl::InvalidArgumentError(
              absl::StrCat(path, ":", line_number, ": field ", i + 1, ": '",
                           number, "', expected a positive number"));
        }
        benchmark.rounds.back().push_back(value);
        benchmark.processes.push_back(value);
      }
    }
    std::vector<double> logs;
    for (const double value : benchmark.processes) {
      logs.push_back(std::log(value));
    }
    benchmark.spread = StandardDeviation(logs);
    benchmarks.push_back(std::move(benchmark));
  }
  return benchmarks;
}

absl::Status Export(const std::string& dir, const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, History::Open(dir));
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedRuns loaded, history.LoadRuns());
  std::map<std::string, std::vector<std::string>> lines;
  for (const proto::Run& run : loaded.runs) {
    for (const proto::BenchmarkResult& result : run.results()) {
      std::vector<std::string> values;
      for (const proto::Measurement& measurement : result.measurements()) {
        const auto reading = ReadingOf(measurement, "time");
        if (!reading) continue;
        values.push_back(absl::StrFormat("%.5g", reading->value));
      }
      lines[DisplayName(result.key())].push_back(absl::StrJoin(values, " "));
    }
  }
  std::string text = "# benchmark, then process medians in ns of each round\n";
  for (const auto& [name, rounds] : lines) {
    absl::StrAppend(&text, name, "\t", absl::StrJoin(rounds, "\t"), "\n");
  }
  return WriteFileAtomically(path, text);
}

// Draws the two sides of a benchmark.
struct Sides {
  ProcessGroups baseline;
  ProcessGroups candidate;
};

// `n` processes a side out of all, in any order: what resampling means.
Sides DrawPooled(const Benchmark& benchmark, int n, Rng& rng) {
  std::vector<double> drawn = benchmark.processes;
  const int size = static_cast<int>(drawn.size());
  Sides sides = {{{}}, {{}}};
  for (int i = 0; i < std::min(size, 2 * n); ++i) {
    std::swap(drawn[i], drawn[i + rng.UniformInt(size - i)]);
    (i % 2 == 0 ? sides.baseline : sides.candidate)[0].push_back(drawn[i]);
  }
  return sides;
}

// As ci/gate.sh measures: `pairs` pairs of neighbouring rounds, one run of each
// pair, of `processes`, on either side. The machine drifts as it did; within a
// pair of rounds processes change places.
Sides DrawInterleaved(const Benchmark& benchmark, int pairs, int processes,
                      Rng& rng) {
  const int rounds = static_cast<int>(benchmark.rounds.size());
  const int first = static_cast<int>(rng.UniformInt(rounds - 2 * pairs + 1));
  Sides sides;
  for (int pair = 0; pair < pairs; ++pair) {
    std::vector<double> drawn = benchmark.rounds[first + 2 * pair];
    const std::vector<double>& other = benchmark.rounds[first + 2 * pair + 1];
    drawn.insert(drawn.end(), other.begin(), other.end());
    const size_t half =
        std::min<size_t>(drawn.size() / 2, static_cast<size_t>(processes));
    for (size_t i = 0; i + 1 < drawn.size(); ++i) {
      std::swap(drawn[i],
                drawn[i + static_cast<size_t>(rng.UniformInt(
                              static_cast<int64_t>(drawn.size() - i)))]);
    }
    sides.baseline.emplace_back(drawn.begin(), drawn.begin() + half);
    sides.candidate.emplace_back(drawn.begin() + half,
                                 drawn.begin() + 2 * half);
  }
  return sides;
}

// The history's window: one round against `window` others.
Sides DrawWindow(const Benchmark& benchmark, int window, Rng& rng) {
  ProcessGroups rounds = benchmark.rounds;
  Sides sides;
  for (int i = 0; i <= window; ++i) {
    std::swap(
        rounds[i],
        rounds[i + rng.UniformInt(static_cast<int64_t>(rounds.size()) - i)]);
    (i == 0 ? sides.candidate : sides.baseline).push_back(rounds[i]);
  }
  return sides;
}

// The runs of one side of a gate run, benchmark by benchmark.
class SideRuns {
 public:
  explicit SideRuns(absl::string_view name) : name_(name) {}

  void Add(const std::string& benchmark, const ProcessGroups& groups,
           double factor) {
    for (size_t i = 0; i < groups.size(); ++i) {
      if (i == runs_.size()) {
        runs_.emplace_back();
        runs_.back().set_run_id(absl::StrCat(name_, i));
      }
      proto::BenchmarkResult* result = runs_[i].add_results();
      result->mutable_key()->set_operator_name(benchmark);
      result->set_outcome(proto::OK);
      for (const double value : groups[i]) {
        result->add_measurements()->set_median_ns(value * factor);
      }
    }
  }

  std::vector<const proto::Run*> Pointers() const {
    std::vector<const proto::Run*> pointers;
    for (const proto::Run& run : runs_) pointers.push_back(&run);
    return pointers;
  }

 private:
  const std::string name_;
  std::vector<proto::Run> runs_;
};

using Draw = std::function<Sides(const Benchmark&, Rng&)>;

// One gate run of every benchmark; the one at `slowed`, if any, is slower in
// the candidate.
GateReport GateOnce(const std::vector<Benchmark>& benchmarks,
                    const Policy& policy, const Draw& draw, int slowed,
                    Rng& rng) {
  SideRuns baseline("b"), candidate("c");
  for (size_t i = 0; i < benchmarks.size(); ++i) {
    const Sides sides = draw(benchmarks[i], rng);
    baseline.Add(benchmarks[i].name, sides.baseline, 1);
    candidate.Add(
        benchmarks[i].name, sides.candidate,
        static_cast<int>(i) == slowed ? 1 + absl::GetFlag(FLAGS_slowdown) : 1);
  }
  const auto comparison = Compare(baseline.Pointers(), candidate.Pointers(),
                                  CompareOptionsFor(policy, 1));
  OPTRAIL_CHECK(comparison.ok()) << comparison.status();
  GateReport report;
  Judge(policy, *comparison, "baseline", 0, &report);
  Conclude(&report);
  return report;
}

std::string Percent(double fraction) {
  return absl::StrFormat("%.2f%%", 100 * fraction);
}

std::string Share(int part, int whole) {
  return whole == 0 ? "-" : Percent(static_cast<double>(part) / whole);
}

Policy PolicyWithEffect(double min_effect) {
  return *Policy::Parse(
      absl::StrCat("rule { min_effect: ", min_effect, " detect_effect: 0.05 }"),
      "evaluation");
}

void FalseAlarms(const std::vector<Benchmark>& benchmarks) {
  const struct {
    std::string name;
    Draw draw;
  } designs[] = {
      {"5 processes a side",
       [](const Benchmark& b, Rng& rng) { return DrawPooled(b, 5, rng); }},
      {"12 processes a side",
       [](const Benchmark& b, Rng& rng) { return DrawPooled(b, 12, rng); }},
      {"30 processes a side",
       [](const Benchmark& b, Rng& rng) { return DrawPooled(b, 30, rng); }},
      {"interleaved, 3 rounds of 4",
       [](const Benchmark& b, Rng& rng) {
         return DrawInterleaved(b, 3, 4, rng);
       }},
      {"interleaved, 6 rounds of 2",
       [](const Benchmark& b, Rng& rng) {
         return DrawInterleaved(b, 6, 2, rng);
       }},
      {"window of 10 runs, 4 processes each",
       [](const Benchmark& b, Rng& rng) { return DrawWindow(b, 10, rng); }},
  };
  Table table({{"design"},
               {"min_effect", Align::kRight},
               {"runs", Align::kRight},
               {"red", Align::kRight},
               {"share", Align::kRight},
               {"95% upper bound", Align::kRight},
               {"benchmarks told", Align::kRight}});
  for (const auto& design : designs) {
    if (!absl::StrContains(design.name, absl::GetFlag(FLAGS_design))) continue;
    for (const double min_effect : {.03, 0.}) {
      const Policy policy = PolicyWithEffect(min_effect);
      Rng rng(absl::GetFlag(FLAGS_seed));
      const int runs = absl::GetFlag(FLAGS_runs);
      int red = 0;
      int64_t told = 0, rows = 0;
      std::map<std::string, int> culprits;
      for (int i = 0; i < runs; ++i) {
        const GateReport report =
            GateOnce(benchmarks, policy, design.draw, -1, rng);
        red += report.exit_code == 1;
        rows += static_cast<int64_t>(report.rows.size());
        told +=
            static_cast<int64_t>(report.rows.size()) - report.CountCannotTell();
        for (const GateRow& row : report.rows) {
          if (row.row.verdict == Verdict::kSlower) ++culprits[row.row.name];
        }
      }
      for (const auto& [name, count] : culprits) {
        if (count > runs / 500) {
          std::cerr << design.name << ": " << name << " red " << count << "\n";
        }
      }
      table.AddRow({design.name, absl::StrFormat("%g%%", 100 * min_effect),
                    Cell::Integer(runs), Cell::Integer(red), Share(red, runs),
                    Percent(ClopperPearsonUpper(red, runs, .95)),
                    Percent(static_cast<double>(told) / rows)});
    }
  }
  std::cout << "Identical code, " << benchmarks.size() << " benchmarks:\n\n"
            << table.ToMarkdown() << "\n";
}

void Power(const std::vector<Benchmark>& benchmarks) {
  // Upper ends of the classes of spread.
  const std::vector<double> classes = {.005, .01, .02, .04, 1e9};
  Table table({{"processes a side", Align::kRight},
               {"spread up to 0.5%", Align::kRight},
               {"1%", Align::kRight},
               {"2%", Align::kRight},
               {"4%", Align::kRight},
               {"more", Align::kRight},
               {"stated detectable <= slow-down", Align::kRight},
               {"found there", Align::kRight},
               {"95% lower bound", Align::kRight}});
  const Policy policy = PolicyWithEffect(.03);
  for (const int processes : {5, 10, 20, 40, 60}) {
    Rng rng(absl::GetFlag(FLAGS_seed) + 1);
    std::vector<int> tried(classes.size()), found(classes.size());
    int able = 0, able_found = 0;
    const int runs = absl::GetFlag(FLAGS_power_runs);
    for (int i = 0; i < runs; ++i) {
      const int slowed = static_cast<int>(
          rng.UniformInt(static_cast<int64_t>(benchmarks.size())));
      const GateReport report = GateOnce(
          benchmarks, policy,
          [processes](const Benchmark& b, Rng& r) {
            return DrawPooled(b, processes, r);
          },
          slowed, rng);
      const auto row = std::find_if(
          report.rows.begin(), report.rows.end(), [&](const GateRow& r) {
            return r.row.name == benchmarks[slowed].name;
          });
      OPTRAIL_CHECK(row != report.rows.end());
      const bool is_found = row->row.verdict == Verdict::kSlower;
      const size_t c =
          static_cast<size_t>(std::lower_bound(classes.begin(), classes.end(),
                                               benchmarks[slowed].spread) -
                              classes.begin());
      ++tried[c];
      found[c] += is_found;
      if (row->row.minimum_detectable_effect.value_or(1) <=
          absl::GetFlag(FLAGS_slowdown)) {
        ++able;
        able_found += is_found;
      }
    }
    std::vector<Cell> cells = {Cell::Integer(processes)};
    for (size_t c = 0; c < classes.size(); ++c) {
      cells.push_back(Share(found[c], tried[c]));
    }
    cells.push_back(absl::StrCat(able, " of ", runs));
    cells.push_back(Share(able_found, able));
    cells.push_back(
        able == 0 ? "-" : Percent(ClopperPearsonLower(able_found, able, .95)));
    table.AddRow(std::move(cells));
  }
  std::cout << "A slow-down of " << Percent(absl::GetFlag(FLAGS_slowdown))
            << " in one of " << benchmarks.size()
            << " benchmarks, found, by the spread between its processes:\n\n"
            << table.ToMarkdown() << "\n";
}

// The benchmark with residuals of the recorded shape but of another size.
Benchmark WithSpread(Benchmark benchmark, double spread) {
  const double scale = spread / benchmark.spread;
  const double center = std::log(Median(benchmark.processes));
  for (double& value : benchmark.processes) {
    value = std::exp(center + scale * (std::log(value) - center));
  }
  benchmark.spread = spread;
  return benchmark;
}

// Found slow-downs by spread and number of processes, and for how many the gate
// had said that it could.
void PowerCurve(const std::vector<Benchmark>& recorded) {
  Table table({{"spread", Align::kRight},
               {"5 processes", Align::kRight},
               {"10", Align::kRight},
               {"20", Align::kRight},
               {"40", Align::kRight}});
  const Policy policy = PolicyWithEffect(.03);
  const int runs = absl::GetFlag(FLAGS_power_runs) / 4;
  for (const double spread : {.005, .01, .015, .02, .03, .04}) {
    std::vector<Benchmark> benchmarks;
    for (const Benchmark& benchmark : recorded) {
      benchmarks.push_back(WithSpread(benchmark, spread));
    }
    std::vector<Cell> cells = {absl::StrFormat("%.1f%%", 100 * spread)};
    for (const int processes : {5, 10, 20, 40}) {
      Rng rng(absl::GetFlag(FLAGS_seed) + 2);
      int found = 0, able = 0;
      for (int i = 0; i < runs; ++i) {
        const int slowed = static_cast<int>(
            rng.UniformInt(static_cast<int64_t>(benchmarks.size())));
        const GateReport report = GateOnce(
            benchmarks, policy,
            [processes](const Benchmark& b, Rng& r) {
              return DrawPooled(b, processes, r);
            },
            slowed, rng);
        for (const GateRow& row : report.rows) {
          if (row.row.name != benchmarks[slowed].name) continue;
          found += row.row.verdict == Verdict::kSlower;
          able += row.row.minimum_detectable_effect.value_or(1) <=
                  absl::GetFlag(FLAGS_slowdown);
        }
      }
      cells.push_back(absl::StrFormat("%.0f%% (%.0f%%)", 100. * found / runs,
                                      100. * able / runs));
    }
    table.AddRow(std::move(cells));
  }
  std::cout << "The same with residuals scaled to one spread (in brackets: how "
               "often the gate\nsays that it could find it):\n\n"
            << table.ToMarkdown() << "\n";
}

void DescribeData(const std::vector<Benchmark>& benchmarks) {
  std::vector<double> spreads;
  size_t processes = 0, rounds = 0;
  for (const Benchmark& benchmark : benchmarks) {
    spreads.push_back(benchmark.spread);
    processes += benchmark.processes.size();
    rounds = std::max(rounds, benchmark.rounds.size());
  }
  std::cout << benchmarks.size() << " benchmarks, " << rounds << " rounds, "
            << processes << " processes; spread between processes: median "
            << Percent(Median(spreads)) << ", 10th and 90th percentile "
            << Percent(Quantile(spreads, .1)) << " and "
            << Percent(Quantile(spreads, .9)) << ", largest "
            << Percent(Quantile(spreads, 1)) << "\n\n";
}

absl::Status Main() {
  if (!absl::GetFlag(FLAGS_export).empty()) {
    return Export(absl::GetFlag(FLAGS_history), absl::GetFlag(FLAGS_export));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Benchmark> benchmarks,
                           ReadProcesses(absl::GetFlag(FLAGS_processes)));
  DescribeData(benchmarks);
  if (absl::GetFlag(FLAGS_runs) > 0) FalseAlarms(benchmarks);
  if (absl::GetFlag(FLAGS_power_runs) > 0) {
    Power(benchmarks);
    PowerCurve(benchmarks);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the gate's false alarms and power.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tracker::Main();
  if (status.ok()) return 0;
  std::cerr << "error: " << status.message() << "\n";
  return 2;
}
