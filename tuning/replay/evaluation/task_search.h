#ifndef OPTRAIL_TUNING_REPLAY_EVALUATION_TASK_SEARCH_H_
#define OPTRAIL_TUNING_REPLAY_EVALUATION_TASK_SEARCH_H_

// TaskSearch is one search of one recorded space, a trial at a time, as a task
// of a workload whose tasks share a budget.
//
//   TaskSearchOptions options;
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<TaskSearch> search,
//                            TaskSearch::Begin(recording, options));
//   while (search->Advance()) Use(search->cost());
//
// Costs are in units of the recording's optimum. Not thread-safe.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/replay/recorded_domain.h"
#include "tuning/replay/recording.h"
#include "tuning/search/strategy.h"

namespace optrail::tuning {

struct TaskSearchOptions {
  std::string strategy = "default";
  double start_ms = 0;  // the time of the default config; 0: the median
  uint64_t seed = 1;
  int most_trials = 250;
};

class TaskSearch {
 public:
  // InvalidArgument names a strategy that there is not. `recording` must
  // outlive this.
  static absl::StatusOr<std::unique_ptr<TaskSearch>> Begin(
      const Recording& recording, const TaskSearchOptions& options);

  // The least time so far over the optimum.
  double cost() const { return cost_; }
  int trials() const { return trials_; }

  // Does a trial. False: the space is exhausted, or most_trials are done.
  bool Advance();

  // The strategy's, before the last trial.
  absl::optional<double> expected_improvement() const {
    return expected_improvement_;
  }

  // Learns what a sibling tried last.
  void Overhear(int sibling, const TaskSearch& other);

  // The best config's values; "" while that is the one to start with.
  std::string BestText() const { return TextOf(best_); }

  // False: not in this recording, or tried already.
  bool Suggest(absl::string_view text);

 private:
  TaskSearch(const Recording& recording, const TaskSearchOptions& options);

  std::string TextOf(const Levels& levels) const;
  // nullopt: a knob has no such value here.
  absl::optional<Levels> LevelsOf(absl::string_view text) const;

  const Recording& recording_;
  const RecordedDomain domain_;
  const double optimum_ms_;
  const int most_trials_;
  std::unique_ptr<Strategy> strategy_;
  double cost_ = 0;
  Levels best_;
  int trials_ = 0;
  const RecordedConfig* last_ = nullptr;
  absl::optional<double> expected_improvement_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_EVALUATION_TASK_SEARCH_H_
