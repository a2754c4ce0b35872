#include "tracker/import/text_file.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"

namespace optrail::tracker {

absl::Status TextLines::ForEach(
    absl::FunctionRef<absl::Status(absl::string_view line)> read) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(file_.content, '\n');
  for (const absl::string_view line : lines) {
    ++number_;
    if (IsValidUtf8(line) && line.find('\0') == line.npos) continue;
    return Wrong("the line", line, "UTF-8 text");
  }
  number_ = 0;
  for (const absl::string_view line : lines) {
    ++number_;
    OPTRAIL_RETURN_IF_ERROR(read(absl::StripSuffix(line, "\r")));
  }
  return absl::OkStatus();
}

absl::Status TextLines::Wrong(absl::string_view field, absl::string_view found,
                              absl::string_view expected) const {
  return absl::InvalidArgumentError(absl::StrCat(
      file_.path, ":", number_, ": ", field, " is '",
      absl::CHexEscape(found.substr(0, 60)), "', expected ", expected));
}

bool LooksLike(absl::string_view content, char first,
               std::initializer_list<absl::string_view> words) {
  const absl::string_view head =
      absl::StripLeadingAsciiWhitespace(content).substr(0, 65536);
  return !head.empty() && head[0] == first &&
         std::all_of(words.begin(), words.end(), [&](absl::string_view word) {
           return absl::StrContains(head, word);
         });
}

}  // namespace optrail::tracker
