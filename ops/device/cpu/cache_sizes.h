#ifndef OPTRAIL_OPS_DEVICE_CPU_CACHE_SIZES_H_
#define OPTRAIL_OPS_DEVICE_CPU_CACHE_SIZES_H_

// Finds the sizes of caches in the rates at which buffers are read, for
// machines that hide them (many virtual ones do). Source: the working-set sweep
// of lmbench (McVoy and Staelin, USENIX 1996).
//
//   std::vector<SizedRate> rates;
//   for (const int64_t bytes : SizesToRead()) {
//     rates.push_back({bytes, read(bytes)});
//   }
//   const CacheSizes sizes = FindCacheSizes(rates, memory_bytes_per_s);
//
// Thread-safe.

#include <cstdint>
#include <vector>

namespace optrail::ops {

struct SizedRate {
  int64_t bytes;  // of a buffer that is read again and again
  double bytes_per_s;
};

// A level is as large as the largest buffer that was read at its rate, and may
// be larger; it is 0 where no such level shows.
struct CacheSizes {
  int64_t l2_bytes = 0, l3_bytes = 0;
};

// Returns powers of two and one and a half of each, from 128 KiB, which an L2
// holds and no L1 of 64 KiB, to 96 MiB.
std::vector<int64_t> SizesToRead();

// Takes `rates` in ascending order of size. What is hardly faster than
// `memory_bytes_per_s` is memory.
CacheSizes FindCacheSizes(const std::vector<SizedRate>& rates,
                          double memory_bytes_per_s);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_CACHE_SIZES_H_
