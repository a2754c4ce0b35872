#ifndef OPTRAIL_REPORTS_STORED_SERIES_H_
#define OPTRAIL_REPORTS_STORED_SERIES_H_

// Judges all series of an index for the page of a report, and reads the points
// of those alone that have changed since the last one: of the others the index
// has a digest (reports/digest.h).
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto index, tracker::OpenWorthyIndex(history));
//   OPTRAIL_ASSIGN_OR_RETURN(StoredSeries stored,
//                            LoadStoredSeries(*index, options));
//   const ReportData data = BuildReportData(
//       stored.runs, *stored.tables, std::move(stored.judged), sessions,
//       build);
//   KeepStoredSeries(*index, stored);
//
// Series are read a few at a time, so that memory holds what the page shows and
// not the history. The page is that of all points, byte by byte, unless its
// text turns out to be too large and points are left out once more.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/build_report_data.h"
#include "reports/series_view.h"
#include "tracker/history/index/history_index.h"
#include "tracker/proto/run.pb.h"
#include "tracker/triage/triage.h"

namespace optrail::reports {

struct StoredOptions {
  const tracker::TriageBook* book = nullptr;
  int recent_points = 30;
  int64_t data_bytes = 0;  // DataBytes of html_report.h
  // Tells this program from another that may judge otherwise; empty: nothing is
  // kept, and nothing that was kept is used.
  std::string program;
};

struct StoredSeries {
  std::vector<proto::Run> runs;  // without results
  std::unique_ptr<RunTables> tables;
  JudgedSeries judged;
  std::vector<tracker::BadFile> bad_files;
  std::vector<std::string> notices;
  // To be kept, by text.
  std::map<std::string, std::string> folds, digests;
  int64_t series_read = 0;  // of which all points were read
};

absl::StatusOr<StoredSeries> LoadStoredSeries(tracker::HistoryIndex& index,
                                              const StoredOptions& options);

// Reports no error: who may not write reads the points again next time.
void KeepStoredSeries(tracker::HistoryIndex& index, const StoredSeries& stored);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_STORED_SERIES_H_
