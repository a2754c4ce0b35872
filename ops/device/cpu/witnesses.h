#ifndef OPTRAIL_OPS_DEVICE_CPU_WITNESSES_H_
#define OPTRAIL_OPS_DEVICE_CPU_WITNESSES_H_

// What the kernel tells about who had the cores: parsed here, looked at by the
// monitor of the stopwatch (monitor.h) and the noise probe (noise.h).
//
//   RunDelayNs("123456 789 42\n") == 789
//
// Text in, numbers out: who reads which file when is the caller's affair.

#include <cstdint>
#include <map>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optrail::ops {

// From /proc/PID/task/TID/schedstat, "time on a core, time waiting for one,
// time slices": how long the thread could run and did not.
absl::optional<int64_t> ParseRunDelayNs(absl::string_view schedstat);
// The same file: how long it ran.
absl::optional<int64_t> ParseRunTimeNs(absl::string_view schedstat);

// From /proc/stat: ticks that the hypervisor gave to others, per core. Empty if
// the file is not what it should be.
std::map<int, int64_t> ParseStealTicks(absl::string_view stat);

// From /proc/PID/task/TID/stat: the core that the thread ran on last.
absl::optional<int> ParseProcessor(absl::string_view task_stat);

// The length of a tick of the counters above; 10 ms nearly everywhere.
double TickNs();

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_WITNESSES_H_
