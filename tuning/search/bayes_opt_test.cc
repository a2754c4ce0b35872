#include "tuning/search/bayes_opt.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tuning/search/strategies.h"
#include "tuning/search/testing/grid_domain.h"
#include "tuning/search/testing/small_task.h"

namespace optrail::tuning {
namespace {

TEST(BayesOptTest, FindsWhatSiblingsFoundSooner) {
  const GridDomain domain = SmallDomain();
  int alone = 0, helped = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    StrategyOptions options;
    options.seed = seed;
    for (int* const trials : {&alone, &helped}) {
      const auto strategy = Make("bayes_opt", domain, options);
      Rng rng(seed);
      for (int i = 0; i < 30 && trials == &helped; ++i) {
        Trial trial = Measure(domain.Sample(rng));
        for (double& objective : trial.objectives) objective *= 3;
        strategy->Overhear(0, trial);
      }
      const Levels best = {1, 2, 1, 0};
      while (Drive(*strategy, 1, 1)[0] != best) ++*trials;
    }
  }
  EXPECT_LT(helped, .8 * alone) << "of 8 searches each";
}

TEST(BayesOptTest, ExpectsLessAndLessImprovement) {
  const GridDomain domain = SmallDomain();
  const auto strategy = Make("bayes_opt", domain, {});
  Drive(*strategy, 12, 1);
  const double early = strategy->ExpectedImprovement().value();
  Drive(*strategy, 60, 1);
  const double late = strategy->ExpectedImprovement().value();
  EXPECT_GT(early, 0);
  EXPECT_LT(late, early);
}

// What is expected after some trials, one of which cost a fifth of what it
// should have, and is `deviation` uncertain in objective `predicted`.
double ExpectedAfterALuckyOne(const StrategyOptions& options, double deviation,
                              int predicted) {
  const GridDomain domain = SmallDomain();
  const auto strategy = Make("bayes_opt", domain, options);
  int worked = 0;
  for (int i = 0; i < 12; ++i) {
    Trial trial = Measure(strategy->Ask(1)[0]);
    if (!trial.objectives.empty()) {
      trial.objectives.assign(options.objectives, trial.objectives[0]);
    }
    if (trial.outcome == proto::OK && ++worked == 3) {
      for (double& cost : trial.objectives) cost /= 5;
      trial.deviation = deviation;
      trial.predicted = predicted;
    }
    strategy->Tell({trial});
  }
  strategy->Ask(1);
  return strategy->ExpectedImprovement().value();
}

TEST(BayesOptTest, ALuckyPredictionIsNotWhatOthersMustImproveOn) {
  const double read = ExpectedAfterALuckyOne({}, 0, 0);
  const double predicted = ExpectedAfterALuckyOne({}, 1, 0);
  EXPECT_GT(predicted, 3 * read) << read;
}

TEST(BayesOptTest, ADeviationCountsAsItsObjectiveDoes) {
  StrategyOptions options;
  options.objectives = 2;
  options.weights = {1, 0};
  const double read = ExpectedAfterALuckyOne(options, 0, 0);
  EXPECT_EQ(ExpectedAfterALuckyOne(options, 1, 1), read);
  EXPECT_GT(ExpectedAfterALuckyOne(options, 1, 0), read);
  options.weights = {0, 1};
  EXPECT_EQ(ExpectedAfterALuckyOne(options, 1, 0), read);
  EXPECT_GT(ExpectedAfterALuckyOne(options, 1, 1), read);
}

// Trials until the best config of SmallDomain was asked for.
int TrialsToTheBest(const Domain& domain, const StrategyOptions& options) {
  const auto strategy = Make("bayes_opt", domain, options);
  const std::vector<Levels> asked = Drive(*strategy, 200, 1);
  return static_cast<int>(
      std::find(asked.begin(), asked.end(), Levels{1, 2, 1, 0}) -
      asked.begin());
}

TEST(BayesOptTest, AMisleadingSourceIsForgotten) {
  const GridDomain domain = SmallDomain();
  TransferSource misleading;
  for (int64_t i = 0; i < *domain.size(); ++i) {
    Trial trial = Measure(domain.At(i));
    // A config that is fast here was slow there.
    if (!trial.objectives.empty())
      trial.objectives[0] = 1 / trial.objectives[0];
    misleading.trials.push_back(trial);
  }
  double with = 0, without = 0;
  for (int seed = 1; seed <= 5; ++seed) {
    StrategyOptions options;
    options.seed = seed;
    without += TrialsToTheBest(domain, options) / 5.0;
    options.sources = {misleading};
    with += TrialsToTheBest(domain, options) / 5.0;
  }
  EXPECT_LT(with, without + 15);
}

TEST(BayesOptTest, ARoundOfEightNeedsLittleMoreThanEightRounds) {
  const GridDomain domain(
      {GridDomain::Powers("a", 12), GridDomain::Powers("b", 12),
       GridDomain::Variants("c", 4), GridDomain::Powers("d", 6)});
  const auto best_after = [&domain](int batch, int trials, int seed) {
    StrategyOptions options;
    options.seed = seed;
    options.batch = batch;
    const auto strategy = Make("bayes_opt", domain, options);
    double best = HUGE_VAL;
    for (int done = 0; done < trials; done += batch) {
      std::vector<Trial> told;
      for (const Levels& l : strategy->Ask(batch)) {
        const double a = l[0] - 7.0, b = l[1] - l[0] + 2.0, d = l[3] - 3.0;
        const double cost = 1 + a * a + 2 * b * b + d * d + (l[2] == 1 ? 0 : 3);
        best = std::min(best, cost);
        told.push_back({l, proto::OK, {cost}});
      }
      strategy->Tell(told);
    }
    return best;
  };
  double one = 0, eight = 0;
  for (int seed = 1; seed <= 5; ++seed) {
    one += best_after(1, 48, seed) / 5;
    eight += best_after(8, 56, seed) / 5;
  }
  EXPECT_LE(eight, 1.5 * one);
}

// A task whose costs are like those of a kernel, in ns: their logarithms lie
// far above zero, which nothing that failed elsewhere may count as.
TEST(BayesOptTest, FailuresOfASiblingAttractNobody) {
  const GridDomain domain = SmallDomain();
  const auto trials_with = [&domain](int failures, uint64_t seed) {
    StrategyOptions options;
    options.seed = seed;
    const auto strategy = Make("bayes_opt", domain, options);
    std::vector<Levels> asked;
    for (int i = 0; i < 40; ++i) {
      if (i == 8) {
        for (uint16_t block = 0; block < failures; ++block) {
          strategy->Overhear(0,
                             {Levels{2, 4, block, 0}, proto::LAUNCH_ERROR, {}});
        }
      }
      const Levels levels = strategy->Ask(1)[0];
      asked.push_back(levels);
      Trial trial = Measure(levels);
      for (double& objective : trial.objectives) objective *= 1000;
      strategy->Tell({trial});
    }
    return asked;
  };
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_EQ(trials_with(5, seed), trials_with(0, seed));
  }
}

// The sources are wrong about the best algorithm; what was overheard says how
// far they were off.
TEST(BayesOptTest, SiblingsCorrectTheSources) {
  const GridDomain domain = SmallDomain();
  const Levels best = {1, 2, 1, 0};
  std::vector<TransferSource> sources(3);
  for (size_t k = 0; k < sources.size(); ++k) {
    for (int64_t i = 0; i < *domain.size(); ++i) {
      Trial trial = Measure(domain.At(i));
      if (!trial.objectives.empty() && trial.levels[0] == 1) {
        trial.objectives[0] *= 6;
      }
      sources[k].trials.push_back(trial);
    }
  }
  int trials = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    StrategyOptions options;
    options.seed = seed;
    options.sources = sources;
    const auto strategy = Make("bayes_opt", domain, options);
    Rng rng(seed);
    for (int i = 0; i < 60; ++i) {
      Trial trial = Measure(domain.Sample(rng));
      for (double& objective : trial.objectives) objective *= 1000;
      strategy->Overhear(1, trial);
    }
    while (Drive(*strategy, 1, 1)[0] != best) ++trials;
  }
  EXPECT_LT(trials, 50) << "of 8 searches";
}

}  // namespace
}  // namespace optrail::tuning
