#include "tuning/session/evaluation/simulated_sessions.h"

#include "gtest/gtest.h"
#include "tuning/session/evaluation/recorded_noise.h"

namespace optrail::tuning {
namespace {

// A small share of what proof_evaluation prints, on the half of the recorded
// noise on which nothing was fitted.
class SimulatedSessionsTest : public ::testing::Test {
 protected:
  SimulatedSessionsTest() {
    auto noise = RecordedNoise::FromProcesses(
        "base/stats/testdata/processes_xeon_2c.tsv", Half::kJudge);
    EXPECT_TRUE(noise.ok()) << noise.status();
    noise_ = *std::move(noise);
    options_.sessions = 200;
    options_.seed = 20261121;
  }

  RecordedNoise noise_;
  SimulationOptions options_;
};

TEST_F(SimulatedSessionsTest, AGainThatIsNoneIsHardlyEverClaimed) {
  const SimulationResult result = Simulate(noise_, options_);
  // 2% would exceed 10 of 200 with a probability below 0.003.
  EXPECT_LE(result.claimed, 10);
  // The rule before the proof, with the same noise.
  EXPECT_GE(result.old_rule, 80);
  EXPECT_GE(result.covering, 184);
}

TEST_F(SimulatedSessionsTest, AGainThatIsThereIsClaimed) {
  options_.all_gain = true;
  options_.gain = .02;
  SimulationResult result = Simulate(noise_, options_);
  EXPECT_GE(result.claimed, 172);
  EXPECT_EQ(result.right, result.claimed);
  EXPECT_GE(result.covering, 184);
  options_.gain = .05;
  result = Simulate(noise_, options_);
  EXPECT_GE(result.claimed, 194);
  EXPECT_GE(result.covering, 184);
}

// With four finalists and eight readings each it was a third of them.
TEST_F(SimulatedSessionsTest, OneInFifteenIsFoundBesideNoise) {
  options_.gain = .02;
  const SimulationResult result = Simulate(noise_, options_);
  EXPECT_GE(result.claimed, 130);
  EXPECT_EQ(result.right, result.claimed);
}

}  // namespace
}  // namespace optrail::tuning
