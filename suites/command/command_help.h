#ifndef OPTRAIL_SUITES_COMMAND_COMMAND_HELP_H_
#define OPTRAIL_SUITES_COMMAND_COMMAND_HELP_H_

// Prints help, at most 80 columns wide.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "suites/command/command_line.h"

namespace optrail::suites {

// All commands by groups, a line each.
std::string Overview(absl::string_view program, absl::string_view about,
                     const std::vector<CommandGroup>& groups);

// One command, called as `call` ("optrail compare"), with its flags.
std::string CommandHelp(absl::string_view call, const Command& command);
std::string PartHelp(absl::string_view call, const Command& command,
                     const Command& part);

// The flags of a command, or of all its parts.
std::vector<std::string> AllFlags(const Command& command);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_COMMAND_HELP_H_
