#ifndef OPTRAIL_TRACKER_GATE_GATE_COMMAND_H_
#define OPTRAIL_TRACKER_GATE_GATE_COMMAND_H_

// `optrail gate` as a function, for the command line to fill from flags
// (tracker/command/command_support.h says how commands answer).

#include <functional>
#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/command/command_support.h"
#include "tracker/notify/notify.h"

namespace optrail::tracker {

// The part of the work that a gate waits for.
struct UnfinishedWork {
  std::string text;  // "job 7: 2 of 12 tasks are not done: ..."; "": nothing
  bool may_end = false;  // some of it is queued or runs
};

struct GateCommand {
  CommonOptions common;
  std::string policy;  // file; "": the default policy
  std::string metric;  // without a file: what is judged; "": time
  // Commit or run; "": the commit that is checked out, outside git "latest".
  std::string candidate;
  std::string baseline;  // ParseBaseline; "": the policy's
  std::string suite;     // "": all that the candidate has
  std::string hardware_id;
  GateOutputs outputs;
  // For a script: the number of processes to add on each side, a line feed, and
  // the benchmarks as --benchmark_filter; empty if more would not help.
  std::string remeasure_out;
  int looks = 1;  // see GateOptions
  // Command that adds processes of the candidate to the history, run by sh
  // where they would tell, before each look but the first; {filter} stands for
  // the benchmarks, {processes} for the number of processes to add. "": none.
  std::string measure;
  // Work whose results are to be judged together, such as the tasks of a job of
  // a fleet: no verdict is reached before all of it is done, and none is
  // awaited after it. Unavailable: asked again until the end of `wait`. Null:
  // none.
  std::function<absl::StatusOr<UnfinishedWork>()> work;
  // How long to wait for the work, or without it for runs and benchmarks that
  // the candidate lacks; asked every `poll`.
  absl::Duration wait = absl::ZeroDuration();
  absl::Duration poll = absl::Seconds(5);
};

absl::StatusOr<int> RunGate(const GateCommand& options, std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_GATE_COMMAND_H_
