#ifndef OPTRAIL_CLI_JSON_SCHEMAS_H_
#define OPTRAIL_CLI_JSON_SCHEMAS_H_

// docs/json_schemas/*.schema.json, put into the program when it is built.

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail::cli {

// By name: "changes", "log_runs".
const std::map<std::string, absl::string_view>& JsonSchemas();

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_JSON_SCHEMAS_H_
