#ifndef OPTRAIL_CLI_VERSION_H_
#define OPTRAIL_CLI_VERSION_H_

// What `optrail --version` says: commit and date of the build where it was
// stamped (bazel build --config=stamp), else that it was not.

#include <string>

#include "absl/strings/string_view.h"

namespace optrail::cli {

// The version of this binary.
std::string VersionText();

// "optrail COMMIT (TIME)"; an empty commit is a build that was not stamped.
std::string VersionText(absl::string_view commit, absl::string_view date);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_VERSION_H_
