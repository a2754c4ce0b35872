// Checks what strategy.h promises, for every strategy.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/search/strategies.h"
#include "tuning/search/testing/grid_domain.h"
#include "tuning/search/testing/small_task.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

class StrategyContract : public ::testing::TestWithParam<std::string> {};

TEST_P(StrategyContract, ProposesEveryValidConfigOnceAndThenStops) {
  const GridDomain domain = SmallDomain();
  for (const int batch : {1, 8}) {
    StrategyOptions options;
    options.batch = batch;
    const auto strategy = Make(GetParam(), domain, options);
    const std::vector<Levels> asked = Drive(*strategy, 10000, batch);
    const absl::flat_hash_set<Levels> unique(asked.begin(), asked.end());
    EXPECT_EQ(asked.size(), unique.size());
    EXPECT_EQ(static_cast<int64_t>(asked.size()), *domain.size());
    for (const Levels& levels : asked) EXPECT_TRUE(domain.IsValid(levels));
    EXPECT_EQ(strategy->StopReason(), "space exhausted");
    EXPECT_TRUE(strategy->Ask(1).empty());
  }
}

TEST_P(StrategyContract, IsDeterministicForASeed) {
  const GridDomain domain = SmallDomain();
  StrategyOptions options;
  options.seed = 5;
  EXPECT_EQ(Drive(*Make(GetParam(), domain, options), 60, 1),
            Drive(*Make(GetParam(), domain, options), 60, 1));
}

TEST_P(StrategyContract, SeedsDiffer) {
  if (GetParam() == "exhaustive") GTEST_SKIP() << "has no randomness";
  const GridDomain domain = SmallDomain();
  StrategyOptions one, two;
  one.seed = 1;
  two.seed = 2;
  EXPECT_NE(Drive(*Make(GetParam(), domain, one), 20, 1),
            Drive(*Make(GetParam(), domain, two), 20, 1));
}

TEST_P(StrategyContract, ResumesAtAnyPointAsIfUninterrupted) {
  const GridDomain domain = SmallDomain();
  Rng cuts(99);
  for (const int batch : {1, 3, 8}) {
    StrategyOptions options;
    options.seed = 11;
    options.batch = batch;
    const std::vector<Levels> whole =
        Drive(*Make(GetParam(), domain, options), 64, batch);
    for (int repeat = 0; repeat < 6; ++repeat) {
      const size_t cut = cuts.UniformInt(60);
      const auto strategy = Make(GetParam(), domain, options);
      std::vector<Levels> resumed(whole.begin(), whole.begin() + cut);
      std::vector<Trial> journal;
      for (const Levels& levels : resumed) journal.push_back(Measure(levels));
      strategy->Tell(journal);
      const std::vector<Levels> rest =
          Drive(*strategy, static_cast<int>(whole.size() - cut), batch);
      resumed.insert(resumed.end(), rest.begin(), rest.end());
      resumed.resize(whole.size());
      EXPECT_EQ(resumed, whole) << "batch " << batch << ", cut " << cut;
    }
  }
}

TEST_P(StrategyContract, ASuggestionIsAskedNextAndOnce) {
  const GridDomain domain = SmallDomain();
  const auto strategy = Make(GetParam(), domain, {});
  const Levels suggested = {1, 2, 1, 0}, not_valid = {0, 0, 5, 0};
  ASSERT_TRUE(domain.IsValid(suggested));
  EXPECT_FALSE(strategy->Suggest(not_valid));
  Drive(*strategy, 3, 1);
  const bool is_new = strategy->Suggest(suggested);
  EXPECT_FALSE(strategy->Suggest(suggested));
  if (is_new) {
    EXPECT_EQ(strategy->Ask(1), std::vector<Levels>{suggested});
    strategy->Tell({Measure(suggested)});
  }
  const std::vector<Levels> rest = Drive(*strategy, 10000, 1);
  EXPECT_EQ(static_cast<int64_t>(rest.size()), *domain.size() - 3 - is_new);
  EXPECT_EQ(std::count(rest.begin(), rest.end(), suggested), 0);
}

TEST_P(StrategyContract, WhatIsOverheardIsNeitherTriedNorTold) {
  const GridDomain domain = SmallDomain();
  const auto strategy = Make(GetParam(), domain, {});
  std::vector<Levels> asked = Drive(*strategy, 7, 1);
  Rng rng(5);
  for (int i = 0; i < 300; ++i) {
    Trial trial = Measure(domain.Sample(rng));
    for (double& objective : trial.objectives) objective *= 3;
    strategy->Overhear(i % 6, trial);
    if (i == 40) {
      const std::vector<Levels> more = Drive(*strategy, 9, 1);
      asked.insert(asked.end(), more.begin(), more.end());
    }
  }
  const std::vector<Levels> rest = Drive(*strategy, 10000, 1);
  asked.insert(asked.end(), rest.begin(), rest.end());
  const absl::flat_hash_set<Levels> unique(asked.begin(), asked.end());
  EXPECT_EQ(asked.size(), unique.size());
  EXPECT_EQ(static_cast<int64_t>(unique.size()), *domain.size());
  EXPECT_EQ(strategy->Finalists(1).size(), 1);
}

TEST_P(StrategyContract, DoesNotProposeTheWarmStart) {
  const GridDomain domain = SmallDomain();
  StrategyOptions options;
  Rng rng(3);
  absl::flat_hash_set<Levels> known;
  for (int i = 0; i < 30; ++i) {
    options.warm_start.push_back(Measure(domain.Sample(rng)));
    known.insert(options.warm_start.back().levels);
  }
  const std::vector<Levels> asked =
      Drive(*Make(GetParam(), domain, options), 10000, 1);
  EXPECT_EQ(asked.size() + known.size(), static_cast<size_t>(*domain.size()));
  for (const Levels& levels : asked) EXPECT_FALSE(known.contains(levels));
}

TEST_P(StrategyContract, GoesOnWhenEverythingFails) {
  const GridDomain domain = SmallDomain();
  const auto strategy = Make(GetParam(), domain, {});
  absl::flat_hash_set<Levels> asked;
  for (int i = 0; i < 60; ++i) {
    const std::vector<Levels> round = strategy->Ask(1);
    ASSERT_EQ(round.size(), 1u);
    EXPECT_TRUE(asked.insert(round[0]).second);
    Trial trial;
    trial.levels = round[0];
    trial.outcome = proto::CRASHED;
    strategy->Tell({trial});
  }
  EXPECT_TRUE(strategy->Finalists(3).empty());
  EXPECT_TRUE(strategy->ParetoFront().empty());
}

TEST_P(StrategyContract, SurvivesNonsenseCosts) {
  const GridDomain domain = SmallDomain();
  const auto strategy = Make(GetParam(), domain, {});
  const double nonsense[] = {std::nan(""), -3, 0, 1e308, HUGE_VAL, 1e-300};
  for (int i = 0; i < 48; ++i) {
    const std::vector<Levels> round = strategy->Ask(1);
    ASSERT_EQ(round.size(), 1u);
    Trial trial;
    trial.levels = round[0];
    trial.objectives = {nonsense[i % 6]};
    if (i % 7 == 0) trial.objectives.clear();
    strategy->Tell({trial});
  }
}

TEST_P(StrategyContract, WorksWithoutEnumeration) {
  if (GetParam() == "exhaustive") GTEST_SKIP() << "needs enumeration";
  // 2^40 configs, a quarter of them valid.
  std::vector<KnobLevels> knobs;
  for (int k = 0; k < 10; ++k) {
    knobs.push_back(GridDomain::Powers("k" + std::to_string(k), 16));
  }
  const GridDomain domain(
      knobs,
      [](absl::Span<const uint16_t> l) { return (l[0] + l[1]) % 4 == 0; },
      /*listed=*/false);
  const auto strategy = Make(GetParam(), domain, {});
  absl::flat_hash_set<Levels> asked;
  for (int i = 0; i < 80; ++i) {
    const std::vector<Levels> round = strategy->Ask(1);
    ASSERT_EQ(round.size(), 1u);
    EXPECT_TRUE(domain.IsValid(round[0]));
    EXPECT_TRUE(asked.insert(round[0]).second);
    double cost = 1;
    for (const uint16_t level : round[0]) cost += level;
    strategy->Tell({{round[0], proto::OK, {cost}}});
  }
}

TEST_P(StrategyContract, FindsTheFrontOfTwoObjectives) {
  const GridDomain domain = SmallDomain();
  StrategyOptions options;
  options.objectives = 2;
  options.limits = {{1, 25.0}};
  const auto strategy = Make(GetParam(), domain, options);
  Drive(*strategy, 10000, 1);
  // The front by definition, from all configs.
  std::vector<Trial> ok;
  for (int64_t i = 0; i < *domain.size(); ++i) {
    Trial trial = Measure(domain.At(i));
    if (trial.outcome == proto::OK && trial.objectives[1] <= 25) {
      ok.push_back(std::move(trial));
    }
  }
  absl::flat_hash_set<Levels> expected;
  for (const Trial& a : ok) {
    const bool beaten = std::any_of(ok.begin(), ok.end(), [&a](const Trial& b) {
      return b.objectives[0] <= a.objectives[0] &&
             b.objectives[1] <= a.objectives[1] && b.objectives != a.objectives;
    });
    if (!beaten) expected.insert(a.levels);
  }
  absl::flat_hash_set<Levels> front;
  for (const Trial& trial : strategy->ParetoFront()) front.insert(trial.levels);
  EXPECT_EQ(front, expected);
}

TEST_P(StrategyContract, MeasuresOnlyTheTopKOfThePrior) {
  GridDomain domain = SmallDomain();
  domain.SetPrior([](absl::Span<const uint16_t> l) {
    return -std::abs(l[1] - 2.0) - std::abs(l[2] - 1.0) + 0.001 * l[0];
  });
  StrategyOptions options;
  options.top_k = 7;
  const auto strategy = Make(GetParam(), domain, options);
  const std::vector<Levels> asked = Drive(*strategy, 1000, 1);
  EXPECT_EQ(asked.size(), 7u);
  EXPECT_EQ(strategy->StopReason(), "top_k of the prior measured");
  for (const Levels& levels : asked) {
    EXPECT_LE(std::abs(levels[1] - 2) + std::abs(levels[2] - 1), 1);
  }
}

// Spaces that few strategies are written for. What matters is that the contract
// holds in them.
struct OddSpace {
  std::string name;
  GridDomain domain;
  // Infinity: the config fails.
  std::function<double(absl::Span<const uint16_t>)> cost;
};

double Sum(absl::Span<const uint16_t> levels) {
  double sum = 1;
  for (const uint16_t level : levels) sum += level;
  return sum;
}

std::vector<OddSpace> OddSpaces() {
  std::vector<OddSpace> spaces;
  std::vector<KnobLevels> categorical;
  for (int k = 0; k < 24; ++k) {
    categorical.push_back(
        GridDomain::Variants("k" + std::to_string(k), 2 + k % 7));
  }
  spaces.push_back({"many categorical knobs",
                    GridDomain(categorical, nullptr, /*listed=*/false), Sum});
  spaces.push_back(
      {"one knob of 5000 levels", GridDomain({GridDomain::Range("n", 5000)}),
       [](absl::Span<const uint16_t> l) { return 1 + std::abs(l[0] - 3210); }});
  // Valid are but even levels, where one step never leads.
  spaces.push_back(
      {"no adjacent configs",
       GridDomain({GridDomain::Range("a", 40), GridDomain::Range("b", 40)},
                  [](absl::Span<const uint16_t> l) {
                    return l[0] % 2 == 0 && l[1] % 2 == 0;
                  }),
       Sum});
  spaces.push_back(
      {"an island of failures",
       GridDomain({GridDomain::Range("a", 20), GridDomain::Range("b", 20),
                   GridDomain::Variants("c", 3)}),
       [](absl::Span<const uint16_t> l) {
         // 40% of a and b, around the middle.
         const bool island = l[0] >= 4 && l[0] < 17 && l[1] >= 4 && l[1] < 16;
         return island ? HUGE_VAL : Sum(l);
       }});
  spaces.push_back(
      {"a plateau",
       GridDomain({GridDomain::Powers("a", 12), GridDomain::Powers("b", 12),
                   GridDomain::Variants("c", 4)}),
       [](absl::Span<const uint16_t>) { return 7.0; }});
  spaces.push_back(
      {"everything fails",
       GridDomain({GridDomain::Powers("a", 12), GridDomain::Powers("b", 12)}),
       [](absl::Span<const uint16_t>) { return HUGE_VAL; }});
  spaces.push_back(
      {"two configs", GridDomain({GridDomain::Variants("a", 2)}), Sum});
  spaces.push_back(
      {"one config",
       GridDomain({GridDomain::Variants("a", 1), GridDomain::Powers("b", 1)}),
       Sum});
  return spaces;
}

TEST_P(StrategyContract, HoldsInOddSpaces) {
  for (const OddSpace& space : OddSpaces()) {
    if (GetParam() == "exhaustive" && !space.domain.size()) continue;
    for (const int batch : {1, 8}) {
      SCOPED_TRACE(space.name + ", batch " + std::to_string(batch));
      StrategyOptions options;
      options.batch = batch;
      const auto strategy = Make(GetParam(), space.domain, options);
      const int64_t trials =
          std::min<int64_t>(120, space.domain.size().value_or(120));
      absl::flat_hash_set<Levels> asked;
      while (static_cast<int64_t>(asked.size()) < trials) {
        const std::vector<Levels> round = strategy->Ask(batch);
        ASSERT_FALSE(round.empty()) << "after " << asked.size() << " trials";
        std::vector<Trial> told;
        for (const Levels& levels : round) {
          ASSERT_TRUE(space.domain.IsValid(levels));
          ASSERT_TRUE(asked.insert(levels).second);
          const double cost = space.cost(levels);
          if (std::isfinite(cost)) {
            told.push_back({levels, proto::OK, {cost}});
          } else {
            told.push_back({levels, proto::CRASHED, {}});
          }
        }
        strategy->Tell(told);
      }
      if (space.domain.size() && trials == *space.domain.size()) {
        EXPECT_TRUE(strategy->Ask(batch).empty());
        EXPECT_EQ(strategy->StopReason(), "space exhausted");
      }
    }
  }
}

// Another task over the knobs of SmallDomain, all of it.
TransferSource SourceLike(const Domain& domain, double sign) {
  TransferSource source;
  source.name = "other";
  for (int64_t i = 0; i < *domain.size(); ++i) {
    Trial trial = Measure(domain.At(i));
    if (!trial.objectives.empty()) {
      trial.objectives[0] = std::pow(trial.objectives[0], sign);
    }
    source.trials.push_back(std::move(trial));
  }
  return source;
}

bool IgnoresSources(const std::string& strategy) {
  return strategy == "random" || strategy == "exhaustive";
}

TEST_P(StrategyContract, StartsWhereASourceWasBest) {
  if (IgnoresSources(GetParam())) GTEST_SKIP() << "a baseline";
  const GridDomain domain = SmallDomain();
  StrategyOptions options;
  options.sources = {SourceLike(domain, 1)};
  const auto strategy = Make(GetParam(), domain, options);
  EXPECT_EQ(strategy->Ask(1)[0], (Levels{1, 2, 1, 0}));
}

TEST_P(StrategyContract, ResumesWithSources) {
  const GridDomain domain = SmallDomain();
  StrategyOptions options;
  options.sources = {SourceLike(domain, -1)};
  const std::vector<Levels> whole =
      Drive(*Make(GetParam(), domain, options), 40, 1);
  for (const size_t cut : {1, 2, 3, 9, 25}) {
    const auto strategy = Make(GetParam(), domain, options);
    std::vector<Levels> resumed(whole.begin(), whole.begin() + cut);
    std::vector<Trial> journal;
    for (const Levels& levels : resumed) journal.push_back(Measure(levels));
    strategy->Tell(journal);
    const std::vector<Levels> rest =
        Drive(*strategy, static_cast<int>(whole.size() - cut), 1);
    resumed.insert(resumed.end(), rest.begin(), rest.end());
    EXPECT_EQ(resumed, whole) << "cut " << cut;
  }
}

TEST_P(StrategyContract, SourcesThatDisagreeChangeNothing) {
  if (GetParam() == "portfolio" || GetParam() == "bayes_opt") {
    GTEST_SKIP() << "judges sources on its own";
  }
  const GridDomain domain = SmallDomain();
  StrategyOptions options;
  const std::vector<Levels> without =
      Drive(*Make(GetParam(), domain, options), 40, 1);
  options.sources = {SourceLike(domain, 1), SourceLike(domain, -1)};
  EXPECT_EQ(Drive(*Make(GetParam(), domain, options), 40, 1), without);
}

INSTANTIATE_TEST_SUITE_P(All, StrategyContract,
                         ::testing::ValuesIn(StrategyNames()),
                         [](const auto& info) { return info.param; });

TEST(MakeStrategyTest, NamesWhatItKnowsWhenAskedForTheUnknown) {
  const GridDomain domain = SmallDomain();
  const auto strategy = MakeStrategy("gradient_descent", domain, {});
  EXPECT_EQ(strategy.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(strategy.status().message()),
              HasSubstr("bayes_opt, differential_evolution"));
}

TEST(MakeStrategyTest, DefaultIsAStrategy) {
  const GridDomain domain = SmallDomain();
  EXPECT_EQ(Make("default", domain, {})->name(), kDefaultStrategy);
}

TEST(MakeStrategyTest, RejectsASpaceWithoutAValidConfig) {
  const GridDomain domain({GridDomain::Powers("a", 3)},
                          [](absl::Span<const uint16_t>) { return false; });
  EXPECT_THAT(
      std::string(MakeStrategy("random", domain, {}).status().message()),
      HasSubstr("no valid config"));
}

TEST(MakeStrategyTest, RejectsContradictingOptions) {
  const GridDomain domain = SmallDomain();
  const auto message = [&domain](const StrategyOptions& options) {
    return std::string(
        MakeStrategy("random", domain, options).status().message());
  };
  StrategyOptions options;
  options.batch = 0;
  EXPECT_THAT(message(options), HasSubstr("batch is 0"));
  options = {};
  options.weights = {1, 2};
  EXPECT_THAT(message(options), HasSubstr("2 weights for 1 objectives"));
  options = {};
  options.limits = {{3, 1.0}};
  EXPECT_THAT(message(options), HasSubstr("limit on objective 3"));
  options = {};
  options.top_k = 5;
  EXPECT_THAT(message(options), HasSubstr("needs a prior"));
  options = {};
  options.warm_start = {{Levels{0, 0, 9, 0}, proto::OK, {1.0}}};
  EXPECT_THAT(message(options), HasSubstr("level 9 of knob 'tile'"));
}

TEST(MakeStrategyTest, ExhaustiveNeedsAnEnumeratedSpace) {
  const GridDomain domain({GridDomain::Powers("a", 3)}, nullptr, false);
  EXPECT_THAT(
      std::string(MakeStrategy("exhaustive", domain, {}).status().message()),
      HasSubstr("too large to enumerate"));
}

TEST(RandomSearchTest, FirstConfigIsUniform) {
  const GridDomain domain = SmallDomain();
  std::vector<int> counts(*domain.size());
  const int draws = 20 * static_cast<int>(counts.size());
  for (int seed = 0; seed < draws; ++seed) {
    StrategyOptions options;
    options.seed = seed;
    ++counts[*domain.IndexOf(Make("random", domain, options)->Ask(1)[0])];
  }
  // Chi-squared: mean is the degrees of freedom, variance twice that.
  double chi2 = 0;
  for (const int count : counts) chi2 += (count - 20.0) * (count - 20.0) / 20.0;
  const double freedom = counts.size() - 1.0;
  EXPECT_LT(std::abs(chi2 - freedom), 4 * std::sqrt(2 * freedom));
}

TEST(WeightsTest, DecideWhichObjectiveCounts) {
  const GridDomain domain = SmallDomain();
  for (const std::string name : {"bayes_opt", "genetic_algorithm"}) {
    StrategyOptions options;
    options.objectives = 2;
    options.weights = {1, 0};
    const auto first = Make(name, domain, options);
    options.weights = {0, 1};
    const auto second = Make(name, domain, options);
    Drive(*first, 1000, 1);
    Drive(*second, 1000, 1);
    EXPECT_EQ(first->Finalists(1)[0], (Levels{1, 2, 1, 0})) << name;
    // The least 10 + b^2 + a that is neither contended, censored nor failed.
    EXPECT_EQ(second->Finalists(1)[0][1], 0) << name;
  }
}

}  // namespace
}  // namespace optrail::tuning
