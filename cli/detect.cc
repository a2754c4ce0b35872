// `optrail detect`: change points of any series.

#include <iostream>

#include "absl/flags/flag.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/detect/detect_csv.h"

ABSL_FLAG(
    std::string, csv, "",
    "File of series, plain, .gz or .xz, with the columns id, t and value.");
ABSL_FLAG(optrail::tracker::DetectMode, mode,
          optrail::tracker::DetectMode::kAuto,
          "offline: the best segmentation of the whole series; online: what "
          "would have been said as the points came in, as `changes` does; "
          "auto: online for what `history export` wrote, else offline.");

namespace optrail::cli {

suites::Command DetectCommand() {
  suites::Command command;
  command.name = "detect";
  command.summary = "Finds the change points of series.";
  command.details = HelpText("detect");
  command.flags = {"csv", "mode", "format"};
  command.defaults = {{"format", "json"}};
  for (const char* flag : {"history", "suite", "hardware", "branch", "filter",
                           "metric", "min_effect"}) {
    command.instead.push_back(
        {flag, "optrail changes finds the changes of a history"});
  }
  command.run = [](const std::vector<std::string>&) -> absl::StatusOr<int> {
    tracker::DetectCsvOptions options;
    const std::string csv = absl::GetFlag(FLAGS_csv);
    if (csv.empty()) {
      return absl::InvalidArgumentError(
          "--csv=FILE is missing: a file with the columns id, t and value");
    }
    options.csv = UserPath(csv);
    options.mode = absl::GetFlag(FLAGS_mode);
    options.format = FormatName();
    OPTRAIL_RETURN_IF_ERROR(tracker::DetectCsv(options, std::cout));
    return ToInt(ExitCode::kOk);
  };
  return command;
}

}  // namespace optrail::cli
