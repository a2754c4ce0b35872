#include "tracker/series/samples.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

namespace optrail::tracker {
namespace {

// Fewer clean samples have no median: suites/stopwatch has the same rule.
constexpr size_t kFewestCleanSamples = 3;

// Clean samples per call, in order.
std::vector<double> CleanSamplesNs(const proto::Measurement& measurement) {
  const double calls =
      static_cast<double>(std::max<int64_t>(1, measurement.calls_per_sample()));
  const std::set<int> contended(measurement.contended_samples().begin(),
                                measurement.contended_samples().end());
  std::vector<double> samples;
  samples.reserve(measurement.sample_ns_size());
  for (int i = 0; i < measurement.sample_ns_size(); ++i) {
    if (contended.empty() || contended.count(i) == 0) {
      samples.push_back(static_cast<double>(measurement.sample_ns(i)) / calls);
    }
  }
  return samples;
}

// Returns the times of samples that only waited for a core, without the wait.
std::vector<double> UnwaitedSamplesNs(const proto::Measurement& measurement) {
  const double calls =
      static_cast<double>(std::max<int64_t>(1, measurement.calls_per_sample()));
  std::vector<double> samples;
  for (const int64_t ns : measurement.unwaited_ns()) {
    if (ns > 0) samples.push_back(static_cast<double>(ns) / calls);
  }
  return samples;
}

}  // namespace

std::vector<double> UsableSamplesNs(const proto::Measurement& measurement) {
  std::vector<double> samples = CleanSamplesNs(measurement);
  if (samples.size() < kFewestCleanSamples) {
    const std::vector<double> unwaited = UnwaitedSamplesNs(measurement);
    samples.insert(samples.end(), unwaited.begin(), unwaited.end());
  }
  return samples;
}

double FastestSampleNs(const proto::Measurement& measurement) {
  std::vector<double> samples = UnwaitedSamplesNs(measurement);
  const auto& all = measurement.sample_ns();
  samples.push_back(
      static_cast<double>(*std::min_element(all.begin(), all.end())) /
      static_cast<double>(
          std::max<int64_t>(1, measurement.calls_per_sample())));
  return *std::min_element(samples.begin(), samples.end());
}

}  // namespace optrail::tracker
