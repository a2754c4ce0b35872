#ifndef OPTRAIL_TRACKER_NOTIFY_XML_H_
#define OPTRAIL_TRACKER_NOTIFY_XML_H_

// Text for an XML document.
//
//   absl::StrAppend(&xml, "<text>", EscapeForXml(name), "</text>");
//
// Names of benchmarks may come from anyone.

#include <string>

#include "absl/strings/string_view.h"

namespace optrail::tracker {

// `text` as content or as an attribute's value, in one line. What XML cannot
// hold becomes an escape such as \x1b.
std::string EscapeForXml(absl::string_view text);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_NOTIFY_XML_H_
