#include "suites/evaluation/line_peer.h"

#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

TEST(LinePeer, AnswersAreNumbersAndOtherLinesAreNone) {
  const auto peer =
      LinePeer::Start("sh -c 'while read a b; do echo asked $a; echo $b; done'",
                      absl::Seconds(60));
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(*(*peer)->Ask("x 1.5"), 1.5);
  EXPECT_EQ(*(*peer)->Ask("y 2"), 2);
}

TEST(LinePeer, AnErrorIsOneAnswer) {
  const auto peer = LinePeer::Start(
      "sh -c \"read a; echo 'error: no such side'; read a; echo 7\"",
      absl::Seconds(60));
  ASSERT_TRUE(peer.ok()) << peer.status();
  const absl::Status error = (*peer)->Ask("x").status();
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(error.message(), "no such side");
  EXPECT_EQ(*(*peer)->Ask("x"), 7);
  EXPECT_EQ((*peer)->Ask("x").status().code(), absl::StatusCode::kUnavailable);
}

TEST(LinePeer, OneThatIsSilentIsGivenUp) {
  const auto peer = LinePeer::Start("sleep 1000", absl::Milliseconds(50));
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ((*peer)->Ask("x").status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace optrail::suites
