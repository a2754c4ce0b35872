#ifndef OPTRAIL_TRACKER_JUDGE_NEWEST_H_
#define OPTRAIL_TRACKER_JUDGE_NEWEST_H_

// Finds newest points that stand off their level while they are too few for a
// detector. Part of judge.h.
//
//   if (const auto found = FindNewestOff(series, judgement))
//   Add(found->change);

#include "absl/types/optional.h"
#include "tracker/detect/detect.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

struct NewestOff {
  ChangePoint change;
  int begin = 0;  // of the level that it was looked for in
};

// Judges by the changes, levels and epochs of the judgement. nullopt where the
// newest point is as its level, or what it shows is among the changes.
absl::optional<NewestOff> FindNewestOff(const Series& series,
                                        const Judgement& judgement);

// The begin of the level before a provisional change. An acknowledgement that
// does not cover the change begins no level that it could be held against.
int BeginOfLevelBefore(const Judgement& judgement, const Change& change);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_NEWEST_H_
