// The search for joules in recorded spaces, with few readings.

#include <string>

#include "gtest/gtest.h"
#include "tuning/replay/energy_replay.h"
#include "tuning/replay/recording.h"

namespace optrail::tuning {
namespace {

constexpr int kSeeds = 10;

class EnergyTest : public testing::TestWithParam<const char*> {};

TEST_P(EnergyTest, FewReadingsComeNearTheLeastJoules) {
  const auto recording = ReadRecording(
      std::string("tuning/replay/recordings/energy/") + GetParam());
  ASSERT_TRUE(recording.ok()) << recording.status();
  for (const double limit : {0., 1.05}) {
    double loss = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      EnergyReplay run;
      run.seed = seed;
      run.time_limit = limit;
      const auto result = RunEnergyReplay(*recording, run);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->trials, 40);
      EXPECT_LE(result->metered, 12);
      if (limit > 0) {
        EXPECT_LE(result->time_over_best, limit);
      }
      loss += result->loss / kSeeds;
    }
    EXPECT_LE(loss, .02) << limit;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Spaces, EnergyTest,
    testing::Values("layer_norm_8192x8192_bf16_h200.json.xz",
                    "matmul_2048x2048x2048_bf16_h200.json.xz",
                    "matmul_4096x4096x4096_bf16_h100.json.xz",
                    "softmax_8192x8192_bf16_h100.json.xz",
                    "softmax_8192x8192_bf16_h200.json.xz",
                    "transpose_8192x8192_bf16_h200.json.xz"));

}  // namespace
}  // namespace optrail::tuning
