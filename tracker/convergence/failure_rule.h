#ifndef OPTRAIL_TRACKER_CONVERGENCE_FAILURE_RULE_H_
#define OPTRAIL_TRACKER_CONVERGENCE_FAILURE_RULE_H_

// Which configs fail? Finds the shortest rule over knobs that tells failing
// trials from working ones, as a constraint that a space file can take.
//
//   if (const auto rule = ExplainFailures(analysis.trials)) {
//     // constraint { expr: "tile_m * tile_n < 8192" }
//   }
//
// Rules: a knob has a value, a knob or a product of two or three knobs (what
// tiles and buffers take) is at least or at most a number. The one with the
// largest mutual information with failing wins, less half a log(n) per knob
// beyond the first (the price of a parameter; Schwarz, "Estimating the
// dimension of a model", 1978).

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tracker/convergence/convergence.h"

namespace optrail::tracker {

struct FailureRule {
  std::string failing;     // "tile_m * tile_n >= 8192"
  std::string constraint;  // its opposite
  int failures = 0;
  int failures_covered = 0;
  int working = 0;
  int working_refused = 0;
};

// True for outcomes that a constraint could have avoided.
bool IsAvoidable(proto::Outcome outcome);

// nullopt if nothing works, nothing fails, or no rule covers at least half of
// the failures and refuses at most a fifth of what works.
absl::optional<FailureRule> ExplainFailures(
    const std::vector<TrialPoint>& trials);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_FAILURE_RULE_H_
