#ifndef OPTRAIL_TRACKER_CONVERGENCE_HISTORY_FINDINGS_H_
#define OPTRAIL_TRACKER_CONVERGENCE_HISTORY_FINDINGS_H_

// The faults that only several sessions together show. Part of findings.h.

#include <vector>

#include "absl/types/span.h"
#include "tracker/convergence/findings.h"
#include "tracker/convergence/tuner_findings.h"

namespace optrail::tracker {

// `sessions` in time order.
std::vector<Finding> FindHistoryFaults(
    absl::Span<const SessionWithSpace> sessions, const FindingOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_HISTORY_FINDINGS_H_
