// `optrail note`: a note beside a commit.

#include <iostream>

#include "cli/flags.h"
#include "cli/triage.h"

namespace optrail::cli {

suites::Command NoteCommand() {
  suites::Command command;
  command.name = "note";
  command.arguments = "SERIES|PATTERN COMMIT TEXT";
  command.summary = "Puts a note beside a commit; it judges nothing.";
  command.details =
      "  optrail note 'softmax/.*' HEAD~3 'new compiler from here on'\n";
  command.flags = {"history", "format"};
  command.min_arguments = command.max_arguments = 3;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::TriageAddCommand options = AddOptions(proto::NOTE, arguments[0]);
    options.commit = arguments[1];
    options.text = arguments[2];
    return tracker::RunTriageAdd(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
