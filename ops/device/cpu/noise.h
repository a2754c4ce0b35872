#ifndef OPTRAIL_OPS_DEVICE_CPU_NOISE_H_
#define OPTRAIL_OPS_DEVICE_CPU_NOISE_H_

// How much this machine disturbs measurements right now: the same loop, timed
// again and again (A/A), and how long others had its core meanwhile.
//
//   const NoiseReport noise = ProbeNoise(absl::Seconds(1));
//   if (noise.run_delay_fraction > 0.02) Say("other processes want this core");
//
// The readers below are what the probe and the stopwatch look at.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace optrail::ops {

// Time that threads of this process waited for a core although they could run,
// summed over threads, from /proc/self/task/*/schedstat; nullopt where the
// kernel keeps no such statistics.
absl::optional<int64_t> RunDelayNs();

// Time that the hypervisor took from all cores together, from /proc/stat, in
// its resolution of 10 ms; nullopt if unknown.
absl::optional<int64_t> StealNs();

struct NoiseReport {
  int samples = 0;
  double median_ns = 0;  // of the loop
  // Quantiles of the loop's time over its median: 1.00 is perfect.
  double p95_over_median = 0;
  double max_over_median = 0;
  // First half of the probe against the second: medians' ratio, 1.00 if the
  // machine is steady.
  double drift = 0;
  absl::optional<double> run_delay_fraction;  // of the probe's wall time
  absl::optional<double> steal_fraction;      // of all cores' wall time
  absl::optional<double> load_average;        // over one minute
};

// Times a loop of about 0.1 ms for `duration` on the calling thread.
NoiseReport ProbeNoise(absl::Duration duration);

// The report on given samples, in order.
NoiseReport SummarizeNoise(const std::vector<double>& sample_ns);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_NOISE_H_
