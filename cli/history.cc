// `optrail history`: what keeps a history whole and small.

#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "carbon/certificate.h"
#include "cli/flags.h"
#include "tracker/history/index/index_commands.h"

ABSL_FLAG(int32_t, keep_runs, 50,
          "The newest runs of each suite, hardware and branch that keep their "
          "samples.");
ABSL_FLAG(int32_t, keep_days, 90, "Runs of so many days keep their samples.");
ABSL_FLAG(int32_t, keep_every, 1,
          "Of older runs, those of every so-many-th commit stay; 1: all.");
ABSL_FLAG(std::vector<std::string>, keep_commits, {},
          "Commits (tags, branches, hashes or prefixes of them) whose runs are "
          "never thinned: the releases that gates compare with.");
ABSL_FLAG(bool, accept_removals, false,
          "Take tombstones of another history that bury runs which are here "
          "(merge), and remove what only tombstones bury (thin).");
ABSL_FLAG(bool, rebuild, false, "Make the index anew from all files.");

namespace optrail::cli {
namespace {

// What `history NAME` does.
struct Action {
  std::vector<std::string> flags;
  absl::StatusOr<int> (*run)(const std::string& folder);
};

const std::map<std::string, Action>& Actions() {
  static const auto* const actions = new std::map<std::string, Action>{
      {"verify",
       {{},
        [](const std::string&) {
          return tracker::RunHistoryCheck({TrackerOptions()}, std::cout);
        }}},
      {"repair",
       {{"dry_run"},
        [](const std::string&) {
          return tracker::RunHistoryRepair(
              {TrackerOptions(), absl::GetFlag(FLAGS_dry_run)}, std::cout);
        }}},
      {"merge",
       {{"accept_removals"},
        [](const std::string& folder) {
          return tracker::RunHistoryMerge(
              {TrackerOptions(), UserPath(folder),
               absl::GetFlag(FLAGS_accept_removals)},
              std::cout);
        }}},
      {"thin",
       {{"dry_run", "keep_runs", "keep_days", "keep_every", "keep_commits",
         "accept_removals"},
        [](const std::string&) -> absl::StatusOr<int> {
          tracker::HistoryThinCommand options;
          options.common = TrackerOptions();
          options.policy.keep_runs = absl::GetFlag(FLAGS_keep_runs);
          options.policy.keep_days = absl::GetFlag(FLAGS_keep_days);
          options.policy.keep_every = absl::GetFlag(FLAGS_keep_every);
          options.policy.keep_commits = absl::GetFlag(FLAGS_keep_commits);
          options.policy.accept_removals = absl::GetFlag(FLAGS_accept_removals);
          OPTRAIL_ASSIGN_OR_RETURN(
              options.policy.keep_ids,
              carbon::CertifiedRuns(options.common.history));
          options.dry_run = absl::GetFlag(FLAGS_dry_run);
          return tracker::RunHistoryThin(options, std::cout);
        }}},
      {"export",
       {{"filter", "hardware", "branch", "out"},
        [](const std::string&) {
          tracker::HistoryExportCommand options;
          options.common = TrackerOptions();
          options.filter.pattern = absl::GetFlag(FLAGS_filter);
          options.filter.hardware_id = absl::GetFlag(FLAGS_hardware);
          options.filter.branch = absl::GetFlag(FLAGS_branch);
          const std::string out = absl::GetFlag(FLAGS_out);
          options.file = out.empty() || out == "-" ? out : UserPath(out);
          return tracker::RunHistoryExport(options, std::cout);
        }}},
      {"index", {{"rebuild"}, [](const std::string&) {
                   return tracker::RunHistoryIndex(
                       {TrackerOptions(), absl::GetFlag(FLAGS_rebuild)},
                       std::cout);
                 }}}};
  return *actions;
}

suites::FlagUse FlagsUsed(const std::vector<std::string>& arguments) {
  suites::FlagUse use = {absl::StrCat("for history ", arguments[0]),
                         {"history", "format"}};
  const auto found = Actions().find(arguments[0]);
  if (found != Actions().end()) {
    use.flags = Together({use.flags, found->second.flags});
  }
  return use;
}

}  // namespace

suites::Command HistoryCommand() {
  suites::Command command;
  command.name = "history";
  command.arguments = "verify|repair|merge FOLDER|thin|export|index";
  command.summary = "Checks, repairs, merges, thins or exports a history.";
  command.details =
      "  verify        names every file that is damaged or odd; of the odd "
      "ones "
      "the\n"
      "                first three of a kind\n"
      "  repair        moves damaged files to <history>/quarantine; deletes "
      "nothing\n"
      "  merge FOLDER  copies what another history holds beyond this one\n"
      "  thin          takes the raw samples of old runs away, as --keep_* "
      "say\n"
      "  export        writes series as CSV that `optrail detect --csv` "
      "reads\n"
      "  index         brings the index up to date; --rebuild makes it anew\n"
      "\n"
      "Exit code 1: verify, repair --dry_run or merge found damaged files.\n"
      "\n"
      "  optrail history thin --keep_runs=50 --keep_days=90 --dry_run\n"
      "  optrail history export --filter=^matmul/ --out=series.csv\n";
  command.flags = {"history",        "format",     "dry_run",      "keep_runs",
                   "keep_days",      "keep_every", "keep_commits", "rebuild",
                   "filter",         "hardware",   "branch",       "out",
                   "accept_removals"};
  command.use = FlagsUsed;
  command.min_arguments = 1;
  command.max_arguments = 2;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    const std::string& what = arguments[0];
    const auto found = Actions().find(what);
    const size_t taken = what == "merge" ? 2 : 1;
    if (found != Actions().end() && arguments.size() == taken) {
      return found->second.run(arguments.back());
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"", what,
                     "\": expected verify, repair, thin, export or index, or "
                     "merge and a folder"));
  };
  return command;
}

}  // namespace optrail::cli
