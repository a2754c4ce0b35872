#ifndef OPTRAIL_REPORTS_BUILD_REPORT_DATA_H_
#define OPTRAIL_REPORTS_BUILD_REPORT_DATA_H_

// Makes what a report shows out of the runs and sessions of a history, with the
// tracker's series and change points.
//
//   OPTRAIL_ASSIGN_OR_RETURN(tracker::LoadedSeries loaded,
//                            tracker::LoadSeries(history));
//   const ReportData data =
//       BuildReportData(loaded.runs, loaded.series, sessions, {});
//
// A series is judged by the tracker's judge (tracker/judge/judge.h), as
// `optrail changes` and the gate have it, with what people have said about its
// changes; one that the newest run of its suite lacks says that instead.
// It is for readers; what stops a pull request is tracker/gate/gate.h.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reports/report_data.h"
#include "reports/series_view.h"
#include "tracker/judge/judge.h"
#include "tracker/proto/diagnosis.pb.h"
#include "tracker/proto/run.pb.h"
#include "tracker/proto/triage.pb.h"
#include "tracker/series/series.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {
class FoldMemory;
}  // namespace optrail::tracker

namespace optrail::reports {

struct BuildOptions {
  std::string title = "Optrail report";
  std::string source;        // for example the history's folder
  std::string history_flag;  // ReportData::history_flag
  int recent_points = 30;
  // What people have said about changes, as of `now_unix_ns`.
  std::vector<proto::TriageRecord> triage;
  int64_t now_unix_ns = 0;
  // See JudgeOptions::folds.
  tracker::FoldMemory* folds = nullptr;
  // Whole runs of workloads, those of NewestOfWorkloads.
  std::vector<proto::Run> workload_runs;
  std::vector<proto::Diagnosis> diagnoses;
  // Asked of alerts, the worst first; empty: nothing is explained.
  std::function<std::vector<std::string>(const tracker::Change&)> explain;
};

// Ids of the newest run of each workload on each hardware; of runs only what is
// not their results.
std::vector<std::string> NewestOfWorkloads(const std::vector<proto::Run>& runs);

// Runs and sessions in any order; of runs only what is not their results.
// `series` are those of the runs; the report keeps them. Sessions are shown
// newest first.
ReportData BuildReportData(const std::vector<proto::Run>& runs,
                           std::vector<tracker::Series> series,
                           const std::vector<proto::Session>& sessions,
                           const BuildOptions& options);
// The same from whole runs, those of workloads among them.
ReportData BuildReportData(const std::vector<proto::Run>& runs,
                           const std::vector<proto::Session>& sessions,
                           const BuildOptions& options);

// Series and what the judge says of them, and of those that have some of their
// points (reports/digest.h) what the others would tell.
struct JudgedSeries {
  struct Digested {
    std::vector<int> gaps;
    int64_t point_count = 0;
    int64_t process_count = 0;
    SeriesView::Drawn drawn;
  };
  std::shared_ptr<const std::vector<tracker::Series>> all;
  std::vector<tracker::Judgement> judgements;
  std::unordered_map<int64_t, Digested> digested;  // by place in `all`
};
ReportData BuildReportData(const std::vector<proto::Run>& runs,
                           const RunTables& tables, JudgedSeries judged,
                           const std::vector<proto::Session>& sessions,
                           const BuildOptions& options);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_BUILD_REPORT_DATA_H_
