#ifndef OPTRAIL_TUNING_SEARCH_STOP_RULE_H_
#define OPTRAIL_TUNING_SEARCH_STOP_RULE_H_

// Stop rules say when a tuning session has seen enough. They are composable: a
// session stops at the first rule that fires and records its reason.
//
//   const StopRule stop = AnyOf({MaxTrials(400), MaxTime(absl::Minutes(10)),
//                                Patience(120)});
//   session.set_stop_reason(stop(progress));   // TRIALS_SPENT
//
// A rule is a pure function of the session's progress, so a resumed session
// stops where an uninterrupted one would (time apart).

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

struct SessionProgress {
  int trials = 0;
  absl::Duration elapsed;
  // The least cost so far; nullopt before the first success.
  absl::optional<double> best_cost;
  // Trials since best_cost was last lowered by more than noise.
  int trials_since_improvement = 0;
  // Strategy::ExpectedImprovement.
  absl::optional<double> expected_improvement;
  // Trials in a row after which the expected improvement was below the
  // threshold of ExpectedImprovementBelow; kept by the caller.
  int quiet_trials = 0;
};

// The reason to stop, or STOP_REASON_UNSPECIFIED to go on.
using StopRule = std::function<proto::StopReason(const SessionProgress&)>;

// trials >= count.
StopRule MaxTrials(int count);

// elapsed >= limit.
StopRule MaxTime(absl::Duration limit);

// `trials` trials in a row without a new best, once there is one.
StopRule Patience(int trials);

// The model expects less than `fraction` (0.01: one percent) of the best cost
// to be gained, and `quiet_trials` says that it did so for `trials` in a row: a
// single low value may come from a model that has just misjudged. Never fires
// for strategies without a model.
StopRule ExpectedImprovementBelow(double fraction, int trials = 10);

// best_cost <= target.
StopRule TargetReached(double target);

// The first of these that fires. Never fires if empty.
StopRule AnyOf(std::vector<StopRule> rules);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_STOP_RULE_H_
