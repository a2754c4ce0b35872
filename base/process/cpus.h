#ifndef OPTRAIL_BASE_PROCESS_CPUS_H_
#define OPTRAIL_BASE_PROCESS_CPUS_H_

// Which cores this thread may use, and how to keep it to some of them.
//
//   const std::vector<int> usable = UsableCpus();
//   if (usable.size() > 1) UseCpus({usable[1]});
//
// Child processes inherit the mask of the thread that starts them.

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace optrail {

// The cores in this thread's affinity mask, in order; never empty.
std::vector<int> UsableCpus();

// The hardware threads that share a core with `cpu`, itself included, as
// /sys tells; only itself where it does not.
std::vector<int> SiblingCpus(int cpu);

// "0,4-6", as the kernel writes lists of cores; what cannot be read is left
// out.
std::vector<int> ParseCpuList(const std::string& text);

// Keeps this thread, and what it starts, to `cpus`. Unavailable names them.
absl::Status UseCpus(const std::vector<int>& cpus);

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_CPUS_H_
