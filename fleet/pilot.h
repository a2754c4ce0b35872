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
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fleet/queue.h"

namespace optrail::fleet {

// Variables of the pilot's environment that tasks get, too: where compiled code
// is shared (ops/core/artifact_level.h). Tasks that build commits do not.
inline constexpr const char* kPassedOn[] = {"OPTRAIL_COMPILE_CACHE",
                                            "OPTRAIL_COMPILE_CACHE_TRUST"};

struct PilotOptions {
  std::string url;
  PilotInfo info;      // `id` is made
  std::string folder;  // the pilot makes its own in it; "": TMPDIR
  std::string run_as;  // user of the tasks, if root runs the pilot
  // For tasks that build commits: what `git clone` takes. "": it runs no such
  // tasks. The user of the tasks must be able to read it.
  std::string repository;
  bool until_idle = false;  // end where nothing is queued
  absl::Duration time = absl::InfiniteDuration();  // take no task after it
  absl::Duration lease = absl::Seconds(60);
  absl::Duration poll = absl::Seconds(2);
  // The program, with its first arguments, that runs a task's command.
  std::vector<std::string> program;
};

struct PilotReport {
  int done = 0;
  int failed = 0;
  int lost = 0;  // tasks that others had taken over, or that were cancelled
};

absl::StatusOr<PilotReport> RunPilot(const PilotOptions& options,
                                     std::ostream& log);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_PILOT_H_
