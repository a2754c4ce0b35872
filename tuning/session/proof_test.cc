#include "tuning/session/proof.h"

#include <cmath>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

// Rounds of a candidate that gains `gain`, with normal noise of `spread` in a
// ratio, each of a second.
proto::Proof Prove(const ProofOptions& options, double gain, double spread) {
  Rng rng(1);
  PairedProof proof(options);
  while (proof.Open(absl::Seconds(proof.rounds()))) {
    proof.Add((1 - gain) * std::exp(spread * rng.Gaussian()), 1);
  }
  proto::Proof stored;
  proof.Fill({TimeObjective()}, &stored);
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

TEST(PairedProof, TakesALargeGainLessExactly) {
  ProofOptions options;
  options.max_time = absl::InfiniteDuration();
  const proto::Proof proof = Prove(options, .6, .03);
  EXPECT_EQ(proof.end(), proto::PROOF_PRECISE);
  EXPECT_LE(HalfWidth(proof), .03);
  EXPECT_TRUE(proof.claimed());
  options.part_of_gain = 0;
  EXPECT_GT(Prove(options, .6, .03).rounds(), proof.rounds());
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
  PairedProof disturbed(options);
  EXPECT_TRUE(disturbed.Open(absl::Hours(1)));
  disturbed.Fill({TimeObjective()}, &proof);
  EXPECT_EQ(proof.end(), proto::PROOF_DISTURBED);
}

}  // namespace
}  // namespace optrail::tuning
