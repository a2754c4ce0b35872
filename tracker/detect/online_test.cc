#include "tracker/detect/online.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/hash/hash.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/evaluation/synthetic.h"
#include "tracker/detect/fold.pb.h"

namespace optrail::tracker {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<double> TwoSteps(NoiseKind kind, uint64_t seed) {
  return SyntheticSeries(kind, 400, {{150, 1.1}, {290, 1 / 1.1}}, seed);
}

class EveryNoise : public ::testing::TestWithParam<NoiseKind> {};

TEST_P(EveryNoise, NeverTakesAConfirmedChangeBack) {
  for (int seed = 1; seed <= 10; ++seed) {
    OnlineDetector detector;
    std::vector<ChangePoint> before;
    for (const double value : TwoSteps(GetParam(), seed)) {
      const OnlineUpdate update = detector.Append(value);
      ASSERT_EQ(detector.confirmed().size(),
                before.size() + update.confirmed.size());
      for (size_t k = 0; k < before.size(); ++k) {
        ASSERT_EQ(detector.confirmed()[k].index, before[k].index);
        ASSERT_EQ(detector.confirmed()[k].relative_change,
                  before[k].relative_change);
      }
      for (size_t k = 1; k < detector.confirmed().size(); ++k) {
        ASSERT_LT(detector.confirmed()[k - 1].index,
                  detector.confirmed()[k].index);
      }
      before = detector.confirmed();
    }
  }
}

// Whether two detectors say the same, now and of whatever follows: the last
// points once more, and twice as high.
bool GoOnAlike(OnlineDetector a, OnlineDetector b) {
  const auto alike = [](const ChangePoint& x, const ChangePoint& y) {
    return x.index == y.index && x.earliest == y.earliest &&
           x.latest == y.latest && x.confidence == y.confidence &&
           x.relative_change == y.relative_change;
  };
  const auto all_alike = [&](const std::vector<ChangePoint>& x,
                             const std::vector<ChangePoint>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), alike);
  };
  const std::vector<double> further =
      SyntheticSeries(NoiseKind::kNormal, 60, {{30, 1}}, 8);
  for (size_t i = 0; i <= further.size(); ++i) {
    if (a.size() != b.size() || !all_alike(a.confirmed(), b.confirmed()) ||
        !all_alike(a.returns(), b.returns()) ||
        a.provisional().has_value() != b.provisional().has_value() ||
        (a.provisional() && !alike(*a.provisional(), *b.provisional()))) {
      return false;
    }
    if (i == further.size()) break;
    const OnlineUpdate of_a = a.Append(further[i]);
    const OnlineUpdate of_b = b.Append(further[i]);
    if (of_a.marked != of_b.marked || of_a.withdrawn != of_b.withdrawn) {
      return false;
    }
  }
  return true;
}

TEST_P(EveryNoise, ReplayedFromACopyOfItsStateGivesTheSameState) {
  const std::vector<double> values = TwoSteps(GetParam(), 3);
  OnlineDetector whole;
  for (const double value : values) whole.Append(value);
  for (const size_t cut : {0u, 1u, 149u, 155u, 260u, 399u}) {
    OnlineDetector first;
    for (size_t i = 0; i < cut; ++i) first.Append(values[i]);
    OnlineDetector copy = first;
    for (size_t i = cut; i < values.size(); ++i) copy.Append(values[i]);
    ASSERT_FALSE(whole.confirmed().empty());
    EXPECT_TRUE(GoOnAlike(copy, whole)) << cut;
  }
}

// Points without a value among the others.
std::vector<double> WithHoles(std::vector<double> values, uint64_t seed) {
  Rng rng(seed);
  for (double& value : values) {
    if (rng.UniformInt(9) == 0) {
      value = std::numeric_limits<double>::quiet_NaN();
    }
  }
  return values;
}

TEST_P(EveryNoise, GoesOnFromAStateThatWasKept) {
  for (const bool with_holes : {false, true}) {
    std::vector<double> values = TwoSteps(GetParam(), 6);
    if (with_holes) values = WithHoles(values, 7);
    OnlineDetector whole;
    for (const double value : values) whole.Append(value);
    OnlineDetector first;
    for (size_t cut = 0; cut <= values.size(); ++cut) {
      if (cut % 7 == 0 || cut + 8 > values.size()) {
        proto::FoldState kept;
        ASSERT_TRUE(kept.ParseFromString(
            first.State(absl::MakeConstSpan(values).subspan(0, cut))
                .SerializeAsString()));
        OnlineDetector resumed;
        ASSERT_TRUE(resumed.Resume(kept, values));
        ASSERT_TRUE(GoOnAlike(resumed, first)) << cut;
        for (size_t i = cut; i < values.size(); ++i) resumed.Append(values[i]);
        ASSERT_TRUE(GoOnAlike(resumed, whole)) << cut;
      }
      if (cut < values.size()) first.Append(values[cut]);
    }
  }
}

TEST_P(EveryNoise, ALatePointIsWorkedInByReplayFromItsPlace) {
  const std::vector<double> values = TwoSteps(GetParam(), 4);
  constexpr size_t kLate = 140;
  OnlineDetector without;
  OnlineDetector replayed;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == kLate) {
      replayed = without;
    } else {
      without.Append(values[i]);
    }
  }
  OnlineDetector whole;
  for (const double value : values) whole.Append(value);
  ASSERT_FALSE(GoOnAlike(without, whole)) << "the point matters";

  for (size_t i = kLate; i < values.size(); ++i) replayed.Append(values[i]);
  EXPECT_TRUE(GoOnAlike(replayed, whole));
}

TEST_P(EveryNoise, OfAPrefixConfirmsAPrefix) {
  const std::vector<double> values = TwoSteps(GetParam(), 5);
  const OnlineResult full = DetectOnline(values);
  for (size_t n = 0; n <= values.size(); n += 37) {
    const OnlineResult part =
        DetectOnline(absl::MakeConstSpan(values).subspan(0, n));
    ASSERT_LE(part.confirmed.size(), full.confirmed.size());
    for (size_t k = 0; k < part.confirmed.size(); ++k) {
      EXPECT_EQ(part.confirmed[k].index, full.confirmed[k].index);
    }
  }
}

TEST_P(EveryNoise, ConfirmsNoneOfItsOwnAndStepsOfTenPercent) {
  int own = 0, hits = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    own += DetectOnline(SyntheticSeries(GetParam(), 400, {}, seed))
               .confirmed.size();
    for (const ChangePoint& change :
         DetectOnline(TwoSteps(GetParam(), seed)).confirmed) {
      hits += std::abs(change.index - 150) <= 5 ||
              std::abs(change.index - 290) <= 5;
    }
  }
  EXPECT_LE(own, 6) << "in 8000 points";
  EXPECT_GE(hits, GetParam() == NoiseKind::kRamp ? 28 : 37);
}

INSTANTIATE_TEST_SUITE_P(, EveryNoise, ::testing::ValuesIn(kAllNoiseKinds),
                         [](const auto& info) { return Name(info.param); });

// How many points of a step in steady noise it takes until it is confirmed.
std::vector<int> DelaysOfSteadySteps(double noise, int history, double ratio) {
  std::vector<int> delays;
  for (int seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    OnlineDetector detector;
    int delay = 1000;
    for (int t = 0; t < history + 40 && delay == 1000; ++t) {
      const double level = t < history ? 100 : 100 * ratio;
      const OnlineUpdate update =
          detector.Append(level * (1 + noise * rng.Gaussian()));
      if (update.confirmed.empty()) continue;
      EXPECT_NEAR(update.confirmed[0].index, history, 1) << seed;
      EXPECT_NEAR(update.confirmed[0].relative_change, ratio - 1, 3 * noise);
      EXPECT_FALSE(detector.provisional().has_value());
      delay = t - history + 1;
    }
    delays.push_back(delay);
  }
  std::sort(delays.begin(), delays.end());
  return delays;
}

TEST(OnlineDetector, ConfirmsHalfAsMuchAgainByItsFourthPoint) {
  for (const int history : {24, 40, 120}) {
    EXPECT_LE(DelaysOfSteadySteps(.02, history, 1.5)[95], 4) << history;
  }
}

TEST(OnlineDetector, ConfirmsTenPercentByItsSixthPoint) {
  for (const int history : {30, 60, 120}) {
    EXPECT_LE(DelaysOfSteadySteps(.02, history, 1.1)[80], 6) << history;
    EXPECT_LE(DelaysOfSteadySteps(.02, history, .9)[80], 6) << history;
  }
}

TEST(OnlineDetector, MarksAStepAtItsThirdPoint) {
  OnlineDetector detector;
  int marked_at = -1, now = 0;
  for (const double value :
       SyntheticSeries(NoiseKind::kNormal, 150, {{100, 1.08}}, 1)) {
    if (detector.Append(value).marked && marked_at < 0) marked_at = now;
    ++now;
  }
  EXPECT_EQ(marked_at, 102);
}

TEST(OnlineDetector, SuspectsAStepInTheMiddleOfAFewPointsHoweverMany) {
  for (const double scale : {1.0, 3.0}) {
    for (int points = 16; points <= 40; ++points) {
      int found = 0;
      for (int seed = 1; seed <= 20; ++seed) {
        // Noise of 1% and 3%.
        std::vector<double> values = SyntheticSeries(NoiseKind::kNormal, points,
                                                     {}, 100 * points + seed);
        for (int i = 0; i < points; ++i) {
          values[i] =
              (100 + scale * (values[i] - 100)) * (i < points / 2 ? 1 : 1.3);
        }
        const OnlineResult result = DetectOnline(values);
        const auto is_there = [&](const ChangePoint& change) {
          return std::abs(change.index - points / 2) <= 1;
        };
        found += std::any_of(result.confirmed.begin(), result.confirmed.end(),
                             is_there) ||
                 (result.provisional && is_there(*result.provisional));
      }
      EXPECT_GE(found, 19) << points << " points, noise of " << scale << "%";
    }
  }
}

TEST(OnlineDetector, FindsAStepAfterSixPointsOnceTheDataShowIt) {
  int found = 0;
  for (int seed = 1; seed <= 50; ++seed) {
    const std::vector<ChangePoint> confirmed =
        DetectOnline(
            SyntheticSeries(NoiseKind::kNormal, 32, {{6, 1.083}}, seed))
            .confirmed;
    found += confirmed.size() == 1 && std::abs(confirmed[0].index - 6) <= 1;
  }
  EXPECT_GE(found, 45);
}

// Also where neighbours happen to be alike: no walk goes so far at once.
TEST(OnlineDetector, NeverTakesALargeStepForAWalk) {
  for (int seed = 1; seed <= 200; ++seed) {
    EXPECT_EQ(
        DetectOnline(SyntheticSeries(NoiseKind::kNormal, 40, {{6, 1.3}}, seed))
            .confirmed.size(),
        1)
        << seed;
  }
}

TEST(OnlineDetector, LevelsThatAlternateAtRandomAreNoNews) {
  for (const double ratio : {1.05, 1.1, 1.3}) {
    int confirmed = 0;
    for (int seed = 1; seed <= 40; ++seed) {
      Rng rng(seed);
      OnlineDetector detector;
      for (int t = 0; t < 500; ++t) {
        const double level = rng.UniformReal() < .5 ? 100 : 100 * ratio;
        detector.Append(level * (1 + .01 * rng.Gaussian()));
      }
      confirmed += detector.confirmed().size();
    }
    EXPECT_LE(confirmed, 0) << ratio << ", in 20000 points";
  }
}

TEST(OnlineDetector, TeethAreReturnsOnceBothLevelsHaveBeenSeen) {
  for (const int length : {5, 10, 20, 40, 80}) {
    Rng rng(length);
    OnlineDetector detector;
    for (int t = 0; t < 800; ++t) {
      detector.Append((t / length % 2 == 0 ? 100 : 110) *
                      (1 + .01 * rng.Gaussian()));
    }
    EXPECT_LE(detector.confirmed().size(), 2) << length;
    if (length >= 20) {
      EXPECT_GE(detector.confirmed().size() + detector.returns().size(),
                800u / length - 2)
          << length;
    }
  }
}

TEST(OnlineDetector, TheBeginningOfAWalkIsNoStep) {
  int confirmed = 0;
  for (int seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    OnlineDetector detector;
    double state = rng.Gaussian();
    for (int t = 0; t < 60; ++t) {
      if (t > 0) state = .9 * state + std::sqrt(1 - .81) * rng.Gaussian();
      detector.Append(100 * (1 + .05 * state));
    }
    confirmed += detector.confirmed().size();
  }
  EXPECT_LE(confirmed, 5) << "in 24000 points";
}

TEST(OnlineDetector, TeethThatFallSlowlyAreNoNews) {
  int confirmed = 0;
  for (int seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    OnlineDetector detector;
    for (int t = 0; t < 300; ++t) {
      const double level = 1 + .2 * (39 - t % 40) / 40;
      detector.Append(100 * (level + .01 * rng.Gaussian()));
    }
    confirmed += detector.confirmed().size();
  }
  EXPECT_EQ(confirmed, 0) << "in 45000 points";
}

TEST(OnlineDetector, ALevelThatIsLeftAndVisitedNowAndThenIsNoNews) {
  int later_alerts = 0;
  for (int seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    OnlineDetector detector;
    bool high = rng.UniformReal() < .5;
    for (int t = 0; t < 600; ++t) {
      if (rng.UniformReal() < .08) high = !high;
      detector.Append((high ? 120 : 100) * (1 + .01 * rng.Gaussian()));
    }
    int alerts = 0;
    for (const ChangePoint& change : detector.confirmed()) {
      alerts += change.relative_change > 0;
    }
    later_alerts += std::max(0, alerts - 1);
  }
  EXPECT_LE(later_alerts, 1) << "in 90000 points";
}

TEST(OnlineDetector, WhatPassesWithinAFewPointsIsAnExcursion) {
  Rng rng(3);
  OnlineDetector detector;
  for (int t = 0; t < 150; ++t) {
    detector.Append((t >= 60 && t < 70 ? 130 : 100) *
                    (1 + .01 * rng.Gaussian()));
  }
  ASSERT_THAT(detector.confirmed(), SizeIs(1));
  ASSERT_THAT(detector.returns(), SizeIs(1));
  EXPECT_EQ(detector.returns()[0].index, 70);
}

TEST(OnlineDetector, AnImprovementThatLastedAndIsLostIsNews) {
  Rng rng(4);
  OnlineDetector detector;
  for (int t = 0; t < 120; ++t) {
    detector.Append((t >= 40 && t < 80 ? 90 : 100) *
                    (1 + .01 * rng.Gaussian()));
  }
  ASSERT_THAT(detector.confirmed(), SizeIs(2));
  EXPECT_GT(detector.confirmed()[1].relative_change, .08);
}

TEST(OnlineDetector, WithdrawsTheMarkOfABurst) {
  std::vector<double> values = SyntheticSeries(NoiseKind::kNormal, 200, {}, 2);
  for (int t = 100; t < 103; ++t) values[t] *= 1.3;
  OnlineDetector detector;
  int marks = 0, withdrawals = 0;
  for (const double value : values) {
    const OnlineUpdate update = detector.Append(value);
    marks += update.marked;
    withdrawals += update.withdrawn;
  }
  EXPECT_EQ(marks, 1);
  EXPECT_EQ(withdrawals, 1);
  EXPECT_FALSE(detector.provisional().has_value());
  EXPECT_THAT(detector.confirmed(), IsEmpty());
}

TEST(OnlineDetector, PassesOverWhatIsNotFinite) {
  std::vector<double> values;
  for (const double value :
       SyntheticSeries(NoiseKind::kNormal, 200, {{100, 1.1}}, 4)) {
    values.push_back(value);
    values.push_back(std::numeric_limits<double>::quiet_NaN());
    values.push_back(-std::numeric_limits<double>::infinity());
  }
  const OnlineResult result = DetectOnline(values);
  ASSERT_THAT(result.confirmed, SizeIs(1));
  EXPECT_EQ(result.confirmed[0].index, 300);
  // The points without a value before it may have made the change as well.
  EXPECT_EQ(result.confirmed[0].earliest, 298);
  EXPECT_EQ(result.confirmed[0].latest, 300);
}

TEST(OnlineDetector, TakesAnyValues) {
  const double max = std::numeric_limits<double>::max();
  for (const auto& [a, b] : {std::pair<double, double>{0, 0},
                             {-max, max},
                             {5e-324, 1e-310},
                             {0, 1}}) {
    std::vector<double> values(100, a);
    values.resize(200, b);
    const OnlineResult result = DetectOnline(values);
    EXPECT_THAT(result.confirmed, SizeIs(a == b ? 0 : 1)) << a << " " << b;
    for (const ChangePoint& change : result.confirmed) {
      EXPECT_TRUE(std::isfinite(change.relative_change));
    }
  }
}

TEST(OnlineDetector, AStateIsOfItsValuesAlone) {
  const std::vector<double> values = TwoSteps(NoiseKind::kNormal, 9);
  OnlineDetector detector;
  for (const double value : values) detector.Append(value);
  const proto::FoldState state = detector.State(values);
  OnlineDetector resumed;
  EXPECT_TRUE(resumed.Resume(state, values));
  for (const size_t place : {0u, 200u, 399u}) {
    std::vector<double> others = values;
    others[place] = std::nextafter(others[place], 0);
    EXPECT_FALSE(OnlineDetector().Resume(state, others)) << place;
    others = values;
    others.erase(others.begin() + place);
    EXPECT_FALSE(OnlineDetector().Resume(state, others)) << place;
    others.insert(others.begin() + place, {100., values[place]});
    EXPECT_FALSE(OnlineDetector().Resume(state, others)) << place;
  }
  proto::FoldState negative = state;
  negative.set_size(-1);
  EXPECT_FALSE(OnlineDetector().Resume(negative, values));
}

// If it fails since detection answers otherwise now, raise kVersion, too:
// states that an older version kept are not gone on from then.
TEST(OnlineDetector, AnswersAsItsVersionDoes) {
  std::string answers;
  for (const NoiseKind noise : kAllNoiseKinds) {
    for (uint64_t seed = 20; seed < 23; ++seed) {
      const OnlineResult found = DetectOnline(TwoSteps(noise, seed));
      for (const auto* changes : {&found.confirmed, &found.returns}) {
        for (const ChangePoint& change : *changes) {
          absl::StrAppendFormat(&answers, "%d %d..%d %.4g %.4g,", change.index,
                                change.earliest, change.latest,
                                change.level_before, change.level_after);
        }
        answers += ';';
      }
    }
  }
  EXPECT_EQ(OnlineDetector::kVersion, 1);
  EXPECT_EQ(Fingerprint(answers), "5570ac78a2f32c5d") << answers;
}

}  // namespace
}  // namespace optrail::tracker
