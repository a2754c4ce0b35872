#include "tuning/proto/stop_reason.h"

#include <set>

#include "gtest/gtest.h"

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

TEST(StopReasonTest, AProofIsASentence) {
  proto::Proof proof;
  proof.set_metric("time");
  proof.set_rounds(44);
  proof.set_gain(.224);
  proof.set_gain_low(.208);
  proof.set_gain_high(.24);
  proof.set_claimed(true);
  proof.set_end(proto::PROOF_TIME_SPENT);
  EXPECT_EQ(ProofText(proof),
            "proven, in 44 rounds of both: +22.4% (+20.8% to +24.0%; time "
            "spent) time over the default");
}

}  // namespace
}  // namespace optrail::tuning
