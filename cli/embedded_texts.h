#ifndef OPTRAIL_CLI_EMBEDDED_TEXTS_H_
#define OPTRAIL_CLI_EMBEDDED_TEXTS_H_

// Files that are put into the program when it is built (embed_texts.sh): a
// command's details are HelpText("changes").

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail::cli {

// docs/json_schemas/*.schema.json by name: "changes", "log_runs".
const std::map<std::string, absl::string_view>& JsonSchemas();

// cli/help/*.txt by name of a command: what its help says before its flags.
const std::map<std::string, absl::string_view>& HelpTexts();
inline std::string HelpText(const std::string& command) {
  return std::string(HelpTexts().at(command));
}

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_EMBEDDED_TEXTS_H_
