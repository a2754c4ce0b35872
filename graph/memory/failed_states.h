#ifndef OPTRAIL_GRAPH_MEMORY_FAILED_STATES_H_
#define OPTRAIL_GRAPH_MEMORY_FAILED_STATES_H_

// FailedStates remembers hashes of search states that have no solution, in a
// table of fixed size. It forgets: a state that was inserted may be missing.
//
//   FailedStates failed;
//   if (!failed.Contains(hash)) failed.Insert(hash);

#include <cstdint>
#include <vector>

namespace optrail::graph {

// The finaliser of MurmurHash3 (Appleby, public domain): every bit of the
// argument changes every bit of the result.
inline uint64_t MixBits(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

class FailedStates {
 public:
  bool Contains(uint64_t hash) const {
    if (table_.empty()) return false;
    const uint64_t* bucket = &table_[hash & kMask];
    for (int i = 0; i < kWays; ++i) {
      if (bucket[i] == (hash | 1)) return true;
    }
    return false;
  }
  void Insert(uint64_t hash) {
    if (table_.empty()) table_.assign(kMask + kWays, 0);
    uint64_t* bucket = &table_[hash & kMask];
    for (int i = 0; i < kWays; ++i) {
      if (bucket[i] == 0) {
        bucket[i] = hash | 1;
        return;
      }
    }
    bucket[hash >> 62] = hash | 1;
  }

 private:
  static constexpr int kWays = 4;
  // The first entry of a bucket: 2^20 entries, 8 MiB.
  static constexpr uint64_t kMask = (uint64_t{1} << 20) - kWays;

  std::vector<uint64_t> table_;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_FAILED_STATES_H_
