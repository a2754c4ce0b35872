#ifndef OPTRAIL_TRACKER_DETECT_CSV_H_
#define OPTRAIL_TRACKER_DETECT_CSV_H_

// Reads series from CSV: one row per point, a header with the columns id, t and
// value, in any order and among others.
//
//   id,t,value
//   matmul/64,0,12.25
//   matmul/64,1,12.31
//
// `id` names the series and may be any text, quoted as RFC 4180 says; `t` is a
// number that grows from row to row of a series (a commit's position, a time);
// `value` is a finite number. Rows of different series may be interleaved.
// What is wrong is an error that names file, line and field; nothing is guessed
// or left out.
//
// An export of `optrail history export` is recognised by its columns
// (kExportColumns). There `t` is the point's place in its series, whose other
// places have no value; `value` may be empty; `epoch` says which points
// compare.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tracker {

struct CsvSeries {
  std::string id;
  std::vector<double> t;
  std::vector<double> values;  // NaN where an export has none
  // For an export, one per value: its epoch of the series, and the commit. Else
  // empty.
  std::vector<int> epochs;
  std::vector<std::string> commits;

  bool is_export() const { return !epochs.empty(); }
};

// The columns beside id, t and value.
inline constexpr absl::string_view kExportColumns[] = {
    "outcome", "commit", "position", "started_utc", "epoch"};

// Series in the order of their first rows. `name` stands for the file in
// errors.
absl::StatusOr<std::vector<CsvSeries>> ParseSeriesCsv(absl::string_view text,
                                                      absl::string_view name);

// The same from a file, which may be compressed by gzip (by its contents, not
// its name).
absl::StatusOr<std::vector<CsvSeries>> ReadSeriesCsv(const std::string& path);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_CSV_H_
