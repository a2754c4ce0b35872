#ifndef OPTRAIL_CLI_SUBCOMMANDS_H_
#define OPTRAIL_CLI_SUBCOMMANDS_H_

// Commands whose first argument names what they do: `optrail history verify`.
// Each says which flags it uses; any other is refused.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "suites/command/command_line.h"

namespace optrail::cli {

struct Subcommand {
  std::string name;
  std::vector<std::string> flags;
  size_t least = 0, most = 0;  // arguments after its name
  absl::StatusOr<int> (*run)(const std::vector<std::string>& arguments);
};

// Sets the flags of `command`, which has a name already, its numbers of
// arguments and what it runs.
void SetSubcommands(const std::vector<Subcommand>& parts,
                    suites::Command* command);

// For functions that return an ExitCode.
absl::StatusOr<int> CodeOf(const absl::StatusOr<ExitCode>& code);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_SUBCOMMANDS_H_
