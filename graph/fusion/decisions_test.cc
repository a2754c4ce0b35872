#include "graph/fusion/decisions.h"

#include <gtest/gtest.h>

#include "base/file/file.h"

namespace optrail::graph {
namespace {

proto::FusionDecision Decision(const char* rule, const char* site, int threads,
                               bool fused) {
  proto::FusionDecision decision;
  decision.set_rule(rule);
  decision.set_site(site);
  decision.set_threads(threads);
  decision.set_fused(fused);
  decision.mutable_proof()->set_gain(-0.25);
  return decision;
}

TEST(FusionDecisionsTest, AreFoundAgainAfterTheyWereSaved) {
  const std::string folder = JoinPath(testing::TempDir(), "made/fusion");
  auto decisions = FusionDecisions::Load(folder, "some-cpu");
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  EXPECT_EQ(decisions->Find("attention", "softmax(f32[3])", 1), nullptr);
  decisions->Add(Decision("attention", "softmax(f32[3])", 1, true));
  decisions->Add(Decision("attention", "softmax(f32[3])", 2, true));
  decisions->Add(Decision("attention", "softmax(f32[3])", 1, false));
  ASSERT_TRUE(decisions->Save().ok());
  const auto again = FusionDecisions::Load(folder, "some-cpu");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->all().decisions_size(), 2);
  EXPECT_FALSE(FileExists(again->path() + ".lock")) << "it is hidden";
  const auto* found = again->Find("attention", "softmax(f32[3])", 1);
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->fused());
  EXPECT_EQ(found->proof().gain(), -0.25);
  EXPECT_EQ(again->Find("attention", "softmax(f32[4])", 1), nullptr);
  EXPECT_EQ(again->Find("attention", "softmax(f32[3])", 4), nullptr);
}

TEST(FusionDecisionsTest, TwoWritersKeepEachOthersDecisions) {
  const std::string folder = JoinPath(testing::TempDir(), "two_writers");
  auto first = FusionDecisions::Load(folder, "some-cpu");
  auto second = FusionDecisions::Load(folder, "some-cpu");
  ASSERT_TRUE(first.ok() && second.ok());
  first->Add(Decision("attention", "a", 1, true));
  second->Add(Decision("attention", "b", 1, true));
  second->Add(Decision("attention", "a", 1, false));
  ASSERT_TRUE(first->Save().ok());
  first->Add(Decision("attention", "c", 1, true));
  ASSERT_TRUE(second->Save().ok());
  ASSERT_TRUE(first->Save().ok());
  const auto again = FusionDecisions::Load(folder, "some-cpu");
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->all().decisions_size(), 3);
  // The last that was saved of it.
  EXPECT_FALSE(again->Find("attention", "a", 1)->fused());
}

TEST(FusionDecisionsTest, AreKnownStillAfterTheFileBecameUnreadable) {
  const std::string folder = JoinPath(testing::TempDir(), "broken_later");
  auto decisions = FusionDecisions::Load(folder, "some-cpu");
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  decisions->Add(Decision("attention", "a", 1, true));
  ASSERT_TRUE(decisions->Save().ok());
  ASSERT_TRUE(WriteFileAtomically(decisions->path(), "no message").ok());
  EXPECT_FALSE(decisions->Save().ok());
  EXPECT_NE(decisions->Find("attention", "a", 1), nullptr);
  EXPECT_EQ(decisions->all().hardware_id(), "some-cpu");
}

TEST(FusionDecisionsTest, AFileThatCannotBeReadIsNamedWithItsLine) {
  const std::string folder = testing::TempDir();
  const std::string path = JoinPath(folder, "broken.textproto");
  ASSERT_TRUE(WriteFileAtomically(path, "decisions {\n  fusd: true\n}\n").ok());
  const auto decisions = FusionDecisions::Load(folder, "broken");
  ASSERT_FALSE(decisions.ok());
  EXPECT_NE(decisions.status().message().find("broken.textproto:2"),
            std::string::npos)
      << decisions.status();
}

}  // namespace
}  // namespace optrail::graph
