#ifndef OPTRAIL_OPS_DEVICE_CPU_CACHE_SIZES_H_
#define OPTRAIL_OPS_DEVICE_CPU_CACHE_SIZES_H_

// Finds the sizes of caches in the rates at which buffers are read, for
// machines that hide them (many virtual ones do). Source: the working-set sweep
// of lmbench (McVoy and Staelin, USENIX 1996).

#include <cstdint>
#include <vector>

namespace optrail::ops {

struct SizedRate {
  int64_t bytes;  // of a buffer that is read again and again
  double bytes_per_s;
};

// The largest buffers that were read at the rate of a level, which is at least
// as large; 0: no such level shows.
struct CacheSizes {
  int64_t l2_bytes = 0, l3_bytes = 0;
};

// Sizes whose rates tell: powers of two, and one and a half of each, from
// 128 KiB, which an L2 holds and no L1 of 64 KiB, to 96 MiB.
std::vector<int64_t> SizesToRead();

// `rates` in ascending order of size; `memory_bytes_per_s` bounds what counts
// as an L3.
CacheSizes FindCacheSizes(const std::vector<SizedRate>& rates,
                          double memory_bytes_per_s);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_CACHE_SIZES_H_
