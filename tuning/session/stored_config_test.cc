#include "tuning/session/stored_config.h"

#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

proto::Trial TrialOf(const std::string& config, proto::Outcome outcome) {
  proto::Trial trial;
  *trial.mutable_config() = *ParseConfig(config);
  trial.set_outcome(outcome);
  return trial;
}

TEST(StoredConfig, IsAskedForOnceAndIsTheFinalistIfItWorks) {
  const StoredConfig source(*ParseConfig("tile=4,unroll=2"));
  EXPECT_TRUE(source.Validate(*ParseConfig("unroll=2,tile=4")).ok());
  EXPECT_FALSE(source.Validate(*ParseConfig("tile=8,unroll=2")).ok());
  const auto proposer = source.Propose(proto::Session(), ProposerOptions());
  ASSERT_TRUE(proposer.ok()) << proposer.status();
  EXPECT_EQ((*proposer)->Ask(4).size(), 1u);
  EXPECT_TRUE((*proposer)->Ask(4).empty());
  EXPECT_TRUE((*proposer)->Finalists(4).empty());
  ASSERT_TRUE((*proposer)->Tell(TrialOf("tile=4,unroll=2", proto::OK)).ok());
  EXPECT_EQ((*proposer)->Finalists(4).size(), 1u);
}

TEST(StoredConfig, KnownTrialsAreNotRepeated) {
  const StoredConfig source(*ParseConfig("tile=4"));
  proto::Session begun;
  *begun.add_trials() = TrialOf("tile=8", proto::OK);
  EXPECT_EQ((*source.Propose(begun, ProposerOptions()))->Ask(1).size(), 1u);
  *begun.add_trials() = TrialOf("tile=4", proto::CRASHED);
  const auto proposer = source.Propose(begun, ProposerOptions());
  ASSERT_TRUE(proposer.ok()) << proposer.status();
  EXPECT_TRUE((*proposer)->Ask(1).empty());
  EXPECT_TRUE((*proposer)->Finalists(1).empty());
}

}  // namespace
}  // namespace optrail::tuning
