// `optrail demo`: a made-up history and its report, to look at.

#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "absl/flags/flag.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "reports/sample/demo_command.h"

ABSL_FLAG(
    bool, open, true,
    "Open the report in a browser, if a terminal and a desktop are here.");

namespace optrail::cli {
namespace {

bool IsSet(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// The browser outlives this process, and nobody waits for it.
void OpenInBrowser(const std::string& page) {
  const bool somebody_looks = isatty(STDOUT_FILENO) == 1 && !IsSet("CI") &&
                              (IsSet("DISPLAY") || IsSet("WAYLAND_DISPLAY"));
  if (!somebody_looks) return;
  // It leaves the group of processes that ends with ours. Without xdg-open the
  // printed path has to do.
  RunCommand({"setsid", "--wait", "sh", "-c",
              "xdg-open \"$0\" >/dev/null 2>&1 &", page})
      .IgnoreError();
}

}  // namespace

suites::Command DemoCommand() {
  suites::Command command;
  command.name = "demo";
  command.summary = "Writes a made-up history and its report, to look at.";
  command.details = HelpText("demo");
  command.flags = {"out", "open"};
  command.defaults = {{"out", "optrail_demo"}};
  command.meanings = {
      {"out", "Folder to write; it is empty or does not exist yet."}};
  command.run = [](const std::vector<std::string>&) -> absl::StatusOr<int> {
    reports::DemoCommand options;
    options.out = UserPath(absl::GetFlag(FLAGS_out));
    OPTRAIL_ASSIGN_OR_RETURN(const int code,
                             reports::RunDemo(options, std::cout, std::cerr));
    if (absl::GetFlag(FLAGS_open)) {
      OpenInBrowser(JoinPath(options.out, "report.html"));
    }
    return code;
  };
  return command;
}

}  // namespace optrail::cli
