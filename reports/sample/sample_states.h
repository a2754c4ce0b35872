#ifndef OPTRAIL_REPORTS_SAMPLE_SAMPLE_STATES_H_
#define OPTRAIL_REPORTS_SAMPLE_SAMPLE_STATES_H_

// A made-up suite of another tool, beside the operators of sample_history.h: a
// benchmark for each verdict and for each state that the judge knows, and what
// people have said about changes.
//
// Every number is synthetic and none was measured.

#include <vector>

#include "reports/sample/sample_parts.h"
#include "tracker/proto/run.pb.h"
#include "tracker/proto/triage.pb.h"

namespace optrail::reports {

// Need at least 60 commits.
std::vector<proto::Run> MakeStateRuns(const SampleOptions& options);
std::vector<proto::TriageRecord> MakeAnswers(const SampleOptions& options);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SAMPLE_SAMPLE_STATES_H_
