#include "tuning/proto/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace optrail::tuning {
namespace {

// A rate between those of one thread and of all.
double Between(double one, double all, int threads, int all_threads) {
  if (threads <= 1) return one;
  if (threads >= all_threads) return all;
  return one + (all - one) * (threads - 1) / (all_threads - 1);
}

}  // namespace

int64_t L2Bytes(const proto::Hardware& hardware,
                const proto::Ceilings& ceilings) {
  return hardware.has_l2_bytes() ? hardware.l2_bytes()
                                 : ceilings.l2_bytes_seen();
}

int64_t L3Bytes(const proto::Hardware& hardware,
                const proto::Ceilings& ceilings) {
  return hardware.has_l3_bytes() ? hardware.l3_bytes()
                                 : ceilings.l3_bytes_seen();
}

RooflineCeilings CeilingsOfThreads(const proto::Hardware& hardware,
                                   const proto::Ceilings& ceilings, int threads,
                                   int ceiling_threads) {
  RooflineCeilings result;
  result.flop_per_s =
      Between(ceilings.flop_per_s_one_thread(),
              ceilings.flop_per_s_all_threads(), threads, ceiling_threads);
  // Streaming both ways is often faster than reading alone.
  const double memory_one =
      std::max(ceilings.memory_read_bytes_per_s_one_thread(),
               ceilings.memory_copy_bytes_per_s_one_thread());
  const double memory_all =
      std::max(ceilings.memory_read_bytes_per_s_all_threads(),
               ceilings.memory_copy_bytes_per_s_all_threads());
  const double memory_bytes_per_s =
      Between(memory_one, memory_all, threads, ceiling_threads);

  // The L3 is one cache for all threads, whose rate is known for one of them:
  // this many times that is more than it can do, and still a bound.
  const double cores = std::max(threads, 1);
  const RooflineCeilings::Level levels[] = {
      {"L1", cores * hardware.l1d_bytes(),
       cores * ceilings.l1_read_bytes_per_s()},
      {"L2", cores * L2Bytes(hardware, ceilings),
       cores * ceilings.l2_read_bytes_per_s()},
      {"L3", 1.0 * L3Bytes(hardware, ceilings),
       ceilings.has_l3_read_bytes_per_s()
           ? std::max(memory_bytes_per_s,
                      cores * ceilings.l3_read_bytes_per_s())
           : 0},
      {"memory", std::numeric_limits<double>::infinity(), memory_bytes_per_s},
  };
  for (const RooflineCeilings::Level& level : levels) {
    if (level.bytes_per_s > 0) result.levels.push_back(level);
  }
  return result;
}

Roofline RooflineOf(double flop, double moved_bytes, double working_set_bytes,
                    const proto::Hardware& hardware,
                    const proto::Ceilings& ceilings, int threads,
                    int ceiling_threads) {
  Roofline roofline;
  const RooflineCeilings known =
      CeilingsOfThreads(hardware, ceilings, threads, ceiling_threads);
  if (known.flop_per_s <= 0 || known.levels.empty() ||
      !std::isinf(known.levels.back().bytes)) {
    return roofline;
  }
  // What does not fit into a level may still have as much of itself there.
  double memory_ns = 0;
  double placed = 0;  // share of the working set in levels so far
  for (const RooflineCeilings::Level& level : known.levels) {
    const bool memory = std::isinf(level.bytes);
    if (placed == 1 || (!memory && working_set_bytes <= 0)) continue;
    const double share =
        memory ? 1 : std::min(1.0, level.bytes / working_set_bytes);
    if (share <= placed) continue;
    memory_ns += (share - placed) * moved_bytes / level.bytes_per_s * 1e9;
    placed = share;
    if (placed == 1) roofline.level = level.name;
  }
  const double compute_ns = flop / known.flop_per_s * 1e9;
  roofline.time_ns = std::max(compute_ns, memory_ns);
  roofline.memory_bound = memory_ns > compute_ns;
  return roofline;
}

}  // namespace optrail::tuning
