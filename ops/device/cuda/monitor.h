#ifndef OPTRAIL_OPS_DEVICE_CUDA_MONITOR_H_
#define OPTRAIL_OPS_DEVICE_CUDA_MONITOR_H_

// Was a sample on the GPU disturbed: by heat or a power brake, or by another
// process that computes there and takes no turns (turns.h). A process that only
// has the GPU open does not disturb (neighbours.h). A kernel that runs into the
// power limit by itself is no disturbance: it is measured as it will run.
//
// Also the energy that the GPU counted, as a meter.

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ops/core/device.h"
#include "ops/device/cuda/neighbours.h"
#include "ops/device/cuda/nvml.h"
#include "ops/device/cuda/turns.h"

namespace optrail::ops::cuda {

// What NVML tells while something is measured, asked by a thread of its own:
// while a process opens a context the driver answers nobody else, for .4 s
// where eight do, and samples need not wait for that.
class GpuWatch {
 public:
  // They must outlive it; without `turns`, nobody takes any. `lag`: for tests.
  GpuWatch(const Nvml& nvml, const Turns* turns,
           absl::Duration lag = kActivityLag);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Between these it asks. Begin() waits for an answer, if the last one is old,
  // as long as one usually takes, and longer for the first one.
  void Begin();
  void End();

  // The state when it was last read. `others`: neighbours compute.
  bool disturbed() const { return others_ || slowed_; }
  bool others() const { return others_; }
  int64_t clock_hz() const { return clock_hz_; }  // 0: unknown

  // Waits until no neighbour computes, for `patience` at most; calls `waits`,
  // once, if it has to.
  void AwaitQuiet(absl::Duration patience, absl::FunctionRef<void()> waits);
  // Waits until what neighbours did from `start` to `end` is accounted for, or
  // one turns out to have computed. Returns since when what was measured cannot
  // be believed; the infinite future where all of it can.
  absl::Time DisturbedSince(absl::Time start, absl::Time end);
  NeighbourNames Names();

 private:
  void Watch();
  void Ask(absl::Time now);
  std::vector<int> Strangers();

  const Nvml& nvml_;
  const Turns* const turns_;
  const absl::Duration lag_;
  std::set<int> siblings_;    // the thread's
  bool has_patience_ = true;  // AwaitQuiet()'s
  std::atomic<bool> others_{false}, slowed_{false};
  std::atomic<int64_t> clock_hz_{0};
  absl::Mutex mutex_;
  absl::Time asked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  Neighbours neighbours_ ABSL_GUARDED_BY(mutex_);
  bool measuring_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

// `watch` must outlive it. nullptr: nothing is known, nothing is disturbed.
std::unique_ptr<Monitor> MakeCudaMonitor(GpuWatch* watch);

// `nvml` and `watch`, which may be null, must outlive it; `device` is the
// hardware id. Unavailable where the GPU tells nothing of its energy.
absl::StatusOr<std::unique_ptr<Meter>> MakeCudaEnergyMeter(
    const Nvml& nvml, const GpuWatch* watch, const std::string& device);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_MONITOR_H_
