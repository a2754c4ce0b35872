#include "tuning/proto/stop_reason.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

TEST(StopReasonTest, EachReasonHasANameOfItsOwn) {
  EXPECT_EQ(StopReasonName(proto::TIME_SPENT), "time_spent");
  EXPECT_EQ(StopReasonName(proto::STOP_REASON_UNSPECIFIED), "");
  std::set<std::string> names;
  for (int i = proto::StopReason_MIN; i <= proto::StopReason_MAX; ++i) {
    EXPECT_TRUE(
        names.insert(StopReasonName(static_cast<proto::StopReason>(i))).second)
        << i;
  }
}

TEST(StopReasonTest, AReasonOfANewerWriterIsPrintedByNumber) {
  EXPECT_EQ(StopReasonName(static_cast<proto::StopReason>(77)),
            "stop_reason_77");
}

TEST(StopReasonTest, AProofThatIsAsPreciseAsAskedNeedsNoNote) {
  proto::Proof proof;
  EXPECT_EQ(ProofEndNote(proof), "");
  proof.set_end(proto::PROOF_PRECISE);
  EXPECT_EQ(ProofEndNote(proof), "");
  proof.set_end(proto::PROOF_TIME_SPENT);
  EXPECT_EQ(ProofEndNote(proof), "time spent");
  proof.set_end(proto::PROOF_ROUNDS_SPENT);
  EXPECT_EQ(ProofEndNote(proof), "rounds spent");
  proof.set_end(proto::PROOF_DISTURBED);
  EXPECT_EQ(ProofEndNote(proof), "disturbed");
}

TEST(StopReasonTest, AProofIsASentence) {
  proto::Session session;
  proto::Proof& proof = *session.mutable_proof();
  proof.set_metric("time");
  proof.set_rounds(44);
  proof.set_gain(.224);
  proof.set_gain_low(.208);
  proof.set_gain_high(.24);
  proof.set_claimed(true);
  proof.set_end(proto::PROOF_TIME_SPENT);
  EXPECT_EQ(ProofText(session),
            "proven: 22.4% better than the default in time (20.8% to 24.0%, "
            "44 paired rounds; time spent)");
  proof.set_claimed(false);
  proof.clear_end();
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: 22.4% better than the "
            "default in time (20.8% to 24.0%, 44 paired rounds)");
  proof.set_gain(-.072);
  proof.set_gain_low(-.1);
  proof.set_gain_high(-.044);
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: 7.2% worse than the "
            "default in time (4.4% to 10.0%, 44 paired rounds)");
}

TEST(StopReasonTest, AProofWithoutRoundsHasNoGain) {
  proto::Session session;
  proto::Proof& proof = *session.mutable_proof();
  proof.set_metric("time");
  proof.set_end(proto::PROOF_DISTURBED);
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: not one paired round could "
            "be measured (disturbed)");
  proof.set_rounds(1);
  proof.set_gain(.03);
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: 3.0% better than the "
            "default in time (too few rounds for an interval, 1 paired round; "
            "disturbed)");
}

TEST(StopReasonTest, AStoredConfigThatStaysIsNamed) {
  proto::Session session;
  *session.mutable_incumbent() = *ParseConfig("tile=8");
  *session.mutable_winner() = *ParseConfig("tile=8");
  session.mutable_proof()->set_metric("time");
  EXPECT_TRUE(IncumbentStays(session));
  EXPECT_EQ(IncumbentText(session), "");
  EXPECT_THAT(ProofText(session), HasSubstr("the stored config stays: "));
  proto::Proof& proof = *session.mutable_incumbent_proof();
  proof.set_rounds(40);
  proof.set_gain(.003);
  proof.set_gain_low(-.005);
  proof.set_gain_high(.011);
  EXPECT_EQ(
      IncumbentText(session),
      "the stored config stays: the best other one is 0.3% better than it "
      "(-0.5% to 1.1%, 40 paired rounds)");
  *session.mutable_winner() = *ParseConfig("tile=4");
  EXPECT_FALSE(IncumbentStays(session));
  EXPECT_EQ(IncumbentText(session),
            "the stored config is replaced: it could not be measured");
}

TEST(StopReasonTest, WhatReplacesAStoredConfigIsProven) {
  proto::Session session;
  *session.mutable_incumbent() = *ParseConfig("tile=8");
  *session.mutable_winner() = *ParseConfig("tile=4");
  proto::Proof proof;
  *proof.mutable_candidate() = *ParseConfig("tile=4");
  proof.set_rounds(40);
  proof.set_gain(.03);
  proof.set_gain_low(.02);
  proof.set_gain_high(.04);
  proof.set_claimed(true);
  *session.mutable_incumbent_proof() = proof;
  const char* const kBetter =
      "the stored config is replaced: the new one is 3.0% better than it "
      "(2.0% to 4.0%, 40 paired rounds)";
  EXPECT_EQ(IncumbentText(session), kBetter);
  // The default was stored.
  session.clear_incumbent_proof();
  *session.mutable_proof() = proof;
  proto::Finalist& fallback = *session.add_finalists();
  fallback.set_is_default(true);
  *fallback.mutable_config() = *ParseConfig("tile=8");
  EXPECT_EQ(IncumbentText(session), kBetter);
  // The default won.
  *fallback.mutable_config() = *ParseConfig("tile=4");
  *session.mutable_proof()->mutable_candidate() = *ParseConfig("tile=8");
  session.mutable_proof()->set_claimed(false);
  session.mutable_proof()->set_gain(-.03);
  session.mutable_proof()->set_gain_low(-.04);
  session.mutable_proof()->set_gain_high(-.02);
  EXPECT_EQ(IncumbentText(session), kBetter);
}

}  // namespace
}  // namespace optrail::tuning
