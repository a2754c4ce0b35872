#include "ops/device/cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace optrail::ops {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kLineBytes = 64;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Byte `i` of a guard zone, counted from its start. Read as 32-bit or 64-bit
// floats a zone is full of different NaN.
unsigned char GuardByte(size_t i) {
  const uint32_t word = 0xfff00000u | (static_cast<uint32_t>(i / 4) & 0xffff);
  return static_cast<unsigned char>(word >> (i % 4 * 8));
}

void WriteGuard(char* zone) {
  for (size_t i = 0; i < GuardedMemory::kGuardBytes; ++i) {
    zone[i] = static_cast<char>(GuardByte(i));
  }
}

bool GuardByteIntact(const char* zone, size_t i) {
  return static_cast<unsigned char>(zone[i]) == GuardByte(i);
}

// What can be had without swapping; nullopt if the system does not say.
absl::optional<size_t> AvailableBytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    int64_t kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %" SCNd64, &kib) == 1) {
      return static_cast<size_t>(kib) << 10;
    }
  }
  return absl::nullopt;
}

}  // namespace

bool IsOnHugePages(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  const auto target = reinterpret_cast<uintptr_t>(address);
  bool inside = false;
  int64_t resident_kib = -1;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    int64_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) ==
        2) {
      if (inside) return false;
      inside = begin <= target && target < end;
    } else if (inside &&
               std::sscanf(line.c_str(), "Rss: %" SCNd64, &kib) == 1) {
      resident_kib = kib;
    } else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %" SCNd64,
                                     &kib) == 1) {
      return kib > 0 && kib == resident_kib;
    }
  }
  return false;
}

absl::StatusOr<GuardedMemory> GuardedMemory::Allocate(size_t size_bytes,
                                                      size_t stagger_bytes) {
  const size_t small_page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const bool huge = size_bytes >= kHugePageThresholdBytes;
  const size_t page = huge ? kHugePageBytes : small_page;
  const auto failed = [&](const char* what) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", size_bytes, " bytes for an operand: ", what, ": ",
        std::strerror(errno)));
  };

  // Every page is going to be touched: better to refuse than to be killed, or
  // to measure a machine that swaps.
  if (const auto available = AvailableBytes();
      available.has_value() && size_bytes > *available) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", size_bytes,
                     " bytes for an operand: this machine has ", *available,
                     " bytes of memory available"));
  }

  // The guard zone ends where the data starts: both zones touch the data.
  const size_t offset = kGuardBytes + stagger_bytes;
  const size_t usable = RoundUp(offset + size_bytes + kGuardBytes, page);
  // Reserved without access: room to align, and at least a page on each side
  // that stays inaccessible.
  const size_t reserved = usable + 2 * page;
  void* const reservation =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reservation == MAP_FAILED) return failed("mmap");

  GuardedMemory memory;
  memory.reservation_ = static_cast<char*>(reservation);
  memory.reserved_bytes_ = reserved;
  memory.size_bytes_ = size_bytes;

  const auto start = reinterpret_cast<uintptr_t>(reservation);
  char* const begin =
      memory.reservation_ + (RoundUp(start + small_page, page) - start);
  if (mprotect(begin, usable, PROT_READ | PROT_WRITE) != 0) {
    return failed("mprotect");
  }
  if (huge) (void)madvise(begin, usable, MADV_HUGEPAGE);
  // Page faults belong here, not into the first sample.
  for (size_t i = 0; i < usable; i += small_page) {
    *const_cast<volatile char*>(begin + i) = 0;
  }
  memory.data_ = begin + offset;
  memory.ArmGuards();
  return memory;
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : reservation_(std::exchange(other.reservation_, nullptr)),
      reserved_bytes_(other.reserved_bytes_),
      data_(other.data_),
      size_bytes_(other.size_bytes_) {}

GuardedMemory::~GuardedMemory() {
  if (reservation_ != nullptr) munmap(reservation_, reserved_bytes_);
}

size_t GuardedMemory::page_bytes() const {
  return IsOnHugePages(data_) ? kHugePageBytes
                              : static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void GuardedMemory::ArmGuards() {
  WriteGuard(data_ - kGuardBytes);
  WriteGuard(data_ + size_bytes_);
}

absl::Status GuardedMemory::CheckGuards() const {
  const char* const before = data_ - kGuardBytes;
  const char* const after = data_ + size_bytes_;
  // The byte nearest to the data is where an overrun starts.
  for (size_t i = kGuardBytes; i-- > 0;) {
    if (!GuardByteIntact(before, i)) {
      return absl::DataLossError(absl::StrCat(
          "byte ", kGuardBytes - i, " before the start was overwritten"));
    }
  }
  for (size_t i = 0; i < kGuardBytes; ++i) {
    if (!GuardByteIntact(after, i)) {
      return absl::DataLossError(
          absl::StrCat("byte ", i + 1, " after the end was overwritten"));
    }
  }
  return absl::OkStatus();
}

#if defined(__x86_64__)

namespace {

bool HasClflushopt() {
  static const bool has = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
           (ebx & bit_CLFLUSHOPT) != 0;
  }();
  return has;
}

__attribute__((target("clflushopt"))) void FlushUnordered(const char* begin,
                                                          const char* end) {
  for (const char* line = begin; line < end; line += kLineBytes) {
    _mm_clflushopt(const_cast<char*>(line));
  }
}

void FlushOrdered(const char* begin, const char* end) {
  for (const char* line = begin; line < end; line += kLineBytes) {
    _mm_clflush(line);
  }
}

}  // namespace

bool CanFlushLines() { return true; }

void FlushLines(const void* begin, size_t size_bytes) {
  const char* const first = static_cast<const char*>(begin);
  const char* const aligned =
      first - reinterpret_cast<uintptr_t>(first) % kLineBytes;
  _mm_mfence();
  if (HasClflushopt()) {
    FlushUnordered(aligned, first + size_bytes);
  } else {
    FlushOrdered(aligned, first + size_bytes);
  }
  _mm_mfence();
}

#else

bool CanFlushLines() { return false; }
void FlushLines(const void* begin, size_t size_bytes) {}

#endif

}  // namespace optrail::ops
