#include "tracker/compare/verdict.h"

#include "base/check.h"

namespace optrail::tracker {
namespace {

constexpr VerdictInfo kVerdicts[] = {
    {Verdict::kWrongResult, "wrong result", 0, true,
     "worked in most of the baseline; its result is wrong now"},
    {Verdict::kCrashed, "crashed", 1, true,
     "worked in most of the baseline; crashed, timed out, ... now"},
    {Verdict::kMissing, "missing", 2, true, "in the baseline only"},
    {Verdict::kSlower, "slower", 3, true, "worse, whatever the metric"},
    {Verdict::kCannotTell, "can't tell", 4, false,
     "a change that matters is neither found nor excluded"},
    {Verdict::kRenamed, "renamed", 5, false,
     "in the candidate, beside a missing one that looks like it"},
    {Verdict::kNewVersion, "new version", 6, false,
     "the benchmark changed its meaning; not compared"},
    {Verdict::kFaster, "faster", 7, false, "better"},
    {Verdict::kNew, "new", 8, false, "in the candidate only"},
    {Verdict::kUnchanged, "unchanged", 9, false,
     "a change for the worse that matters is excluded"},
};

}  // namespace

absl::Span<const VerdictInfo> Verdicts() { return kVerdicts; }

const VerdictInfo& InfoOf(Verdict verdict) {
  for (const VerdictInfo& info : kVerdicts) {
    if (info.verdict == verdict) return info;
  }
  OPTRAIL_CHECK(false) << "no such verdict";
  return kVerdicts[0];
}

}  // namespace optrail::tracker
