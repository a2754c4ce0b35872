#include "ops/device/cpu/cache_sizes.h"

#include <algorithm>
#include <cstddef>

namespace optrail::ops {
namespace {

// Rates of one level differ by less than this: a buffer of half a cache is read
// a little slower than one of a quarter, and one of twice its size much slower.
constexpr double kSameLevel = .75;
// Sizes from one to four times a cache are read partly from the next level.
constexpr int64_t kWhollyBeyond = 4;
// A level that is hardly faster than memory is memory.
constexpr double kFasterThanMemory = 1.25;

// Returns the index of the last size that is read as fast as those from `first`
// on. A disturbed reading is lower, so the highest one counts.
size_t LastOfLevel(const std::vector<SizedRate>& rates, size_t first) {
  size_t last = first;
  double highest = rates[first].bytes_per_s;
  while (last + 1 < rates.size() &&
         rates[last + 1].bytes_per_s >= kSameLevel * highest) {
    highest = std::max(highest, rates[++last].bytes_per_s);
  }
  return last;
}

}  // namespace

std::vector<int64_t> SizesToRead() {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 128 << 10; bytes <= 64 << 20; bytes *= 2) {
    sizes.insert(sizes.end(), {bytes, bytes + bytes / 2});
  }
  return sizes;
}

CacheSizes FindCacheSizes(const std::vector<SizedRate>& rates,
                          double memory_bytes_per_s) {
  CacheSizes sizes;
  const auto is_memory = [&](size_t i) {
    return rates[i].bytes_per_s < kFasterThanMemory * memory_bytes_per_s;
  };
  if (rates.empty() || is_memory(0)) return sizes;
  const size_t l2 = LastOfLevel(rates, 0);
  sizes.l2_bytes = rates[l2].bytes;
  size_t beyond = l2;
  while (beyond < rates.size() &&
         rates[beyond].bytes < kWhollyBeyond * sizes.l2_bytes) {
    ++beyond;
  }
  if (beyond == rates.size() || is_memory(beyond)) return sizes;
  sizes.l3_bytes = rates[LastOfLevel(rates, beyond)].bytes;
  return sizes;
}

}  // namespace optrail::ops
