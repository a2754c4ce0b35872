#include "cli/subcommands.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optrail::cli {
namespace {

const Subcommand* Find(const std::vector<Subcommand>& parts,
                       const std::string& name) {
  const auto found =
      std::find_if(parts.begin(), parts.end(),
                   [&](const Subcommand& part) { return part.name == name; });
  return found == parts.end() ? nullptr : &*found;
}

// "plan, check or run".
std::string NamesOf(const std::vector<Subcommand>& parts) {
  std::string names;
  for (const Subcommand& part : parts) {
    const bool last = &part == &parts.back();
    absl::StrAppend(&names,
                    names.empty() ? ""
                    : last        ? " or "
                                  : ", ",
                    part.name);
  }
  return names;
}

absl::StatusOr<int> Run(const std::string& command,
                        const std::vector<Subcommand>& parts,
                        const std::vector<std::string>& arguments) {
  const Subcommand* part = Find(parts, arguments[0]);
  if (part == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", arguments[0], "\": expected ", NamesOf(parts)));
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (rest.size() < part->least || rest.size() > part->most) {
    return absl::InvalidArgumentError(absl::StrCat(
        command, " ", part->name, ": ", rest.size(),
        rest.size() == 1 ? " argument" : " arguments", ", expected ",
        part->least == part->most ? "" : "at least ", part->least));
  }
  return part->run(rest);
}

}  // namespace

void SetSubcommands(const std::vector<Subcommand>& parts,
                    suites::Command* command) {
  std::vector<std::string>& all = command->flags;
  for (const Subcommand& part : parts) {
    for (const std::string& flag : part.flags) {
      if (std::find(all.begin(), all.end(), flag) == all.end()) {
        all.push_back(flag);
      }
    }
  }
  command->min_arguments = 1;
  command->max_arguments = -1;
  const std::string name = command->name;
  command->use = [parts, name, all](const std::vector<std::string>& arguments) {
    const Subcommand* part = Find(parts, arguments[0]);
    return suites::FlagUse{absl::StrCat("for ", name, " ", arguments[0]),
                           part == nullptr ? all : part->flags};
  };
  command->run = [parts, name](const std::vector<std::string>& arguments) {
    return Run(name, parts, arguments);
  };
}

absl::StatusOr<int> CodeOf(const absl::StatusOr<ExitCode>& code) {
  if (!code.ok()) return code.status();
  return ToInt(*code);
}

}  // namespace optrail::cli
