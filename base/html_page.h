#ifndef OPTRAIL_CARBON_PAGE_H_
#define OPTRAIL_CARBON_PAGE_H_

// The frame of carbon's pages: one HTML file without scripts, which prints.
//
//   return PageText("Carbon plan", body);

#include <string>

#include "absl/strings/string_view.h"

namespace optrail::carbon {

// Text of data, for HTML.
std::string EscapeHtml(absl::string_view text);

// `body` is HTML; `title` is text, and the page's heading.
std::string PageText(absl::string_view title, absl::string_view body);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_PAGE_H_
