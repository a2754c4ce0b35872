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
// that the pilot keeps, which it cannot change. What is measured never sees the
// pilot's credentials: it gets a clean environment and, if root runs the pilot,
// another user. Without root it could read that user's ~/.pgpass.
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
// is shared (ops/core/artifact_level.h).
inline constexpr const char* kPassedOn[] = {"OPTRAIL_COMPILE_CACHE",
                                            "OPTRAIL_COMPILE_CACHE_TRUST"};

struct PilotOptions {
  std::string url;
  PilotInfo info;      // `id` is made
  std::string folder;  // for tasks; "": a new one below TMPDIR
  std::string run_as;  // user of the tasks, if root runs the pilot
  // What `git clone` takes, of tasks that build commits; "": none.
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

// The words of a task's command; single quotes keep words together, and nothing
// is expanded. InvalidArgument for other quotes, line breaks, and commands that
// a pilot does not run.
absl::StatusOr<std::vector<std::string>> WordsOfCommand(
    const std::string& command);

// One task for each commit in place of each `watch`: "watch COMMIT --limit=1
// ...". All processes of a commit then run on one machine. InvalidArgument for
// another command, and for a watch that names a range itself.
absl::StatusOr<std::vector<std::string>> PerCommit(
    const std::vector<std::string>& commands,
    const std::vector<std::string>& commits);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_PILOT_H_
