// The flags of `tune`.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "suites/command/command_flags.h"
#include "suites/command/shared_flags.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/workload/workload.h"
#include "tracker/command/command_support.h"
#include "tuning/search/strategies.h"
#include "tuning/session/objective.h"

ABSL_FLAG(std::string, worker, "",
          "Where to measure instead of in processes of this command's own: the "
          "address that an `optrail worker` serves, unix:PATH or HOST:PORT; "
          "several, parted by commas, search together.");
ABSL_FLAG(std::string, strategy, "default",
          "How to choose configs to try (docs/method/search.md); an unknown "
          "name lists "
          "them.");
ABSL_FLAG(int64_t, trials, 0, "Most configs to try per task; 0: no limit.");
ABSL_FLAG(absl::Duration, time_budget, absl::ZeroDuration(),
          "About how long each task takes on a clock, such as 30s: at most "
          "half for the search, the rest to rank finalists and prove the "
          "winner. Two configs and a proof of ten measurements are the least. "
          "With --proof_time it is the search alone, without opening "
          "processes. 0: the workload's seconds of search, else 20s of search "
          "unless --trials is given, and the proof on top.");
ABSL_FLAG(int64_t, total_trials, 0,
          "Configs to try over all tasks together; 0: no such limit. Each next "
          "trial goes to the task from which a run of the workload gains most "
          "(calls times time), and tasks that stall are left. --trials and "
          "--time_budget then bound each task, by default not at all.");
ABSL_FLAG(absl::Duration, total_time, absl::ZeroDuration(),
          "Search time over all tasks together, such as 10m, divided like "
          "--total_trials; 0: no such limit. Verifying the finalists comes on "
          "top.");
ABSL_FLAG(int64_t, patience, 0,
          "Stop after this many trials without improvement; 0: never.");
ABSL_FLAG(int32_t, finalists, 4,
          "How many of the best are measured again before one wins; up to four "
          "times as many where their readings vary.");
ABSL_FLAG(absl::Duration, proof_time, absl::ZeroDuration(),
          "Longest proof of a task's winner against its default, such as 30s; "
          "it ends sooner once the gain is known within 1%. 0: a third of "
          "--time_budget; without one as long as the search took, at least 3s "
          "and at most 1m.");
ABSL_FLAG(bool, retune, false, "Tune what the store has, too.");
ABSL_FLAG(std::string, numerics, "any",
          "any, class-of-default: only configs whose results have the "
          "default's bits on fixed inputs may win, or batch-invariant: only "
          "those of whose results a row has the same bits however many rows "
          "are computed.");
ABSL_FLAG(bool, forget, false,
          "Do not start from the trials of earlier sessions, of this task or "
          "of nearby ones.");

namespace optrail::suites {
namespace {

constexpr absl::Duration kDefaultSearch = absl::Seconds(20);

// --proof_time, where it is given.
absl::StatusOr<absl::optional<absl::Duration>> ProofTimeFromFlags() {
  const absl::Duration time = absl::GetFlag(FLAGS_proof_time);
  if (time == absl::ZeroDuration()) return absl::optional<absl::Duration>();
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(time > absl::ZeroDuration(), "proof_time",
                         absl::FormatDuration(time), "a duration such as 30s"));
  return absl::make_optional(time);
}

absl::Status SetTotalFromFlags(TuneDriverOptions& options) {
  options.total_trials = absl::GetFlag(FLAGS_total_trials);
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("total_trials", options.total_trials, 0, 100'000'000));
  const absl::Duration time = absl::GetFlag(FLAGS_total_time);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      time >= absl::ZeroDuration() && time != absl::InfiniteDuration(),
      "total_time", absl::FormatDuration(time), "a duration such as 10m"));
  options.total_time_ns = absl::ToInt64Nanoseconds(time);
  return absl::OkStatus();
}

// --strategy; sessions say which the default was, since it may change between
// commits.
absl::StatusOr<std::string> StrategyFromFlags() {
  const std::string strategy = absl::GetFlag(FLAGS_strategy);
  if (strategy == "default") return tuning::kDefaultStrategy;
  const std::vector<std::string> strategies = tuning::StrategyNames();
  if (std::find(strategies.begin(), strategies.end(), strategy) !=
          strategies.end() ||
      absl::StartsWith(strategy, "evolution")) {
    return strategy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("flag --strategy=", strategy, ": expected default or ",
                   absl::StrJoin(strategies, ", "),
                   "; of schedules evolution:MODEL or random",
                   DidYouMean(strategy, strategies)));
}

// --numerics.
absl::Status SetNumericsFromFlags(TuneOptions& options) {
  const std::string numerics = absl::GetFlag(FLAGS_numerics);
  return tracker::CheckFlag(
      options.SetNumericsLimit(numerics == "any" ? "" : numerics).ok(),
      "numerics", numerics, "any, class-of-default or batch-invariant");
}

absl::StatusOr<std::vector<std::string>> WorkersFromFlags() {
  absl::StatusOr<std::vector<std::string>> workers =
      ParseWorkerAddresses(absl::GetFlag(FLAGS_worker));
  if (workers.ok()) return workers;
  return absl::InvalidArgumentError(
      absl::StrCat("flag --worker: ", workers.status().message()));
}

// Refuses what a total (--total_trials, --total_time) does not go with.
absl::Status CheckTotal(const TuneDriverOptions& options) {
  if (absl::GetFlag(FLAGS_objective) != tuning::kTimeMetric) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --objective=", absl::GetFlag(FLAGS_objective),
        ": a total (--total_trials, --total_time) is divided by the time "
        "that a run of the workload takes; expected time, or --trials"));
  }
  if (!options.elsewhere.empty()) {
    return absl::InvalidArgumentError(
        "flag --worker: one session at a time is served, and a total "
        "(--total_trials, --total_time) has them all open; expected --trials "
        "or --time_budget");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> TuneFlags() {
  return {"strategy",       "seed",
          "trials",         "time_budget",
          "total_trials",   "total_time",
          "patience",       "finalists",
          "proof_time",     "retune",
          "forget",         "processes",
          "numerics",       "config_deadline",
          "max_config_mib", "worker"};
}

absl::StatusOr<TuneDriverOptions> TuneFromFlags(const proto::Workload& workload,
                                                bool may_open_device) {
  TuneDriverOptions options;
  OPTRAIL_ASSIGN_OR_RETURN(options.worker, WorkerFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(options.tune.strategy, StrategyFromFlags());
  options.tune.seed = absl::GetFlag(FLAGS_seed);
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("trials", absl::GetFlag(FLAGS_trials), 0, 100'000'000));
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("patience", absl::GetFlag(FLAGS_patience), 0, 100'000'000));
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("finalists", absl::GetFlag(FLAGS_finalists), 1, 100));
  OPTRAIL_RETURN_IF_ERROR(CheckRange(
      "processes", absl::GetFlag(FLAGS_processes), 0, kMostProcesses));
  proto::Budget& budget = options.tune.budget;
  if (const int64_t trials = absl::GetFlag(FLAGS_trials); trials > 0) {
    budget.set_trials(trials);
  }
  if (const int64_t patience = absl::GetFlag(FLAGS_patience); patience > 0) {
    budget.set_patience_trials(patience);
  }
  OPTRAIL_RETURN_IF_ERROR(SetTotalFromFlags(options));
  options.most_gain_first = !workload.name().empty();
  const bool has_total = options.total_trials > 0 || options.total_time_ns > 0;
  const absl::Duration whole = absl::GetFlag(FLAGS_time_budget);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      whole >= absl::ZeroDuration(), "time_budget", absl::FormatDuration(whole),
      "a duration such as 30s"));
  absl::Duration search = absl::ZeroDuration();
  if (whole == absl::ZeroDuration() && !has_total) {
    search = absl::Seconds(workload.tune_seconds());
    if (search == absl::ZeroDuration() && !budget.has_trials()) {
      search = kDefaultSearch;
    }
  }
  if (search > absl::ZeroDuration()) {
    budget.set_time_ns(absl::ToInt64Nanoseconds(search));
  }
  OPTRAIL_ASSIGN_OR_RETURN(options.elsewhere, WorkersFromFlags());
  if (has_total) OPTRAIL_RETURN_IF_ERROR(CheckTotal(options));
  OPTRAIL_ASSIGN_OR_RETURN(options.tune.objectives,
                           ObjectivesFromFlags(may_open_device));
  options.tune.finalists = absl::GetFlag(FLAGS_finalists);
  OPTRAIL_ASSIGN_OR_RETURN(options.tune.proof.max_time, ProofTimeFromFlags());
  DivideTimeBudget(whole, &budget, &options.tune.proof);
  const int processes = absl::GetFlag(FLAGS_processes);
  options.tune.rank_rounds = processes > 0 ? processes : kDefaultProcesses;
  options.tune.sampling = DefaultSamplingOptions();
  options.retune = absl::GetFlag(FLAGS_retune);
  OPTRAIL_RETURN_IF_ERROR(SetNumericsFromFlags(options.tune));
  options.forget_trials = absl::GetFlag(FLAGS_forget);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  return options;
}

void DivideTimeBudget(absl::Duration whole, proto::Budget* budget,
                      tuning::ProofOptions* proof) {
  if (whole <= absl::ZeroDuration()) return;
  const bool is_divided = !proof->max_time.has_value();
  budget->set_time_ns(absl::ToInt64Nanoseconds(is_divided ? whole / 2 : whole));
  if (!is_divided) return;
  proof->max_time = whole / 3;
  proof->session_max_time = whole;
}

}  // namespace optrail::suites
