#ifndef OPTRAIL_SUITES_COMMAND_COMMAND_LINE_H_
#define OPTRAIL_SUITES_COMMAND_COMMAND_LINE_H_

// A command line with commands, over Abseil's flags:
//
//   optrail compare A B --format=json
//   optrail help compare
//
// Each command names the flags it takes, and which of them a call uses; any
// other flag, a malformed value or a wrong number of arguments is explained on
// standard error, with the closest name that exists, and the exit code is 2.
// (Abseil by itself exits with 1, which CI would take for a regression.)

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::suites {

// What one call of a command uses of the command's flags.
struct FlagUse {
  std::string call;  // which call it is: "with --run", "of log runs"
  std::vector<std::string> flags;
};

struct Command {
  std::string name;       // "compare"
  std::string arguments;  // "A B", for the help text
  std::string summary;    // one line
  std::string details;    // paragraphs; examples last
  std::vector<std::string> flags;
  // Defaults of this command where they differ: {flag, value}.
  std::vector<std::pair<std::string, std::string>> defaults;
  // Flags that are text, and lists between commas all the same.
  std::vector<std::string> lists;
  int min_arguments = 0;
  int max_arguments = 0;  // -1: any number
  // What a call with these positional arguments uses; any other flag that is
  // given is refused, as it would have no effect. Null: all flags.
  std::function<FlagUse(const std::vector<std::string>&)> use;
  // Gets the positional arguments; returns the exit code. An error is printed
  // and becomes the exit code that base/exit_code.h says.
  std::function<absl::StatusOr<int>(const std::vector<std::string>&)> run;
};

// A binary with one command only runs it without its name being given:
// `program` is what help calls it.
int RunSingleCommand(absl::string_view program, const Command& command,
                     int argc, char** argv);

int RunCommandLine(absl::string_view program, absl::string_view about,
                   const std::vector<Command>& commands, int argc, char** argv);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_COMMAND_LINE_H_
