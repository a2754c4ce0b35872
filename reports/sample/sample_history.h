#ifndef OPTRAIL_REPORTS_SAMPLE_SAMPLE_HISTORY_H_
#define OPTRAIL_REPORTS_SAMPLE_SAMPLE_HISTORY_H_

// A made-up history for looking at reports and for testing them: several
// operators on three hardware over some commits, with planted regressions,
// improvements, crashes, a toolchain change, retuning, and tuning sessions
// whose knobs matter by known amounts.
//
//   const SampleHistory sample = MakeSampleHistory({});
//   const ReportData data = BuildReportData(sample.runs, sample.sessions, {});
//
// Every number is synthetic and none was measured. It is not for evaluating
// detectors.

#include <vector>

#include "reports/sample/sample_parts.h"
#include "tracker/proto/diagnosis.pb.h"
#include "tracker/proto/run.pb.h"
#include "tracker/proto/triage.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::reports {

struct SampleHistory {
  std::vector<proto::Run> runs;
  std::vector<proto::Session> sessions;
  std::vector<proto::TriageRecord> triage;
  std::vector<proto::Diagnosis> diagnoses;  // one, of softmax
};

// The same options give the same history. 7 operators x shapes x {default,
// tuned} x 3 hardware: 42 series per shape.
SampleHistory MakeSampleHistory(const SampleOptions& options);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SAMPLE_SAMPLE_HISTORY_H_
