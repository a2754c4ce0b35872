#include "ops/device/cpu/operand_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/device/cpu/memory.h"

namespace optrail::ops {
namespace {

constexpr int64_t kSmallPage = 4096;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kLeastBlock = 32 << 10;
constexpr int64_t kMostMappings = 400;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

absl::Status Failed(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot map an operand for an experiment: ", what, ": ",
                   std::strerror(errno)));
}

char* Map(int64_t bytes, int protection) {
  void* const mapping = mmap(nullptr, static_cast<size_t>(bytes), protection,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapping == MAP_FAILED ? nullptr : static_cast<char*>(mapping);
}

}  // namespace

int64_t AliasedBlockBytes(int64_t total_bytes) {
  int64_t block = kLeastBlock;
  while (total_bytes / block > kMostMappings) block *= 2;
  return block;
}

absl::StatusOr<OperandMemory> OperandMemory::Copy(const void* source,
                                                  int64_t bytes, Pages pages,
                                                  int64_t offset) {
  const bool huge = pages == Pages::kHuge;
  const int64_t page = huge ? kHugePage : kSmallPage;
  OperandMemory memory;
  // The second page is room to align.
  const int64_t size = RoundUp(bytes + offset, page) + page;
  memory.mapping_ = Map(size, PROT_READ | PROT_WRITE);
  if (memory.mapping_ == nullptr) return Failed("mmap");
  memory.mapped_bytes_ = static_cast<size_t>(size);
  (void)madvise(memory.mapping_, memory.mapped_bytes_,
                huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  const auto start = reinterpret_cast<uintptr_t>(memory.mapping_);
  char* const aligned = memory.mapping_ + (RoundUp(start, page) - start);
  memory.data_ = aligned + offset;
  std::memcpy(memory.data_, source, static_cast<size_t>(bytes));
  if (huge && !IsOnHugePages(memory.data_)) {
    return absl::UnimplementedError(
        "unsupported here: the system grants no huge pages for this operand");
  }
  return memory;
}

absl::StatusOr<OperandMemory> OperandMemory::Aliased(const void* source,
                                                     int64_t bytes,
                                                     int64_t block_bytes) {
  OperandMemory memory;
  const int64_t size = RoundUp(bytes, block_bytes);
  memory.mapping_ = Map(size, PROT_NONE);
  if (memory.mapping_ == nullptr) return Failed("mmap");
  memory.mapped_bytes_ = static_cast<size_t>(size);
  memory.data_ = memory.mapping_;
  const int file = memfd_create("optrail-aliased", MFD_CLOEXEC);
  if (file < 0) return Failed("memfd_create");
  bool mapped = ftruncate(file, block_bytes) == 0;
  for (int64_t at = 0; mapped && at < size; at += block_bytes) {
    mapped = mmap(memory.mapping_ + at, static_cast<size_t>(block_bytes),
                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                  file, 0) != MAP_FAILED;
  }
  close(file);
  if (!mapped) return Failed("mmap of a block");
  std::memcpy(memory.data_, source,
              static_cast<size_t>(std::min(bytes, block_bytes)));
  return memory;
}

OperandMemory::OperandMemory(OperandMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      data_(other.data_) {}

OperandMemory::~OperandMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

}  // namespace optrail::ops
