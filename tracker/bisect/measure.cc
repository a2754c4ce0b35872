#include "tracker/bisect/measure.h"

#include <cmath>

#include "base/check.h"
#include "base/distributions.h"
#include "base/statistics.h"

namespace optrail::tracker {

double WidenedStandardError(double standard_error, int rounds) {
  OPTRAIL_CHECK(rounds >= 2) << "rounds is " << rounds;
  constexpr double kTail = .975;
  return standard_error * StudentTQuantile(kTail, rounds - 1) /
         NormalQuantile(kTail);
}

BisectMeasurement Summarise(absl::Span<const double> log_ratios) {
  const int rounds = static_cast<int>(log_ratios.size());
  BisectMeasurement measurement;
  measurement.log_ratio = Mean(log_ratios);
  measurement.standard_error = WidenedStandardError(
      StandardDeviation(log_ratios) / std::sqrt(rounds), rounds);
  return measurement;
}

}  // namespace optrail::tracker
