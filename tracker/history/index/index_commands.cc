#include "tracker/history/index/index_commands.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "tracker/history/copy.h"
#include "tracker/history/index/export.h"
#include "tracker/history/index/open_metrics.h"
#include "tracker/history/repair.h"
#include "tracker/history/selectors.h"
#include "tracker/history/store_url.h"

namespace optrail::tracker {
namespace {

void Warn(const HistoryIndex& index, const std::vector<BadFile>& bad_files) {
  PrintNotices(index.notices());
  WarnOfBadFiles(bad_files);
}

CheckOptions ChecksFor(const CommonOptions& common) {
  CheckOptions options;
  options.now_unix_ns = NowUnixNs(common);
  options.knows_commit =
      [workspace = common.workspace](
          const std::string& commit) -> absl::StatusOr<bool> {
    const absl::StatusOr<std::string> resolved =
        ResolveCommit(workspace, commit);
    if (resolved.ok()) return true;
    if (absl::IsNotFound(resolved.status())) return false;
    return resolved.status();
  };
  return options;
}

void PrintFindings(const CheckReport& report, const CommonOptions& options,
                   std::ostream& out) {
  const bool for_people = IsForPeople(options.format);
  Table table({{"problem"},
               {"file", Align::kLeft, "", Clip::kNever},
               {"detail", Align::kLeft, "", Clip::kNever}});
  // An import of old results has an odd clock in each of its files: people
  // get the first of a kind and their number. Damage is always listed whole.
  constexpr int kShown = 3;
  std::map<HistoryProblem, int> seen;
  for (const HistoryFinding& finding : report.findings) {
    if (++seen[finding.problem] > kShown && for_people &&
        !IsDamage(finding.problem)) {
      continue;
    }
    table.AddRow(
        {HistoryProblemName(finding.problem), finding.path, finding.detail});
  }
  for (const auto& [problem, count] : seen) {
    if (count <= kShown || !for_people || IsDamage(problem)) continue;
    table.AddRow({HistoryProblemName(problem),
                  absl::StrCat("and ", count - kShown, " more"),
                  "--format=json lists them all"});
  }
  if (table.num_rows() > 0 || !for_people)
    PrintTable(table, options.format, out);
  PrintNotices(report.notes);
  if (!for_people) return;
  const int damaged = report.CountDamaged();
  out << ShownUrl(options.history) << ": " << FormatCount(report.runs)
      << " runs, " << FormatCount(report.sessions) << " sessions, "
      << FormatCount(report.triage_records) << " triage records, "
      << FormatBytes(static_cast<double>(report.bytes)) << ", " << damaged
      << " damaged, " << report.findings.size() - damaged << " odd\n";
}

// A mistyped folder must not pass for an empty history.
absl::Status CheckIsHistory(const std::string& name) {
  if (IsStoreUrl(name)) return absl::OkStatus();
  for (const char* folder : {"runs", "sessions", "triage", "diagnoses"}) {
    if (FileExists(JoinPath(name, folder))) return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat(name,
                   " is no history: expected a folder with runs, sessions, "
                   "triage or diagnoses in it"));
}

// Names of git become hashes. A name that protects nothing for want of a
// meaning is an error: the runs that it should have kept would go.
absl::Status ResolveKeptCommits(const History& history,
                                const CommitResolver& git,
                                std::vector<std::string>* commits) {
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns());
  for (std::string& commit : *commits) {
    const bool is_prefix = std::any_of(
        list.runs.begin(), list.runs.end(), [&](const RunInfo& run) {
          return absl::StartsWith(run.header.commit().id(), commit);
        });
    if (is_prefix) continue;
    absl::StatusOr<std::string> resolved = git(commit);
    if (!resolved.ok()) {
      return absl::NotFoundError(absl::StrCat(
          "--keep_commits=", commit, ": no run's commit begins so, and ",
          resolved.status().message(),
          "; expected a tag, a branch or a hash of a commit"));
    }
    commit = *std::move(resolved);
  }
  return absl::OkStatus();
}

// The exit code of an export. Nothing is no success for a script that goes on
// with the file, which has its header all the same.
absl::StatusOr<int> ExitCodeOfExport(const History& history, int64_t rows) {
  if (rows > 0) return ToInt(ExitCode::kOk);
  OPTRAIL_ASSIGN_OR_RETURN(const RunList all, history.ListRuns());
  std::cerr << (all.runs.empty()
                    ? EmptyHistoryText(history.dir(), "points")
                    : "no series matches the flags; next: optrail log series")
            << "\n";
  return ToInt(ExitCode::kNotEnoughData);
}

}  // namespace

absl::StatusOr<int> RunHistoryIndex(const HistoryIndexCommand& options,
                                    std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  const int64_t start_ns = Clock::Real()->NowNs();
  OPTRAIL_ASSIGN_OR_RETURN(const auto index, HistoryIndex::Open(history));
  if (options.rebuild) OPTRAIL_RETURN_IF_ERROR(index->Rebuild().status());
  const int64_t elapsed_ns = Clock::Real()->NowNs() - start_ns;
  OPTRAIL_ASSIGN_OR_RETURN(const auto series, index->ListSeries());
  OPTRAIL_ASSIGN_OR_RETURN(const auto runs, index->ListRuns());
  int64_t points = 0;
  for (const SeriesInfo& info : series) points += info.runs;
  Warn(*index, runs.bad_files);
  FileInfo file;
  const bool on_disk = !index->path().empty() &&
                       FileSystem::Real()->Stat(index->path(), &file) == 0;
  Table table({{"index", Align::kLeft, "", Clip::kNever},
               {"runs", Align::kRight},
               {"series", Align::kRight},
               {"values", Align::kRight},
               {"damaged files", Align::kRight},
               {"size", Align::kRight, "size_bytes"},
               {"updated in", Align::kRight, "elapsed_ns"}});
  table.AddRow(
      {on_disk ? index->path() : "in memory",
       Cell::Integer(static_cast<int64_t>(runs.runs.size())),
       Cell::Integer(static_cast<int64_t>(series.size())),
       Cell::Integer(points),
       Cell::Integer(static_cast<int64_t>(runs.bad_files.size())),
       on_disk ? Cell::Number(static_cast<double>(file.size_bytes),
                              FormatBytes(static_cast<double>(file.size_bytes)))
               : Cell::None(),
       Cell::Number(static_cast<double>(elapsed_ns),
                    FormatDurationNs(elapsed_ns))});
  PrintTable(table, options.common.format, out);
  return 0;
}

absl::StatusOr<int> RunHistoryCheck(const HistoryCheckCommand& options,
                                    std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const CheckReport report,
                           CheckHistory(history, ChecksFor(options.common)));
  PrintFindings(report, options.common, out);
  return report.CountDamaged() > 0 ? 1 : 0;
}

absl::StatusOr<int> RunHistoryThin(const HistoryThinCommand& options,
                                   std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  const int64_t now_ns = NowUnixNs(options.common);
  RetentionPolicy policy = options.policy;
  OPTRAIL_RETURN_IF_ERROR(ValidateRetention(policy));
  OPTRAIL_RETURN_IF_ERROR(ResolveKeptCommits(
      history, GitIn(options.common.workspace), &policy.keep_commits));
  OPTRAIL_ASSIGN_OR_RETURN(const RetentionPlan plan,
                           PlanRetention(history, policy, now_ns));
  WarnOfBadFiles(plan.bad_files, "left as it is");
  if (!options.dry_run) {
    OPTRAIL_RETURN_IF_ERROR(ApplyRetention(history, plan, now_ns));
  }
  const auto bytes = [](int64_t value) {
    return Cell::Number(static_cast<double>(value),
                        FormatBytes(static_cast<double>(value)));
  };
  Table table({{"done"},
               {"kept whole", Align::kRight},
               {"thinned before", Align::kRight},
               {"thinned", Align::kRight},
               {"removed", Align::kRight},
               {"of", Align::kRight, "bytes_before"},
               {"remain", Align::kRight, "bytes_after"},
               {"policy"}});
  table.AddRow(
      {options.dry_run ? "no (dry run)" : "yes", Cell::Integer(plan.kept_whole),
       Cell::Integer(plan.thinned_before),
       Cell::Integer(static_cast<int64_t>(plan.thin.size())),
       Cell::Integer(static_cast<int64_t>(plan.remove.size())),
       bytes(plan.bytes_before), bytes(plan.bytes_after), plan.policy});
  PrintTable(table, options.common.format, out);
  if (plan.buried_but_kept > 0) {
    std::cerr << "note: tombstones say that "
              << FormatCount(plan.buried_but_kept)
              << " of the runs were removed, which this policy keeps as "
                 "medians; --accept_removals removes them\n";
  }
  return 0;
}

absl::StatusOr<int> RunHistoryRepair(const HistoryRepairCommand& options,
                                     std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const CheckReport report,
                           CheckHistory(history, ChecksFor(options.common)));
  if (options.dry_run) {
    PrintFindings(report, options.common, out);
    return report.CountDamaged() > 0 ? 1 : 0;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Repaired> repaired,
                           RepairHistory(history, report));
  Table table({{"moved", Align::kLeft, "", Clip::kNever},
               {"to", Align::kLeft, "", Clip::kNever},
               {"reason"}});
  for (const Repaired& moved : repaired) {
    table.AddRow({moved.from, moved.to, moved.reason});
  }
  PrintTable(table, options.common.format, out);
  return 0;
}

absl::StatusOr<int> RunHistoryExport(const HistoryExportCommand& options,
                                     std::ostream& out) {
  // Before anything is written.
  OPTRAIL_RETURN_IF_ERROR(
      CompilePattern("filter", options.filter.pattern).status());
  const std::string& format = options.file_format;
  OPTRAIL_RETURN_IF_ERROR(
      CheckFlag(format.empty() || format == "csv" || format == "csvw" ||
                    format == "openmetrics",
                "file_format", format, "csv, csvw or openmetrics"));
  const bool is_file =
      !options.file.empty() && options.file != "-" && !IsStream(options.file);
  OPTRAIL_RETURN_IF_ERROR(
      CheckFlag(format != "csvw" || is_file, "file_format", format,
                "--out=FILE, beside which the schema is written"));
  OPTRAIL_RETURN_IF_ERROR(
      CheckFlag(is_file || options.common.format == OutputFormat::kTable ||
                    options.common.format == OutputFormat::kCsv,
                "format", AbslUnparseFlag(options.common.format),
                "--out=FILE beside it: without, the output is the file"));
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const auto index, HistoryIndex::Open(history));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<BadFile> bad, index->BadFiles());
  Warn(*index, bad);
  const bool is_open_metrics = options.file_format == "openmetrics";
  const auto write = [&](std::ostream& to) -> absl::StatusOr<int64_t> {
    if (is_open_metrics) return ExportOpenMetrics(*index, options.filter, to);
    return ExportCsv(*index, {options.filter, options.failed_points}, to);
  };
  if (options.file.empty() || options.file == "-") {
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t rows, write(out));
    return ExitCodeOfExport(history, rows);
  }
  std::ostringstream text;
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t rows, write(text));
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(options.file, text.str()));
  if (options.file_format == "csvw") {
    OPTRAIL_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(options.file, "-metadata.json"),
                            CsvMetadata(FileNameOf(options.file))));
  }
  // On the standard output it would look like one of the points.
  if (IsStream(options.file)) return ExitCodeOfExport(history, rows);
  if (options.common.format == OutputFormat::kTable) {
    out << options.file << ": " << FormatCount(rows)
        << (is_open_metrics ? " series\n" : " points\n");
  } else {
    Table table({{"file"}, {"file_format"}, {"rows"}});
    table.AddRow({options.file, format.empty() ? "csv" : format,
                  Cell::Number(static_cast<double>(rows), absl::StrCat(rows))});
    PrintTable(table, options.common.format, out);
  }
  return ExitCodeOfExport(history, rows);
}

absl::StatusOr<int> RunHistoryCopy(const HistoryCopyCommand& options,
                                   std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckIsHistory(options.from));
  OPTRAIL_ASSIGN_OR_RETURN(const History from, History::Open(options.from));
  OPTRAIL_ASSIGN_OR_RETURN(const History to, History::Open(options.to));
  OPTRAIL_ASSIGN_OR_RETURN(const CopyReport report, CopyHistory(from, to));
  WarnOfBadFiles(report.bad_files, "not copied");
  Table table({{"from", Align::kLeft, "", Clip::kNever},
               {"to", Align::kLeft, "", Clip::kNever},
               {"copied", Align::kRight},
               {"already there", Align::kRight},
               {"unequal", Align::kRight},
               {"sha256", Align::kLeft, "", Clip::kNever}});
  table.AddRow({from.dir(), to.dir(), Cell::Integer(report.copied),
                Cell::Integer(report.already_there),
                Cell::Integer(static_cast<int64_t>(report.unequal.size())),
                report.IsEqual() ? report.from_digest : "differs"});
  PrintTable(table, options.common.format, out);
  for (const std::string& place : report.unequal) {
    std::cerr << "warning: differs, or one side lacks it: "
              << EscapeForTerminal(place) << "\n";
  }
  return report.IsEqual() ? 0 : 1;
}

absl::StatusOr<int> RunHistoryMerge(const HistoryMergeCommand& options,
                                    std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(options.common.history));
  OPTRAIL_RETURN_IF_ERROR(CheckIsHistory(options.from));
  OPTRAIL_ASSIGN_OR_RETURN(const History other, History::Open(options.from));
  OPTRAIL_ASSIGN_OR_RETURN(const MergeReport report,
                           history.MergeFrom(other, {options.accept_removals}));
  WarnOfBadFiles(report.bad_files, "not copied");
  Table table({{"from"},
               {"copied", Align::kRight},
               {"already there", Align::kRight},
               {"taken away before", Align::kRight},
               {"held back", Align::kRight},
               {"damaged", Align::kRight}});
  table.AddRow({other.dir(), Cell::Integer(report.copied),
                Cell::Integer(report.already_there),
                Cell::Integer(report.buried),
                Cell::Integer(static_cast<int64_t>(report.held_back.size())),
                Cell::Integer(static_cast<int64_t>(report.bad_files.size()))});
  PrintTable(table, options.common.format, out);
  for (const HeldBack& held : report.held_back) {
    std::cerr << "note: not copied: " << EscapeForTerminal(held.path)
              << ": its tombstones would let `optrail history thin` remove "
              << FormatCount(held.removes) << " and thin "
              << FormatCount(held.thins) << " of the runs here, such as "
              << held.example << "; --accept_removals copies it\n";
  }
  return report.bad_files.empty() ? 0 : 1;
}

}  // namespace optrail::tracker
