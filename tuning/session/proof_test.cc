#include "tuning/session/proof.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

// Rounds of a candidate that costs `1 - gain` of the default, with normal noise
// of `spread` in a ratio, each of a second.
proto::Proof Prove(const ProofOptions& options, double gain, double spread,
                   const proto::Objective& objective = TimeObjective()) {
  Rng rng(1);
  PairedProof proof(options, {objective});
  while (proof.Open(absl::Seconds(proof.rounds()))) {
    proof.Add((1 - gain) * std::exp(spread * rng.Gaussian()), 1);
  }
  proto::Proof stored;
  proof.Fill(&stored);
  return stored;
}

double HalfWidth(const proto::Proof& proof) {
  return (proof.gain_high() - proof.gain_low()) / 2;
}

TEST(PairedProof, GoesOnUntilItsIntervalIsNarrow) {
  ProofOptions options;
  options.max_time = absl::InfiniteDuration();
  for (const double spread : {.003, .03, .08}) {
    const proto::Proof proof = Prove(options, .05, spread);
    EXPECT_EQ(proof.end(), proto::PROOF_PRECISE) << spread;
    EXPECT_LE(HalfWidth(proof), .01) << spread;
    EXPECT_TRUE(proof.claimed()) << spread;
    EXPECT_LE(proof.gain_low(), .05) << spread;
    EXPECT_GE(proof.gain_high(), .05) << spread;
  }
}

TEST(PairedProof, TakesALargeGainAsExactly) {
  ProofOptions options;
  options.max_time = absl::InfiniteDuration();
  for (const double gain : {.3, .67, .95}) {
    const proto::Proof proof = Prove(options, gain, .05);
    EXPECT_EQ(proof.end(), proto::PROOF_PRECISE) << gain;
    EXPECT_LE(HalfWidth(proof), .01) << gain;
    EXPECT_TRUE(proof.claimed()) << gain;
    EXPECT_LE(proof.gain_low(), gain);
    EXPECT_GE(proof.gain_high(), gain);
  }
}

// Half the cost is twice the throughput: +100%, and that is what is told.
TEST(PairedProof, IsAsExactWhereMoreIsBetter) {
  ProofOptions options;
  options.max_time = absl::InfiniteDuration();
  proto::Objective throughput;
  throughput.set_metric("throughput");
  throughput.set_direction(proto::HIGHER_IS_BETTER);
  for (const double gain : {.05, .5, .97}) {
    const proto::Proof proof = Prove(options, gain, .05, throughput);
    const double told = 1 / (1 - gain) - 1;
    EXPECT_EQ(proof.end(), proto::PROOF_PRECISE) << gain;
    EXPECT_LE(HalfWidth(proof), .01 * std::max(1., proof.gain())) << gain;
    EXPECT_LE(proof.gain_low(), told);
    EXPECT_GE(proof.gain_high(), told);
  }
}

TEST(PairedProof, SaysWhyItsIntervalIsWide) {
  ProofOptions options;
  options.max_time = absl::Seconds(20);
  proto::Proof proof = Prove(options, .05, .08);
  EXPECT_EQ(proof.end(), proto::PROOF_TIME_SPENT);
  EXPECT_EQ(proof.rounds(), 20);
  EXPECT_GT(HalfWidth(proof), .01);

  options.max_time = absl::InfiniteDuration();
  options.max_rounds = 10;
  proof = Prove(options, .05, .08);
  EXPECT_EQ(proof.end(), proto::PROOF_ROUNDS_SPENT);
  EXPECT_EQ(proof.rounds(), 10);

  // Rounds in which nothing could be read are not added.
  PairedProof disturbed(options, {TimeObjective()});
  EXPECT_TRUE(disturbed.Open(absl::Hours(1)));
  disturbed.Fill(&proof);
  EXPECT_EQ(proof.end(), proto::PROOF_DISTURBED);
}

}  // namespace
}  // namespace optrail::tuning
