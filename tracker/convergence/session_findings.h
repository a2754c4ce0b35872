#ifndef OPTRAIL_TRACKER_CONVERGENCE_SESSION_FINDINGS_H_
#define OPTRAIL_TRACKER_CONVERGENCE_SESSION_FINDINGS_H_

// The faults that one session shows by itself. Part of findings.h.

#include <vector>

#include "tracker/convergence/convergence.h"
#include "tracker/convergence/findings.h"
#include "tuning/space/space.h"

namespace optrail::tracker {

// `space` is SpaceOf(session), null if there is none.
std::vector<Finding> FindSessionFaults(const SessionAnalysis& session,
                                       const tuning::BoundSpace* space,
                                       const FindingOptions& options);

// The relative standard deviation of a reading, as far as the session tells.
double NoiseOf(const SessionAnalysis& session);

// Knobs whose range ends where the best config is.
std::vector<Remedy> RangeRemedies(const SessionAnalysis& session,
                                  const tuning::BoundSpace* space);

// Another strategy than the session's.
Remedy StrategyRemedy(const SessionAnalysis& session);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_SESSION_FINDINGS_H_
