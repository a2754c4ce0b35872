#include "suites/command/single_operator.h"

#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/core/registry.h"

ABSL_DECLARE_FLAG(bool, with_test_operators);

namespace optrail::suites {

int RunForLinkedOperator(
    absl::FunctionRef<Command(const std::string& op)> make_command,
    const std::string& command_name, int argc, char** argv) {
  std::vector<std::string> names;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(/*with_test_only=*/true)) {
    names.push_back(entry->op->name());
  }
  // Whoever runs a test operator's own binary means that operator.
  absl::SetFlag(&FLAGS_with_test_operators, true);
  const std::string title =
      absl::StrCat(absl::StrJoin(names, "_"), "_", command_name);
  return RunSingleCommand(title, make_command(absl::StrJoin(names, "|")), argc,
                          argv);
}

}  // namespace optrail::suites
