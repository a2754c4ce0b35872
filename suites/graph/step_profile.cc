#include "suites/graph/step_profile.h"

#include <cstdint>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "base/status_macros.h"

namespace optrail::suites {

absl::StatusOr<std::vector<double>> ProfileSteps(graph::Runner& runner) {
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
