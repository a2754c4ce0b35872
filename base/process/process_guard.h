#ifndef OPTRAIL_BASE_PROCESS_PROCESS_GUARD_H_
#define OPTRAIL_BASE_PROCESS_PROCESS_GUARD_H_

// A process between us and a command that nobody vouches for: whatever the
// command starts, also in sessions of its own (setsid, a daemon), ends with it,
// with us, or when all of it together takes too much memory.
//
//   if (IsProcessGuard(argc, argv)) {  // the first thing that main() does
//     return RunProcessGuard(argc, argv);
//   }
//   ...
//   CommandOptions options;
//   options.guard = "/proc/self/exe";       // a binary with that main
//   options.max_resident_bytes = 1 << 30;   // of the whole tree
//   RunCommand({"/bin/sh", "-c", command}, options);
//
// The guard is the reaper of all its descendants (PR_SET_CHILD_SUBREAPER), so
// none of them is ever out of its sight, and it watches its parent (pidfd): a
// parent that is killed by any signal takes the tree along within milliseconds.
// The limit is a control group where this process may make one
// (memory_group.h). Elsewhere resident sizes are summed over the tree every 20
// ms, so that pages that its processes share count in each, and what it had
// beyond the limit by then depends on how fast it allocates.
//
// It is no sandbox: what may send it SIGKILL can part it from the tree.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace optrail {

inline constexpr char kProcessGuardFlag[] = "--optrail_process_guard=";

// The guard's exit code for a tree that was killed for its memory. A command
// that exits with it by itself is reported with one less.
inline constexpr int kGuardOutOfMemoryCode = 250;

// The arguments behind a binary that make it the guard of `argv`.
std::vector<std::string> GuardedArguments(const std::string& binary,
                                          int64_t max_resident_bytes,
                                          const std::vector<std::string>& argv);

// Sends `number` to all that runs under the guard `guard`, which itself goes on
// watching: SIGSTOP and SIGCONT make it pause.
void SignalGuarded(pid_t guard, int number);

bool IsProcessGuard(int argc, char** argv);

// Runs the command; ends as it ended, or once its tree is killed.
int RunProcessGuard(int argc, char** argv);

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_PROCESS_GUARD_H_
