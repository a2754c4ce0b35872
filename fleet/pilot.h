#ifndef OPTRAIL_FLEET_PILOT_H_
#define OPTRAIL_FLEET_PILOT_H_

// A pilot takes tasks from a JobQueue and runs them on its machine, one after
// another, until none fits, its time is up, or it is told to end. Slurm starts
// pilots (fleet/slurm.h), or ssh, or a person:
//
//   PilotOptions options;
//   options.url = "postgresql://pilot@db/optrail";
//   OPTRAIL_ASSIGN_OR_RETURN(const PilotReport report, RunPilot(options, log));
//
// A task writes into an empty folder; the pilot puts what it recorded into the
// shared history when the task ends. A gate judges a copy of the shared history
// that the pilot keeps. What is measured never sees the pilot's credentials: it
// gets a clean environment and, if root runs the pilot, another user, who
// cannot change that copy. Without root it could, and could read ~/.pgpass.
//
// SIGTERM and SIGINT stop the task and put it back into the queue. One pilot
// per process.

#include <ostream>

#include "absl/status/statusor.h"
#include "fleet/pilot_options.h"

namespace optrail::fleet {

struct PilotReport {
  int done = 0;
  int failed = 0;
  int lost = 0;  // tasks that others had taken over, or that were cancelled
};

absl::StatusOr<PilotReport> RunPilot(const PilotOptions& options,
                                     std::ostream& log);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_PILOT_H_
