#ifndef OPTRAIL_TRACKER_CONVERGENCE_HISTORY_FINDINGS_H_
#define OPTRAIL_TRACKER_CONVERGENCE_HISTORY_FINDINGS_H_

// The faults that only several sessions together show. Part of findings.h.

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/findings.h"
#include "tuning/space/space.h"

namespace optrail::tracker {

struct SessionWithSpace {
  const SessionAnalysis* session;
  std::unique_ptr<tuning::BoundSpace> space;  // may be null
};

// `sessions` in time order.
std::vector<Finding> FindHistoryFaults(
    absl::Span<const SessionWithSpace> sessions, const FindingOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_HISTORY_FINDINGS_H_
