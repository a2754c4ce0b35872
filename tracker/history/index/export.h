#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_EXPORT_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_EXPORT_H_

// Series as CSV, one row per point:
//
//   id,t,value,low,high,processes,outcome,unit,commit,position,started_utc,...
//
// `id` is the series' canonical text, `t` the point's place in it (0, 1, ...),
// so that `optrail detect --csv` reads the file as it is. Points without a
// value are left out unless `failed_points` asks for them.

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/history/index/history_index.h"

namespace optrail::tracker {

struct ExportOptions {
  SeriesFilter filter;
  bool failed_points = false;  // with an empty value
};

// The number of rows written, without the header.
absl::StatusOr<int64_t> ExportCsv(HistoryIndex& index,
                                  const ExportOptions& options,
                                  std::ostream& out);

// The columns' names, types and meanings as CSVW, W3C's metadata of tables
// (https://www.w3.org/TR/tabular-metadata). It stands beside the CSV file that
// `file` names, as FILE-metadata.json.
std::string CsvMetadata(absl::string_view file);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_EXPORT_H_
