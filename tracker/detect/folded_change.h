#ifndef OPTRAIL_TRACKER_DETECT_FOLDED_CHANGE_H_
#define OPTRAIL_TRACKER_DETECT_FOLDED_CHANGE_H_

// A change as a record, and back again: all of its fields.
//
//   *state.add_confirmed() = ToFolded(change);
//   const ChangePoint same = FromFolded(state.confirmed(0));
//
// Records of before `between` was kept have 0 there. Thread-safe.

#include "tracker/detect/detect.h"
#include "tracker/detect/fold.pb.h"

namespace optrail::tracker {

proto::FoldedChange ToFolded(const ChangePoint& change);
ChangePoint FromFolded(const proto::FoldedChange& folded);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_FOLDED_CHANGE_H_
