#include "tracker/detect/place.h"

#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

std::vector<double> StepOf(double height, int n, int place, Rng& rng) {
  std::vector<double> values;
  for (int t = 0; t < n; ++t) {
    values.push_back((t >= place ? height : 0) + rng.Gaussian());
  }
  return values;
}

TEST(RangeOfPlaces, OfASharpStepIsItsPlace) {
  Rng rng(1);
  const PlaceRange range =
      RangeOfPlaces(StepOf(12, 100, 40, rng), 40, 0, 12, 1);
  EXPECT_EQ(range.earliest, 40);
  EXPECT_EQ(range.latest, 40);
}

TEST(RangeOfPlaces, HoldsTheTruthAsOftenAsItSaysAndNarrowsWithTheStep) {
  double width_before = 1e9;
  for (const double height : {1.0, 2.0, 3.0}) {
    Rng rng(2);
    int covered = 0;
    double width = 0;
    constexpr int kSeries = 1000;
    for (int i = 0; i < kSeries; ++i) {
      const std::vector<double> values = StepOf(height, 60, 30, rng);
      const PlaceRange range = RangeOfPlaces(values, 30, 0, height, 1);
      // What a detector would say: not the truth, the likeliest place.
      int best = 1;
      double cost = 0, least = 0;
      for (int t = 1; t < 59; ++t) {
        cost +=
            values[t] * values[t] - (values[t] - height) * (values[t] - height);
        if (cost < least) {
          least = cost;
          best = t + 1;
        }
      }
      const PlaceRange told = RangeOfPlaces(values, best, 0, height, 1);
      covered += told.earliest <= 30 && 30 <= told.latest;
      width += told.latest - told.earliest;
      EXPECT_LE(range.earliest, 30);
      EXPECT_GE(range.latest, 30);
    }
    // A set of whole places holds somewhat more than 95%.
    EXPECT_GE(covered, 0.93 * kSeries) << height;
    EXPECT_LE(covered, 0.995 * kSeries) << height;
    EXPECT_LT(width, width_before / 1.5) << height;
    width_before = width;
  }
}

TEST(RangeOfPlaces, WidensWithTheNoisesMemory) {
  Rng rng(3);
  const std::vector<double> values = StepOf(2, 60, 30, rng);
  const PlaceRange narrow = RangeOfPlaces(values, 30, 0, 2, 1);
  const PlaceRange wide = RangeOfPlaces(values, 30, 0, 2, 10);
  EXPECT_LT(wide.earliest, narrow.earliest);
  EXPECT_GT(wide.latest, narrow.latest);
}

TEST(RangeOfPlaces, AnOutlierBesideTheStepDoesNotMoveIt) {
  std::vector<double> values(40, 0.0);
  for (int t = 20; t < 40; ++t) values[t] = 5;
  values[17] = 1000;
  const PlaceRange range = RangeOfPlaces(values, 20, 0, 5, 1);
  EXPECT_EQ(range.earliest, 20);
  EXPECT_EQ(range.latest, 20);
}

TEST(RangeOfPlaces, WithoutNoiseIsTheMiddle) {
  const PlaceRange range =
      RangeOfPlaces(std::vector<double>{0, 0, 1, 1}, 2, 0, 1, 0);
  EXPECT_EQ(range.earliest, 2);
  EXPECT_EQ(range.latest, 2);
}

}  // namespace
}  // namespace optrail::tracker
