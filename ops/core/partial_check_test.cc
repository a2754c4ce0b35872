#include "ops/core/partial_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

constexpr int64_t kRows = 96;
constexpr int64_t kColumns = 160;
constexpr Tolerance kTolerance = {1e-3, 0};
// The error of a right result, in tolerances.
constexpr double kError = 1.0 / 40;

// A matrix that is known.
class Known : public PartialReference {
 public:
  explicit Known(uint64_t seed, bool projects = true) : projects_(projects) {
    Rng rng(seed);
    values_.resize(kRows * kColumns);
    for (double& value : values_) value = 10 * rng.Gaussian();
  }
  std::vector<double> Row(int64_t row) const override {
    ++rows_asked;
    return {values_.begin() + row * kColumns,
            values_.begin() + (row + 1) * kColumns};
  }
  std::vector<double> Times(absl::Span<const double> x,
                            int count) const override {
    if (!projects_) return {};
    std::vector<double> product(kRows * count);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        for (int s = 0; s < count; ++s) {
          product[i * count + s] +=
              values_[i * kColumns + j] * x[j * count + s];
        }
      }
    }
    return product;
  }
  // Returns the output of a right kernel, with errors of up to `error`
  // tolerances.
  std::vector<float> Result(uint64_t seed, double error = kError) const {
    Rng rng(seed + 77);
    std::vector<float> result(values_.size());
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] =
          static_cast<float>(values_[i] + error * kTolerance.absolute *
                                              (2 * rng.UniformReal() - 1));
    }
    return result;
  }
  mutable std::atomic<int> rows_asked = 0;

 private:
  const bool projects_;
  std::vector<double> values_;
};

// What a device tells of a result that it keeps.
absl::optional<double> ErrorOf(const std::vector<float>& result,
                               const PartialExpectation& expected) {
  std::vector<float> sampled;
  for (const int64_t row : expected.sampled) {
    sampled.insert(sampled.end(), &result[row * kColumns],
                   &result[row * kColumns] + kColumns);
  }
  const std::vector<uint16_t> words = SignWords(kColumns, expected.seed);
  std::vector<double> sums(kRows * (kProjections + 1));
  for (int64_t i = 0; i < kRows; ++i) {
    double* const of_row = &sums[i * (kProjections + 1)];
    for (int64_t j = 0; j < kColumns; ++j) {
      const double value = result[i * kColumns + j];
      for (int s = 0; s < kProjections; ++s) {
        of_row[s] += (words[j] >> s & 1) != 0 ? value : -value;
      }
      const double element =
          kTolerance.absolute + kTolerance.relative * std::fabs(value);
      of_row[kProjections] += element * element;
    }
  }
  return ErrorByParts(proto::F32, sampled.data(), sums, expected, kTolerance);
}

// In how many of `seeds` sets of inputs a kernel with `bug` is found.
int Found(int seeds, const std::function<void(Rng&, std::vector<float>&)>& bug,
          bool projects = true) {
  int found = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Known reference(seed, projects);
    std::vector<float> result = reference.Result(seed);
    Rng rng(1000 + seed);
    bug(rng, result);
    const PartialExpectation expected =
        ExpectPartially(reference, kRows, kColumns, seed);
    const CompareResult compared = ComparePartially(
        proto::F32, result.data(), expected, kTolerance, reference);
    found += !compared.ok();
    // What is found on the host looks wrong on the device.
    if (projects && !compared.ok()) {
      EXPECT_FALSE(ErrorOf(result, expected)) << seed;
    }
  }
  return found;
}

TEST(PartialCheck, NeverRefusesARightResult) {
  // Also one that uses its tolerance up, in some rows more than in others.
  for (const double error : {0.0, kError, .99}) {
    for (int seed = 1; seed <= 200; ++seed) {
      const Known reference(seed);
      std::vector<float> result = reference.Result(seed, error);
      const std::vector<float> worse = reference.Result(seed, .99);
      for (int64_t i = 0; i < kRows; i += 7) {
        std::copy_n(&worse[i * kColumns], kColumns, &result[i * kColumns]);
      }
      const CompareResult compared =
          ComparePartially(proto::F32, result.data(),
                           ExpectPartially(reference, kRows, kColumns, seed),
                           kTolerance, reference);
      ASSERT_TRUE(compared.ok()) << seed << " " << compared.first_wrong_index;
      ASSERT_LE(compared.max_error_in_tolerances, 1);
    }
  }
}

TEST(PartialCheck, ARightResultNeedNotLeaveTheDevice) {
  for (int seed = 1; seed <= 200; ++seed) {
    const Known reference(seed);
    const absl::optional<double> error =
        ErrorOf(reference.Result(seed),
                ExpectPartially(reference, kRows, kColumns, seed));
    ASSERT_TRUE(error.has_value()) << seed;
    EXPECT_GT(*error, 0);
    EXPECT_LE(*error, 1);
  }
}

TEST(PartialCheck, NamesTheElementThatIsWrong) {
  const Known reference(5);
  std::vector<float> result = reference.Result(5);
  const int64_t at = 40 * kColumns + 17;
  const float was = result[at];
  result[at] = was + 1;
  const CompareResult compared = ComparePartially(
      proto::F32, result.data(), ExpectPartially(reference, kRows, kColumns, 5),
      kTolerance, reference);
  EXPECT_EQ(compared.wrong_count, 1);
  EXPECT_EQ(compared.first_wrong_index, at);
  EXPECT_EQ(compared.first_wrong_value, was + 1);
  EXPECT_NEAR(compared.first_wrong_expected, was, 1e-3);
}

TEST(PartialCheck, OneWrongElementIsAlwaysFound) {
  // 16 r sqrt(sum of squares of tolerances), with r of uniform errors.
  const double surely = 16 * kError / std::sqrt(3) * kTolerance.absolute *
                        std::sqrt(static_cast<double>(kColumns));
  EXPECT_EQ(Found(300,
                  [&](Rng& rng, std::vector<float>& result) {
                    result[rng.UniformInt(kRows * kColumns)] +=
                        static_cast<float>(1.5 * surely);
                  }),
            300);
}

TEST(PartialCheck, WhatWasNotWrittenIsAlwaysFound) {
  const float poison = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(
      Found(100,
            [&](Rng&, std::vector<float>& result) { result.back() = poison; }),
      100);
  EXPECT_EQ(Found(100,
                  [&](Rng& rng, std::vector<float>& result) {
                    result[rng.UniformInt(kRows * kColumns)] = poison;
                  }),
            100);
  EXPECT_EQ(Found(100,
                  [&](Rng& rng, std::vector<float>& result) {
                    result[rng.UniformInt(kRows * kColumns)] =
                        std::numeric_limits<float>::infinity();
                  }),
            100);
}

TEST(PartialCheck, AWrongTileIsFound) {
  const auto tile = [](const std::function<float(float)>& change) {
    return [change](Rng& rng, std::vector<float>& result) {
      const int64_t row = rng.UniformInt(kRows - 8);
      const int64_t column = rng.UniformInt(kColumns - 8);
      for (int64_t i = row; i < row + 8; ++i) {
        for (int64_t j = column; j < column + 8; ++j) {
          result[i * kColumns + j] = change(result[i * kColumns + j]);
        }
      }
    };
  };
  EXPECT_EQ(Found(300, tile([](float) { return 0.f; })), 300);
  EXPECT_EQ(Found(300, tile([](float x) { return 2 * x; })), 300);
  EXPECT_EQ(Found(300, tile([](float x) { return -x; })), 300);
}

// The hardest for projections: errors that are equal and opposite vanish with
// half of all sign vectors. One in 65,000 is missed.
TEST(PartialCheck, ErrorsThatCancelAreFound) {
  EXPECT_EQ(Found(600,
                  [](Rng& rng, std::vector<float>& result) {
                    const int64_t row = rng.UniformInt(kRows);
                    const int64_t column = rng.UniformInt(kColumns - 1);
                    float* const at = &result[row * kColumns + column];
                    at[0] += 1;
                    at[1] -= 1;
                  }),
            600);
}

// Small errors everywhere in half of the rows: (1/2)^8 are missed.
TEST(PartialCheck, SmallErrorsAreFoundByTheRowsThatAreCompared) {
  const int found = Found(400, [](Rng& rng, std::vector<float>& result) {
    for (int64_t i = 0; i < kRows; ++i) {
      if (rng.UniformInt(2) != 0) continue;
      for (int64_t j = 0; j < kColumns; ++j) {
        result[i * kColumns + j] += 1.5f * 1e-3f;
      }
    }
  });
  EXPECT_GE(found, 390);
}

// Without projections one row in kRows / kSampledRowsAlone is not looked at.
TEST(PartialCheck, RowsAloneFindAsOftenAsTheyAreSampled) {
  const int found = Found(
      600,
      [](Rng& rng, std::vector<float>& result) {
        result[rng.UniformInt(kRows * kColumns)] += 1;
      },
      /*projects=*/false);
  const double expected = 600.0 * kSampledRowsAlone / kRows;
  EXPECT_GT(found, expected - 60);
  EXPECT_LT(found, expected + 60);
}

TEST(PartialCheck, ARightResultCostsNoMoreThanTheSampledRows) {
  const Known reference(3);
  const PartialExpectation expected =
      ExpectPartially(reference, kRows, kColumns, 3);
  EXPECT_EQ(reference.rows_asked, kSampledRows);
  const std::vector<float> result = reference.Result(3);
  EXPECT_TRUE(ComparePartially(proto::F32, result.data(), expected, kTolerance,
                               reference)
                  .ok());
  EXPECT_EQ(reference.rows_asked, kSampledRows);
}

}  // namespace
}  // namespace optrail::ops
