#include "suites/worker/taken_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"

namespace optrail::suites {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

TakenPages::TakenPages(uint64_t seed) {
  Rng rng(seed);
  const int64_t small = rng.UniformInt(kMostSmallPages + 1);
  const int64_t huge = rng.UniformInt(kMostHugePages + 1);
  small_ = Take(small, static_cast<size_t>(sysconf(_SC_PAGESIZE)), false);
  huge_ = Take(huge, kHugePageBytes, true);
}

TakenPages::~TakenPages() {
  for (const Mapping& mapping : {small_, huge_}) {
    if (mapping.begin != nullptr) munmap(mapping.begin, mapping.size_bytes);
  }
}

TakenPages::Mapping TakenPages::Take(int64_t pages, size_t page_bytes,
                                     bool huge) {
  Mapping mapping;
  const size_t size_bytes = static_cast<size_t>(pages) * page_bytes;
  if (size_bytes == 0) return mapping;
  void* const begin = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return mapping;
  (void)madvise(begin, size_bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (size_t i = 0; i < size_bytes; i += page_bytes) {
    static_cast<volatile char*>(begin)[i] = 0;
  }
  mapping.begin = begin;
  mapping.size_bytes = size_bytes;
  return mapping;
}

}  // namespace optrail::suites
