// `optrail watch`: the commits of a range that the history lacks, measured.

#include <cstdlib>
#include <iostream>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "cli/ab.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/watch/watch_command.h"

ABSL_FLAG(bool, retry_failed, false,
          "Try commits again that did not build or whose run failed.");

ABSL_DECLARE_FLAG(int32_t, processes);
ABSL_DECLARE_FLAG(int32_t, limit);

namespace optrail::cli {
namespace {

// Where the work tree is kept, so that builds are incremental from one call to
// the next. Not in the workspace: build systems would look into it.
std::string WatchFolder(const std::string& workspace) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder = "/tmp";
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = JoinPath(home, ".cache");
  }
  return JoinPath(folder, "optrail/watch", Fingerprint(workspace));
}

}  // namespace

suites::Command WatchCommand() {
  suites::Command command;
  command.name = "watch";
  command.arguments = "[RANGE]";
  command.summary = "Measures the commits that the history lacks.";
  command.details = HelpText("watch");
  command.flags =
      Together({{"history", "format", "suite", "hardware", "branch",
                 "processes", "limit", "retry_failed", "dry_run", "quiet"},
                BuildFlags()});
  command.defaults = {{"limit", "0"}, {"processes", "5"}};
  command.meanings = {
      {"suite", "Name of the suite in the history; by default benchmarks."},
      {"hardware", "Id of the hardware to record, by default this machine's."},
      {"branch", "Branch to record, by default git's."},
      {"processes", "Runs of --run for each commit, each a fresh process."},
      {"limit", "Most commits to measure, newest first; 0: all."},
      {"dry_run", "Print which commits would be measured, measure none."}};
  command.max_arguments = 1;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    tracker::WatchCommand options;
    options.common = TrackerOptions();
    if (!arguments.empty()) options.range = arguments[0];
    OPTRAIL_ASSIGN_OR_RETURN(options.build, BuildOptionsFromFlags({}));
    options.build.trees.folder = WatchFolder(options.common.workspace);
    options.suite = SuiteOfRuns();
    options.branch = absl::GetFlag(FLAGS_branch);
    OPTRAIL_ASSIGN_OR_RETURN(options.hardware, HardwareOfRuns());
    options.processes = absl::GetFlag(FLAGS_processes);
    options.limit = absl::GetFlag(FLAGS_limit);
    options.retry_failed = absl::GetFlag(FLAGS_retry_failed);
    options.dry_run = absl::GetFlag(FLAGS_dry_run);
    options.quiet = absl::GetFlag(FLAGS_quiet);
    return tracker::RunWatch(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
