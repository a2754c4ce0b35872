#include "tuning/search/strategy.h"

namespace optrail::tuning {

bool IsFailure(TrialOutcome outcome) {
  return outcome != TrialOutcome::kOk && outcome != TrialOutcome::kCensored &&
         outcome != TrialOutcome::kContended;
}

}  // namespace optrail::tuning
