#include "cli/flags.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/git.h"

ABSL_FLAG(std::string, out, "", "File to write, replaced atomically.");
ABSL_FLAG(std::string, hardware, "",
          "Only results of the hardware with this id.");
ABSL_FLAG(std::string, commit, "", "A commit (any name that git knows).");
ABSL_FLAG(std::string, branch, "", "Only results of this branch.");
ABSL_FLAG(std::string, filter, "",
          "Only benchmarks whose name this regular expression matches.");
ABSL_FLAG(std::string, metric, "time",
          "Metrics whose whole name this regular expression matches.");
ABSL_FLAG(optrail::Percentage, min_effect, {.03},
          "Smaller differences are no news.");
ABSL_FLAG(optrail::Percentage, false_alarm_rate, {.01},
          "Chance that any benchmark is called changed when none is.");
ABSL_FLAG(std::string, policy, "",
          "Policy file (docs/reference/policy_format.md); by default every "
          "benchmark may slow down by at most 5%.");

ABSL_FLAG(std::string, markdown_out, "", "Markdown file for the pull request.");

namespace optrail::cli {

namespace {

std::string FolderOr(const std::string& given, const char* in_workspace) {
  return given.empty() ? JoinPath(WorkspaceDirectory(), in_workspace)
                       : UserPath(given);
}

}  // namespace

suites::Command Part(
    std::string name, std::string arguments, std::string summary,
    std::vector<std::string> flags, int least, int most,
    std::function<absl::StatusOr<int>(const std::vector<std::string>&)> run) {
  suites::Command part;
  part.name = std::move(name);
  part.arguments = std::move(arguments);
  part.summary = std::move(summary);
  part.flags = std::move(flags);
  part.min_arguments = least;
  part.max_arguments = most;
  part.run = std::move(run);
  return part;
}

absl::StatusOr<int> CodeOf(const absl::StatusOr<ExitCode>& code) {
  if (!code.ok()) return code.status();
  return ToInt(*code);
}

std::vector<std::string> Together(
    std::initializer_list<std::vector<std::string>> lists) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

std::string UserPath(const std::string& path) {
  if (path.empty() || path == "-" || tracker::IsStoreUrl(path)) return path;
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
