#include "tuning/search/strategy.h"

namespace optrail::tuning {

absl::string_view TrialOutcomeName(TrialOutcome outcome) {
  switch (outcome) {
    case TrialOutcome::kUnspecified:
      return "UNSPECIFIED";
    case TrialOutcome::kOk:
      return "OK";
    case TrialOutcome::kInvalid:
      return "INVALID";
    case TrialOutcome::kCompileError:
      return "COMPILE_ERROR";
    case TrialOutcome::kLaunchError:
      return "LAUNCH_ERROR";
    case TrialOutcome::kCrashed:
      return "CRASHED";
    case TrialOutcome::kTimedOut:
      return "TIMED_OUT";
    case TrialOutcome::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case TrialOutcome::kWrongResult:
      return "WRONG_RESULT";
    case TrialOutcome::kCensored:
      return "CENSORED";
    case TrialOutcome::kContended:
      return "CONTENDED";
    case TrialOutcome::kUnsupported:
      return "UNSUPPORTED";
  }
  return "UNSPECIFIED";
}

bool IsFailure(TrialOutcome outcome) {
  return outcome != TrialOutcome::kOk && outcome != TrialOutcome::kCensored &&
         outcome != TrialOutcome::kContended;
}

}  // namespace optrail::tuning
