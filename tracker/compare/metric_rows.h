#ifndef OPTRAIL_TRACKER_COMPARE_METRIC_ROWS_H_
#define OPTRAIL_TRACKER_COMPARE_METRIC_ROWS_H_

// The rows of one metric with what the noise model says of them: what
// benchmarks share is only shared by numbers of one kind.
//
//   MetricRows metric(baseline, candidate, options, rows, compared);
//   metric.SetRatios(options.confidence);
//
// It is decision.cc's own.

#include <functional>
#include <string>
#include <vector>

#include "tracker/compare/compare.h"
#include "tracker/compare/decision.h"
#include "tracker/compare/noise_model.h"

namespace optrail::tracker {

// 1 where more is worse, else -1.
inline int WorseSign(const Row& row) {
  return row.direction == proto::HIGHER_IS_BETTER ? -1 : 1;
}

// Notes in a ratio that a run that looks slow is perhaps a bad one, and a
// baseline, too.
void AddSlowRuns(const SlowValues& slow, int candidates, int baselines,
                 int sign, Ratio* ratio);

class MetricRows {
 public:
  // Sides in series order. `of` is what is judged: the fastest samples, or a
  // part of the samples against them.
  MetricRows(const std::vector<const proto::Run*>& baseline,
             const std::vector<const proto::Run*>& candidate,
             const CompareOptions& options, std::vector<Row*> rows,
             const ComparedRows& compared, SamplePart of);

  // Sets the ratios of the rows that have one.
  void SetRatios(double confidence);

  const std::vector<Row*>& rows() const { return rows_; }
  const BenchmarkEstimate& estimate(size_t j) const {
    return estimate_.benchmarks[j];
  }
  absl::optional<double> factor_spread() const {
    return estimate_.factor_spread;
  }
  // The runs of the candidate in which every process of row j is worse than the
  // level that was taken for the candidate's by `least` or more (a logarithm),
  // beyond what the run's benchmarks share: disturbed, if the level is right.
  struct SlowRuns {
    std::vector<std::string> run_ids;
    double excess = 0;  // of the mildest of them, a logarithm
  };
  SlowRuns SlowRunsOfCandidate(size_t j, double least) const;
  // What was made of the baseline of row j, "" if nothing but its runs.
  std::string BaselineText(size_t j) const;
  int processes_per_run() const;
  bool HasProcesses() const;  // on the candidate's side

 private:
  PanelRun Read(const proto::Run& run, const ComparedRows* renamed,
                SamplePart of) const;
  // `read` reads a run of either side, or of the history.
  Panel PanelOf(const std::vector<const proto::Run*>& baseline,
                const std::vector<const proto::Run*>& candidate,
                const CompareOptions& options,
                const std::function<PanelRun(const proto::Run&)>& read) const;
  double ExcessOf(const PanelRun& run, size_t j) const;

  std::vector<Row*> rows_;
  std::vector<std::string> run_ids_;  // of panel_.runs
  std::vector<std::string> candidate_ids_;
  std::vector<bool> of_fastest_;  // by row, else of medians
  Panel panel_;
  PanelEstimate estimate_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_METRIC_ROWS_H_
