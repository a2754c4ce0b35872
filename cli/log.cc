// `optrail log`: lists what the history holds.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "cli/flags.h"
#include "tracker/command/log_command.h"

ABSL_FLAG(int32_t, limit, 20, "How many, newest first; 0: all.");

namespace optrail::cli {

suites::Command LogCommand() {
  suites::Command command;
  command.name = "log";
  command.arguments = "[runs|sessions|series]";
  command.summary = "Lists runs, tuning sessions or series.";
  command.details =
      "By default runs, which --suite, --hardware, --branch and --commit "
      "choose.\n"
      "--filter is for sessions, where it matches tasks, and for series.\n"
      "\n"
      "  optrail log --suite=smoke --limit=5\n"
      "  optrail log series --filter=^matmul/\n";
  command.flags = {"history", "format", "suite",  "hardware",
                   "branch",  "commit", "filter", "limit"};
  command.use = [](const std::vector<std::string>& arguments) {
    const std::string what = arguments.empty() ? "runs" : arguments[0];
    suites::FlagUse use = {
        absl::StrCat("for log ", what),
        {"history", "format", "limit", "hardware", "branch", "commit"}};
    if (what != "runs") use.flags.push_back("filter");
    if (what != "sessions") use.flags.push_back("suite");
    return use;
  };
  command.max_arguments = 1;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::LogCommand options;
    options.common = TrackerOptions();
    if (!arguments.empty()) options.what = arguments[0];
    options.suite = absl::GetFlag(FLAGS_suite);
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    options.branch = absl::GetFlag(FLAGS_branch);
    options.commit = absl::GetFlag(FLAGS_commit);
    options.filter = absl::GetFlag(FLAGS_filter);
    options.limit = absl::GetFlag(FLAGS_limit);
    return tracker::RunLog(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
