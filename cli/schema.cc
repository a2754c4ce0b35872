// `optrail schema`: what --format=json of a command prints, as JSON Schema.

#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text/closest.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"

namespace optrail::cli {

suites::Command SchemaCommand() {
  suites::Command command;
  command.name = "schema";
  command.arguments = "[COMMAND [SUBCOMMAND]]";
  command.summary = "Prints the JSON Schema of a command's --format=json.";
  command.details = HelpText("schema");
  command.max_arguments = 3;  // tune dry run
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    const auto& schemas = JsonSchemas();
    std::vector<std::string> names;
    for (const auto& [name, schema] : schemas) {
      names.push_back(absl::StrReplaceAll(name, {{"_", " "}}));
    }
    if (arguments.empty()) {
      std::cout << absl::StrJoin(names, "\n") << "\n";
      return 0;
    }
    const auto found = schemas.find(absl::StrJoin(arguments, "_"));
    if (found == schemas.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", absl::StrJoin(arguments, " "),
                       "\": expected one of ", absl::StrJoin(names, ", "),
                       DidYouMean(absl::StrJoin(arguments, " "), names)));
    }
    std::cout << found->second;
    return 0;
  };
  return command;
}

}  // namespace optrail::cli
