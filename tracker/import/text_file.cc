#include "tracker/import/text_file.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace optrail::tracker {
namespace {

bool IsUtf8(absl::string_view text) {
  // The strict dump of a JSON text refuses what is no UTF-8.
  try {
    (void)nlohmann::json(std::string(text)).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace

absl::Status CheckText(const ImportedFile& file) {
  if (IsUtf8(file.content) && file.content.find('\0') == std::string::npos) {
    return absl::OkStatus();
  }
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(file.content, '\n')) {
    ++number;
    if (IsUtf8(line) && line.find('\0') == absl::string_view::npos) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, ":", number, ": the line is '",
        absl::CHexEscape(line.substr(0, 60)), "', expected UTF-8 text"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.path, ": expected UTF-8 text"));
}

}  // namespace optrail::tracker
