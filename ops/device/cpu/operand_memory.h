#ifndef OPTRAIL_OPS_DEVICE_CPU_OPERAND_MEMORY_H_
#define OPTRAIL_OPS_DEVICE_CPU_OPERAND_MEMORY_H_

// OperandMemory holds a copy of one operand in memory of a chosen kind, for
// experiments: on small or huge pages, off its alignment, or "aliased": one
// small block of physical memory mapped over the whole operand, so that
// accesses stay in the nearest caches while the code and its addresses are the
// same.
//
//   OPTRAIL_ASSIGN_OR_RETURN(OperandMemory copy,
//                            OperandMemory::Aliased(source, bytes, 32 << 10));
//   call.operands[0] = copy.data();

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace optrail::ops {

class OperandMemory {
 public:
  enum class Pages { kSmall, kHuge };

  // `source` has `bytes` bytes. The data begins `offset` bytes after a multiple
  // of 64. kHuge is Unimplemented where the system grants no huge pages; errors
  // of the system are ResourceExhausted.
  static absl::StatusOr<OperandMemory> Copy(const void* source, int64_t bytes,
                                            Pages pages, int64_t offset);

  // Maps `block_bytes`, a power of two and a multiple of the page size, again
  // and again. Filled with the first block of `source`.
  static absl::StatusOr<OperandMemory> Aliased(const void* source,
                                               int64_t bytes,
                                               int64_t block_bytes);

  OperandMemory(OperandMemory&& other) noexcept;
  OperandMemory& operator=(OperandMemory&&) = delete;
  ~OperandMemory();

  void* data() const { return data_; }
  // The whole mapping, in pages.
  char* mapping() const { return mapping_; }
  size_t mapped_bytes() const { return mapped_bytes_; }

 private:
  OperandMemory() = default;

  char* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  char* data_ = nullptr;
};

// The block for operands of `total_bytes` together: at least 32 KiB, which the
// first cache holds, and larger where there would be too many mappings. From
// about a thousand on, a Linux 6.18 guest reads a hundred times slower through
// them.
int64_t AliasedBlockBytes(int64_t total_bytes);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_OPERAND_MEMORY_H_
