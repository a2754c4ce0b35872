#include "tuning/proto/stop_reason.h"

#include <set>

#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

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

TEST(StopReasonTest, AGainSaysInWhatItIs) {
  proto::Session session;
  proto::Proof& proof = *session.mutable_proof();
  proof.set_metric("t");
  proof.set_rounds(44);
  proof.set_gain(.224);
  proof.set_gain_low(.208);
  proof.set_gain_high(.24);
  EXPECT_EQ(GainText(session, proof, "it"),
            "22.4% better than it in t (20.8% to 24.0%, 44 paired rounds)");
  for (const char* metric : {"t", "m"}) {
    proto::Objective& objective = *session.add_objectives();
    objective.set_metric(metric);
    objective.set_weight(1);
  }
  EXPECT_EQ(GainText(session, proof, "it"),
            "22.4% better than it in the weighted product of t and m (20.8% "
            "to 24.0%, 44 paired rounds)");
}

TEST(StopReasonTest, AStoredConfigThatStaysIsNamed) {
  proto::Session session;
  *session.mutable_incumbent() = *ParseConfig("tile=8");
  *session.mutable_winner() = *ParseConfig("tile=8");
  session.mutable_proof()->set_metric("time");
  EXPECT_TRUE(IncumbentStays(session));
  EXPECT_EQ(IncumbentText(session), "");
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
