// `optrail history`: what keeps a history whole and small.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "carbon/certificate_folder.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/history/index/index_commands.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/schema.h"

ABSL_FLAG(int32_t, keep_runs, 50,
          "The newest runs of each suite, hardware and branch that keep their "
          "samples.");
ABSL_FLAG(int32_t, keep_days, 90, "Runs of so many days keep their samples.");
ABSL_FLAG(int32_t, keep_every, 1,
          "Keep older runs at every so-many-th commit only; 1: at all.");
ABSL_FLAG(std::vector<std::string>, keep_commits, {},
          "Commits (tags, branches, hashes or prefixes of them) whose runs are "
          "never thinned: the releases that gates compare with.");
ABSL_FLAG(bool, accept_removals, false,
          "Take tombstones of another history that bury runs which are here "
          "(merge), and remove what only tombstones bury (thin).");
ABSL_DECLARE_FLAG(std::string, file_format);
ABSL_FLAG(bool, rebuild, false, "Make the index anew from all files.");

namespace optrail::cli {
namespace {

absl::StatusOr<int> Verify(const std::vector<std::string>&) {
  return tracker::RunHistoryCheck({TrackerOptions()}, std::cout);
}

absl::StatusOr<int> Repair(const std::vector<std::string>&) {
  return tracker::RunHistoryRepair(
      {TrackerOptions(), absl::GetFlag(FLAGS_dry_run)}, std::cout);
}

// Brings the certificates of a history after its records; the exit code of
// both. Those that are not brought would let `thin` take their runs' samples.
absl::StatusOr<int> BringCertificates(const std::string& from,
                                      const std::string& to, int exit_code) {
  OPTRAIL_ASSIGN_OR_RETURN(const carbon::CopiedCertificates report,
                           carbon::CopyCertificates(from, to));
  if (report.copied + report.already_there > 0) {
    std::cerr << "note: certificates: " << report.copied << " copied, "
              << report.already_there << " already there\n";
  }
  for (const std::string& problem : report.problems) {
    std::cerr << "warning: not copied: " << EscapeForTerminal(problem) << "\n";
  }
  return report.problems.empty() ? exit_code : 1;
}

absl::StatusOr<int> Merge(const std::vector<std::string>& folders) {
  const tracker::CommonOptions options = TrackerOptions();
  const std::string from = UserPath(folders[0]);
  OPTRAIL_ASSIGN_OR_RETURN(
      const int exit_code,
      tracker::RunHistoryMerge(
          {options, from, absl::GetFlag(FLAGS_accept_removals)}, std::cout));
  return BringCertificates(from, options.history, exit_code);
}

absl::StatusOr<int> Copy(const std::vector<std::string>& histories) {
  const std::string from = UserPath(histories[0]);
  const std::string to = UserPath(histories[1]);
  OPTRAIL_ASSIGN_OR_RETURN(
      const int exit_code,
      tracker::RunHistoryCopy({TrackerOptions(), from, to}, std::cout));
  return BringCertificates(from, to, exit_code);
}

absl::StatusOr<int> Init(const std::vector<std::string>&) {
  const std::string url = absl::GetFlag(FLAGS_history);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      tracker::IsStoreUrl(url), "history", url,
      "postgresql://HOST/DATABASE; a folder needs no preparation"));
  OPTRAIL_ASSIGN_OR_RETURN(const auto db, tracker::Postgres::Connect(url));
  OPTRAIL_RETURN_IF_ERROR(tracker::InitHistorySchema(*db));
  std::cout << tracker::Postgres::NameOf(url)
            << ": ready; next: CREATE ROLE name LOGIN IN ROLE "
               "optrail_recorder\n";
  return 0;
}

absl::StatusOr<int> Thin(const std::vector<std::string>&) {
  tracker::HistoryThinCommand options;
  options.common = TrackerOptions();
  options.policy.keep_runs = absl::GetFlag(FLAGS_keep_runs);
  options.policy.keep_days = absl::GetFlag(FLAGS_keep_days);
  options.policy.keep_every = absl::GetFlag(FLAGS_keep_every);
  options.policy.keep_commits = absl::GetFlag(FLAGS_keep_commits);
  options.policy.accept_removals = absl::GetFlag(FLAGS_accept_removals);
  OPTRAIL_ASSIGN_OR_RETURN(options.policy.keep_ids,
                           carbon::CertifiedRuns(options.common.history));
  options.dry_run = absl::GetFlag(FLAGS_dry_run);
  return tracker::RunHistoryThin(options, std::cout);
}

absl::StatusOr<int> Export(const std::vector<std::string>&) {
  tracker::HistoryExportCommand options;
  options.common = TrackerOptions();
  options.filter.pattern = absl::GetFlag(FLAGS_filter);
  options.filter.hardware_id = absl::GetFlag(FLAGS_hardware);
  options.filter.branch = absl::GetFlag(FLAGS_branch);
  options.file = UserPath(absl::GetFlag(FLAGS_out));
  options.file_format = absl::GetFlag(FLAGS_file_format);
  return tracker::RunHistoryExport(options, std::cout);
}

absl::StatusOr<int> Index(const std::vector<std::string>&) {
  return tracker::RunHistoryIndex(
      {TrackerOptions(), absl::GetFlag(FLAGS_rebuild)}, std::cout);
}

}  // namespace

suites::Command HistoryCommand() {
  suites::Command command;
  command.name = "history";
  command.arguments =
      "verify|repair|merge FOLDER|copy FROM TO|thin|export|index|init";
  command.summary = "Checks, repairs, merges, thins or exports a history.";
  command.details = HelpText("history");
  command.meanings = {
      {"format", "What to print: table, json, csv or markdown."},
      {"file_format",
       "What export writes: csv, csvw (also its columns' types) or "
       "openmetrics; by default csv."},
      {"out",
       "File to write, replaced atomically; - or none: standard output."},
      {"hardware", "Only series of the hardware with this id."},
      {"branch", "Only series of this branch."}};
  const auto part = [](std::string name, std::string summary,
                       std::vector<std::string> flags, decltype(&Verify) run) {
    return Part(std::move(name), "", std::move(summary),
                Together({{"history", "format"}, std::move(flags)}), 0, 0, run);
  };
  command.parts = {
      part("verify", "Names every file that is damaged or odd.", {}, Verify),
      part("repair", "Moves damaged files to HISTORY/quarantine.", {"dry_run"},
           Repair),
      Part("merge", "FOLDER", "Copies what another history holds beyond this.",
           {"history", "format", "accept_removals"}, 1, 1, Merge),
      Part("copy", "FROM TO",
           "Makes TO equal to FROM, byte for byte, and proves it.", {"format"},
           2, 2, Copy),
      part("init", "Prepares a PostgreSQL database, or updates its tables.", {},
           Init),
      part("thin", "Takes the raw samples of old runs away.",
           {"dry_run", "keep_runs", "keep_days", "keep_every", "keep_commits",
            "accept_removals"},
           Thin),
      part("export",
           "Writes series as CSV for `optrail detect --csv`, or OpenMetrics.",
           {"filter", "hardware", "branch", "out", "file_format"}, Export),
      part("index", "Brings the index up to date.", {"rebuild"}, Index)};
  return command;
}

}  // namespace optrail::cli
