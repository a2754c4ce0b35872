#include "cli/version.h"

#include "absl/strings/str_cat.h"
#include "cli/version_stamp.h"

namespace optrail::cli {

std::string VersionText(absl::string_view commit, absl::string_view date) {
  if (commit.empty()) {
    return "optrail unknown: unstamped build; next: bazel build "
           "--config=stamp //:optrail";
  }
  return absl::StrCat("optrail ", commit,
                      date.empty() ? "" : absl::StrCat(" (", date, ")"));
}

std::string VersionText() { return VersionText(kStampCommit, kStampDate); }

}  // namespace optrail::cli
