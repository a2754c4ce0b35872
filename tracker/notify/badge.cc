#include "tracker/notify/badge.h"

#include "absl/strings/substitute.h"
#include "base/table.h"
#include "tracker/notify/xml.h"

namespace optrail::tracker {
namespace {

constexpr size_t kMostBytes = 80;

std::string Escape(absl::string_view text) {
  return EscapeForXml(text.substr(0, kMostBytes));
}

// Of Verdana at 11 pixels, about; textLength makes the text fit whatever font
// there is.
int TextWidth(absl::string_view text) {
  return static_cast<int>(
      6.6 * DisplayWidth(EscapeForTerminal(text.substr(0, kMostBytes))));
}

}  // namespace

std::string BadgeSvg(absl::string_view label, absl::string_view message,
                     absl::string_view color) {
  const int label_text = TextWidth(label);
  const int message_text = TextWidth(message);
  const int left = label_text + 12;
  const int width = left + message_text + 12;
  return absl::Substitute(
      R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="$0" height="20" role="img" aria-label="$1: $2">
<title>$1: $2</title>
<clipPath id="r"><rect width="$0" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="$3" height="20" fill="#4a4f55"/><rect x="$3" width="$4" height="20" fill="$5"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="6" y="14" textLength="$6">$1</text><text x="$7" y="14" textLength="$8">$2</text></g>
</svg>
)svg",
      width, Escape(label), Escape(message), left, width - left, color,
      label_text, left + 6, message_text);
}

}  // namespace optrail::tracker
