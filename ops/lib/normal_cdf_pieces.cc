#include "ops/lib/normal_cdf_pieces.h"

#include <array>
#include <cmath>

namespace optrail::ops {
namespace {

constexpr int kPoints = NormalCdfPieces::kDegree + 1;

double NormalCdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// Coefficients of powers of x - `middle`, from Newton's divided differences.
std::array<double, kPoints> Interpolate(double middle, double width) {
  std::array<double, kPoints> nodes;
  std::array<double, kPoints> differences;
  for (int i = 0; i < kPoints; ++i) {
    nodes[i] = width / 2 * std::cos((2 * i + 1) * M_PI / (2 * kPoints));
    differences[i] = NormalCdf(middle + nodes[i]);
  }
  for (int order = 1; order < kPoints; ++order) {
    for (int i = kPoints - 1; i >= order; --i) {
      differences[i] =
          (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order]);
    }
  }
  // Horner's scheme, on polynomials.
  std::array<double, kPoints> sum = {differences[kPoints - 1]};
  for (int i = kPoints - 2; i >= 0; --i) {
    for (int power = kPoints - 1; power >= 0; --power) {
      sum[power] =
          (power > 0 ? sum[power - 1] : differences[i]) - sum[power] * nodes[i];
    }
  }
  return sum;
}

}  // namespace

const NormalCdfPieces& NormalCdfPieces::Get() {
  static const NormalCdfPieces pieces = [] {
    NormalCdfPieces p;
    for (int i = -kPieces / 2; i < kPieces / 2; ++i) {
      const auto polynomial = Interpolate(i * double{kWidth}, kWidth);
      for (int power = 0; power <= kDegree; ++power) {
        p.coefficients[power][i & (kPieces - 1)] =
            static_cast<float>(polynomial[power]);
      }
    }
    return p;
  }();
  return pieces;
}

}  // namespace optrail::ops
