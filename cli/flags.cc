#include "cli/flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/git.h"

ABSL_FLAG(std::string, out, "", "File to write, replaced atomically.");
ABSL_FLAG(std::string, hardware, "",
          "Id of the hardware: of imported results, or to filter by.");
ABSL_FLAG(std::string, commit, "",
          "Commit (any name that git knows): of imported results, by default "
          "HEAD; or to filter by.");
ABSL_FLAG(std::string, branch, "",
          "Branch: of imported results, by default git's; or to filter by.");
ABSL_FLAG(bool, dry_run, false, "Print what would be done, change nothing.");
ABSL_FLAG(std::string, filter, "",
          "Only benchmarks whose name this regular expression matches.");
ABSL_FLAG(std::string, metric, "time",
          "compare: metrics whose whole name this regular expression matches. "
          "tune --command: what it is judged by, NAME:min or NAME:max, with an "
          "optional limit (memory_mb:min<=32); several, separated by commas, "
          "are a search for the Pareto front.");
ABSL_FLAG(double, min_effect, .03,
          "Differences smaller than this fraction are no news.");
ABSL_FLAG(double, false_alarm_rate, .01,
          "Chance that any benchmark is called changed when none is.");
ABSL_FLAG(std::string, policy, "",
          "Policy file (docs/reference/policy_format.md); by default every "
          "benchmark may "
          "slow down by at most 5%.");

ABSL_FLAG(std::string, markdown_out, "", "Markdown file for the pull request.");

namespace optrail::cli {

namespace {

std::string FolderOr(const std::string& given, const char* in_workspace) {
  return given.empty() ? JoinPath(WorkspaceDirectory(), in_workspace)
                       : UserPath(given);
}

}  // namespace

std::vector<std::string> Together(
    std::initializer_list<std::vector<std::string>> lists) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

std::string UserPath(const std::string& path) {
  if (path.empty() || path == "-") return path;
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
