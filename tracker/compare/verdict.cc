#include "tracker/compare/verdict.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace optrail::tracker {
namespace {

constexpr VerdictInfo kVerdicts[] = {
    {Verdict::kWrongResult, "wrong result", Tone::kBroken, "cross", "✕", true,
     false, true, false, "the result is wrong; it was right in the baseline"},
    {Verdict::kCrashed, "crashed", Tone::kBroken, "cross", "✕", true, false,
     true, false, "crashed or timed out; it worked in the baseline"},
    {Verdict::kFailed, "failed", Tone::kBroken, "cross", "✕", true, false, true,
     true, "the newest run crashed, timed out or was wrong"},
    {Verdict::kMissing, "missing", Tone::kBroken, "gone", "✕", true, false,
     true, true, "the baseline has it, the newest run lacks or skips it"},
    {Verdict::kSlower, "slower", Tone::kWorse, "up", "▲", true, true, true,
     true, "a confirmed change for the worse"},
    {Verdict::kSlowerInMostSamples, "slower in most samples", Tone::kUnsure,
     "up", "△", false, true, true, false,
     "most samples are slower, the fastest are not"},
    {Verdict::kMaybeSlower, "maybe slower", Tone::kUnsure, "caret", "?", false,
     true, true, true, "looks worse, not confirmed yet"},
    {Verdict::kCannotTell, "can't tell", Tone::kUnsure, "question", "?", false,
     false, false, true,
     "inconclusive: too noisy, contended, or too little data"},
    {Verdict::kRenamed, "renamed", Tone::kNeutral, "dot", "=", false, false,
     false, true, "one is new and looks like one that is missing"},
    {Verdict::kNewVersion, "new version", Tone::kNeutral, "dot", "=", false,
     false, false, true, "the benchmark changed its meaning; not compared"},
    {Verdict::kFaster, "faster", Tone::kBetter, "down", "▼", false, true, true,
     true, "a confirmed change for the better"},
    {Verdict::kMaybeFaster, "maybe faster", Tone::kBetter, "down", "?", false,
     true, false, true, "looks better, not confirmed yet"},
    {Verdict::kNoBaseline, "no baseline", Tone::kNeutral, "dot", "=", false,
     false, false, true, "too little history for a verdict"},
    {Verdict::kSkipped, "skipped", Tone::kNeutral, "dot", "=", false, false,
     false, true, "it says that it can't run here, and never did"},
    {Verdict::kNew, "new", Tone::kNeutral, "dot", "=", false, false, false,
     false, "the baseline lacks it"},
    {Verdict::kAcknowledged, "acknowledged", Tone::kNeutral, "bars", "=", false,
     false, false, true, "it changed, which somebody has acknowledged"},
    {Verdict::kExpected, "expected", Tone::kNeutral, "bars", "=", false, false,
     false, true, "it changed by no more than somebody expects"},
    {Verdict::kMuted, "muted", Tone::kNeutral, "bars", "=", false, false, false,
     true, "it changed, and somebody has muted it"},
    {Verdict::kUnchanged, "unchanged", Tone::kNeutral, "bars", "=", false,
     false, false, true, "a change for the worse that matters is excluded"},
};

}  // namespace

absl::string_view ToneName(Tone tone) {
  switch (tone) {
    case Tone::kBroken:
      return "broken";
    case Tone::kWorse:
      return "worse";
    case Tone::kUnsure:
      return "unsure";
    case Tone::kBetter:
      return "better";
    case Tone::kNeutral:
      return "neutral";
  }
  return "";
}

absl::string_view ToneColor(Tone tone) {
  switch (tone) {
    case Tone::kBroken:
    case Tone::kWorse:
      return "#b23c00";
    case Tone::kUnsure:
      return "#6a6f75";
    case Tone::kBetter:
    case Tone::kNeutral:
      return "#2a7d2e";
  }
  return "";
}

absl::Span<const VerdictInfo> Verdicts() { return kVerdicts; }

int VerdictRank(Verdict verdict) {
  int rank = 0;
  for (const VerdictInfo& info : kVerdicts) {
    if (info.verdict == verdict) return rank;
    ++rank;
  }
  OPTRAIL_CHECK(false) << "no such verdict";
  return rank;
}

const VerdictInfo& InfoOf(Verdict verdict) {
  return kVerdicts[VerdictRank(verdict)];
}

std::string CountsText(const std::map<Verdict, int>& counts) {
  std::vector<std::string> texts;
  for (const VerdictInfo& info : kVerdicts) {
    const auto count = counts.find(info.verdict);
    if (count == counts.end()) continue;
    texts.push_back(absl::StrCat(count->second, " ", info.name));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace optrail::tracker
