#ifndef OPTRAIL_SUITES_COMMAND_REFUSALS_H_
#define OPTRAIL_SUITES_COMMAND_REFUSALS_H_

// What the command line says of flags that a call does not take, and of values
// that a flag does not: the closest name that applies, or the command that
// takes it. Private to command_line.h.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "suites/command/command_line.h"

namespace optrail::suites {

using Words = std::vector<std::string>;

inline bool Contains(const Words& words, absl::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// One call: a command, and the part of it that the first argument names.
struct Call {
  absl::string_view program;
  const Command* command = nullptr;
  const Command* part = nullptr;  // null: the command has no parts
  bool with_name = true;
  const std::vector<CommandGroup>* groups = nullptr;  // null: a single command

  const Command& runs() const { return part != nullptr ? *part : *command; }
  // "log runs", for messages.
  std::string Name() const {
    return part != nullptr ? absl::StrCat(command->name, " ", part->name)
                           : command->name;
  }
  // "optrail compare", for help.
  std::string Typed() const {
    return with_name ? absl::StrCat(program, " ", command->name)
                     : std::string(program);
  }
  // The command that explains this one.
  std::string HelpCommand() const {
    return with_name ? absl::StrCat(program, " help ", Name())
                     : absl::StrCat(program, " --help");
  }
};

// A flag without an effect is a question that would get another answer. `where`
// says which call it is: "for log runs". The mend is one of `applicable`, or
// the command that takes the flag.
absl::Status RefuseFlag(const Call& call, const std::string& flag,
                        absl::string_view where, const Words& applicable);
absl::Status UnknownFlag(const Call& call, const std::string& flag);

// What the flag's type has to say beyond "Illegal value", else what it expects.
std::string WhyRefused(const absl::CommandLineFlag& flag,
                       absl::string_view value, absl::string_view error);

// "; --file_format names that of the file" for a refused --format of a command
// that writes files.
std::string OtherFormat(const Command& command, absl::string_view flag);

// A name that was typed without the flag that takes it: "; did you mean
// --op=softmax?".
std::string FlagOfName(const Command& runs, const Words& positional);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_REFUSALS_H_
