#ifndef OPTRAIL_BASE_PROCESS_MACHINE_MEMORY_H_
#define OPTRAIL_BASE_PROCESS_MACHINE_MEMORY_H_

#include <cstdint>

namespace optrail {

// What the machine has of it, in bytes, whoever uses it.
int64_t MachineMemoryBytes();

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_MACHINE_MEMORY_H_
