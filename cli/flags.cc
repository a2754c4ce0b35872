#include "cli/flags.h"

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/git.h"

namespace optrail::cli {

namespace {

std::string FolderOr(const std::string& given, const char* in_workspace) {
  return given.empty() ? JoinPath(WorkspaceDirectory(), in_workspace)
                       : UserPath(given);
}

}  // namespace

std::string UserPath(const std::string& path) {
  return JoinPath(WorkingDirectory(), path);
}

std::string HistoryFolder() {
  return FolderOr(absl::GetFlag(FLAGS_history), ".optrail/history");
}

std::string StoreFolder() {
  return FolderOr(absl::GetFlag(FLAGS_store), ".optrail/store");
}

std::string FormatName() {
  return AbslUnparseFlag(absl::GetFlag(FLAGS_format));
}

tracker::CommonOptions TrackerOptions() {
  tracker::CommonOptions options;
  options.history = HistoryFolder();
  options.format = absl::GetFlag(FLAGS_format);
  options.workspace = WorkspaceDirectory();
  return options;
}

}  // namespace optrail::cli
