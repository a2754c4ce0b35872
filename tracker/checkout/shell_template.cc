#include "tracker/checkout/shell_template.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/text/quote.h"

namespace optrail::tracker {
namespace {

// `quote` is the one that is open: ', " or none (0).
std::string Escape(absl::string_view value, char quote) {
  if (quote == '\'') return absl::StrReplaceAll(value, {{"'", "'\\''"}});
  if (quote == '"') {
    return absl::StrReplaceAll(
        value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"$", "\\$"}, {"`", "\\`"}});
  }
  return QuoteForShell(value);
}

}  // namespace

std::string FillShellTemplate(
    absl::string_view command,
    const std::vector<std::pair<std::string, std::string>>& values) {
  std::string filled;
  char quote = 0;
  while (!command.empty()) {
    bool is_placeholder = false;
    for (const auto& [name, value] : values) {
      if (!absl::StartsWith(command, name)) continue;
      absl::StrAppend(&filled, Escape(value, quote));
      command.remove_prefix(name.size());
      is_placeholder = true;
      break;
    }
    if (is_placeholder) continue;
    const char c = command[0];
    if (c == '\\' && quote != '\'' && command.size() > 1) {
      filled += c;
      command.remove_prefix(1);
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    filled += command[0];
    command.remove_prefix(1);
  }
  return filled;
}

}  // namespace optrail::tracker
