#ifndef OPTRAIL_TUNING_REPLAY_RECORDINGS_CONFIG_TIMER_H_
#define OPTRAIL_TUNING_REPLAY_RECORDINGS_CONFIG_TIMER_H_

// Checks and times compiled configs on the GPU. For each size: the result of a
// first run is compared with that of a plain kernel; a second run is timed; and
// unless that took over ten times as long as the best so far, seven samples of
// at least 0.1 ms follow, of back-to-back runs on the same buffers (caches are
// as the run before left them) between events, all enqueued behind a spinning
// kernel so that the GPU never waits for the host.

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "tuning/replay/recordings/problems.h"
#include "tuning/replay/recordings/spaces.h"

namespace optrail::tuning::recordings {

inline constexpr int kRepeats = 7;

// Log lines of a config that failed at all sizes.
std::string FailureLines(const Space& space, const Config& config,
                         const char* outcome, double compile_ms);

// Ends the process with exit code 3 on an error that leaves it without a GPU
// (an illegal address, say).
class ConfigTimer {
 public:
  ConfigTimer();
  ConfigTimer(const ConfigTimer&) = delete;
  ConfigTimer& operator=(const ConfigTimer&) = delete;

  // Log lines of all sizes. `space` must outlive the timer; changing it makes
  // new problems, so time the configs of a space together.
  std::string Time(const Space& space, const Config& config, double compile_ms,
                   const std::string& cubin);

 private:
  void SetSpace(const Space& space);
  // No times if the config can't be launched or its result is wrong.
  std::vector<double> TimeSize(const Config& config, CUfunction kernel,
                               size_t size_index);
  std::vector<double> Samples(CUfunction kernel, const Launch& launch,
                              const Size& size, const Problem& problem,
                              int samples, int runs);

  const Space* space_ = nullptr;
  std::vector<Problem> problems_;  // one per size, as best_ms_
  std::vector<double> best_ms_;
  cudaEvent_t start_;
  cudaEvent_t events_[kRepeats];
};

}  // namespace optrail::tuning::recordings

#endif  // OPTRAIL_TUNING_REPLAY_RECORDINGS_CONFIG_TIMER_H_
