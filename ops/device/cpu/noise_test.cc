#include "ops/device/cpu/noise.h"

#include <vector>

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

TEST(Noise, ASteadyMachineHasRatiosOfOne) {
  const NoiseReport report = SummarizeNoise(std::vector<double>(100, 50.0));
  EXPECT_EQ(report.samples, 100);
  EXPECT_EQ(report.median_ns, 50);
  EXPECT_EQ(report.p95_over_median, 1);
  EXPECT_EQ(report.max_over_median, 1);
  EXPECT_EQ(report.drift, 1);
}

TEST(Noise, SpikesShowInTheQuantilesAndStepsInTheDrift) {
  std::vector<double> spiky(100, 50.0);
  for (int i = 0; i < 10; ++i) spiky[i * 10] = 100;
  spiky[55] = 500;
  const NoiseReport spikes = SummarizeNoise(spiky);
  EXPECT_EQ(spikes.p95_over_median, 2);
  EXPECT_EQ(spikes.max_over_median, 10);
  EXPECT_EQ(spikes.drift, 1);

  std::vector<double> step(100, 50.0);
  for (int i = 50; i < 100; ++i) step[i] = 60;
  EXPECT_DOUBLE_EQ(SummarizeNoise(step).drift, 1.2);
}

TEST(Noise, TheProbeTakesSamples) {
  const NoiseReport report = ProbeNoise(absl::Milliseconds(5));
  EXPECT_GE(report.samples, 10);
  EXPECT_GT(report.median_ns, 0);
  EXPECT_GE(report.max_over_median, report.p95_over_median);
}

}  // namespace
}  // namespace optrail::ops
