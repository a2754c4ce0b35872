#include "base/stats/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/stats/distributions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

const std::vector<double> kOneToTen = {3, 10, 1, 8, 5, 2, 9, 4, 7, 6};
// Student's sleep data (R's `sleep`), a published example of both tests.
const std::vector<double> kDrug1 = {0.7, -1.6, -0.2, -1.2, -0.1,
                                    3.4, 3.7,  0.8,  0.0,  2.0};
const std::vector<double> kDrug2 = {1.9, 0.8, 1.1, 0.1, -0.1,
                                    4.4, 5.5, 1.6, 4.6, 3.4};

TEST(StatisticsTest, LocationOfKnownSamples) {
  EXPECT_EQ(Mean(kOneToTen), 5.5);
  EXPECT_EQ(Median(kOneToTen), 5.5);
  EXPECT_EQ(Median({3, 1, 2}), 2);
}

TEST(StatisticsTest, QuantileIsTypeSeven) {
  // R: quantile(1:10, c(0, .1, .25, .5, .9, 1)).
  EXPECT_DOUBLE_EQ(Quantile(kOneToTen, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile(kOneToTen, 0.1), 1.9);
  EXPECT_DOUBLE_EQ(Quantile(kOneToTen, 0.25), 3.25);
  EXPECT_DOUBLE_EQ(Quantile(kOneToTen, 0.5), 5.5);
  EXPECT_DOUBLE_EQ(Quantile(kOneToTen, 0.9), 9.1);
  EXPECT_DOUBLE_EQ(Quantile(kOneToTen, 1), 10);
}

TEST(StatisticsTest, TooFewValuesGiveNan) {
  EXPECT_TRUE(std::isnan(Mean({})));
  EXPECT_TRUE(std::isnan(Median({})));
  EXPECT_TRUE(std::isnan(Quantile({}, 0.5)));
  EXPECT_TRUE(std::isnan(Variance({1})));
  EXPECT_TRUE(std::isnan(MedianAbsoluteDeviation({})));
  EXPECT_TRUE(std::isnan(MannWhitneyU({}, {1}).p_value));
  EXPECT_TRUE(std::isnan(MedianInterval({}, 0.9).low));
}

TEST(StatisticsTest, SpreadOfKnownSamples) {
  EXPECT_DOUBLE_EQ(Variance({2, 4, 4, 4, 5, 5, 7, 9}), 32.0 / 7);
  EXPECT_DOUBLE_EQ(StandardDeviation({1, 2, 3}), 1);
  EXPECT_DOUBLE_EQ(MedianAbsoluteDeviation({1, 1, 2, 2, 4, 6, 9}, false), 1);
  EXPECT_DOUBLE_EQ(MedianAbsoluteDeviation({1, 1, 2, 2, 4, 6, 9}), 1.4826);
}

TEST(StatisticsTest, SpreadSurvivesALargeOffset) {
  EXPECT_NEAR(Variance({1e9 + 1, 1e9 + 2, 1e9 + 3}), 1, 1e-6);
}

TEST(StatisticsTest, MedianIsThatOfTheSortedValues) {
  Rng rng(1);
  for (int n = 1; n < 700; n += 1 + n / 20) {
    for (const uint64_t levels : {1, 2, 7, 100000}) {  // few: many ties
      for (const bool ascending : {false, true}) {
        std::vector<double> values;
        for (int i = 0; i < n; ++i) {
          values.push_back(rng.UniformInt(levels) * .1 - 1);
        }
        std::vector<double> sorted = values;
        std::sort(sorted.begin(), sorted.end());
        if (ascending) values = sorted;
        const double upper = sorted[n / 2];
        const double below = n % 2 == 1 ? upper : sorted[n / 2 - 1];
        const double expected = below + (upper - below) / 2;
        EXPECT_EQ(Median(values), expected) << n << " of " << levels;
      }
    }
  }
}

TEST(StatisticsTest, MedianSurvivesValuesThatSplitBadly) {
  // The three that the pivot comes from are the smallest each time.
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) values.push_back(std::abs(i - 1500));
  EXPECT_EQ(Median(values), 750);
}

TEST(StatisticsTest, MedianIntervalUsesTheTabulatedRanks) {
  // Conover's and others' tables: n = 10 at 95% is [x(2), x(9)], which covers
  // 97.85%; n = 6 is the least for 95% (96.88%).
  const Interval ten = MedianInterval(kOneToTen, 0.95);
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
  EXPECT_NEAR(ten.confidence, 1 - 22.0 / 1024, 1e-12);
  EXPECT_NEAR(MedianInterval({1, 2, 3, 4, 5, 6}, 0.95).confidence, 0.96875,
              1e-12);
  const Interval five = MedianInterval({1, 2, 3, 4, 5}, 0.95);
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  EXPECT_NEAR(five.confidence, 0.9375, 1e-12);
  EXPECT_EQ(MedianInterval({7}, 0.95).confidence, 0);
}

TEST(StatisticsTest, MedianIntervalCoversAsOftenAsItSays) {
  Rng rng(5);
  int covered = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<double> x(15);
    for (double& value : x) value = std::exp(rng.Gaussian());  // median 1
    const Interval interval = MedianInterval(x, 0.9);
    covered += interval.low <= 1 && 1 <= interval.high;
  }
  // Says 1 - 2 * P(Binomial(15, 1/2) <= 3) = 0.9648.
  EXPECT_NEAR(covered / 4000.0, 0.9648, 0.012);
}

TEST(StatisticsTest, MeanIntervalIsStudents) {
  const Interval interval = MeanInterval({1, 2, 3, 4, 5}, 0.95);
  // 3 +- 2.7764451 * sqrt(2.5 / 5).
  EXPECT_NEAR(interval.low, 3 - 1.9632432, 1e-6);
  EXPECT_NEAR(interval.high, 3 + 1.9632432, 1e-6);
}

TEST(StatisticsTest, ClopperPearsonHasItsClosedForm) {
  // Without a success the bound is 1 - (1 - confidence)^(1 / n).
  EXPECT_NEAR(ClopperPearsonUpper(0, 2000, 0.95),
              1 - std::pow(0.05, 1 / 2000.0), 1e-12);
  EXPECT_NEAR(ClopperPearsonUpper(0, 2000, 0.95), 0.0014967, 1e-6);
  EXPECT_EQ(ClopperPearsonUpper(5, 5, 0.95), 1);
  // At the bound as few successes are as rare as was asked.
  const double bound = ClopperPearsonUpper(7, 300, 0.99);
  EXPECT_NEAR(BinomialCdf(7, 300, bound), 0.01, 1e-9);
  EXPECT_NEAR(ClopperPearsonLower(5, 5, 0.95), std::pow(0.05, 0.2), 1e-12);
}

// The p-value by looking at every assignment.
double SlowExactRankP(const std::vector<double>& x,
                      const std::vector<double>& y) {
  std::vector<double> all = x;
  all.insert(all.end(), y.begin(), y.end());
  auto distance = [&](const std::vector<bool>& is_y) {
    double u = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = 0; j < all.size(); ++j) {
        if (is_y[i] && !is_y[j]) u += all[i] > all[j];
      }
    }
    return std::abs(u - static_cast<double>(x.size() * y.size()) / 2);
  };
  std::vector<bool> is_y(all.size(), false);
  std::fill(is_y.begin() + static_cast<int64_t>(x.size()), is_y.end(), true);
  const double observed = distance(is_y);
  double extreme = 0, total = 0;
  do {  // begins with the sorted arrangement, which is the observed one
    extreme += distance(is_y) >= observed;
    ++total;
  } while (std::next_permutation(is_y.begin(), is_y.end()));
  return extreme / total;
}

TEST(StatisticsTest, MannWhitneyAgreesWithEnumeration) {
  Rng rng(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<double> x(1 + rng.UniformInt(5)), y(1 + rng.UniformInt(5));
    for (double& value : x) value = rng.Gaussian();
    for (double& value : y) value = rng.Gaussian() + 1;
    const RankTest test = MannWhitneyU(x, y);
    EXPECT_TRUE(test.exact);
    EXPECT_NEAR(test.p_value, std::min(1.0, SlowExactRankP(x, y)), 1e-12);
  }
  // All above: 2 / (8 choose 4).
  EXPECT_NEAR(MannWhitneyU({1, 2, 3, 4}, {5, 6, 7, 8}).p_value, 2.0 / 70,
              1e-12);
  EXPECT_EQ(MannWhitneyU({1, 2, 3, 4}, {5, 6, 7, 8}).u, 16);
}

TEST(StatisticsTest, MannWhitneyCorrectsForTiesAndContinuity) {
  // R: wilcox.test(extra ~ group, data = sleep): W = 25.5, p = 0.06933.
  const RankTest test = MannWhitneyU(kDrug1, kDrug2);
  EXPECT_FALSE(test.exact);
  EXPECT_EQ(test.u, 100 - 25.5);
  EXPECT_NEAR(test.p_value, 0.06933, 5e-6);
  EXPECT_EQ(MannWhitneyU({1, 1}, {1, 1}).p_value, 1);
}

TEST(StatisticsTest, MannWhitneyIsCalibratedForLargeSamples) {
  // Exact at 50, approximate at 51: nearly the same answer.
  Rng rng(3);
  std::vector<double> x(50), y(50);
  for (double& value : x) value = rng.Gaussian();
  for (double& value : y) value = rng.Gaussian() + 0.3;
  const RankTest exact = MannWhitneyU(x, y);
  x.push_back(0.15);
  const RankTest approximate = MannWhitneyU(x, y);
  EXPECT_TRUE(exact.exact);
  EXPECT_FALSE(approximate.exact);
  EXPECT_NEAR(exact.p_value, approximate.p_value, 0.01);
}

TEST(StatisticsTest, RanksAreRedAsOftenAsTheySayOnEqualSamples) {
  Rng rng(17);
  int red = 0;
  constexpr int kRounds = 1000;
  for (int i = 0; i < kRounds; ++i) {
    std::vector<double> x(6), y(6);
    for (double& value : x) value = std::exp(0.05 * rng.Gaussian());
    for (double& value : y) value = std::exp(0.05 * rng.Gaussian());
    red += MannWhitneyU(x, y).p_value <= 0.05;
  }
  // Five standard errors are 3.4%.
  EXPECT_NEAR(red / double{kRounds}, 0.041, 0.034);
}

TEST(StatisticsTest, BenjaminiHochbergByHand) {
  // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "BH").
  EXPECT_THAT(BenjaminiHochberg({0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.02, 1e-12), DoubleNear(0.04, 1e-12),
                          DoubleNear(0.04, 1e-12), DoubleNear(0.02, 1e-12)));
  EXPECT_THAT(BenjaminiHochberg({0.9, 0.8}), ElementsAre(0.9, 0.9));
  EXPECT_TRUE(BenjaminiHochberg({}).empty());
}

}  // namespace
}  // namespace optrail
