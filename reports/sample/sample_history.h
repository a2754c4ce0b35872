#ifndef OPTRAIL_REPORTS_EVALUATION_SAMPLE_HISTORY_H_
#define OPTRAIL_REPORTS_EVALUATION_SAMPLE_HISTORY_H_

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

#include <cstdint>
#include <string>
#include <vector>

#include "tracker/proto/run.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::reports {

struct SampleOptions {
  int commits = 60;
  int shapes_per_operator = 2;
  int processes = 5;
  int sessions = 6;
  int trials_per_session = 240;
  uint64_t seed = 1;
  // When the last commit was made.
  int64_t end_unix_ns = int64_t{1792000000} * 1000000000;
  // Adds a benchmark, commits and configs with names that try to break out of
  // the page.
  bool hostile_names = false;
};

struct SampleHistory {
  std::vector<proto::Run> runs;
  std::vector<proto::Session> sessions;
};

// The same options give the same history. 7 operators x shapes x {default,
// tuned} x 3 hardware: 42 series per shape.
SampleHistory MakeSampleHistory(const SampleOptions& options);

// The names that hostile_names adds.
std::vector<std::string> HostileNames();

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_EVALUATION_SAMPLE_HISTORY_H_
