// `optrail demo`: a made-up history and its report, to look at.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "reports/sample/demo_command.h"

namespace optrail::cli {

suites::Command DemoCommand() {
  suites::Command command;
  command.name = "demo";
  command.summary = "Writes a made-up history and its report, to look at.";
  command.details = HelpText("demo");
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
