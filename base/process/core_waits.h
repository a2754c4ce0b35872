#ifndef OPTRAIL_BASE_PROCESS_CORE_WAITS_H_
#define OPTRAIL_BASE_PROCESS_CORE_WAITS_H_

// How long could a process have run, had it found a core?
//
//   const CoreWaits waits(pid);  // from now on
//   ...
//   deadline = start + patience + waits.Longest();
//
// The kernel counts, thread by thread, the time between being able to run and
// running (/proc/PID/task/TID/schedstat). One that sleeps does not wait.
// Threads wait side by side, so what the process lost is hardly more than the
// thread that waited longest did.
//
// It is no stopwatch: what a sample waited is ops/device/cpu/monitor.h's
// affair.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace optrail {

class CoreWaits {
 public:
  // Of the process and all that it has started, as far as they still run.
  // `proc`: where the kernel tells.
  explicit CoreWaits(pid_t pid, std::string proc = "/proc");

  // Since the object was made, by the thread that waited longest; zero where
  // the kernel does not tell.
  absl::Duration Longest() const;

 private:
  std::map<pid_t, int64_t> Read() const;  // by thread

  const pid_t pid_;
  const std::string proc_;
  const std::map<pid_t, int64_t> before_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_CORE_WAITS_H_
