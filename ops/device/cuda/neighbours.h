#ifndef OPTRAIL_OPS_DEVICE_CUDA_NEIGHBOURS_H_
#define OPTRAIL_OPS_DEVICE_CUDA_NEIGHBOURS_H_

// Neighbours knows which processes of others have a GPU open, and which of them
// compute, from what NVML tells again and again.
//
//   Neighbours neighbours(kActivityLag);
//   neighbours.Tell(absl::Now(), pids, nvml.Activity(since));
//   if (neighbours.Disturb(absl::Now())) Wait();
//
// NVML accounts for what processes did once in a period of a sixth of a second
// to a second (nvmlDeviceGetProcessUtilization). So who computes is known up to
// a period late, and a process counts as active until a whole period without
// activity has passed. Not thread-safe.

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/core/neighbours.h"
#include "ops/device/cuda/nvml.h"

namespace optrail::ops::cuda {

// The longest period.
inline constexpr absl::Duration kActivityLag = absl::Seconds(1);

class Neighbours {
 public:
  explicit Neighbours(absl::Duration lag) : lag_(lag) {}

  // `pids` have the GPU open at `now` and take no turns. `activity` is what
  // NVML accounted for since the last time, whoever's it is; absent where it
  // does not tell: then each of `pids` counts as active.
  void Tell(absl::Time now, const std::vector<int>& pids,
            const absl::optional<std::vector<ProcessActivity>>& activity);

  bool empty() const { return known_.empty(); }
  // Whether a sample that ends at `now` must not be believed.
  bool Disturb(absl::Time now) const;
  // The end of the first period, after `since`, in which one of them computed.
  absl::Time FirstActive(absl::Time since) const;
  NeighbourNames Names(absl::Time now) const;

 private:
  struct Neighbour {
    std::string name;
    bool is_open = true;  // it may have ended
    // Ends of the latest periods in which it computed, in order.
    std::vector<absl::Time> active;
  };
  bool IsActive(const Neighbour& neighbour, absl::Time now) const;

  const absl::Duration lag_;
  bool told_ = false;
  bool activity_is_known_ = true;
  std::map<int, Neighbour> known_;  // by their pids
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_NEIGHBOURS_H_
