#include "cli/flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
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

absl::Status CheckDuration(absl::string_view flag, absl::Duration value,
                           absl::Duration least) {
  return tracker::CheckFlag(
      value >= least, flag, absl::FormatDuration(value),
      absl::StrCat("a duration of at least ", absl::FormatDuration(least)));
}

std::string FormatName() {
  return AbslUnparseFlag(absl::GetFlag(FLAGS_format));
}

tracker::CommonOptions TrackerOptions() {
  tracker::CommonOptions options;
  options.history = HistoryFolder();
  options.history_is_named = !absl::GetFlag(FLAGS_history).empty();
  options.format = absl::GetFlag(FLAGS_format);
  options.workspace = WorkspaceDirectory();
  return options;
}

}  // namespace optrail::cli
