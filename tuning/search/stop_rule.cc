#include "tuning/search/stop_rule.h"

#include <utility>

namespace optrail::tuning {
namespace {

// `reason` where `fires` says so.
template <class Fires>
StopRule Rule(proto::StopReason reason, Fires fires) {
  return [reason, fires](const SessionProgress& p) {
    return fires(p) ? reason : proto::STOP_REASON_UNSPECIFIED;
  };
}

}  // namespace

StopRule MaxTrials(int count) {
  return Rule(proto::TRIALS_SPENT,
              [count](const SessionProgress& p) { return p.trials >= count; });
}

StopRule MaxTime(absl::Duration limit) {
  return Rule(proto::TIME_SPENT,
              [limit](const SessionProgress& p) { return p.elapsed >= limit; });
}

StopRule Patience(int trials) {
  return Rule(proto::PATIENCE_SPENT, [trials](const SessionProgress& p) {
    return p.best_cost && p.trials_since_improvement >= trials;
  });
}

StopRule ExpectedImprovementBelow(double fraction, int trials) {
  return Rule(
      proto::LITTLE_EXPECTED_IMPROVEMENT, [=](const SessionProgress& p) {
        return p.expected_improvement && *p.expected_improvement < fraction &&
               p.quiet_trials >= trials;
      });
}

StopRule TargetReached(double target) {
  return Rule(proto::TARGET_REACHED, [target](const SessionProgress& p) {
    return p.best_cost && *p.best_cost <= target;
  });
}

StopRule AnyOf(std::vector<StopRule> rules) {
  return [rules = std::move(rules)](const SessionProgress& p) {
    for (const StopRule& rule : rules) {
      const proto::StopReason reason = rule(p);
      if (reason != proto::STOP_REASON_UNSPECIFIED) return reason;
    }
    return proto::STOP_REASON_UNSPECIFIED;
  };
}

}  // namespace optrail::tuning
