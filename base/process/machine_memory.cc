#include "base/process/machine_memory.h"

#include <unistd.h>

namespace optrail {

int64_t MachineMemoryBytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

}  // namespace optrail
