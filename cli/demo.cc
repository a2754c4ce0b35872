// `optrail demo`: a made-up history and its report, to look at.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/flags.h"
#include "reports/sample/demo_command.h"

namespace optrail::cli {

suites::Command DemoCommand() {
  suites::Command command;
  command.name = "demo";
  command.summary = "Writes a made-up history and its report, to look at.";
  command.details =
      "Operators on three machines over 60 commits, with regressions,\n"
      "improvements, crashes and tuning sessions; every page says that "
      "nothing\n"
      "of it was measured. --out names a folder that does not exist yet.\n"
      "\n"
      "  optrail demo --out=optrail_demo\n";
  command.flags = {"out"};
  command.defaults = {{"out", "optrail_demo"}};
  command.meanings = {{"out", "Folder to write, which does not exist yet."}};
  command.run = [](const std::vector<std::string>&) {
    reports::DemoCommand options;
    options.out = UserPath(absl::GetFlag(FLAGS_out));
    return reports::RunDemo(options, std::cout, std::cerr);
  };
  return command;
}

}  // namespace optrail::cli
