#ifndef OPTRAIL_TRACKER_COMPARE_COMPARISON_NOTES_H_
#define OPTRAIL_TRACKER_COMPARE_COMPARISON_NOTES_H_

// ComparisonNotes() says what differs between two sides beside the code:
// toolchain, settings, builds, uncommitted changes, runs on both sides.
//
//   comparison.notes = ComparisonNotes(baseline, candidate);
//
// Both sides hold at least one run, the newest last.

#include <string>
#include <vector>

#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

std::vector<std::string> ComparisonNotes(
    const std::vector<const proto::Run*>& baseline,
    const std::vector<const proto::Run*>& candidate);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_COMPARISON_NOTES_H_
