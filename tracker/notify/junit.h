#ifndef OPTRAIL_TRACKER_NOTIFY_JUNIT_H_
#define OPTRAIL_TRACKER_NOTIFY_JUNIT_H_

// A gate's verdict as JUnit's XML, which CI services show as tests.
//
//   WriteFileAtomically("gate.xml", GateJunit(report));
//
// A test suite is a suite of benchmarks on one hardware, a test case is a
// benchmark and one of its metrics. What fails the gate is a failure, and what
// leaves it without an answer is an error. A test that only the policy lets
// pass without an answer is skipped. If the gate does not pass and no row says
// why, the test "gate" is an error: no file of such a gate passes.

#include <string>

#include "tracker/gate/gate.h"

namespace optrail::tracker {

std::string GateJunit(const GateReport& report);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_NOTIFY_JUNIT_H_
