#ifndef OPTRAIL_TRACKER_COMPARE_VERDICT_H_
#define OPTRAIL_TRACKER_COMPARE_VERDICT_H_

// The one table of verdicts: of a benchmark on two sides, and of the newest
// point of a series. Text, Markdown, JSON and the page take names, sentences,
// tones and ranks from here.
//
//   out << InfoOf(row.verdict).name;
//
// What a verdict leads to is the policy's affair: see tracker/gate/policy.h.

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optrail::tracker {

enum class Verdict {
  kUnchanged,
  kSlower,
  kSlowerInMostSamples,  // the fastest sample does not show it
  kMaybeSlower,          // of a series: not confirmed yet
  kFaster,
  kMaybeFaster,  // of a series: not confirmed yet
  kCannotTell,
  kNoBaseline,
  kSkipped,  // and never measured before
  kMissing,  // skipped ones among them
  kNew,
  kRenamed,
  kNewVersion,
  // A series got worse, and somebody has answered that (ChangeState).
  kAcknowledged,
  kExpected,
  kMuted,
  kFailed,  // of a series: its newest point has no value
  kCrashed,
  kWrongResult,
};

// How much a verdict should worry its reader; the page's colour.
enum class Tone { kBroken, kWorse, kUnsure, kBetter, kNeutral };
absl::string_view ToneName(Tone tone);  // "broken", ...: the page's class
// For what has no style sheet: "#b23c00".
absl::string_view ToneColor(Tone tone);

struct VerdictInfo {
  Verdict verdict;
  // "slower", "can't tell", ...; also the value in JSON and CSV. For metrics
  // other than time "slower" and "faster" read "worse" and "better".
  absl::string_view name;
  Tone tone;
  absl::string_view icon;  // of the page
  absl::string_view sign;  // one character, for Markdown
  bool worse;              // a reason to stop a change
  bool is_change;          // the newest level differs from another
  bool wants_attention;    // noise is no news
  bool of_series;          // a series may have it
  absl::string_view meaning;
};

// Most severe first; of verdicts of the same action this decides which is shown
// first.
absl::Span<const VerdictInfo> Verdicts();
int VerdictRank(Verdict verdict);  // index into Verdicts()
const VerdictInfo& InfoOf(Verdict verdict);
inline absl::string_view VerdictName(Verdict verdict) {
  return InfoOf(verdict).name;
}

// "2 slower, 1 acknowledged, 7 unchanged", the most severe first.
std::string CountsText(const std::map<Verdict, int>& counts);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_VERDICT_H_
