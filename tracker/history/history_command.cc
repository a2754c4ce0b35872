#include "tracker/history/history_command.h"

#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

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
