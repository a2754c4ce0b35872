// `optrail schema`: what --format=json of a command prints, as JSON Schema.

#include <iostream>
#include <map>
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
namespace {

// Commands whose JSON is another's: what is said of a change is a row of the
// list of all that was said.
const std::map<std::string, std::string>& SameAs() {
  static const auto* const same = new std::map<std::string, std::string>{
      {"ack", "triage"},  {"expect", "triage"},      {"mute", "triage"},
      {"note", "triage"}, {"triage_list", "triage"}, {"triage_undo", "triage"}};
  return *same;
}

}  // namespace

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
    std::string name = absl::StrJoin(arguments, "_");
    const auto same = SameAs().find(name);
    if (same != SameAs().end()) name = same->second;
    const auto found = schemas.find(name);
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
