// Measures the gate and `compare` on runs of identical code that were recorded
// one after another, and prints the tables of docs/method/gating.md.
//
//   cd tracker/gate/evaluation
//   bazel run :gate_evaluation -- --sets=$PWD/runs_calm_2c.tsv.xz
//
// A set is a file (recorded_set.h). --history=DIR --export=FILE makes one of a
// history whose runs are of the same code. --rounds=FILE takes runs of one
// process for the rounds of pull requests. --without=TERM leaves out a part of
// the noise model. --simulate=N adds N simulated sets
// whose noise is made to be like that of a machine with a drift of 3.2% that
// six of eight benchmarks share. --judge_series prints, in place of all that,
// how often `changes` marks a slow-down where none is
// (docs/lab/detection.md).

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
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "tracker/compare/compare.h"
#include "tracker/gate/evaluation/judged_set.h"
#include "tracker/gate/evaluation/planted.h"
#include "tracker/gate/evaluation/recorded_set.h"
#include "tracker/gate/gate.h"

ABSL_FLAG(std::vector<std::string>, sets, {}, "recorded sets, see above");
ABSL_FLAG(std::vector<std::string>, rounds, {},
          "recorded runs of one process, as rounds of pull requests");
ABSL_FLAG(int, simulate, 0, "simulated sets");
ABSL_FLAG(std::string, history, "", "history to make a set from");
ABSL_FLAG(std::string, export, "", "where to write it");
ABSL_FLAG(int, shuffles, 12, "orders of each set beside that of time");
ABSL_FLAG(uint64_t, seed, 1, "");
ABSL_FLAG(bool, show, false, "print the rows that make a gate or a pair red");
ABSL_FLAG(std::string, without, "",
          "a term of the noise model to leave out: NoiseTerms' names");
ABSL_FLAG(bool, gates_only, false, "leave out events, pairs, pull requests");
ABSL_FLAG(bool, judge_series, false,
          "judge each benchmark as a series, by the judge of `changes`");

namespace optrail::tracker {
namespace {

constexpr int kFewestRuns = 5;

// 30 runs of eight benchmarks in five processes: six bound by the core, which
// share a drift of 3.2% from run to run and differ by 1.3% besides, two
// streaming ones of .3%.
RecordedSet Simulate(int number, Rng& rng) {
  constexpr int kRuns = 30, kBenchmarks = 8, kCompute = 6, kProcesses = 5;
  constexpr double kDrift = .032, kMemory = .8;
  RecordedSet set;
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
  Share found10, found5, found5_again, red_again, green_again;
  Share told_after, found20_after;
  // Candidates of two runs: of unchanged code, and one of them x1.3.
  Share two_warned, two_green, two_apart_said;
  std::map<std::string, Share> unclear;  // by benchmark, in gates

  void Add(const Figures& other) {
    for (const auto& [mine, its] : {std::make_pair(&red, &other.red),
                                    {&green, &other.green},
                                    {&pairs_slower, &other.pairs_slower},
                                    {&rows_unclear, &other.rows_unclear},
                                    {&found10, &other.found10},
                                    {&found5, &other.found5},
                                    {&found5_again, &other.found5_again},
                                    {&red_again, &other.red_again},
                                    {&green_again, &other.green_again},
                                    {&two_warned, &other.two_warned},
                                    {&two_green, &other.two_green},
                                    {&two_apart_said, &other.two_apart_said},
                                    {&told_after, &other.told_after},
                                    {&found20_after, &other.found20_after}}) {
      mine->part += its->part;
      mine->whole += its->whole;
    }
    for (const auto& [name, its] : other.unclear) {
      unclear[name].part += its.part;
      unclear[name].whole += its.whole;
    }
  }
};

void Show(const std::string& what, const Row& row) {
  if (row.verdict != Verdict::kSlower || !absl::GetFlag(FLAGS_show)) return;
  std::cout << what << ": " << row.name << " " << row.reason << "\n";
}

class Evaluation {
 public:
  Evaluation(const RecordedSet& set, Rng& rng) : set_(set), rng_(rng) {}

  Figures Run() {
    for (int order = 0; order <= absl::GetFlag(FLAGS_shuffles); ++order) {
      std::vector<proto::Run> runs = set_.runs;
      // Runs are called by their place in time.
      for (size_t i = 0; i < runs.size(); ++i) {
        runs[i].set_elapsed_ns(static_cast<int64_t>(i));
      }
      if (order > 0) rng_.Shuffle(runs);
      Gates(runs);
      if (!absl::GetFlag(FLAGS_gates_only)) Events(runs);
    }
    if (absl::GetFlag(FLAGS_gates_only)) return figures_;
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
      for (const GateRow& row : report.rows) {
        Show(absl::StrCat(set_.name, ", run ", runs[last].elapsed_ns(), " as ",
                          last),
             row.row);
        figures_.unclear[row.row.name].Add(row.row.verdict ==
                                           Verdict::kCannotTell);
      }
      const int which = static_cast<int>(last) % past[0].results_size();
      const std::string name = past[0].results(which).key().operator_name();
      past.back() = Slowed(runs[last], which, 1.1);
      figures_.found10.Add(
          RowOf(GateLast(Numbered(past), 1, 1), name).verdict ==
          Verdict::kSlower);
      past.back() = Slowed(runs[last], which, 1.05);
      figures_.found5.Add(RowOf(GateLast(Numbered(past), 1, 1), name).verdict ==
                          Verdict::kSlower);
      TwoRuns(runs, last, which, name);
      const GateReport same = GateAgain(runs, last, which, 1);
      figures_.red_again.Add(same.exit_code == 1);
      figures_.green_again.Add(same.exit_code == 0);
      const GateReport slowed = GateAgain(runs, last, which, 1.05);
      const Row& row = RowOf(slowed, name);
      figures_.found5_again.Add(row.verdict == Verdict::kSlower);
      if (row.verdict != Verdict::kSlower && absl::GetFlag(FLAGS_show)) {
        std::cout << set_.name << ", run " << runs[last].elapsed_ns() << " as "
                  << last << ": 5% missed, exit code " << slowed.exit_code
                  << ", " << row.name << " " << InfoOf(row.verdict).name << ", "
                  << row.candidate.processes << " processes, " << row.reason
                  << "\n";
      }
    }
  }

  // The candidate is the run at `last` and the one before it.
  void TwoRuns(const std::vector<proto::Run>& runs, size_t last, int which,
               const std::string& name) {
    if (last == kFewestRuns) return;
    std::vector<proto::Run> past(runs.begin(), runs.begin() + last + 1);
    const GateReport same = GateLast(Numbered(past), 2, 1);
    bool warned = false;
    for (const GateRow& row : same.rows) {
      warned |= row.row.verdict == Verdict::kSlowerInMostSamples;
    }
    figures_.two_warned.Add(warned);
    figures_.two_green.Add(same.exit_code == 0);
    past.back() = Slowed(runs[last], which, 1.3);
    const Verdict apart = RowOf(GateLast(Numbered(past), 2, 1), name).verdict;
    figures_.two_apart_said.Add(apart != Verdict::kUnchanged &&
                                apart != Verdict::kFaster);
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
    options.terms = EvaluatedTerms();
    for (const proto::Run& run : runs) options.history.push_back(&run);
    for (const proto::Run& a : runs) {
      for (const proto::Run& b : runs) {
        if (&a == &b) continue;
        const auto comparison = Compare({&a}, {&b}, options);
        OPTRAIL_CHECK(comparison.ok()) << comparison.status();
        figures_.pairs_slower.Add(comparison->Count(Verdict::kSlower) > 0);
        for (const Row& row : comparison->rows) {
          Show(absl::StrCat(set_.name, ", runs ", a.run_id(), " and ",
                            b.run_id()),
               row);
          figures_.rows_unclear.Add(row.verdict == Verdict::kCannotTell);
        }
      }
    }
  }

  const RecordedSet& set_;
  Rng& rng_;
  Figures figures_;
};

// Pull requests that begin at every third round, by how many rounds they begin
// with.
absl::Status EvaluateRounds() {
  for (const std::string& path : absl::GetFlag(FLAGS_rounds)) {
    OPTRAIL_ASSIGN_OR_RETURN(const RecordedSet set, ReadRecordedSet(path));
    const int recorded = static_cast<int>(set.runs.size()) / 2;
    Table table({{set.name},
                 {"gates", Align::kRight},
                 {"red", Align::kRight},
                 {"exit 0 at once", Align::kRight},
                 {"exit 0", Align::kRight},
                 {"rounds in all", Align::kRight},
                 {"10% found at once", Align::kRight},
                 {"10% found", Align::kRight},
                 {"5% found at once", Align::kRight},
                 {"5% found", Align::kRight},
                 {"rounds in all", Align::kRight}});
    for (const int rounds : {10, 15, 20, 30}) {
      Share red, green_first, green, ten_first, ten, five_first, five;
      double same_rounds = 0, five_rounds = 0;
      int gates = 0;
      for (int at = 0; at < recorded; at += 3) {
        const PullRequest same = GatePullRequest(set.runs, at, rounds, -1, 1);
        red.Add(same.last.exit_code == 1);
        green_first.Add(same.first.exit_code == 0);
        green.Add(same.last.exit_code == 0);
        same_rounds += same.rounds;
        const int which = at / 3 % set.runs[0].results_size();
        const std::string name =
            set.runs[0].results(which).key().operator_name();
        const auto found = [&name](const GateReport& report) {
          return RowOf(report, name).verdict == Verdict::kSlower;
        };
        PullRequest slowed = GatePullRequest(set.runs, at, rounds, which, 1.1);
        ten_first.Add(found(slowed.first));
        ten.Add(found(slowed.last));
        slowed = GatePullRequest(set.runs, at, rounds, which, 1.05);
        five_first.Add(found(slowed.first));
        five.Add(found(slowed.last));
        five_rounds += slowed.rounds;
        ++gates;
      }
      table.AddRow({absl::StrCat(rounds, " rounds"), Cell::Integer(gates),
                    red.Text(), green_first.Text(), green.Text(),
                    absl::StrFormat("%.1f", same_rounds / gates),
                    ten_first.Text(), ten.Text(), five_first.Text(),
                    five.Text(), absl::StrFormat("%.1f", five_rounds / gates)});
    }
    std::cout << table.ToMarkdown() << "\n";
  }
  return absl::OkStatus();
}

// Prints how often the judge of series marks a slow-down in the sets.
void EvaluateSeries(const std::vector<RecordedSet>& sets, Rng& rng) {
  std::vector<std::pair<std::string, FalseMarks>> all;
  for (const RecordedSet& set : sets) {
    const auto marks =
        JudgeRecordedSet(set, absl::GetFlag(FLAGS_shuffles), rng);
    if (all.empty()) all.resize(marks.size());
    for (size_t i = 0; i < marks.size(); ++i) {
      all[i].first = marks[i].first;
      all[i].second.judged += marks[i].second.judged;
      all[i].second.marked += marks[i].second.marked;
      all[i].second.alerts += marks[i].second.alerts;
    }
  }
  Table table({{""},
               {"commits judged", Align::kRight},
               {"with a false mark, of 1000", Align::kRight},
               {"with a false alert, of 1000", Align::kRight}});
  for (const auto& [name, marks] : all) {
    const auto of_thousand = [judged = marks.judged](int count) {
      return absl::StrFormat("%.2f", 1000. * count / std::max(1, judged));
    };
    table.AddRow({name, Cell::Integer(marks.judged), of_thousand(marks.marked),
                  of_thousand(marks.alerts)});
  }
  std::cout << table.ToMarkdown();
}

absl::Status LeaveOut(const std::string& name, NoiseTerms* terms) {
  const std::map<std::string, bool NoiseTerms::*> known = {
      {"calibration", &NoiseTerms::calibration},
      {"shared_factor", &NoiseTerms::shared_factor},
      {"factor_doubt", &NoiseTerms::factor_doubt},
      {"steps", &NoiseTerms::steps},
      {"bad_runs", &NoiseTerms::bad_runs},
      {"loneliness", &NoiseTerms::loneliness},
      {"surprise", &NoiseTerms::surprise}};
  const auto found = known.find(name);
  if (found == known.end()) {
    std::vector<std::string> names;
    for (const auto& [term, member] : known) names.push_back(term);
    return absl::InvalidArgumentError(absl::StrCat(
        "--without=", name, ": expected one of ", absl::StrJoin(names, ", ")));
  }
  terms->*found->second = false;
  return absl::OkStatus();
}

absl::Status Evaluate() {
  if (const std::string name = absl::GetFlag(FLAGS_without); !name.empty()) {
    OPTRAIL_RETURN_IF_ERROR(LeaveOut(name, &EvaluatedTerms()));
  }
  if (!absl::GetFlag(FLAGS_rounds).empty()) return EvaluateRounds();
  Rng rng(absl::GetFlag(FLAGS_seed));
  std::vector<RecordedSet> sets;
  for (const std::string& path : absl::GetFlag(FLAGS_sets)) {
    OPTRAIL_ASSIGN_OR_RETURN(RecordedSet set, ReadRecordedSet(path));
    sets.push_back(std::move(set));
  }
  for (int i = 0; i < absl::GetFlag(FLAGS_simulate); ++i) {
    sets.push_back(Simulate(i, rng));
  }
  if (sets.empty()) {
    return absl::InvalidArgumentError("--sets or --simulate says what to try");
  }
  if (absl::GetFlag(FLAGS_judge_series)) {
    EvaluateSeries(sets, rng);
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, Figures>> columns;
  Figures all;
  for (const RecordedSet& set : sets) {
    columns.push_back({set.name, Evaluation(set, rng).Run()});
    all.Add(columns.back().second);
  }
  if (sets.size() > 1) columns.push_back({"all", all});
  std::vector<Column> heads = {{""}};
  for (const auto& [name, figures] : columns) {
    heads.push_back({name, Align::kRight});
  }
  Table table(heads);
  const auto add = [&](const std::string& what, const auto& text) {
    std::vector<Cell> cells = {what};
    for (const auto& [name, figures] : columns) cells.push_back(text(figures));
    table.AddRow(cells);
  };
  const auto add_share = [&](const std::string& what, Share Figures::*share) {
    add(what, [&](const Figures& f) { return (f.*share).Text(); });
  };
  add("gates", [](const Figures& f) { return absl::StrCat(f.red.whole); });
  add("red", [](const Figures& f) { return f.red.UpperText(); });
  add_share("exit 0", &Figures::green);
  add_share("10% in one benchmark found", &Figures::found10);
  add_share("5% found", &Figures::found5);
  add_share("5% found after measuring again", &Figures::found5_again);
  add("red after measuring again",
      [](const Figures& f) { return f.red_again.UpperText(); });
  add_share("exit 0 after measuring again", &Figures::green_again);
  add_share("two runs: exit 0", &Figures::two_green);
  add_share("two runs: warned of most samples", &Figures::two_warned);
  add_share("two runs, one x1.3: said", &Figures::two_apart_said);
  add_share("told after a bad run or an improvement", &Figures::told_after);
  add_share("x1.2 found there", &Figures::found20_after);
  add_share("compare: pairs of runs with a row slower", &Figures::pairs_slower);
  add_share("compare: rows that can't tell", &Figures::rows_unclear);
  for (const auto& [name, share] : all.unclear) {
    add(absl::StrCat("can't tell ", name), [&](const Figures& f) {
      const auto found = f.unclear.find(name);
      return found == f.unclear.end() ? "-" : found->second.Text();
    });
  }
  std::cout << table.ToMarkdown();
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const std::string history = absl::GetFlag(FLAGS_history);
  const absl::Status done = history.empty()
                                ? optrail::tracker::Evaluate()
                                : optrail::tracker::ExportRecordedSet(
                                      history, absl::GetFlag(FLAGS_export));
  if (done.ok()) return 0;
  std::cerr << "error: " << done.message() << "\n";
  return 2;
}
