#include "cli/flags.h"

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/git.h"

namespace optrail::cli {

std::string InWorkspace(const std::string& path) {
  return JoinPath(WorkspaceDirectory(), path);
}

std::string HistoryFolder() {
  const std::string folder = absl::GetFlag(FLAGS_history);
  return InWorkspace(folder.empty() ? ".optrail/history" : folder);
}

std::string StoreFolder() {
  const std::string folder = absl::GetFlag(FLAGS_store);
  return InWorkspace(folder.empty() ? ".optrail/store" : folder);
}

std::string FormatName() {
  return AbslUnparseFlag(absl::GetFlag(FLAGS_format));
}

}  // namespace optrail::cli
