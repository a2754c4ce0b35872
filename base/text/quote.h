#ifndef OPTRAIL_BASE_TEXT_QUOTE_H_
#define OPTRAIL_BASE_TEXT_QUOTE_H_

// Text for another reader: a shell, a CSV file. For JSON: base/text/json.h.
//
//   const std::string command =
//       absl::StrCat("./train --name=", QuoteForShell(name));

#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// One word of a POSIX shell: as it is where that is harmless, else in single
// quotes.
std::string QuoteForShell(absl::string_view text);

// One field (RFC 4180): in double quotes where it has a comma, a quote or a
// line break.
std::string QuoteForCsv(absl::string_view text);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_QUOTE_H_
