#ifndef OPTRAIL_BASE_TEXT_HTML_PAGE_H_
#define OPTRAIL_BASE_TEXT_HTML_PAGE_H_

// The frame of small pages: one HTML file without scripts, which prints.
//
//   return PageText("Carbon plan", body);

#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// Text of data, for HTML.
std::string EscapeHtml(absl::string_view text);

// `body` is HTML; `title` is text, and the page's heading.
std::string PageText(absl::string_view title, absl::string_view body);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_HTML_PAGE_H_
