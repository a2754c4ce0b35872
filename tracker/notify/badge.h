#ifndef OPTRAIL_TRACKER_NOTIFY_BADGE_H_
#define OPTRAIL_TRACKER_NOTIFY_BADGE_H_

// A badge as SVG, complete in itself: a label on grey, a message on a colour
// that also stands in words beside it.
//
//   WriteFileAtomically("badge.svg", BadgeSvg("performance", "fine",
//   "#2a7d2e"));

#include <string>

#include "absl/strings/string_view.h"

namespace optrail::tracker {

// `color` is ours, the texts may be anyone's.
std::string BadgeSvg(absl::string_view label, absl::string_view message,
                     absl::string_view color);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_NOTIFY_BADGE_H_
