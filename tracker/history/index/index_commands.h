#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_COMMANDS_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_COMMANDS_H_

// `optrail history verify | repair | merge | thin | export | index` as
// functions (tracker/command/command_support.h says how commands answer).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/retention.h"

namespace optrail::tracker {

struct HistoryIndexCommand {
  CommonOptions common;
  bool rebuild = false;
};
absl::StatusOr<int> RunHistoryIndex(const HistoryIndexCommand& options,
                                    std::ostream& out);

struct HistoryCheckCommand {
  CommonOptions common;
};
// `optrail history verify`: everything that is wrong, by its name. Exit code 1
// if a file is damaged; oddities are listed and leave it 0.
absl::StatusOr<int> RunHistoryCheck(const HistoryCheckCommand& options,
                                    std::ostream& out);

struct HistoryThinCommand {
  CommonOptions common;
  RetentionPolicy policy;
  bool dry_run = false;
};
absl::StatusOr<int> RunHistoryThin(const HistoryThinCommand& options,
                                   std::ostream& out);

struct HistoryRepairCommand {
  CommonOptions common;
  bool dry_run = false;
};
absl::StatusOr<int> RunHistoryRepair(const HistoryRepairCommand& options,
                                     std::ostream& out);

struct HistoryExportCommand {
  CommonOptions common;
  SeriesFilter filter;
  bool failed_points = false;
  // "csv", or "" for it; "csvw": beside the file its schema; "openmetrics": the
  // newest value of each series.
  std::string file_format;
  std::string file;  // replaced atomically; "" and "-": `out`
};
absl::StatusOr<int> RunHistoryExport(const HistoryExportCommand& options,
                                     std::ostream& out);

struct HistoryCopyCommand {
  CommonOptions common;  // its history is not used
  std::string from, to;
};
// Exit code 1 if both are not equal afterwards.
absl::StatusOr<int> RunHistoryCopy(const HistoryCopyCommand& options,
                                   std::ostream& out);

struct HistoryMergeCommand {
  CommonOptions common;
  std::string from;
  bool accept_removals = false;  // MergeOptions
};
// Exit code 1 if files of the other history are damaged and were not copied.
absl::StatusOr<int> RunHistoryMerge(const HistoryMergeCommand& options,
                                    std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_COMMANDS_H_
