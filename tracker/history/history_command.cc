#include "tracker/history/history_command.h"

#include <ostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

absl::StatusOr<int> RunHistoryVerify(const HistoryVerifyCommand& options,
                                     std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const VerifyReport report, history.Verify());
  Table table({{"file", Align::kLeft, "", Clip::kNever}, {"problem"}});
  for (const BadFile& bad : report.bad_files) {
    table.AddRow({bad.path, bad.reason});
  }
  for (const std::string& path : report.leftover_temporary_files) {
    table.AddRow(
        {path, "left by a writer that was killed; harmless, never read"});
  }
  if (table.num_rows() > 0 || options.common.format == OutputFormat::kJson ||
      options.common.format == OutputFormat::kCsv) {
    PrintTable(table, options.common.format, out);
  }
  if (IsForPeople(options.common.format)) {
    out << history.dir() << ": " << FormatCount(report.runs) << " runs, "
        << FormatCount(report.sessions) << " sessions, "
        << FormatBytes(static_cast<double>(report.bytes)) << ", "
        << report.bad_files.size() << " damaged\n";
  }
  return report.bad_files.empty() ? 0 : 1;
}

absl::StatusOr<int> RunHistoryMerge(const HistoryMergeCommand& options,
                                    std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(options.common.history));
  // A mistyped folder must not pass for an empty history.
  if (!FileExists(JoinPath(options.from, "runs")) &&
      !FileExists(JoinPath(options.from, "sessions")) &&
      !FileExists(JoinPath(options.from, "triage"))) {
    return absl::NotFoundError(
        absl::StrCat(options.from,
                     " is no history: expected a folder with runs, sessions or "
                     "triage in it"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const History other, History::Open(options.from));
  OPTRAIL_ASSIGN_OR_RETURN(const MergeReport report, history.MergeFrom(other));
  WarnOfBadFiles(report.bad_files);
  Table table({{"from"},
               {"copied", Align::kRight},
               {"already there", Align::kRight},
               {"taken away before", Align::kRight},
               {"damaged", Align::kRight}});
  table.AddRow({other.dir(), Cell::Integer(report.copied),
                Cell::Integer(report.already_there),
                Cell::Integer(report.buried),
                Cell::Integer(static_cast<int64_t>(report.bad_files.size()))});
  PrintTable(table, options.common.format, out);
  return report.bad_files.empty() ? 0 : 1;
}

}  // namespace optrail::tracker
