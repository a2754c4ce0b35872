#include "tracker/detect/slopes.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace optrail::tracker {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// How many stairs one segment may swallow.
constexpr int kMostStairs = 200;

struct Kink {
  double residual = kInfinity;
  int place = 0;
};

// The best continuous line with one kink over [begin, end), by least squares on
// 1, u and max(u, 0) with u the distance from the kink, for every kink; sums
// from the right make each O(1).
Kink BestKink(absl::Span<const double> values, int begin, int end) {
  const int n = end - begin;
  double all_y = 0, all_ty = 0, all_yy = 0;
  const double center = values[begin];
  for (int t = 0; t < n; ++t) {
    const double y = values[begin + t] - center;
    all_y += y;
    all_ty += t * y;
    all_yy += y * y;
  }
  const double all_t = n * (n - 1.0) / 2;
  const double all_tt = all_t * (2.0 * n - 1) / 3;
  Kink best;
  double right_y = 0, right_ty = 0;
  for (int k = n - 1; k >= 0; --k) {
    const double y = values[begin + k] - center;
    right_y += y;
    right_ty += k * y;
    if (k > n - 2) continue;
    const double m = n - k;
    const double w = m * (m - 1) / 2;       // sum of max(u, 0)
    const double ww = w * (2 * m - 1) / 3;  // and of its square
    const double u = all_t - double{1} * k * n;
    const double uu = all_tt - 2.0 * k * all_t + double{1} * k * k * n;
    const double uy = all_ty - k * all_y;
    const double wy = right_ty - k * right_y;
    // Centre on the mean, leaving two unknowns: slope and change of slope.
    const double a = uu - u * u / n;
    const double b = ww - u * w / n;
    const double c = ww - w * w / n;
    const double p = uy - u * all_y / n;
    const double q = wy - w * all_y / n;
    const double determinant = a * c - b * b;
    double explained = a > 0 ? p * p / a : 0;
    if (determinant > 1e-9 * a * c) {
      explained = (c * p * p - 2 * b * p * q + a * q * q) / determinant;
    }
    const double residual = all_yy - all_y * all_y / n - explained;
    if (residual < best.residual) best = {residual, begin + k};
  }
  return best;
}

struct Piece {
  int begin;
  int end;
  bool slopes;
};

std::vector<Piece> BestPieces(const RangeFits& fits,
                              const std::vector<int>& bounds,
                              double noise_variance, double penalty,
                              double slope_penalty) {
  const int m = static_cast<int>(bounds.size());
  std::vector<double> cost(m, kInfinity);
  std::vector<int> previous(m, 0);
  std::vector<char> slopes(m, 0);
  cost[0] = 0;
  for (int j = 1; j < m; ++j) {
    for (int i = std::max(0, j - kMostStairs); i < j; ++i) {
      const double level =
          fits.Level(bounds[i], bounds[j]).residual / noise_variance;
      const double line =
          fits.Slope(bounds[i], bounds[j]).residual / noise_variance +
          slope_penalty;
      const double total = cost[i] + penalty + std::min(level, line);
      if (total < cost[j]) {
        cost[j] = total;
        previous[j] = i;
        slopes[j] = line < level;
      }
    }
  }
  std::vector<Piece> pieces;
  for (int j = m - 1; j > 0; j = previous[j]) {
    pieces.push_back({bounds[previous[j]], bounds[j], slopes[j] != 0});
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace

RangeFits::RangeFits(absl::Span<const double> values)
    : sums_(values.size() + 1) {
  // Around the middle, to keep the sums small.
  double mean = 0;
  for (const double v : values) mean += v / values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = values[i] - mean;
    sums_[i + 1] = {sums_[i].value + v,
                    sums_[i].moment + v * static_cast<double>(i),
                    sums_[i].square + v * v};
  }
}

RangeFits::Line RangeFits::Level(int begin, int end) const {
  const double sum = sums_[end].value - sums_[begin].value;
  const double square = sums_[end].square - sums_[begin].square;
  return {std::max(0.0, square - sum * sum / (end - begin)), 0};
}

RangeFits::Line RangeFits::Slope(int begin, int end) const {
  Line line = Level(begin, end);
  const double n = end - begin;
  const double middle = begin + (n - 1) / 2;
  const double covariance = sums_[end].moment - sums_[begin].moment -
                            middle * (sums_[end].value - sums_[begin].value);
  const double spread = n * (n * n - 1) / 12;
  if (spread <= 0) return line;
  line.slope = covariance / spread;
  line.residual = std::max(0.0, line.residual - line.slope * covariance);
  return line;
}

Slopes SeparateSlopes(absl::Span<const double> values,
                      absl::Span<const int> stairs, double noise_variance,
                      double penalty, double slope_share) {
  Slopes result;
  if (stairs.empty()) return result;
  const int n = static_cast<int>(values.size());
  std::vector<int> bounds = {0};
  bounds.insert(bounds.end(), stairs.begin(), stairs.end());
  bounds.push_back(n);
  const RangeFits fits(values);
  std::vector<Piece> pieces =
      BestPieces(fits, bounds, noise_variance, penalty, slope_share * penalty);

  bool any_slope = false;
  for (const Piece& piece : pieces) any_slope |= piece.slopes;
  for (size_t k = 0; k + 1 < pieces.size(); ++k) {
    Piece& left = pieces[k];
    Piece& right = pieces[k + 1];
    const auto residual = [&fits](const Piece& piece) {
      return (piece.slopes ? fits.Slope(piece.begin, piece.end)
                           : fits.Level(piece.begin, piece.end))
          .residual;
    };
    if (left.slopes || right.slopes) {
      const Kink kink = BestKink(values, left.begin, right.end);
      const double gain = kink.residual - residual(left) - residual(right);
      if (gain <= penalty * noise_variance) {
        // A kink, not a step; it need not be where the stairs put it.
        if (kink.place > left.begin + 2 && kink.place < right.end - 2) {
          left.end = right.begin = kink.place;
        }
        continue;
      }
    }
    result.steps.push_back(right.begin);
  }
  if (!any_slope) return result;

  result.drift.resize(n);
  double drift = 0;
  for (const Piece& piece : pieces) {
    const double slope =
        piece.slopes ? fits.Slope(piece.begin, piece.end).slope : 0;
    for (int t = piece.begin; t < piece.end; ++t) {
      if (t > 0) drift += slope;
      result.drift[t] = drift;
    }
  }
  return result;
}

double StepOverKink(absl::Span<const double> values, int begin, int middle,
                    int end) {
  const absl::Span<const double> part = values.subspan(begin, end - begin);
  const RangeFits fits(part);
  return BestKink(part, 0, end - begin).residual -
         fits.Level(0, middle - begin).residual -
         fits.Level(middle - begin, end - begin).residual;
}

}  // namespace optrail::tracker
