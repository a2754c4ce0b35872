#ifndef OPTRAIL_TUNING_SEARCH_TESTING_SMALL_TASK_H_
#define OPTRAIL_TUNING_SEARCH_TESTING_SMALL_TASK_H_

// A task of 132 configs for tests of strategies, and what drives a strategy
// over it. Its best config is {1, 2, 1, 0}.
//
//   const GridDomain domain = SmallDomain();
//   const auto strategy = Make("bayes_opt", domain, {});
//   const std::vector<Levels> asked = Drive(*strategy, 20, 1);

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tuning/search/strategies.h"
#include "tuning/search/testing/grid_domain.h"

namespace optrail::tuning {

// 3 * 5 * 6 * 2 configs less those whose tile exceeds the block: 132.
inline GridDomain SmallDomain() {
  return GridDomain(
      {GridDomain::Variants("algorithm", 3), GridDomain::Powers("block", 5),
       GridDomain::Powers("tile", 6), GridDomain::Variants("pad", 2)},
      [](absl::Span<const uint16_t> l) { return l[2] <= l[1] + 1; });
}

// A bowl with a preferred algorithm; failures where block and pad clash.
inline Trial Measure(const Levels& levels) {
  Trial trial;
  trial.levels = levels;
  if (levels[1] == 4 && levels[3] == 1) {
    trial.outcome = proto::LAUNCH_ERROR;
    return trial;
  }
  const double a = levels[1] - 2.0, b = levels[2] - 1.0;
  trial.objectives = {100 * (1 + a * a + b * b) * (levels[0] == 1 ? 1 : 1.7) *
                          (levels[3] == 0 ? 1 : 1.1),
                      10.0 + levels[1] * levels[1] + levels[0]};
  if (levels[2] == 5) trial.outcome = proto::CENSORED;
  if (levels[2] == 0 && levels[0] == 2) trial.outcome = proto::CONTENDED;
  return trial;
}

inline std::unique_ptr<Strategy> Make(const std::string& name,
                                      const Domain& domain,
                                      const StrategyOptions& options) {
  auto strategy = MakeStrategy(name, domain, options);
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  return std::move(*strategy);
}

// Ask and Tell until `trials` were told or nothing is left.
inline std::vector<Levels> Drive(Strategy& strategy, int trials, int batch) {
  std::vector<Levels> asked;
  while (static_cast<int>(asked.size()) < trials) {
    const std::vector<Levels> round = strategy.Ask(batch);
    if (round.empty()) break;
    std::vector<Trial> told;
    for (const Levels& levels : round) {
      asked.push_back(levels);
      told.push_back(Measure(levels));
    }
    strategy.Tell(told);
  }
  return asked;
}

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_TESTING_SMALL_TASK_H_
