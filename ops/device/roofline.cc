#include "ops/device/roofline.h"

#include <algorithm>

namespace optrail::ops {
namespace {

// A rate between those of one thread and of all.
double Between(double one, double all, int threads, int all_threads) {
  if (threads <= 1) return one;
  if (threads >= all_threads) return all;
  return one + (all - one) * (threads - 1) / (all_threads - 1);
}

}  // namespace

Roofline RooflineOf(double flop, double moved_bytes, double working_set_bytes,
                    const proto::Hardware& hardware,
                    const proto::Ceilings& ceilings, int threads,
                    int ceiling_threads) {
  Roofline roofline;
  const double flop_per_s =
      Between(ceilings.flop_per_s_one_thread(),
              ceilings.flop_per_s_all_threads(), threads, ceiling_threads);
  // Streaming both ways is often faster than reading alone.
  const double memory_one =
      std::max(ceilings.memory_read_bytes_per_s_one_thread(),
               ceilings.memory_copy_bytes_per_s_one_thread());
  const double memory_all =
      std::max(ceilings.memory_read_bytes_per_s_all_threads(),
               ceilings.memory_copy_bytes_per_s_all_threads());
  double bytes_per_s =
      Between(memory_one, memory_all, threads, ceiling_threads);
  roofline.level = "memory";
  const double share = working_set_bytes / std::max(threads, 1);
  if (working_set_bytes > 0 && hardware.has_l1d_bytes() &&
      share <= hardware.l1d_bytes() && ceilings.has_l1_read_bytes_per_s()) {
    bytes_per_s = ceilings.l1_read_bytes_per_s() * threads;
    roofline.level = "L1";
  } else if (working_set_bytes > 0 && hardware.has_l2_bytes() &&
             share <= hardware.l2_bytes() &&
             ceilings.has_l2_read_bytes_per_s()) {
    bytes_per_s = ceilings.l2_read_bytes_per_s() * threads;
    roofline.level = "L2";
  } else if (working_set_bytes > 0 && hardware.has_l3_bytes() &&
             working_set_bytes <= hardware.l3_bytes() &&
             ceilings.has_l3_read_bytes_per_s()) {
    // One cache for all threads, whose rate is known for one of them: this many
    // times that is more than it can do, and still a bound.
    bytes_per_s =
        std::max(bytes_per_s, ceilings.l3_read_bytes_per_s() * threads);
    roofline.level = "L3";
  }
  if (flop_per_s <= 0 || bytes_per_s <= 0) return roofline;
  const double compute_ns = flop / flop_per_s * 1e9;
  const double memory_ns = moved_bytes / bytes_per_s * 1e9;
  roofline.time_ns = std::max(compute_ns, memory_ns);
  roofline.memory_bound = memory_ns > compute_ns;
  return roofline;
}

double RooflineTimeNs(double flop, double moved_bytes,
                      const proto::Ceilings& ceilings, int threads) {
  return RooflineOf(flop, moved_bytes, 0, {}, ceilings, threads, threads)
      .time_ns;
}

}  // namespace optrail::ops
