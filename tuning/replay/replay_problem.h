#ifndef OPTRAIL_TUNING_REPLAY_REPLAY_PROBLEM_H_
#define OPTRAIL_TUNING_REPLAY_REPLAY_PROBLEM_H_

// ReplayProblem answers a strategy's questions from a recording instead of from
// hardware, and scores what the strategy found.
//
//   ReplayProblem problem(recording);
//   ReplayRun run;
//   run.strategy = "default";
//   run.budgets = {50, 100};
//   OPTRAIL_ASSIGN_OR_RETURN(const ReplayResult result, problem.Run(run));

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tuning/replay/recorded_domain.h"
#include "tuning/replay/recording.h"
#include "tuning/search/strategy.h"

namespace optrail::tuning {

struct ReplayRun {
  std::string strategy;
  std::vector<int> budgets;  // increasing
  uint64_t seed = 1;
  int batch = 1;
  // A trial answers with one of its repeats instead of their mean; the score is
  // the true mean of what is declared best. A tenth of every budget re-measures
  // the strategy's finalists, interleaved; the lowest mean of those readings
  // wins.
  bool noise = false;
  // The compile time is a second objective; the score is the hypervolume of the
  // front found as a fraction of the recording's.
  bool compile_time_objective = false;
  int top_k = 0;
  std::vector<TransferSource> sources;
};

struct ReplayResult {
  std::vector<double> fractions;  // one per budget
  int ev5 = 0;                    // censored at the largest budget
  // Noise: true mean of the declared winner / best true mean tried - 1, at the
  // largest budget.
  double winner_loss = 0;
  double cpu_ms = 0;
  std::string stop_reason;  // empty if the budget was used up
};

// What a strategy is told of a config: mean time and compile time, if it is OK.
Trial TrialOf(const RecordedConfig& config);

// What a search by the default strategy knows of `recording` in the end: the
// configs it tried.
absl::StatusOr<Recording> AfterSearch(const Recording& recording, int trials,
                                      uint64_t seed);

class ReplayProblem {
 public:
  explicit ReplayProblem(Recording recording);
  ReplayProblem(const ReplayProblem&) = delete;
  ReplayProblem& operator=(const ReplayProblem&) = delete;

  const Recording& recording() const { return recording_; }
  const Domain& domain() const { return domain_; }

  // The prior of every config becomes its speed in `other`, another device's
  // recording (the worst for configs it lacks).
  void SetPriorFrom(const Recording& other);

  // Thread-safe.
  absl::StatusOr<ReplayResult> Run(const ReplayRun& run) const;

  // The fraction that is left when only the top_k by prior can be found.
  double BestFractionOfTopK(int top_k) const;

  // Another device's recording as a source: configs whose values this space
  // lacks are left out. NotFound if the knobs have other names.
  absl::StatusOr<TransferSource> MakeSource(const Recording& other) const;

 private:
  Trial Measure(int64_t index, bool noise, Rng& rng) const;
  // The true mean of the finalist that so many more readings declare best;
  // infinite if nothing succeeded.
  double VerifiedTimeMs(const Strategy& strategy, int readings, Rng& rng) const;

  const Recording recording_;
  RecordedDomain domain_;
  double optimum_ms_;
  std::vector<double> prior_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_REPLAY_PROBLEM_H_
