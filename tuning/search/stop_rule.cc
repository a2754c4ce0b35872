#include "tuning/search/stop_rule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace optrail::tuning {

StopRule MaxTrials(int count) {
  return [count](const SessionProgress& p) -> absl::optional<StopReason> {
    if (p.trials < count) return absl::nullopt;
    return StopReason{StopKind::kTrials, absl::StrCat(count, " trials")};
  };
}

StopRule MaxTime(absl::Duration limit) {
  return [limit](const SessionProgress& p) -> absl::optional<StopReason> {
    if (p.elapsed < limit) return absl::nullopt;
    return StopReason{
        StopKind::kTime,
        absl::StrCat("time limit of ", absl::FormatDuration(limit))};
  };
}

StopRule Patience(int trials) {
  return [trials](const SessionProgress& p) -> absl::optional<StopReason> {
    if (!p.best_cost || p.trials_since_improvement < trials) {
      return absl::nullopt;
    }
    return StopReason{StopKind::kPatience,
                      absl::StrCat("no improvement in ", trials, " trials")};
  };
}

StopRule ExpectedImprovementBelow(double fraction, int trials) {
  return [=](const SessionProgress& p) -> absl::optional<StopReason> {
    if (!p.expected_improvement || *p.expected_improvement >= fraction ||
        p.quiet_trials < trials) {
      return absl::nullopt;
    }
    return StopReason{StopKind::kExpectedImprovement,
                      absl::StrCat("expected improvement below ",
                                   FormatShortPercent(fraction))};
  };
}

StopRule TargetReached(double target) {
  return [target](const SessionProgress& p) -> absl::optional<StopReason> {
    if (!p.best_cost || *p.best_cost > target) return absl::nullopt;
    return StopReason{StopKind::kTarget,
                      absl::StrCat("target of ", target, " reached")};
  };
}

StopRule AnyOf(std::vector<StopRule> rules) {
  return [rules = std::move(rules)](
             const SessionProgress& p) -> absl::optional<StopReason> {
    for (const StopRule& rule : rules) {
      if (absl::optional<StopReason> reason = rule(p)) return reason;
    }
    return absl::nullopt;
  };
}

}  // namespace optrail::tuning
