#include "tracker/detect/online.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/evaluation/synthetic.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
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

TEST_P(EveryNoise, ReplayedFromACopyOfItsStateGivesTheSameState) {
  const std::vector<double> values = TwoSteps(GetParam(), 3);
  OnlineDetector whole;
  for (const double value : values) whole.Append(value);
  for (const size_t cut : {0u, 1u, 149u, 155u, 260u, 399u}) {
    OnlineDetector first;
    for (size_t i = 0; i < cut; ++i) first.Append(values[i]);
    OnlineDetector copy = first;
    auto parsed = OnlineDetector::Parse(first.Serialize());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    for (size_t i = cut; i < values.size(); ++i) {
      copy.Append(values[i]);
      parsed->Append(values[i]);
    }
    ASSERT_FALSE(whole.confirmed().empty());
    EXPECT_EQ(copy.Serialize(), whole.Serialize()) << cut;
    EXPECT_EQ(parsed->Serialize(), whole.Serialize()) << cut;
  }
}

TEST_P(EveryNoise, ALatePointIsWorkedInByReplayFromItsPlace) {
  const std::vector<double> values = TwoSteps(GetParam(), 4);
  constexpr size_t kLate = 140;
  OnlineDetector state;
  for (size_t i = 0; i < kLate; ++i) state.Append(values[i]);
  const OnlineDetector checkpoint = state;
  for (size_t i = kLate + 1; i < values.size(); ++i) state.Append(values[i]);
  state = checkpoint;
  for (size_t i = kLate; i < values.size(); ++i) state.Append(values[i]);
  const OnlineResult full = DetectOnline(values);
  ASSERT_EQ(state.confirmed().size(), full.confirmed.size());
  for (size_t k = 0; k < full.confirmed.size(); ++k) {
    EXPECT_EQ(state.confirmed()[k].index, full.confirmed[k].index);
  }
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

TEST(OnlineDetector, MarksAStepAtItsThirdPointAndConfirmsItLater) {
  OnlineDetector detector;
  int marked_at = -1, confirmed_at = -1, now = 0;
  for (const double value :
       SyntheticSeries(NoiseKind::kNormal, 150, {{100, 1.08}}, 1)) {
    const OnlineUpdate update = detector.Append(value);
    if (update.marked && marked_at < 0) marked_at = now;
    if (!update.confirmed.empty()) {
      confirmed_at = now;
      EXPECT_EQ(update.confirmed[0].index, 100);
      EXPECT_NEAR(update.confirmed[0].relative_change, 0.08, 0.012);
      EXPECT_FALSE(detector.provisional().has_value());
    }
    ++now;
  }
  EXPECT_EQ(marked_at, 102);
  EXPECT_GE(confirmed_at, 110);
  EXPECT_LE(confirmed_at, 120);
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

TEST(OnlineDetector, KeepsABoundedState) {
  OnlineDetector detector;
  for (const double value : SyntheticSeries(NoiseKind::kNormal, 5000, {}, 3)) {
    detector.Append(value);
  }
  EXPECT_LT(detector.Serialize().size(), 8000);
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

TEST(OnlineDetector, RefusesTextThatIsNotItsState) {
  OnlineDetector detector;
  for (const double value : TwoSteps(NoiseKind::kNormal, 5)) {
    detector.Append(value);
  }
  const std::string state = detector.Serialize();
  for (const std::string& text :
       {std::string(), std::string("nonsense"), "x" + state, state + " 1",
        state.substr(0, state.size() / 2),
        std::string("optrail-online-3 0 0 0 0 0 0 0 0 0 0")}) {
    EXPECT_THAT(std::string(OnlineDetector::Parse(text).status().message()),
                HasSubstr("not a state of the online detector"))
        << text;
  }
}

}  // namespace
}  // namespace optrail::tracker
