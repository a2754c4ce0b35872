#ifndef OPTRAIL_FLEET_EVALUATION_FAULT_TASKS_H_
#define OPTRAIL_FLEET_EVALUATION_FAULT_TASKS_H_

// The tasks of a fault run (fault_run.h), and the pilots of Slurm that run
// them:
//
//   OPTRAIL_ASSIGN_OR_RETURN(options.program, PrepareTasks(folder, 300));
//   request.commands = CommandsOf(0, 300);
//
// A task copies a record that was made before, so that what must be in the
// history is known.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fleet/pilot_options.h"

namespace optrail::fleet {

// Makes a history for each of `count` tasks below `folder`, which others may
// read, and a program that copies the one which its first flag names to where
// --history says. Each takes `task_time`.
absl::StatusOr<std::vector<std::string>> PrepareTasks(
    const std::string& folder, int count,
    absl::Duration task_time = absl::Milliseconds(50));
// Commands for the tasks from `first` on.
std::vector<std::string> CommandsOf(int first, int count);

// A pilot of the fault run as arguments, for a process that Slurm starts. It
// ends where nothing is queued, as those of `optrail fleet up` do.
std::vector<std::string> ArgumentsOf(const PilotOptions& options,
                                     absl::Duration clock_error);
// Sets this process's clock wrong by what the arguments say.
absl::StatusOr<PilotOptions> PilotOptionsOf(
    const std::vector<std::string>& arguments);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_EVALUATION_FAULT_TASKS_H_
