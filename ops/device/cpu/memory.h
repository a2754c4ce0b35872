#ifndef OPTRAIL_OPS_DEVICE_CPU_MEMORY_H_
#define OPTRAIL_OPS_DEVICE_CPU_MEMORY_H_

// GuardedMemory is a mapping for one operand: on huge pages where possible,
// between guard zones that reveal writes outside, with inaccessible memory
// beyond them. See cpu.h for the reasons.
//
//   OPTRAIL_ASSIGN_OR_RETURN(GuardedMemory memory,
//                            GuardedMemory::Allocate(bytes, /*stagger=*/0));

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optrail::ops {

class GuardedMemory {
 public:
  // Smaller operands stay on small pages: they fit into the L1 cache, where
  // physical addresses do not matter.
  static constexpr size_t kHugePageThresholdBytes = 16 << 10;

  // Bytes on each side that are checked.
  static constexpr size_t kGuardBytes = 4096;

  // `stagger_bytes`, a multiple of 64, moves the data within its pages.
  // ResourceExhausted if the system refuses.
  static absl::StatusOr<GuardedMemory> Allocate(size_t size_bytes,
                                                size_t stagger_bytes);

  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory();

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

  // Reads /proc/self/smaps: 2 MiB only if all of the mapping is on such pages.
  size_t page_bytes() const;

  void ArmGuards();
  absl::Status CheckGuards() const;

 private:
  GuardedMemory() = default;

  char* reservation_ = nullptr;
  size_t reserved_bytes_ = 0;
  char* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// Whether all resident memory of the mapping that holds `address` is on huge
// pages, as /proc/self/smaps tells.
bool IsOnHugePages(const void* address);

// Evicts the lines of a range from the caches of all cores.
bool CanFlushLines();
void FlushLines(const void* begin, size_t size_bytes);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_MEMORY_H_
