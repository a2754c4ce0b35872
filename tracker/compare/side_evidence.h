#ifndef OPTRAIL_TRACKER_COMPARE_SIDE_EVIDENCE_H_
#define OPTRAIL_TRACKER_COMPARE_SIDE_EVIDENCE_H_

// Gathers what the runs of one side say of each benchmark and metric, before
// anything is judged. Part of compare.h.
//
//   SideEvidences before = CollectEvidence(baseline_runs, options);
//   SideEvidences after = CollectEvidence(candidate_runs, options);
//   KeepJudged(options, &before, &after);

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/compare/compare.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

inline constexpr absl::string_view kTimeMetric = "time";

// The evidence of one side on one benchmark and metric.
struct SideEvidence {
  proto::BenchmarkKey key;
  MetricInfo metric;
  Side side;
  bool is_measured = false;  // by one run at least
  // The runs that ended as `side.outcome` says, the worst: their ids, and the
  // commit, config, kernel and settings of the last one.
  Side worst;
  std::vector<double> readings;     // of all processes
  absl::optional<double> no_ratio;  // a reading that has no logarithm
};

// By PriorKey(), so that the order of rows does not depend on that of runs.
using SideEvidences = std::map<std::string, SideEvidence>;

inline bool Works(proto::Outcome outcome) {
  return outcome == proto::OK || outcome == proto::OUTCOME_UNSPECIFIED;
}

inline bool HasLogarithm(double value) {
  return value > 0 && std::isfinite(value);
}

// nullopt where nobody judges that metric.
absl::optional<Threshold> ThresholdOf(const CompareOptions& options,
                                      absl::string_view name,
                                      absl::string_view metric);

// Collects every metric that is judged, and the time in any case: it alone
// tells of a benchmark that measured nothing.
SideEvidences CollectEvidence(const std::vector<const proto::Run*>& runs,
                              const CompareOptions& options);

// Leaves the metrics that are judged. A benchmark that failed, or was skipped,
// measures nothing: where its time is not judged, another metric that is says
// so in the candidate.
void KeepJudged(const CompareOptions& options, SideEvidences* baseline,
                SideEvidences* candidate);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_SIDE_EVIDENCE_H_
