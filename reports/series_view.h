#ifndef OPTRAIL_REPORTS_SERIES_VIEW_H_
#define OPTRAIL_REPORTS_SERIES_VIEW_H_

// Makes the view of a series that a report shows: its names, the commits of its
// points, gaps, changes and verdict.
//
//   const RunTables tables(ordered_runs);
//   SeriesView view = ViewOf(series, tables, /*hardware=*/0);
//   AddJudgement(judgement, view);
//
// Thread safety: ViewOf may be called from several threads. It has no errors;
// the runs of all points must be in the tables.

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "reports/report_data.h"
#include "tracker/judge/judge.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series.h"

namespace optrail::reports {

// The commits of runs, and when their suites ran.
class RunTables {
 public:
  // In the order of series (SortInSeriesOrder); of runs only what is not their
  // results.
  explicit RunTables(const std::vector<const proto::Run*>& runs);

  // In the order of series: by position where all runs know it, else by time.
  const std::vector<Commit>& commits() const { return commits_; }
  // The place in commits() of a run, or of a point.
  int CommitOf(const std::string& run_id) const {
    return runs_.at(run_id).commit;
  }
  int CommitOf(const tracker::PointRuns& runs) const {
    return CommitOf(runs.ids.front());
  }

  // Points of `series` before which one of its suites ran without it; `at` has
  // their commits.
  std::vector<int> GapsOf(const tracker::Series& series,
                          const std::vector<int>& at) const;

 private:
  struct OfRun {
    int commit = 0;
    int suite = 0;
  };

  void OrderCommits(const std::vector<const proto::Run*>& runs);
  void AddSuites(const std::vector<const proto::Run*>& runs);

  std::vector<Commit> commits_;
  absl::flat_hash_map<std::string, OfRun> runs_;  // by id
  // By suite, hardware and branch: the commits at which it ran, ascending.
  std::vector<std::vector<int>> suite_commits_;
};

// All but what a judgement says.
SeriesView ViewOf(const tracker::Series& series, const RunTables& tables,
                  int hardware);
void AddJudgement(const tracker::Judgement& judgement, SeriesView& view);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SERIES_VIEW_H_
