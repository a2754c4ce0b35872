#ifndef OPTRAIL_TRACKER_DETECT_DETECT_CSV_H_
#define OPTRAIL_TRACKER_DETECT_DETECT_CSV_H_

// `optrail detect --csv=FILE`: the change points of every series in a CSV file,
// as a function.
//
//   DetectCsvOptions options;
//   options.csv = "series.csv.gz";
//   absl::Status status = DetectCsv(options, std::cout);
//
// Returns JSON, one object per series in the order of the file:
//
//   [{"id":"a","change_points":[{"index":41,"confidence":0.999,
//                                "relative_change":0.052}]},
//    {"id":"b","change_points":[]}]
//
// `index` counts the series' points from 0. In online mode a change that is not
// confirmed yet has one more member, "provisional":true. In an export of
// `history export` a change also has the `t`, `commit` and `epoch` of its row.
// The other formats are tables with one row per change and more columns.

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tracker/detect/csv.h"
#include "tracker/detect/detect.h"

namespace optrail::tracker {

enum class DetectMode {
  // For an export the changes of `optrail changes`, for anything else kOffline.
  kAuto,
  kOffline,
  kOnline,
};
// For flags of that type: auto, offline, online.
bool AbslParseFlag(absl::string_view text, DetectMode* mode,
                   std::string* error);
std::string AbslUnparseFlag(DetectMode mode);

struct DetectCsvOptions {
  std::string csv;
  DetectMode mode = DetectMode::kAuto;
  std::string format = "json";  // or table, csv, markdown
  int num_threads = 0;          // 0: one per core
};

// Nothing is written if the file can't be used.
absl::Status DetectCsv(const DetectCsvOptions& options, std::ostream& out);

struct DetectedSeries {
  std::vector<ChangePoint> changes;
  // The last of `changes` is not confirmed; online mode only.
  bool last_is_provisional = false;
};
// One result per series, computed in parallel; the same for any number of
// threads.
std::vector<DetectedSeries> DetectAll(const std::vector<CsvSeries>& series,
                                      DetectMode mode, int num_threads);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_DETECT_CSV_H_
