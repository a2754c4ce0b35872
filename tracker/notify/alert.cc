#include "tracker/notify/alert.h"

#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "base/utf8.h"

namespace optrail::tracker {

absl::Status RunAlert(const std::string& command, const std::string& json,
                      absl::Duration deadline) {
  CommandOptions options;
  options.stdin_text = json;
  options.timeout = deadline;
  options.max_stdout_bytes = 1 << 16;
  OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result,
                           RunCommand({"/bin/sh", "-c", command}, options));
  if (!result.stdout_text.empty()) {
    std::cerr << SanitiseText(
                     absl::StripTrailingAsciiWhitespace(result.stdout_text))
              << "\n";
  }
  if (result.exit.ok()) return absl::OkStatus();
  return absl::UnknownError(
      absl::StrCat("--alert_command ", result.exit.ToString(),
                   result.stderr_text.empty() ? "" : ": ",
                   EscapeForTerminal(absl::StripTrailingAsciiWhitespace(
                       TruncateUtf8(result.stderr_text, 500)))));
}

}  // namespace optrail::tracker
