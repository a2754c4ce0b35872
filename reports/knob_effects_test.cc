#include "reports/knob_effects.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::reports {
namespace {

void AddTrial(absl::optional<double> value, std::vector<int> levels,
              TuningSession* session) {
  tracker::TrialPoint trial;
  trial.values = {value};
  trial.cost = value;
  session->of.trials.push_back(std::move(trial));
  session->levels.push_back(std::move(levels));
}

// Three knobs: one decides the time, one matters little, one not at all.
TuningSession MakeSession(int trials) {
  TuningSession session;
  session.knobs = {{"idle", {"1", "2", "3", "4", "5", "6", "7", "8"}},
                   {"main", {"slow", "fast"}},
                   {"minor", {"a", "b"}}};
  Rng rng(11);
  for (int i = 0; i < trials; ++i) {
    const std::vector<int> levels = {static_cast<int>(rng.UniformInt(8)),
                                     static_cast<int>(rng.UniformInt(2)),
                                     static_cast<int>(rng.UniformInt(2))};
    AddTrial(1000 * (levels[1] == 0 ? 2 : 1) * (levels[2] == 0 ? 1.1 : 1) *
                 std::exp(0.02 * rng.Gaussian()),
             levels, &session);
  }
  return session;
}

TEST(KnobEffectsTest, RanksKnobsByWhatTheyExplain) {
  const std::vector<KnobEffect> effects = KnobEffects(MakeSession(300));
  ASSERT_EQ(effects.size(), 3);
  EXPECT_EQ(effects[0].knob, 1);
  EXPECT_GT(*effects[0].importance, 0.9);
  EXPECT_EQ(effects[1].knob, 2);
  EXPECT_EQ(effects[2].knob, 0);
  EXPECT_LT(*effects[2].importance, 0.03);
}

// Eta squared of a knob with 8 levels that does nothing is 7/23 on average over
// 24 trials; an estimate without that bias is centred on zero.
TEST(KnobEffectsTest, DoesNotFavourKnobsWithManyLevels) {
  double sum = 0;
  for (int repeat = 0; repeat < 50; ++repeat) {
    Rng rng(repeat);
    TuningSession session;
    session.knobs = {{"idle", {"1", "2", "3", "4", "5", "6", "7", "8"}}};
    for (int i = 0; i < 24; ++i) {
      AddTrial(std::exp(rng.Gaussian()), {i % 8}, &session);
    }
    sum += *KnobEffects(session)[0].importance;
  }
  EXPECT_LT(sum / 50, 0.15);  // cut at zero, so not zero on average
}

TEST(KnobEffectsTest, KnowsNoImportanceWithoutEnoughTrials) {
  EXPECT_FALSE(KnobEffects(MakeSession(1))[0].importance.has_value());
  EXPECT_FALSE(KnobEffects(MakeSession(0))[0].importance.has_value());
}

TEST(KnobEffectsTest, LevelsHoldTheQuartilesOfValidTrialsOnly) {
  TuningSession session;
  session.knobs = {{"k", {"only"}}};
  for (const double value : {4.0, 1.0, 3.0, 2.0, 5.0}) {
    AddTrial(value, {0}, &session);
  }
  AddTrial(100, {0}, &session);  // a bound
  session.of.trials.back().cost = absl::nullopt;
  AddTrial(absl::nullopt, {0}, &session);
  const LevelValues at = KnobEffects(session)[0].levels[0];
  EXPECT_EQ(at.count, 5);
  EXPECT_EQ(at.min, 1);
  EXPECT_EQ(at.lower_quartile, 2);
  EXPECT_EQ(at.median, 3);
  EXPECT_EQ(at.upper_quartile, 4);
  EXPECT_EQ(at.max, 5);
}

}  // namespace
}  // namespace optrail::reports
