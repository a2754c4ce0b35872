#ifndef OPTRAIL_TRACKER_COMPARE_VERDICT_H_
#define OPTRAIL_TRACKER_COMPARE_VERDICT_H_

// What can be said of a benchmark on two sides, as data: text, Markdown, JSON
// and pages take names and ranks from here.
//
//   out << InfoOf(row.verdict).name;
//
// What a verdict leads to is the policy's affair: see tracker/gate/policy.h.

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optrail::tracker {

enum class Verdict {
  kUnchanged,
  kSlower,
  kFaster,
  kCannotTell,
  kMissing,
  kNew,
  kRenamed,
  kNewVersion,
  kCrashed,
  kWrongResult,
};

struct VerdictInfo {
  Verdict verdict;
  absl::string_view name;  // "slower", "can't tell", ...
  // Most severe first, from 0; of verdicts of the same action this decides
  // which is shown first.
  int rank;
  bool worse;  // a reason to stop a change
  absl::string_view meaning;
};

// By rank.
absl::Span<const VerdictInfo> Verdicts();
const VerdictInfo& InfoOf(Verdict verdict);
inline absl::string_view VerdictName(Verdict verdict) {
  return InfoOf(verdict).name;
}

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_VERDICT_H_
