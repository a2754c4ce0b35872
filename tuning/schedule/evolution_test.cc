#include "tuning/schedule/evolution.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/features.h"
#include "tuning/schedule/trace_source.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

Algorithm Matmul() {
  return *ParseAlgorithm(
      "input a 4 512 384\ninput b 4 256 512\nstage c 4 256 384\ndef 0 0\n"
      "def 1 2 512\nread input 0 0,0,1 0,1,0\nread input 1 1,0,0 0,0,1\n");
}

// A machine that is simple enough to be known, where many decisions have to be
// right at once: long vectors, straight code for some twenty of them, a copy of
// b, blocks that fit.
double CostOf(const Candidate& candidate) {
  const auto value = [&](const std::string& name, int64_t otherwise) {
    const auto found = candidate.trace.find(name);
    return static_cast<double>(found == candidate.trace.end() ? otherwise
                                                              : found->second);
  };
  const auto off = [](double has, double wants) {
    return 1 + std::abs(std::log2((has + 1) / (wants + 1)));
  };
  double cost = off(value("s0_lanes", 0), 16);
  cost *= off(value("s0_tile0", 1) * value("s0_tile1", 1) / 16, 20);
  cost *= off(value("s0_tile0", 1), 48);
  cost *= off(value("s0_rtile0", 1), 4);
  cost *= off(value("s0_rblock0", 0), 128);
  cost *= off(value("s1_block0", 0), 4);
  cost *= off(value("s1_block1", 0), 8);
  cost *= value("s0_unroll", 0) == 1 ? 1 : 2;
  cost *= value("s0_pack1", 0) == 1 ? 1 : 1.5;
  cost *= value("s0_rfactor", 0) == 0 ? 1 : 3;
  return cost;
}

double BestAfter(const std::string& model, uint64_t seed, int trials) {
  EvolutionOptions options;
  options.seed = seed;
  options.model = model;
  Evolution evolution(Matmul(), Machine(), options);
  double best = 1e9;
  for (int i = 0; i < trials; ++i) {
    const auto next = evolution.Next();
    if (!next.has_value()) break;
    const double cost = CostOf(*next);
    best = std::min(best, cost);
    evolution.Tell(next->trace, cost);
  }
  return best;
}

TEST(EvolutionTest, FindsBetterProgramsThanDrawing) {
  constexpr int kSeeds = 20;
  double evolved = 0, drawn = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    evolved += std::log(BestAfter("trees", seed, 80)) / kSeeds;
    drawn += std::log(BestAfter("", seed, 80)) / kSeeds;
  }
  EXPECT_LT(evolved, drawn - 0.1);
}

TEST(EvolutionTest, IsDeterministicAndNeverRepeats) {
  EvolutionOptions options;
  Evolution a(Matmul(), Machine(), options), b(Matmul(), Machine(), options);
  std::set<std::string> seen;
  for (int i = 0; i < 40; ++i) {
    const auto from_a = a.Next(), from_b = b.Next();
    ASSERT_TRUE(from_a.has_value() && from_b.has_value());
    EXPECT_EQ(from_a->trace, from_b->trace);
    EXPECT_TRUE(seen.insert(from_a->steps).second);
    // Every third fails.
    const absl::optional<double> cost =
        i % 3 == 0 ? absl::nullopt : absl::make_optional(CostOf(*from_a));
    a.Tell(from_a->trace, cost);
    b.Tell(from_b->trace, cost);
  }
}

TEST(EvolutionTest, TriesTheRulesOwnAndThenTheSeedsFirst) {
  Decisions usual = Decisions::Default();
  ASSERT_TRUE(Derive(Matmul(), Machine(), usual).ok());
  EvolutionOptions options;
  // A trace of another shape: decisions that do not fit here are made as usual.
  options.seeds = {{{"s0_unroll", 0}, {"s0_tile1", 123}, {"other", 1}}};
  Evolution evolution(Matmul(), Machine(), options);
  EXPECT_EQ(evolution.Next()->trace, usual.trace());
  Trace seed = usual.trace();
  seed["s0_unroll"] = 0;
  EXPECT_EQ(evolution.Next()->trace, seed);
}

TEST(EvolutionTest, ForgetsTracesOfAnotherAlgorithm) {
  Evolution evolution(Matmul(), Machine(), EvolutionOptions());
  evolution.Tell({{"s0_nothing", 1}}, 5.0);
  EXPECT_TRUE(evolution.Next().has_value());
}

TEST(EvolutionTest, AnyRegisteredModelIsFoundByName) {
  class Backwards : public CostModel {
    void Train(const std::vector<std::vector<float>>&,
               const std::vector<float>&) override {}
    std::vector<float> Predict(
        const std::vector<std::vector<float>>& rows) const override {
      return std::vector<float>(rows.size(), 1.0f);
    }
  };
  EXPECT_TRUE(RegisterCostModel("backwards",
                                [] { return std::make_unique<Backwards>(); }));
  EXPECT_THAT(CostModelNames(), testing::Contains("backwards"));
  const TraceSource source(Matmul(), Machine());
  proto::Session begun;
  begun.set_strategy("evolution:backwards");
  EXPECT_TRUE(source.Propose(begun, ProposerOptions()).ok());
}

TEST(FeaturesTest, AreEquallyManyForEveryProgram) {
  Rng rng(5);
  std::set<size_t> sizes;
  for (int i = 0; i < 200; ++i) {
    Decisions drawn = Decisions::Draw(rng);
    const auto program = Derive(Matmul(), Machine(), drawn);
    if (!program.ok()) continue;
    const std::vector<float> features = FeaturesOf(*program);
    sizes.insert(features.size());
    for (const float feature : features) EXPECT_TRUE(std::isfinite(feature));
  }
  EXPECT_EQ(sizes.size(), 1);
}

TEST(TraceSourceTest, ValidatesReplaysAndRefusesOthers) {
  const TraceSource source(Matmul(), Machine());
  Decisions usual = Decisions::Default();
  ASSERT_TRUE(Derive(Matmul(), Machine(), usual).ok());
  proto::Config config = ConfigOf(usual.trace());
  EXPECT_TRUE(source.Validate(config).ok());
  EXPECT_EQ(CanonicalText(config), TraceText(usual.trace()));
  config.mutable_set(0)->set_int_(12345);
  EXPECT_THAT(std::string(source.Validate(config).message()),
              HasSubstr("is 12345; expected one of"));
  config.mutable_set(0)->set_variant("x");
  EXPECT_THAT(std::string(source.Validate(config).message()),
              HasSubstr("expected an integer"));
}

TEST(TraceSourceTest, NamesTheStrategiesThatThereAre) {
  const TraceSource source(Matmul(), Machine());
  proto::Session begun;
  begun.set_strategy("bayes_opt");
  EXPECT_THAT(
      std::string(source.Propose(begun, ProposerOptions()).status().message()),
      HasSubstr("evolution:trees"));
}

TEST(TraceSourceTest, StartsFromTheFastestOfOtherSessions) {
  const TraceSource source(Matmul(), Machine());
  proto::Session begun, other;
  begun.set_strategy("evolution:trees");
  const double times_ns[] = {30, 10, 20};
  const int64_t turns[] = {2, 8, 4};
  for (int i = 0; i < 3; ++i) {
    proto::Trial& trial = *other.add_trials();
    trial.set_outcome(i == 1 ? proto::WRONG_RESULT : proto::OK);
    trial.set_time_ns(times_ns[i]);
    proto::KnobValue& knob = *trial.mutable_config()->add_set();
    knob.set_knob("s0_rtile0");
    knob.set_int_(turns[i]);
  }
  ProposerOptions options;
  options.source_sessions = {other};
  auto proposer = source.Propose(begun, options);
  ASSERT_TRUE(proposer.ok()) << proposer.status().message();
  // The rules' own, then the fastest.
  const std::vector<proto::Config> asked = (*proposer)->Ask(3);
  ASSERT_EQ(asked.size(), 3);
  EXPECT_THAT(CanonicalText(asked[1]), HasSubstr("s0_rtile0=4,"));
  EXPECT_THAT(CanonicalText(asked[2]), HasSubstr("s0_rtile0=2,"));
}

TEST(TraceSourceTest, FinalistsAreTheFastestThatWork) {
  const TraceSource source(Matmul(), Machine());
  proto::Session begun;
  begun.set_strategy("random");
  auto proposer = source.Propose(begun, ProposerOptions());
  ASSERT_TRUE(proposer.ok()) << proposer.status().message();
  const std::vector<proto::Config> asked = (*proposer)->Ask(4);
  ASSERT_EQ(asked.size(), 4);
  const double times_ns[] = {30, 10, 5, 20};
  for (int i = 0; i < 4; ++i) {
    proto::Trial trial;
    *trial.mutable_config() = asked[i];
    trial.set_outcome(i == 2 ? proto::WRONG_RESULT : proto::OK);
    trial.set_time_ns(times_ns[i]);
    ASSERT_TRUE((*proposer)->Tell(trial).ok());
  }
  const auto finalists = (*proposer)->Finalists(2);
  ASSERT_EQ(finalists.size(), 2);
  EXPECT_EQ(CanonicalText(finalists[0]), CanonicalText(asked[1]));
  EXPECT_EQ(CanonicalText(finalists[1]), CanonicalText(asked[3]));
}

}  // namespace
}  // namespace optrail::tuning
