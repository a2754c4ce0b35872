#include "tuning/model/dense_ops.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

// A random symmetric positive definite matrix, row by row.
std::vector<double> PositiveDefinite(int n, Rng& rng) {
  std::vector<double> b(n * n), a(n * n);
  for (double& x : b) x = rng.UniformReal() - 0.5;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < n; ++k) a[i * n + j] += b[i * n + k] * b[j * n + k];
      if (i == j) a[i * n + j] += 0.5;
    }
  }
  return a;
}

// Sizes around the widths of vectors.
constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 70};

TEST(DenseOpsTest, MaternIsTheFormula) {
  Rng rng(1);
  for (const int n : kSizes) {
    std::vector<float> r2(n), value(n), slope(n);
    for (float& x : r2) x = static_cast<float>(4 * rng.UniformReal());
    r2[0] = 0;
    Matern52(r2.data(), n, value.data(), slope.data());
    for (int i = 0; i < n; ++i) {
      const auto matern = [](double r2) {
        const double t = std::sqrt(5 * r2);
        return (1 + t + t * t / 3) * std::exp(-t);
      };
      EXPECT_NEAR(value[i], matern(r2[i]), 1e-5);
      const double h = 1e-4;
      const double numeric = (matern(r2[i] + h) - matern(r2[i])) / h;
      EXPECT_NEAR(slope[i], numeric, 1e-2);
    }
  }
}

TEST(DenseOpsTest, DotAndAddScaledAreTheirSums) {
  Rng rng(2);
  for (const int n : kSizes) {
    std::vector<float> a(n), b(n);
    for (float& x : a) x = static_cast<float>(rng.UniformReal());
    for (float& x : b) x = static_cast<float>(rng.UniformReal());
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    EXPECT_NEAR(Dot(a.data(), b.data(), n), sum, 1e-4);
    const std::vector<float> before = a;
    AddScaled(0.5f, b.data(), n, a.data());
    for (int i = 0; i < n; ++i) EXPECT_NEAR(a[i], before[i] + b[i] / 2, 1e-6);
  }
}

TEST(DenseOpsTest, CholeskyFactorsAndItsInverseGivesThePrecision) {
  Rng rng(3);
  for (const int n : kSizes) {
    const std::vector<double> a = PositiveDefinite(n, rng);
    std::vector<double> l = a, inverse(n * n), precision(n * n);
    ASSERT_TRUE(Cholesky(l.data(), n));
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        double sum = 0;
        for (int k = 0; k <= j; ++k) sum += l[i * n + k] * l[j * n + k];
        EXPECT_NEAR(sum, a[i * n + j], 1e-9);
      }
    }
    InvertLower(l.data(), n, inverse.data());
    GramOfLower(inverse.data(), n, precision.data());
    // a * precision is the identity.
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int k = 0; k < n; ++k) {
          const double p = k >= j ? precision[k * n + j] : precision[j * n + k];
          sum += a[i * n + k] * p;
        }
        EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-8) << n;
      }
    }
  }
}

TEST(DenseOpsTest, CholeskyRefusesWhatIsNotPositiveDefinite) {
  std::vector<double> a = {1, 0, 2, 1};  // lower triangle: 1; 2 1
  EXPECT_FALSE(Cholesky(a.data(), 2));
  std::vector<double> nan = {std::nan("")};
  EXPECT_FALSE(Cholesky(nan.data(), 1));
}

TEST(DenseOpsTest, ForwardSolveSolves) {
  Rng rng(4);
  for (const int n : kSizes) {
    const int stride = n + 3;
    std::vector<float> l(n * stride), v(n * kBlockWidth);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) {
        l[i * stride + j] = static_cast<float>(rng.UniformReal() - 0.5);
      }
      l[i * stride + i] = 1.5f;
    }
    for (float& x : v) x = static_cast<float>(rng.UniformReal() - 0.5);
    const std::vector<float> b = v;
    ForwardSolveBlock(l.data(), stride, n, v.data());
    for (int i = 0; i < n; ++i) {
      for (const int c : {0, 1, 100, kBlockWidth - 1}) {
        double sum = 0;
        for (int j = 0; j <= i; ++j) {
          sum += l[i * stride + j] * v[j * kBlockWidth + c];
        }
        EXPECT_NEAR(sum, b[i * kBlockWidth + c], 2e-3) << n;
      }
    }
  }
}

TEST(DenseOpsTest, AddRowsIsAProductOfMatrixAndVector) {
  Rng rng(5);
  const int rows = 5;
  std::vector<float> v(rows * kBlockWidth), acc(kBlockWidth, 1.0f);
  for (float& x : v) x = static_cast<float>(rng.UniformReal());
  const float factor[rows] = {1, -2, 0.5f, 0, 3};
  AddRows(v.data(), rows, factor, acc.data());
  for (int c = 0; c < kBlockWidth; ++c) {
    double sum = 1;
    for (int i = 0; i < rows; ++i) sum += factor[i] * v[i * kBlockWidth + c];
    EXPECT_NEAR(acc[c], sum, 1e-5);
  }
}

}  // namespace
}  // namespace optrail::tuning
