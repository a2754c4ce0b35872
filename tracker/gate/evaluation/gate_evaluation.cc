// Measures the gate and `compare` on runs of identical code that were recorded
// one after another, and prints the tables of docs/gating.md.
//
//   cd tracker/gate/evaluation
//   bazel run :gate_evaluation -- --sets=$PWD/runs_calm_2c.tsv
//
// A set is a file of one line per benchmark: its name, then for each run the
// process medians in ns separated by spaces; the fields are separated by tabs.
// A median may be followed by the fastest sample and by calibration loops in
// ns: "43210/42900@arithmetic,l1,l2,l3,memory,contended", the last the share of
// samples that were. --history=DIR --export=FILE
// makes one of a history whose runs are of the same code. --simulate=N adds N
// simulated sets whose noise is made to be like that of a machine with a drift
// of 3.2% that six of eight benchmarks share.

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
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
#include "tracker/gate/gate.h"
#include "tracker/gate/policy.h"
#include "tracker/history/history.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"

ABSL_FLAG(std::vector<std::string>, sets, {}, "recorded sets, see above");
ABSL_FLAG(int, simulate, 0, "simulated sets");
ABSL_FLAG(std::string, history, "", "history to make a set from");
ABSL_FLAG(std::string, export, "", "where to write it");
ABSL_FLAG(int, shuffles, 12, "orders of each set beside that of time");
ABSL_FLAG(int, benchmarks, 8, "drawn from sets that have more");
ABSL_FLAG(uint64_t, seed, 1, "");

namespace optrail::tracker {
namespace {

constexpr std::array<const char*, 5> kLoops = {"arithmetic", "l1", "l2", "l3",
                                               "memory"};
constexpr int kFewestRuns = 5;

struct Set {
  std::string name;
  std::vector<proto::Run> runs;
};

absl::StatusOr<double> Positive(absl::string_view text, absl::string_view path,
                                int line) {
  double value;
  if (absl::SimpleAtod(text, &value) && value > 0) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      path, ":", line, ": '", text, "', expected a positive number"));
}

// Samples of which `contended` are left out and the others have that median and
// that minimum.
void AddSamples(double median, double fastest, double contended,
                proto::Measurement* measurement) {
  constexpr int kClean = 5, kCalls = 1000;
  const int bad =
      static_cast<int>(std::lround(kClean * contended / (1 - contended)));
  for (int i = 0; i < kClean + bad; ++i) {
    measurement->add_sample_ns(
        std::llround(kCalls * (i == 0 ? fastest : median)));
    if (i >= kClean) measurement->add_contended_samples(i);
  }
  measurement->set_calls_per_sample(kCalls);
}

absl::StatusOr<Set> ReadSet(const std::string& path, Rng& rng) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Set set;
  set.name = path.substr(path.rfind('/') + 1);
  std::vector<std::pair<int, absl::string_view>> lines;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!line.empty() && line[0] != '#') lines.push_back({number, line});
  }
  const size_t wanted = static_cast<size_t>(absl::GetFlag(FLAGS_benchmarks));
  if (lines.size() > wanted) {
    rng.Shuffle(lines);
    lines.resize(wanted);
  }
  for (const auto& [line_number, line] : lines) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    set.runs.resize(std::max(set.runs.size(), fields.size() - 1));
    for (size_t i = 1; i < fields.size(); ++i) {
      proto::BenchmarkResult* result = set.runs[i - 1].add_results();
      result->mutable_key()->set_operator_name(std::string(fields[0]));
      result->set_outcome(proto::OK);
      for (const absl::string_view process :
           absl::StrSplit(fields[i], ' ', absl::SkipEmpty())) {
        const std::vector<absl::string_view> parts =
            absl::StrSplit(process, '@');
        proto::Measurement* measurement = result->add_measurements();
        const std::vector<absl::string_view> times =
            absl::StrSplit(parts[0], '/');
        OPTRAIL_ASSIGN_OR_RETURN(const double median,
                                 Positive(times[0], path, line_number));
        measurement->set_median_ns(median);
        double fastest = median;
        if (times.size() > 1) {
          OPTRAIL_ASSIGN_OR_RETURN(fastest,
                                   Positive(times[1], path, line_number));
        }
        if (parts.size() < 2) continue;
        const std::vector<absl::string_view> loops =
            absl::StrSplit(parts[1], ',');
        if (loops.size() != kLoops.size() + 1) {
          return absl::InvalidArgumentError(
              absl::StrCat(path, ":", line_number, ": '", parts[1],
                           "', expected ", kLoops.size() + 1, " numbers"));
        }
        double contended;
        if (!absl::SimpleAtod(loops.back(), &contended) || contended < 0 ||
            contended >= 1) {
          return absl::InvalidArgumentError(
              absl::StrCat(path, ":", line_number, ": '", loops.back(),
                           "', expected a share of samples below 1"));
        }
        AddSamples(median, fastest, contended, measurement);
        for (size_t k = 0; k < kLoops.size(); ++k) {
          OPTRAIL_ASSIGN_OR_RETURN(const double time_ns,
                                   Positive(loops[k], path, line_number));
          proto::Calibration* loop =
              measurement->mutable_conditions()->add_calibrations();
          loop->set_loop(kLoops[k]);
          loop->set_time_ns(time_ns);
        }
      }
    }
  }
  return set;
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
        const double contended =
            measurement.sample_ns_size() == 0
                ? 0
                : 1. * measurement.contended_samples_size() /
                      measurement.sample_ns_size();
        std::vector<std::string> loops;
        for (const char* name : kLoops) {
          for (const auto& loop : measurement.conditions().calibrations()) {
            if (loop.loop() != name) continue;
            loops.push_back(absl::StrFormat("%.4g", loop.time_ns()));
          }
        }
        values.push_back(absl::StrCat(
            absl::StrFormat("%.5g/%.5g", reading->value, reading->fastest),
            loops.size() == kLoops.size()
                ? absl::StrCat("@", absl::StrJoin(loops, ","))
                : ""));
      }
      lines[DisplayName(result.key())].push_back(absl::StrJoin(values, " "));
    }
  }
  std::string text = "# benchmark, then process medians in ns of each run\n";
  for (const auto& [name, runs] : lines) {
    absl::StrAppend(&text, name, "\t", absl::StrJoin(runs, "\t"), "\n");
  }
  return WriteFileAtomically(path, text);
}

// 30 runs of eight benchmarks in five processes: six bound by the core, which
// share a drift of 3.2% from run to run and differ by 1.3% besides, two
// streaming ones of .3%.
Set Simulate(int number, Rng& rng) {
  constexpr int kRuns = 30, kBenchmarks = 8, kCompute = 6, kProcesses = 5;
  constexpr double kDrift = .032, kMemory = .8;
  Set set;
  set.name = absl::StrCat("simulated ", number + 1);
  double drift = kDrift * rng.Gaussian();
  std::array<double, kBenchmarks> loadings;
  for (double& loading : loadings) loading = .9 + .2 * rng.UniformReal();
  for (int r = 0; r < kRuns; ++r) {
    proto::Run& run = set.runs.emplace_back();
    drift = kMemory * drift +
            std::sqrt(1 - kMemory * kMemory) * kDrift * rng.Gaussian();
    for (int j = 0; j < kBenchmarks; ++j) {
      const bool compute = j < kCompute;
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(absl::StrCat("BM_", j));
      result->set_outcome(proto::OK);
      const double level = (compute ? loadings[j] : .03) * drift +
                           (compute ? .009 : .0024) * rng.Gaussian();
      for (int p = 0; p < kProcesses; ++p) {
        result->add_measurements()->set_median_ns(
            1e5 * std::exp(level + (compute ? .02 : .003) * rng.Gaussian()));
      }
    }
  }
  return set;
}

// `run` with all that benchmark `which` (-1: every one) took times `factor`.
proto::Run Slowed(proto::Run run, int which, double factor) {
  for (int j = 0; j < run.results_size(); ++j) {
    if (which >= 0 && j != which) continue;
    for (auto& m : *run.mutable_results(j)->mutable_measurements()) {
      m.set_median_ns(m.median_ns() * factor);
    }
  }
  return run;
}

// Runs numbered by place, as a history would have them.
std::vector<proto::Run> Numbered(std::vector<proto::Run> runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].set_started_unix_ns(static_cast<int64_t>(i) * 1'000'000'000);
    runs[i].set_run_id(absl::StrFormat("%04d", i));
  }
  return runs;
}

std::vector<const proto::Run*> Pointers(const std::vector<proto::Run>& runs,
                                        size_t from, size_t to) {
  std::vector<const proto::Run*> pointers;
  for (size_t i = from; i < to; ++i) pointers.push_back(&runs[i]);
  return pointers;
}

// The gate of the last `candidates` of `runs` against the window before them,
// as Gate() does it by the default policy.
GateReport GateLast(const std::vector<proto::Run>& runs, size_t candidates,
                    int looks) {
  static const Policy policy = Policy::Default();
  const size_t window =
      static_cast<size_t>(policy.proto().baseline(0).window().runs());
  const size_t first = runs.size() - candidates;
  CompareOptions options = CompareOptionsFor(policy, 1, looks);
  options.window = true;
  options.history = Pointers(runs, 0, first);
  const auto comparison =
      Compare(Pointers(runs, first > window ? first - window : 0, first),
              Pointers(runs, first, runs.size()), options);
  OPTRAIL_CHECK(comparison.ok()) << comparison.status();
  GateReport report;
  Judge(policy, *comparison, "window", 0, &report);
  Conclude(&report);
  return report;
}

const Row& RowOf(const GateReport& report, const std::string& name) {
  for (const GateRow& row : report.rows) {
    if (row.row.name == name) return row.row;
  }
  OPTRAIL_CHECK(false) << "no row " << name;
  return report.rows[0].row;
}

struct Share {
  int part = 0, whole = 0;

  void Add(bool is) {
    part += is;
    ++whole;
  }
  std::string Text() const {
    return whole == 0 ? "-" : absl::StrFormat("%.1f%%", 100. * part / whole);
  }
  std::string UpperText() const {
    return whole == 0
               ? "-"
               : absl::StrFormat("%.2f%% (upper 95%% bound %.2f%%)",
                                 100. * part / whole,
                                 100 * ClopperPearsonUpper(part, whole, .95));
  }
};

struct Figures {
  Share red, green;
  Share pairs_slower, rows_unclear;
  Share found10, found5, found5_again;
  Share told_after, found20_after;

  void Add(const Figures& other) {
    for (const auto& [mine, its] : {std::make_pair(&red, &other.red),
                                    {&green, &other.green},
                                    {&pairs_slower, &other.pairs_slower},
                                    {&rows_unclear, &other.rows_unclear},
                                    {&found10, &other.found10},
                                    {&found5, &other.found5},
                                    {&found5_again, &other.found5_again},
                                    {&told_after, &other.told_after},
                                    {&found20_after, &other.found20_after}}) {
      mine->part += its->part;
      mine->whole += its->whole;
    }
  }
};

class Evaluation {
 public:
  Evaluation(const Set& set, Rng& rng) : set_(set), rng_(rng) {}

  Figures Run() {
    for (int order = 0; order <= absl::GetFlag(FLAGS_shuffles); ++order) {
      std::vector<proto::Run> runs = set_.runs;
      if (order > 0) rng_.Shuffle(runs);
      Gates(runs);
      Events(runs);
    }
    Pairs();
    return figures_;
  }

 private:
  void Gates(const std::vector<proto::Run>& runs) {
    for (size_t last = kFewestRuns; last < runs.size(); ++last) {
      std::vector<proto::Run> past(runs.begin(), runs.begin() + last + 1);
      const GateReport report = GateLast(Numbered(past), 1, 1);
      figures_.red.Add(report.exit_code == 1);
      figures_.green.Add(report.exit_code == 0);
      const int which = static_cast<int>(last) % past[0].results_size();
      const std::string name = past[0].results(which).key().operator_name();
      past.back() = Slowed(runs[last], which, 1.1);
      figures_.found10.Add(
          RowOf(GateLast(Numbered(past), 1, 1), name).verdict ==
          Verdict::kSlower);
      past.back() = Slowed(runs[last], which, 1.05);
      GateReport slowed = GateLast(Numbered(past), 1, 1);
      figures_.found5.Add(RowOf(slowed, name).verdict == Verdict::kSlower);
      // What the gate asks for: more runs, other ones of the set.
      size_t candidates = 1;
      for (int look = 2; look <= 3 && slowed.exit_code == 3; ++look) {
        for (int more = 0; more < (look == 2 ? 4 : 8); ++more) {
          past.push_back(
              Slowed(runs[(last + candidates) % runs.size()], which, 1.05));
          ++candidates;
        }
        slowed = GateLast(Numbered(past), candidates, 3);
      }
      figures_.found5_again.Add(RowOf(slowed, name).verdict ==
                                Verdict::kSlower);
    }
  }

  // One bad run, of one benchmark and of all, and an improvement that lasts;
  // then two more runs, and the third is judged.
  void Events(const std::vector<proto::Run>& runs) {
    for (size_t at = 8; at + 3 < runs.size(); at += 3) {
      const int which = static_cast<int>(at) % runs[0].results_size();
      const std::string name = runs[0].results(which).key().operator_name();
      for (int kind = 0; kind < 3; ++kind) {
        std::vector<proto::Run> past(runs.begin(), runs.begin() + at + 4);
        if (kind < 2) past[at] = Slowed(past[at], kind == 0 ? which : -1, 1.5);
        for (size_t i = at; kind == 2 && i < past.size(); ++i) {
          past[i] = Slowed(past[i], which, .95);
        }
        figures_.told_after.Add(
            RowOf(GateLast(Numbered(past), 1, 1), name).verdict !=
            Verdict::kCannotTell);
        past.back() = Slowed(past.back(), which, 1.2);
        figures_.found20_after.Add(
            RowOf(GateLast(Numbered(past), 1, 1), name).verdict ==
            Verdict::kSlower);
      }
    }
  }

  // Every ordered pair of runs, with the others to learn from.
  void Pairs() {
    const std::vector<proto::Run> runs = Numbered(set_.runs);
    CompareOptions options;
    options.history = Pointers(runs, 0, runs.size());
    for (const proto::Run& a : runs) {
      for (const proto::Run& b : runs) {
        if (&a == &b) continue;
        const auto comparison = Compare({&a}, {&b}, options);
        OPTRAIL_CHECK(comparison.ok()) << comparison.status();
        figures_.pairs_slower.Add(comparison->Count(Verdict::kSlower) > 0);
        for (const Row& row : comparison->rows) {
          figures_.rows_unclear.Add(row.verdict == Verdict::kCannotTell);
        }
      }
    }
  }

  const Set& set_;
  Rng& rng_;
  Figures figures_;
};

absl::Status Evaluate() {
  Rng rng(absl::GetFlag(FLAGS_seed));
  std::vector<Set> sets;
  for (const std::string& path : absl::GetFlag(FLAGS_sets)) {
    OPTRAIL_ASSIGN_OR_RETURN(Set set, ReadSet(path, rng));
    sets.push_back(std::move(set));
  }
  for (int i = 0; i < absl::GetFlag(FLAGS_simulate); ++i) {
    sets.push_back(Simulate(i, rng));
  }
  if (sets.empty()) {
    return absl::InvalidArgumentError("--sets or --simulate says what to try");
  }
  Table table({{"set"},
               {"gates", Align::kRight},
               {"red", Align::kRight},
               {"exit 0", Align::kRight},
               {"10% found", Align::kRight},
               {"5% found", Align::kRight},
               {"5% found after measuring again", Align::kRight},
               {"told after a bad run or improvement", Align::kRight},
               {"20% found after it", Align::kRight},
               {"compare: pairs with a slower row", Align::kRight},
               {"compare: rows that can't tell", Align::kRight}});
  Figures all;
  const auto add = [&](const std::string& name, const Figures& figures) {
    table.AddRow({name, Cell::Integer(figures.red.whole),
                  figures.red.UpperText(), figures.green.Text(),
                  figures.found10.Text(), figures.found5.Text(),
                  figures.found5_again.Text(), figures.told_after.Text(),
                  figures.found20_after.Text(), figures.pairs_slower.Text(),
                  figures.rows_unclear.Text()});
  };
  for (const Set& set : sets) {
    const Figures figures = Evaluation(set, rng).Run();
    add(set.name, figures);
    all.Add(figures);
  }
  if (sets.size() > 1) add("all", all);
  std::cout << table.ToMarkdown();
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const std::string history = absl::GetFlag(FLAGS_history);
  const absl::Status done =
      history.empty()
          ? optrail::tracker::Evaluate()
          : optrail::tracker::Export(history, absl::GetFlag(FLAGS_export));
  if (done.ok()) return 0;
  std::cerr << "error: " << done.message() << "\n";
  return 2;
}
