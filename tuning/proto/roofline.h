#ifndef OPTRAIL_TUNING_PROTO_ROOFLINE_H_
#define OPTRAIL_TUNING_PROTO_ROOFLINE_H_

// The least time that an operator can take on a machine (Williams, Waterman and
// Patterson, "Roofline: an insightful visual performance model for multicore
// architectures", 2009): it must do its arithmetic and move its data, at best
// at the same time.
//
//   time >= max(FLOP / peak FLOP/s, bytes / peak bytes/s)
//
// `bytes` is compulsory traffic (Operator::MovedBytes). With warm caches the
// data need not come from memory: as much of it as fits comes from the nearest
// level, as much of the rest from the next. FLOP are those of the definition;
// an algorithm that does less (Winograd) can be faster than this.

#include <cstdint>
#include <vector>

#include "tuning/proto/context.pb.h"

namespace optrail::tuning {

// The rates that bound `threads` threads, and where the time below comes from.
struct RooflineCeilings {
  struct Level {
    const char* name;    // "L1", "L2", "L3" or "memory"
    double bytes;        // that fit; infinite for memory
    double bytes_per_s;  // measured
  };
  double flop_per_s = 0;      // 0: not known
  std::vector<Level> levels;  // those that are known, the nearest first
};

// `threads` up to `ceiling_threads`, the number of threads with which the
// ceilings of "all threads" were measured; between one and all, arithmetic and
// private caches grow with the threads and memory is interpolated.
RooflineCeilings CeilingsOfThreads(const proto::Hardware& hardware,
                                   const proto::Ceilings& ceilings, int threads,
                                   int ceiling_threads);

// Return the bytes of a cache as the machine shows them, else as its rates do;
// 0 where neither does.
int64_t L2Bytes(const proto::Hardware& hardware,
                const proto::Ceilings& ceilings);
int64_t L3Bytes(const proto::Hardware& hardware,
                const proto::Ceilings& ceilings);

struct Roofline {
  double time_ns = 0;         // the bound; 0 if a ceiling it needs is missing
  bool memory_bound = false;  // which of the two terms is larger
  const char* level = "";     // "L1", "L2", "L3" or "memory": holds all data
};

// `working_set_bytes` is how much data a call touches where caches are warm; 0
// stands for cold caches.
Roofline RooflineOf(double flop, double moved_bytes, double working_set_bytes,
                    const proto::Hardware& hardware,
                    const proto::Ceilings& ceilings, int threads,
                    int ceiling_threads);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_ROOFLINE_H_
