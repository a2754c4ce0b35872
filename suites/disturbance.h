#ifndef OPTRAIL_SUITES_DISTURBANCE_H_
#define OPTRAIL_SUITES_DISTURBANCE_H_

// Finds out whether somebody else had the core while a sample was taken, from
// three witnesses, each of which sees what the others miss:
//
//  - run delay: the time that this process's threads were runnable but kept
//    waiting (/proc/self/task/*/schedstat, second field);
//  - steal: the time that the hypervisor ran somebody else on the cores that
//    this process may use (/proc/stat, eighth field, in ticks of 10 ms);
//  - a small calibration loop right after the sample: slow when the clock rate
//    or a neighbour on the same core's other hardware thread changed.
//
// Where the kernel offers a witness, it is used; Describe() says which.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "suites/stopwatch.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

class ProcDisturbanceMonitor : public DisturbanceMonitor {
 public:
  // A sample is disturbed if run delay exceeds this fraction of its time ...
  static constexpr double kMaxRunDelayFraction = 0.02;
  // ... and this much: a wake-up alone costs some microseconds.
  static constexpr int64_t kMaxRunDelayNs = 5'000;
  // ... or if the calibration loop took this multiple of its usual time.
  static constexpr double kMaxCalibrationRatio = 1.3;

  // Looks at the threads that exist now: construct it after the thread pool.
  // `proc` is "/proc" except in tests.
  explicit ProcDisturbanceMonitor(std::string proc = "/proc");
  ~ProcDisturbanceMonitor() override;
  ProcDisturbanceMonitor(const ProcDisturbanceMonitor&) = delete;
  ProcDisturbanceMonitor& operator=(const ProcDisturbanceMonitor&) = delete;

  void BeginSample() override;
  bool EndSample(int64_t elapsed_ns) override;

  // Adds what was seen since construction: run delay, steal, calibration, load,
  // affinity, governor.
  void FillConditions(proto::Conditions* conditions) const;

  std::string Describe() const;

 private:
  int64_t ReadRunDelayNs() const;
  int64_t ReadStealTicks() const;

  std::string proc_;
  std::set<int> cpus_;  // that this process may use
  std::vector<int> schedstat_fds_;
  int stat_fd_ = -1;

  int64_t run_delay_before_ns_ = 0;
  int64_t steal_before_ticks_ = 0;
  // The calibration loop's usual time: the fastest seen.
  int64_t calibration_best_ns_ = 0;
  int64_t calibration_worst_ns_ = 0;

  int64_t total_elapsed_ns_ = 0;
  int64_t total_run_delay_ns_ = 0;
  int64_t total_steal_ticks_ = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_DISTURBANCE_H_
