#include "suites/graph/step_profile.h"

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "suites/graph/call_timer.h"

namespace optrail::suites {

namespace {

// A batch of one step after the other, captured, by the GPU's own clock.
absl::StatusOr<std::vector<double>> ProfileOnGpu(graph::Runner& runner,
                                                 ops::Device& device) {
  constexpr int kBatches = 5, kCalls = 20;
  std::vector<double> medians;
  for (size_t s = 0; s < runner.steps().size(); ++s) {
    // Steps that the host computes cannot be captured.
    const bool by_host = runner.steps()[s].kernel == "reference";
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::unique_ptr<CallTimer> timer,
        CallTimer::Create(
            [&](const ops::Call&) {
              return runner.RunStep(static_cast<int>(s));
            },
            device, by_host ? proto::STREAM : proto::GRAPH));
    const int calls = by_host ? 1 : kCalls;
    std::vector<double> samples;
    for (int batch = 0; batch < kBatches; ++batch) {
      OPTRAIL_RETURN_IF_ERROR(timer->get().Prepare(calls));
      OPTRAIL_ASSIGN_OR_RETURN(const int64_t ns, timer->get().TimeNs());
      samples.push_back(static_cast<double>(ns) / calls);
    }
    medians.push_back(Median(samples));
  }
  return medians;
}

}  // namespace

absl::StatusOr<std::vector<double>> ProfileSteps(graph::Runner& runner,
                                                 ops::Device& device) {
  if (device.kind() != proto::CPU) return ProfileOnGpu(runner, device);
  constexpr int kLeastCalls = 5, kMostCalls = 101;
  const absl::Duration most = absl::Seconds(5);
  const size_t count = runner.steps().size();
  const Clock& clock = *Clock::Real();
  std::vector<std::vector<double>> samples(count);
  const int64_t start = clock.NowNs();
  int64_t last = start;
  for (int call = 0; call < kMostCalls; ++call) {
    if (call >= kLeastCalls && absl::Nanoseconds(last - start) > most) break;
    last = clock.NowNs();
    for (size_t s = 0; s < count; ++s) {
      OPTRAIL_RETURN_IF_ERROR(runner.RunStep(static_cast<int>(s)));
      const int64_t now = clock.NowNs();
      samples[s].push_back(static_cast<double>(now - last));
      last = now;
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& step : samples) {
    medians.push_back(Median(step));
  }
  return medians;
}

}  // namespace optrail::suites
