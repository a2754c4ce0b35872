#ifndef OPTRAIL_FLEET_PILOT_OPTIONS_H_
#define OPTRAIL_FLEET_PILOT_OPTIONS_H_

// Options of a pilot (fleet/pilot.h), and of what runs its tasks
// (fleet/task_runner.h).
//
//   PilotOptions options;
//   options.url = "postgresql://pilot@db/optrail";

#include <string>
#include <vector>

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
  // End where nothing is queued, and nothing waits for a task that another
  // pilot runs or is there to take.
  bool until_idle = false;
  absl::Duration time = absl::InfiniteDuration();  // take no task after it
  absl::Duration lease = absl::Seconds(60);
  absl::Duration poll = absl::Seconds(2);
  // A binary that can be a process guard (base/process/process_guard.h): what a
  // task leaves running, in sessions of its own too, ends with the task. "":
  // only its process group does.
  std::string guard;
  // The program, with its first arguments, that runs a task's command.
  std::vector<std::string> program;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_PILOT_OPTIONS_H_
