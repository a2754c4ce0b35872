#ifndef OPTRAIL_SUITES_COMMAND_COMMAND_LINE_H_
#define OPTRAIL_SUITES_COMMAND_COMMAND_LINE_H_

// A command line with commands, over Abseil's flags:
//
//   optrail compare A B --format=json
//   optrail history thin --keep_runs=50
//   optrail help history thin
//
// Each command names the flags it takes; a command of several parts names them
// for each part, and a command whose flags depend on each other says which of
// them a call uses. Any other flag, a malformed or empty value and a wrong
// number of arguments are explained on standard error, with the closest name
// that applies or the command that takes the flag, and the exit code is 2. An
// error about a flag whose value comes from a file of settings names its line.
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
  std::string call;  // which call it is: "with --run", "for log runs"
  std::vector<std::string> flags;
};

// A call that uses all of `flags` but those in `unused`.
FlagUse UseAllBut(std::string call, std::vector<std::string> flags,
                  const std::vector<std::string>& unused);

// A flag and a text about it.
using FlagText = std::pair<std::string, std::string>;

// A flag's value from a file, and where it stands there: "file:line".
struct FlagSetting {
  std::string flag;
  std::string value;
  std::string place;
};

// A flag that names a file of settings, which hold for flags that the command
// line does not give: --preset=recommender.
struct SettingsFlag {
  std::string flag;  // empty: the command has none
  std::function<absl::StatusOr<std::vector<FlagSetting>>(const std::string&)>
      read;
};

// Returns the origin of a flag's value in the call that runs: "command line",
// the place of a FlagSetting, or "default". Like the flags themselves it is set
// before a command runs, and read by it alone.
std::string FlagOrigin(const std::string& flag);

struct Command {
  std::string name;       // "compare"
  std::string arguments;  // "A B", for the help text
  std::string summary;    // one line
  std::string details;    // paragraphs; examples last
  std::vector<std::string> flags;
  // Defaults of this command where they differ: {flag, value}.
  std::vector<FlagText> defaults;
  // Help of a flag that several commands share, for this command.
  std::vector<FlagText> meanings;
  // The mend where somebody gives a flag that this command does not take.
  std::vector<FlagText> instead;
  SettingsFlag settings;
  // Flags that are text, and lists between commas all the same.
  std::vector<std::string> lists;
  int min_arguments = 0;
  int max_arguments = 0;  // -1: any number
  // Commands of which the first argument names one: thin of `history thin`.
  // They share `defaults`, `meanings`, `instead` and `lists`.
  std::vector<Command> parts;
  // The part that a call without arguments is; empty: it has to be named.
  std::string default_part;
  // What a call with these positional arguments uses; any other flag that is
  // given is refused, as it would have no effect. Null: all flags.
  std::function<FlagUse(const std::vector<std::string>&)> use;
  // Gets the positional arguments, without the part's name; returns the exit
  // code. An error is printed and becomes the exit code of base/exit_code.h.
  std::function<absl::StatusOr<int>(const std::vector<std::string>&)> run;
};

struct CommandGroup {
  std::string heading;
  std::vector<Command> commands;
};

// The exit code of a program that has printed its result: `code`, or with a
// message that of bad input where the standard output takes no more, as on a
// full disk. `typed` is the command, "optrail log".
int EndOutput(absl::string_view typed, int code);

// A binary with one command only runs it without its name being given:
// `program` is what help calls it.
int RunSingleCommand(absl::string_view program, const Command& command,
                     int argc, char** argv);

int RunCommandLine(absl::string_view program, absl::string_view about,
                   const std::vector<CommandGroup>& groups, int argc,
                   char** argv);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_COMMAND_LINE_H_
