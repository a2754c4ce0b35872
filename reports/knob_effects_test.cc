#include "reports/knob_effects.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::reports {
namespace {

// Three knobs: one decides the time, one matters little, one not at all.
TuningSession MakeSession(int trials) {
  TuningSession session;
  session.knobs = {{"idle", {"1", "2", "3", "4", "5", "6", "7", "8"}},
                   {"main", {"slow", "fast"}},
                   {"minor", {"a", "b"}}};
  Rng rng(11);
  for (int i = 0; i < trials; ++i) {
    Trial trial;
    trial.levels = {static_cast<int>(rng.UniformInt(8)),
                    static_cast<int>(rng.UniformInt(2)),
                    static_cast<int>(rng.UniformInt(2))};
    trial.time_ns = 1000 * (trial.levels[1] == 0 ? 2 : 1) *
                    (trial.levels[2] == 0 ? 1.1 : 1) *
                    std::exp(0.02 * rng.Gaussian());
    session.trials.push_back(trial);
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
      Trial trial;
      trial.levels = {i % 8};
      trial.time_ns = std::exp(rng.Gaussian());
      session.trials.push_back(trial);
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
  for (double time : {4.0, 1.0, 3.0, 2.0, 5.0}) {
    session.trials.push_back({"OK", time, {0}, "", 0});
  }
  session.trials.push_back({"CENSORED", 100, {0}, "", 0});
  session.trials.push_back(
      {"CRASHED", std::numeric_limits<double>::quiet_NaN(), {0}, "", 0});
  const LevelTimes at = KnobEffects(session)[0].levels[0];
  EXPECT_EQ(at.count, 5);
  EXPECT_EQ(at.min_ns, 1);
  EXPECT_EQ(at.lower_quartile_ns, 2);
  EXPECT_EQ(at.median_ns, 3);
  EXPECT_EQ(at.upper_quartile_ns, 4);
  EXPECT_EQ(at.max_ns, 5);
}

TEST(ConvergeTest, FindsImprovementsAndTrialsToTheBest) {
  TuningSession session;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  session.trials = {{"CRASHED", nan, {}, "", 0}, {"OK", 200, {}, "", 0},
                    {"OK", 104, {}, "", 0},      {"CENSORED", 10, {}, "", 0},
                    {"OK", 100.5, {}, "", 0},    {"OK", 100, {}, "", 0}};
  const Convergence convergence = Converge(session);
  EXPECT_EQ(convergence.best_ns, 100);
  EXPECT_EQ(convergence.trials_to_95_percent, 3);
  EXPECT_EQ(convergence.trials_to_99_percent, 5);
  EXPECT_EQ(convergence.improvements.size(), 4);
  EXPECT_EQ(convergence.outcomes.at("OK"), 4);
}

TEST(ConvergeTest, HasNoBestWithoutAValidTrial) {
  TuningSession session;
  session.trials = {
      {"TIMED_OUT", std::numeric_limits<double>::quiet_NaN(), {}, "", 0}};
  EXPECT_FALSE(Converge(session).best_ns.has_value());
  EXPECT_FALSE(Converge(session).trials_to_95_percent.has_value());
}

TEST(FinalistsTest, TellTheWinnersCurseAndTheVerifiedSpeedup) {
  TuningSession session;
  session.finalists = {{"a=1", 100, 103, "OK", false, true},
                       {"a=2", 309, 309, "OK", true, false}};
  EXPECT_NEAR(*WinnersCurse(session), 0.03, 1e-12);
  EXPECT_NEAR(*VerifiedSpeedup(session), 3, 1e-12);
  session.finalists.pop_back();
  EXPECT_FALSE(VerifiedSpeedup(session).has_value());
}

}  // namespace
}  // namespace optrail::reports
