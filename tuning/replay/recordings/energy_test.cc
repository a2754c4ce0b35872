// The search for joules in recorded spaces, with few readings.

#include <string>

#include "gmock/gmock.h"
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
      // A config that was metered is chosen.
      if (result->metered_nearly_best) {
        EXPECT_LE(result->loss, kNearlyBest);
      }
      loss += result->loss / kSeeds;
    }
    EXPECT_LE(loss, .02) << limit;
  }
}

// Noise must not make a session meter more.
TEST_P(EnergyTest, NoiseCostsLittle) {
  const auto recording = ReadRecording(
      std::string("tuning/replay/recordings/energy/") + GetParam());
  ASSERT_TRUE(recording.ok()) << recording.status();
  double loss = 0;
  constexpr int kNoisySeeds = 4;
  for (int seed = 1; seed <= kNoisySeeds; ++seed) {
    EnergyReplay run;
    run.seed = seed;
    run.noise = .03;
    const auto result = RunEnergyReplay(*recording, run);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LE(result->metered, 12);
    loss += result->loss / kNoisySeeds;
  }
  EXPECT_LE(loss, .04);
}

TEST(EnergyOptimaTest, TellsWhatAConfigCanSave) {
  const auto recording = ReadRecording(
      "tuning/replay/recordings/energy/softmax_8192x8192_bf16_h200.json.xz");
  ASSERT_TRUE(recording.ok()) << recording.status();
  const auto csv = DescribeEnergyOptima({*recording}, 1.05, OutputFormat::kCsv);
  ASSERT_TRUE(csv.ok()) << csv.status();
  // 0.0501 J of the fastest, 0.0467 J at 1.016 of its time.
  EXPECT_THAT(*csv, testing::HasSubstr("0.0466"));
  EXPECT_THAT(*csv, testing::HasSubstr("geometric mean"));
  EXPECT_FALSE(DescribeEnergyOptima({*recording}, .9, OutputFormat::kCsv).ok());
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
