#ifndef OPTRAIL_TRACKER_PROTO_MADE_UP_H_
#define OPTRAIL_TRACKER_PROTO_MADE_UP_H_

// Runs that nobody measured, such as those of `optrail demo`, say so, and
// whatever is made of them says so as well:
//
//   if (run.source() == tracker::kMadeUpSource) Say("made up");

namespace optrail::tracker {

// Proto field Run.source of such runs.
inline constexpr char kMadeUpSource[] = "made up";

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_PROTO_MADE_UP_H_
