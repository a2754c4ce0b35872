#ifndef OPTRAIL_OPS_DEVICE_CPU_MONITOR_H_
#define OPTRAIL_OPS_DEVICE_CPU_MONITOR_H_

// Tells whether somebody else had the cores while a sample was taken, by three
// interference monitors, each of which sees what the others miss:
//
//  - run delay: the time that this process's threads were runnable but kept
//    waiting (/proc/self/task/*/schedstat);
//  - steal: the time that the hypervisor ran somebody else (/proc/stat, in
//  ticks
//    of 10 ms) on the cores that this process's threads ran on, known from
//    before and after the sample; what happens on other cores spoils nothing;
//  - a small calibration loop right after the sample: slow when the clock rate
//    fell or a neighbour on the core's other hardware thread turned up.
//
// The usual time of that loop is learned from the samples themselves, warm-up
// included, under the very load that is measured: with all cores at work, or
// after wide vectors, many processors run at a lower clock all the time, which
// disturbs nobody. It is the lowest median of nine neighbouring readings, so
// that no lucky reading sets it and no lasting disturbance raises it; a monitor
// lives for one sampling, and the next one learns anew. A machine that was slow
// from the first sample to the last cannot be told from one that is always so:
// for that, the absolute times of calibration loops (calibration.h) go on
// record.
//
// Where the kernel lacks one of them, the others do without it.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ops/core/device.h"
#include "ops/device/cpu/calibration.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::ops {

class CpuMonitor : public Monitor {
 public:
  // A sample is disturbed if run delay or steal exceeds this fraction of its
  // time ...
  static constexpr double kMaxRunDelayFraction = 0.02;
  // ... and this much: a wake-up alone costs some microseconds.
  static constexpr int64_t kMaxRunDelayNs = 5'000;
  // ... or if the calibration loop took this multiple of its usual time.
  static constexpr double kMaxCalibrationRatio = 1.3;

  struct Options {
    std::string proc = "/proc";
    // Times one calibration loop.
    std::function<int64_t()> time_loop_ns = TimeArithmeticLoopNs;
    // Its readings are added to the conditions and forgotten; may be null.
    Calibration* calibration = nullptr;
    // How often it is run before and after the sampling.
    int calibration_turns = 0;
  };

  // Watches the threads that exist now: construct it when all of them do.
  CpuMonitor() : CpuMonitor(Options()) {}
  explicit CpuMonitor(Options options);
  ~CpuMonitor() override;
  CpuMonitor(const CpuMonitor&) = delete;
  CpuMonitor& operator=(const CpuMonitor&) = delete;

  // Loops take about a millisecond: they run again when samples took that
  // long, and several samples were taken.
  static constexpr int64_t kCalibrationGapNs = 3'000'000;
  static constexpr int kCalibrationGapSamples = 5;

  void Begin() override;
  bool End(int64_t elapsed_ns) override;
  int64_t WaitedNs() const override { return waited_ns_; }
  bool Calibrate() override;

  // Run delay, steal, calibration, load, affinity, governor.
  void Fill(proto::Conditions* conditions) override;

 private:
  struct Thread {
    int schedstat_fd = -1;
    int stat_fd = -1;
    int64_t run_time_before_ns = 0;
    int processor_before = -1;
  };

  // Of all threads; with `remember`, also what Begin() is to know of each.
  int64_t ReadRunDelayNs(bool remember);
  std::string ReadStat() const;
  // Counts the cores that the threads ran on since Begin().
  int64_t StealTicksSinceBegin();
  void Learn(int64_t loop_ns);

  const Options options_;
  std::set<int> cpus_;  // that this process may use
  std::vector<Thread> threads_;
  int stat_fd_ = -1;

  int64_t run_delay_before_ns_ = 0;
  int64_t waited_ns_ = 0;
  std::string stat_before_;

  std::vector<double> loops_ns_;
  double usual_loop_ns_ = 0;  // 0: not known yet

  // Since the calibration loops ran last.
  int64_t uncalibrated_ns_ = 0;
  int uncalibrated_samples_ = 0;

  int64_t total_elapsed_ns_ = 0;
  int64_t total_run_delay_ns_ = 0;
  int64_t total_steal_ticks_ = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_MONITOR_H_
