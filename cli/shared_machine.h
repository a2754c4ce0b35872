#ifndef OPTRAIL_CLI_SHARED_MACHINE_H_
#define OPTRAIL_CLI_SHARED_MACHINE_H_

// These functions advise where other programs want the same cores: `doctor`
// prints the advice, and commands that measure programs give it before minutes
// are spent on the wrong metric.
// Shares are fractions of wall time. Thread safety: functions without state.

#include <string>

namespace optrail::cli {

// Returns whether the clock on the wall says more of neighbours than of code,
// where programs wait for a core for the share `waiting` of their time.
bool IsSharedMachine(double waiting);

// So many processes that about ten are left with a core to themselves, within
// what anybody waits for.
int ProcessesFor(double waiting);

// A note that names the other metric, without a line's end; "" if few wait or
// `metric` is not `time`.
std::string MetricAdvice(double waiting, const std::string& metric);

// Looks at the machine for a third of a second, and prints that note on
// standard error. It does nothing with --quiet, --policy or --target: a policy
// names its metrics, and the stopwatch of Optrail's operators leaves out the
// time that they waited.
void AdviseMetricIfShared();

// The same for a server, whose latencies are longer there.
// AdviseServingIfShared looks at the machine, as above, and prints it.
std::string ServingAdvice(double waiting);
void AdviseServingIfShared();

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_SHARED_MACHINE_H_
