#include "tuning/search/source_knowledge.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tuning/search/testing/grid_domain.h"

namespace optrail::tuning {
namespace {

GridDomain Grid() {
  return GridDomain({GridDomain::Powers("x", 8), GridDomain::Powers("y", 8)});
}

// A bowl around (x, y); `unit` is the device's own scale of time.
TransferSource Bowl(const Domain& domain, double x, double y, double unit) {
  TransferSource source;
  for (int64_t i = 0; i < *domain.size(); ++i) {
    const Levels levels = domain.At(i);
    const double dx = levels[0] - x, dy = levels[1] - y;
    source.trials.push_back(
        {levels, proto::OK, {unit * std::exp(0.1 * (dx * dx + dy * dy))}});
  }
  return source;
}

TransferSource Shuffled(TransferSource source, uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<double>> costs;
  for (const Trial& trial : source.trials) costs.push_back(trial.objectives);
  rng.Shuffle(costs);
  for (size_t i = 0; i < costs.size(); ++i) {
    source.trials[i].objectives = costs[i];
  }
  return source;
}

// Bad where `source` is good: as structured, but misleading.
TransferSource Reversed(TransferSource source) {
  for (Trial& trial : source.trials) {
    trial.objectives[0] = 1 / trial.objectives[0];
  }
  return source;
}

float Expected(const SourceKnowledge& knowledge, const Levels& levels) {
  return knowledge.Expected(knowledge.Values(levels));
}

TEST(SourceKnowledgeTest, KnowsNothingWithoutSources) {
  const GridDomain domain = Grid();
  EXPECT_TRUE(SourceKnowledge(domain, {}).empty());
  TransferSource failed = Bowl(domain, 2, 2, 1);
  for (Trial& trial : failed.trials) trial.outcome = proto::CRASHED;
  EXPECT_TRUE(SourceKnowledge(domain, {failed, {}}).empty());
}

TEST(SourceKnowledgeTest, ScalesOfTimeDoNotMatter) {
  const GridDomain domain = Grid();
  const SourceKnowledge one(domain, {Bowl(domain, 2, 3, 1)});
  const SourceKnowledge other(domain, {Bowl(domain, 2, 3, 1e6)});
  EXPECT_NEAR(Expected(one, {2, 3}), Expected(other, {2, 3}), 1e-4);
  EXPECT_NEAR(one.unit(), other.unit(), 1e-6);
  EXPECT_LT(Expected(one, {2, 3}), Expected(one, {6, 6}));
}

TEST(SourceKnowledgeTest, SourcesThatAgreeAreBelievedMoreThanOne) {
  const GridDomain domain = Grid();
  const SourceKnowledge one(domain, {Bowl(domain, 2, 3, 1)});
  const SourceKnowledge three(
      domain,
      {Bowl(domain, 2, 3, 1), Bowl(domain, 2, 3, 5), Bowl(domain, 3, 3, 2)});
  EXPECT_EQ(three.sources(), 3);
  EXPECT_LT(Expected(three, {2, 3}), Expected(one, {2, 3}));
}

TEST(SourceKnowledgeTest, ASourceThatAgreesWithNoOtherIsLeftOut) {
  const GridDomain domain = Grid();
  const SourceKnowledge knowledge(
      domain, {Bowl(domain, 2, 3, 1), Reversed(Bowl(domain, 2, 3, 1)),
               Bowl(domain, 3, 3, 1)});
  EXPECT_EQ(knowledge.sources(), 2);
  EXPECT_EQ(knowledge.Values({0, 0}).size(), 2u);
}

TEST(SourceKnowledgeTest, SourcesThatAllDisagreeTellNothing) {
  const GridDomain domain = Grid();
  const TransferSource bowl = Bowl(domain, 2, 3, 1);
  EXPECT_TRUE(SourceKnowledge(domain, {bowl, Reversed(bowl)}).empty());
}

TEST(SourceKnowledgeTest, ASourceWithoutStructureTellsNothing) {
  const GridDomain domain = Grid();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    TransferSource source = Shuffled(Bowl(domain, 2, 3, 1), seed);
    EXPECT_TRUE(SourceKnowledge(domain, {source}).empty()) << seed;
  }
}

TEST(SourceKnowledgeTest, AFewTrialsOfASmoothTaskHaveStructure) {
  const GridDomain domain = Grid();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    TransferSource source = Bowl(domain, 2, 3, 1);
    Rng rng(seed);
    rng.Shuffle(source.trials);
    source.trials.resize(24);
    EXPECT_FALSE(SourceKnowledge(domain, {source}).empty()) << seed;
  }
}

TEST(SourceKnowledgeTest, SourcesThatTriedOtherConfigsCanAgree) {
  const GridDomain domain = Grid();
  const TransferSource bowl = Bowl(domain, 2, 3, 1);
  TransferSource even, odd;
  for (size_t i = 0; i < bowl.trials.size(); ++i) {
    (i % 2 == 0 ? even : odd).trials.push_back(bowl.trials[i]);
  }
  EXPECT_EQ(SourceKnowledge(domain, {even, odd}).sources(), 2);
  EXPECT_TRUE(SourceKnowledge(domain, {even, Reversed(odd)}).empty());
}

TEST(SourceKnowledgeTest, SourcesThatShareTheirBestConfigsDoNotExaggerate) {
  // Both searches tried what is good, and each of the rest another half.
  const GridDomain domain(
      {GridDomain::Powers("x", 16), GridDomain::Powers("y", 16)});
  const TransferSource bowl = Bowl(domain, 7, 8, 1);
  TransferSource even, odd;
  int shared = 0;
  for (size_t i = 0; i < bowl.trials.size(); ++i) {
    const bool good = bowl.trials[i].objectives[0] < std::exp(2.0);
    shared += good;
    if (good || i % 2 == 0) even.trials.push_back(bowl.trials[i]);
    if (good || i % 2 == 1) odd.trials.push_back(bowl.trials[i]);
  }
  ASSERT_GE(shared, 50);
  const SourceKnowledge knowledge(domain, {even, odd});
  ASSERT_EQ(knowledge.sources(), 2);
  const std::vector<float> values = knowledge.Values({7, 8});
  EXPECT_LT(values[0], -1);
  EXPECT_GE(knowledge.Expected(values), std::min(values[0], values[1]) - 1e-5f);
}

TEST(SourceKnowledgeTest, TheFirstStartIsTheBestCompromise) {
  const GridDomain domain = Grid();
  const SourceKnowledge knowledge(
      domain, {Bowl(domain, 2, 3, 1), Bowl(domain, 4, 3, 1)});
  ASSERT_FALSE(knowledge.starts().empty());
  EXPECT_EQ(knowledge.starts()[0], (Levels{3, 3}));
}

TEST(SourceKnowledgeTest, StartsAreValidConfigs) {
  const GridDomain full = Grid();
  const GridDomain domain(
      {GridDomain::Powers("x", 8), GridDomain::Powers("y", 8)},
      [](absl::Span<const uint16_t> l) { return l[0] != 2; });
  const SourceKnowledge knowledge(domain, {Bowl(full, 2, 3, 1)});
  ASSERT_FALSE(knowledge.starts().empty());
  for (const Levels& levels : knowledge.starts()) {
    EXPECT_TRUE(domain.IsValid(levels));
  }
}

TEST(SourceKnowledgeTest, ConfigsASourceLacksAreAverage) {
  const GridDomain domain = Grid();
  TransferSource source = Bowl(domain, 2, 3, 1);
  source.trials.resize(40);
  const SourceKnowledge knowledge(domain, {source});
  EXPECT_EQ(Expected(knowledge, {7, 7}), 0);
}

}  // namespace
}  // namespace optrail::tuning
