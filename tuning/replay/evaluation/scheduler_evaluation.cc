// Measures what dividing a total budget by the task scheduler gains over equal
// shares, with recorded spaces as the tasks of a workload:
//
//   bazel run -c opt //tuning/replay/evaluation:scheduler_evaluation --
//   --spaces=DIR
//
// Every workload consists of all the recordings; its tasks have shares of the
// optimal total time that differ by up to --spread. A task starts at the median
// config of its recording, as if that were the default; the scheduler's tasks
// with the same knobs try each other's best configs, as those of `optrail tune`
// do, unless --share=false. Printed is by how much
// the workload's time exceeds the optimal one, on average, after a total of so
// many trials per task: divided equally, by the scheduler, and in hindsight
// (greedily, by somebody who knows what every trial of searches that share
// nothing is going to find). The
// columns of gains say which part of the scheduler's gain with
// --reference_total trials that is: --totals=200 --reference_total=2000 tells
// whether a tenth of the trials is enough.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/file/compression.h"
#include "base/file/file.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tuning/replay/evaluation/task_search.h"
#include "tuning/replay/recording.h"
#include "tuning/replay/score.h"
#include "tuning/search/task_scheduler.h"

ABSL_FLAG(
    std::vector<std::string>, spaces, {},
    "Recorded spaces: files or folders of *.json[.gz|.xz]; at least two.");
ABSL_FLAG(std::string, strategy, "default", "Strategy of every task.");
ABSL_FLAG(std::vector<std::string>, trials_per_task,
          std::vector<std::string>({"10", "15", "25", "40", "60"}),
          "Totals, as multiples of the number of tasks.");
ABSL_FLAG(std::vector<std::string>, totals, {},
          "Totals over all tasks, in place of --trials_per_task.");
ABSL_FLAG(int, reference_total, 2000,
          "The total whose gain is 1 in the columns of gains.");
ABSL_FLAG(std::vector<std::string>, calls, {},
          "Calls of each recording's task per run of a graph, in the order of "
          "--spaces: shares follow from them instead of being drawn, so that "
          "--workloads and --spread mean nothing.");
ABSL_FLAG(std::vector<std::string>, starts_ms, {},
          "The time at which each task starts (its default config's), in the "
          "same order; by default the median of its recording.");
ABSL_FLAG(int, warm_up_trials, 0,
          "Trials that every task gets before gains decide; 0: as `optrail "
          "tune` does.");
ABSL_FLAG(bool, share, true,
          "The scheduler's tasks with the same knobs try each other's best "
          "configs.");
ABSL_FLAG(double, prior_gain, 0, "Of the scheduler; 0: its default.");
ABSL_FLAG(int, seeds, 16, "Searches per recording.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first search.");
ABSL_FLAG(absl::optional<int>, workloads, absl::nullopt,
          "Workloads (draws of shares) per seed; by default 12.");
ABSL_FLAG(absl::optional<double>, spread, absl::nullopt,
          "Largest share / smallest share; 1: equal; by default 100.");
ABSL_FLAG(int, most_trials, 250, "A task that has got so many is finished.");

namespace optrail::tuning {
namespace {

constexpr int kTurnTrials = 4;
constexpr int kDefaultWorkloads = 12;
constexpr double kDefaultSpread = 100;

// `start_ms`: of the default config; 0: the median.
TaskSearchOptions SearchOptions(double start_ms, uint64_t seed) {
  TaskSearchOptions options;
  options.strategy = absl::GetFlag(FLAGS_strategy);
  options.start_ms = start_ms;
  options.seed = seed;
  options.most_trials = absl::GetFlag(FLAGS_most_trials);
  return options;
}

// A search that nothing else has a part in.
struct Curve {
  // Best cost / optimum after so many trials; [0]: the start.
  std::vector<double> cost;
};

absl::StatusOr<Curve> Search(const Recording& recording, double start_ms,
                             uint64_t seed) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<TaskSearch> search,
      TaskSearch::Begin(recording, SearchOptions(start_ms, seed)));
  Curve curve;
  curve.cost.push_back(search->cost());
  while (search->Advance()) curve.cost.push_back(search->cost());
  return curve;
}

// The tasks that have each one's knobs, which then are the same kernel's.
std::vector<std::vector<int>> SiblingsOf(
    const std::vector<Recording>& recordings) {
  const auto same_knobs = [](const Recording& a, const Recording& b) {
    return a.knobs.size() == b.knobs.size() &&
           std::equal(a.knobs.begin(), a.knobs.end(), b.knobs.begin(),
                      [](const KnobLevels& one, const KnobLevels& other) {
                        return one.name == other.name;
                      });
  };
  std::vector<std::vector<int>> siblings(recordings.size());
  if (!absl::GetFlag(FLAGS_share)) return siblings;
  for (size_t i = 0; i < recordings.size(); ++i) {
    for (size_t j = 0; j < recordings.size(); ++j) {
      if (i != j && same_knobs(recordings[i], recordings[j])) {
        siblings[i].push_back(static_cast<int>(j));
      }
    }
  }
  return siblings;
}

struct Workload {
  std::vector<const Curve*> curves;
  std::vector<double> shares;    // sum 1
  std::vector<double> start_ms;  // 0: the median
  uint64_t seed = 1;

  double Excess(const std::vector<int>& trials) const {
    double sum = -1;
    for (size_t i = 0; i < curves.size(); ++i) {
      sum += shares[i] * curves[i]->cost[trials[i]];
    }
    return sum;
  }
  // The excess before the first trial.
  double Start() const { return Excess(std::vector<int>(curves.size())); }
  int Most(size_t task) const {
    return static_cast<int>(curves[task]->cost.size()) - 1;
  }
};

double Equally(const Workload& workload, int total) {
  std::vector<int> trials(workload.curves.size());
  const auto count = static_cast<int>(trials.size());
  for (int i = 0; i < count; ++i) {
    trials[i] = std::min((total + i) / count, workload.Most(i));
  }
  return workload.Excess(trials);
}

// The excess, or why a search could not begin.
absl::StatusOr<double> Scheduled(const Workload& workload,
                                 const std::vector<Recording>& recordings,
                                 int total) {
  const std::vector<std::vector<int>> siblings = SiblingsOf(recordings);
  std::vector<TuningTask> tasks;
  std::vector<std::unique_ptr<TaskSearch>> searches;
  for (size_t i = 0; i < recordings.size(); ++i) {
    tasks.push_back({"", workload.shares[i], 0, siblings[i]});
    searches.emplace_back();
    OPTRAIL_ASSIGN_OR_RETURN(
        searches.back(),
        TaskSearch::Begin(recordings[i],
                          SearchOptions(workload.start_ms[i], workload.seed)));
  }
  TaskSchedulerOptions options;
  options.warm_up_trials = WarmUpTrials(total, static_cast<int>(tasks.size()));
  if (const int given = absl::GetFlag(FLAGS_warm_up_trials); given > 0) {
    options.warm_up_trials = given;
  }
  if (const double given = absl::GetFlag(FLAGS_prior_gain); given > 0) {
    options.prior_gain = given;
  }
  const int turn_trials =
      std::clamp(total / static_cast<int>(tasks.size()), 1, kTurnTrials);
  TaskScheduler scheduler(tasks, options);
  while (total > 0) {
    const absl::optional<int> next = scheduler.Next();
    if (!next) break;
    TaskSearch& search = *searches[*next];
    const int most = scheduler.WarmsUp(*next)
                         ? std::min(turn_trials, scheduler.WarmUpOf(*next))
                         : turn_trials;
    bool suggested = false;
    while (const absl::optional<std::string> config =
               scheduler.TakeSuggestion(*next)) {
      suggested = search.Suggest(*config);
      if (suggested) break;
      scheduler.RefuseSuggestion(*next);
    }
    int turn = 0;
    const int trials = std::min(suggested ? 1 : most, total);
    while (turn < trials && search.Advance()) {
      ++turn;
      for (const int other : siblings[*next]) {
        const auto& list = siblings[other];
        searches[other]->Overhear(
            static_cast<int>(std::find(list.begin(), list.end(), *next) -
                             list.begin()),
            search);
      }
    }
    if (turn == 0) {
      scheduler.Finish(*next);
      continue;
    }
    total -= turn;
    TaskReport report;
    report.trials = turn;
    report.best_cost = search.cost();
    report.expected_improvement = search.expected_improvement();
    report.best_config = search.BestText();
    scheduler.Report(*next, report);
  }
  double excess = -1;
  for (size_t i = 0; i < searches.size(); ++i) {
    excess += workload.shares[i] * searches[i]->cost();
  }
  return excess;
}

// Always the step, of any length, that gains most per trial.
double InHindsight(const Workload& workload, int total) {
  std::vector<int> trials(workload.curves.size());
  while (total > 0) {
    double most = 0;
    size_t task = 0;
    int length = 0;
    for (size_t i = 0; i < trials.size(); ++i) {
      const std::vector<double>& cost = workload.curves[i]->cost;
      const int limit = std::min(total, workload.Most(i) - trials[i]);
      for (int n = 1; n <= limit; ++n) {
        const double gain =
            workload.shares[i] * (cost[trials[i]] - cost[trials[i] + n]) / n;
        if (gain > most) {
          most = gain;
          task = i;
          length = n;
        }
      }
    }
    if (length == 0) break;
    trials[task] += length;
    total -= length;
  }
  return workload.Excess(trials);
}

std::vector<double> DrawShares(size_t tasks, Rng& rng) {
  std::vector<double> shares;
  double sum = 0;
  for (size_t i = 0; i < tasks; ++i) {
    shares.push_back(
        std::pow(absl::GetFlag(FLAGS_spread).value_or(kDefaultSpread),
                 rng.UniformReal()));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

absl::StatusOr<std::vector<Recording>> ReadAll() {
  std::vector<std::string> files;
  for (const std::string& path : absl::GetFlag(FLAGS_spaces)) {
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
    if (!names.ok()) files.push_back(path);
    for (const std::string& name : names.value_or(std::vector<std::string>())) {
      if (absl::EndsWith(WithoutCompressionSuffix(name), ".json")) {
        files.push_back(JoinPath(path, name));
      }
    }
  }
  if (files.size() < 2) {
    return absl::InvalidArgumentError(
        "flag --spaces: expected at least two recordings");
  }
  std::vector<Recording> recordings;
  for (const std::string& file : files) {
    OPTRAIL_ASSIGN_OR_RETURN(Recording recording, ReadRecording(file));
    recordings.push_back(std::move(recording));
  }
  return recordings;
}

// Totals over `tasks` tasks.
absl::StatusOr<std::vector<int>> TotalsFromFlags(int tasks) {
  const std::vector<std::string> given = absl::GetFlag(FLAGS_totals);
  const bool per_task = given.empty();
  std::vector<int> totals;
  for (const std::string& text :
       per_task ? absl::GetFlag(FLAGS_trials_per_task) : given) {
    int trials = 0;
    if (!absl::SimpleAtoi(text, &trials) || trials < 1 || trials > 1'000'000) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --", per_task ? "trials_per_task" : "totals",
                       ": \"", text, "\", expected numbers from 1"));
    }
    totals.push_back(per_task ? trials * tasks : trials);
  }
  const absl::optional<int> workloads = absl::GetFlag(FLAGS_workloads);
  const absl::optional<double> spread = absl::GetFlag(FLAGS_spread);
  if (!absl::GetFlag(FLAGS_calls).empty() &&
      (workloads.has_value() || spread.has_value())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --", workloads.has_value() ? "workloads" : "spread",
        ": it draws shares, and with --calls they are given; expected one of "
        "the two"));
  }
  if (absl::GetFlag(FLAGS_seeds) < 1 ||
      workloads.value_or(kDefaultWorkloads) < 1 ||
      absl::GetFlag(FLAGS_most_trials) < 1 ||
      absl::GetFlag(FLAGS_reference_total) < 1 ||
      !(spread.value_or(kDefaultSpread) >= 1)) {
    return absl::InvalidArgumentError(
        "--seeds, --workloads, --most_trials, --reference_total and --spread: "
        "expected at least 1");
  }
  return totals;
}

// One positive number per recording, or none.
absl::StatusOr<std::vector<double>> NumbersOf(
    absl::string_view flag, const std::vector<std::string>& texts,
    size_t count) {
  std::vector<double> numbers;
  for (const std::string& text : texts) {
    double number = 0;
    if (!absl::SimpleAtod(text, &number) || !(number > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --", flag, ": \"", text, "\", expected positive numbers"));
    }
    numbers.push_back(number);
  }
  if (!numbers.empty() && numbers.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --", flag, ": ", numbers.size(),
        " numbers, expected one for each of ", count, " recordings"));
  }
  return numbers;
}

// The parts of the optimal time of a graph that calls each task so often.
std::vector<double> SharesOfCalls(const std::vector<double>& calls,
                                  const std::vector<Recording>& recordings) {
  std::vector<double> shares;
  double sum = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    shares.push_back(calls[i] * OptimumMs(recordings[i]));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

absl::Status Evaluate() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Recording> recordings, ReadAll());
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<int> totals,
      TotalsFromFlags(static_cast<int>(recordings.size())));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<double> calls,
      NumbersOf("calls", absl::GetFlag(FLAGS_calls), recordings.size()));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<double> starts_ms,
      NumbersOf("starts_ms", absl::GetFlag(FLAGS_starts_ms),
                recordings.size()));
  std::vector<Curve> curves;
  std::vector<Workload> workloads;
  const int seeds = absl::GetFlag(FLAGS_seeds);
  curves.reserve(recordings.size() * seeds);  // workloads point into it
  Rng rng(absl::GetFlag(FLAGS_first_seed));
  for (int s = 0; s < seeds; ++s) {
    Workload workload;
    workload.seed = absl::GetFlag(FLAGS_first_seed) + s;
    workload.start_ms = starts_ms;
    workload.start_ms.resize(recordings.size());
    for (size_t i = 0; i < recordings.size(); ++i) {
      OPTRAIL_ASSIGN_OR_RETURN(
          Curve curve,
          Search(recordings[i], workload.start_ms[i], workload.seed));
      curves.push_back(std::move(curve));
      workload.curves.push_back(&curves.back());
    }
    if (!calls.empty()) {
      workload.shares = SharesOfCalls(calls, recordings);
      workloads.push_back(workload);
      continue;
    }
    const int draws =
        absl::GetFlag(FLAGS_workloads).value_or(kDefaultWorkloads);
    for (int i = 0; i < draws; ++i) {
      workload.shares = DrawShares(recordings.size(), rng);
      workloads.push_back(workload);
    }
  }
  std::vector<double> reference;
  for (const Workload& workload : workloads) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const double excess,
        Scheduled(workload, recordings, absl::GetFlag(FLAGS_reference_total)));
    reference.push_back(workload.Start() - excess);
  }
  // A gain of nothing has no parts.
  const auto gainless = std::count_if(reference.begin(), reference.end(),
                                      [](double gain) { return gain <= 0; });
  if (gainless > 0) {
    std::cerr << "note: " << gainless << " of " << workloads.size()
              << " workloads gain nothing with --reference_total trials and "
                 "are left out of the columns of gains\n";
  }
  std::cout << "total_trials,trials_per_task,equal,scheduler,hindsight,"
               "scheduler_wins,equal_gain,scheduler_gain,"
               "scheduler_gain_lowest_tenth\n";
  for (const int total : totals) {
    double equal = 0, scheduled = 0, hindsight = 0, wins = 0;
    std::vector<double> equal_gains, gains;
    for (size_t i = 0; i < workloads.size(); ++i) {
      const Workload& workload = workloads[i];
      const double a = Equally(workload, total);
      OPTRAIL_ASSIGN_OR_RETURN(const double b,
                               Scheduled(workload, recordings, total));
      equal += a;
      scheduled += b;
      hindsight += InHindsight(workload, total);
      wins += b < a ? 1 : b == a ? 0.5 : 0;
      if (reference[i] <= 0) continue;
      equal_gains.push_back((workload.Start() - a) / reference[i]);
      gains.push_back((workload.Start() - b) / reference[i]);
    }
    const auto count = static_cast<double>(workloads.size());
    std::cout << absl::StrFormat(
        "%d,%.1f,%.4f,%.4f,%.4f,%.3f,", total,
        static_cast<double>(total) / static_cast<double>(recordings.size()),
        equal / count, scheduled / count, hindsight / count, wins / count);
    // Empty cells: no workload gains anything.
    std::cout << (gains.empty()
                      ? ",,\n"
                      : absl::StrFormat("%.4f,%.4f,%.4f\n", Mean(equal_gains),
                                        Mean(gains), Quantile(gains, .1)));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::tuning

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "A total budget by the task scheduler against equal shares.\n"
      "scheduler_evaluation --spaces=DIR");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tuning::Evaluate();
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 2;
}
