#include "tracker/detect/correlated_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace optrail::tracker {
namespace {

constexpr int kMostCandidates = 32;
constexpr double kPhi[] = {0.3, 0.5, 0.7, 0.8, 0.9, 0.95};
constexpr double kThetaOverPhi[] = {0, 0.35, 0.7};

struct Memory {
  double phi;
  double theta;
};

// Powers of theta and the sums of those before, until they no longer count.
class Powers {
 public:
  explicit Powers(double theta) {
    double power = 1, sum = 0;
    do {
      power_.push_back(power);
      sum_.push_back(sum);
      sum += power;
      power *= theta;
    } while (power > 1e-12);
    power_.push_back(0);
    sum_.push_back(sum);
  }

  double Power(int exponent) const { return At(power_, exponent); }
  // Sum of theta^i for i in [0, count).
  double Sum(int count) const { return At(sum_, count); }

 private:
  static double At(const std::vector<double>& table, int i) {
    return i < static_cast<int>(table.size()) ? table[i] : table.back();
  }

  std::vector<double> power_, sum_;
};

// Least squares by the sweep operator (Goodnight 1979) on the cross products of
// all columns and, last, the series: a column enters and leaves in O(size^2).
class Sweeper {
 public:
  explicit Sweeper(int size) : size_(size), a_(size * size) {}

  double& at(int i, int j) { return a_[i * size_ + j]; }

  void Sweep(int k) {
    const double pivot = at(k, k);
    double* const pivot_row = &a_[k * size_];
    for (int j = 0; j < size_; ++j) pivot_row[j] /= pivot;
    for (int i = 0; i < size_; ++i) {
      if (i == k) continue;
      double* const row = &a_[i * size_];
      const double factor = row[k];
      for (int j = 0; j < size_; ++j) row[j] -= factor * pivot_row[j];
      row[k] = -factor / pivot;
    }
    pivot_row[k] = 1 / pivot;
  }

 private:
  int size_;
  std::vector<double> a_;
};

struct Selection {
  double criterion = std::numeric_limits<double>::infinity();
  std::vector<int> steps;
};

// A unit step at s, passed through the filter that whitens the noise, is
// level + transient * theta^(t - s) from s on, so all cross products have
// closed forms. The first column is the constant, seen from the second point.
struct Column {
  int begin;
  double level;
  double transient;
};

Selection SelectWithMemory(absl::Span<const double> values,
                           absl::Span<const int> candidates, Memory memory,
                           double penalty) {
  const int n = static_cast<int>(values.size());
  const double phi = memory.phi, theta = memory.theta;
  const double level = (1 - phi) / (1 - theta);
  std::vector<Column> columns = {{1, level, -level * theta}};
  for (const int c : candidates) columns.push_back({c, level, 1 - level});
  const int num_columns = static_cast<int>(columns.size());

  // The whitened series, and its sums from the right: plain, and discounted.
  std::vector<double> sum(n + 1, 0.0), discounted(n + 1, 0.0), white(n, 0.0);
  double power = 0;
  for (int t = 1; t < n; ++t) {
    white[t] = (values[t] - values[0]) - phi * (values[t - 1] - values[0]) +
               theta * white[t - 1];
    power += white[t] * white[t];
  }
  for (int t = n - 1; t >= 0; --t) {
    sum[t] = sum[t + 1] + white[t];
    discounted[t] = white[t] + theta * discounted[t + 1];
  }

  const Powers powers(theta), squares(theta * theta);
  Sweeper products(num_columns + 1);
  for (int j = 0; j < num_columns; ++j) {
    const Column& right = columns[j];
    const int count = n - right.begin;
    const double once = powers.Sum(count);
    const double twice = squares.Sum(count);
    for (int i = 0; i <= j; ++i) {
      const Column& left = columns[i];
      const double decay = powers.Power(right.begin - left.begin);
      const double product = left.level * right.level * count +
                             (left.level * right.transient +
                              right.level * left.transient * decay) *
                                 once +
                             left.transient * right.transient * decay * twice;
      products.at(i, j) = products.at(j, i) = product;
    }
    const double product = right.level * sum[right.begin] +
                           right.transient * discounted[right.begin];
    products.at(j, num_columns) = products.at(num_columns, j) = product;
  }
  products.at(num_columns, num_columns) = power;
  for (int k = 0; k < num_columns; ++k) products.Sweep(k);

  // Take away the step that explains least until none is left; keep the best.
  std::vector<char> in(num_columns, 1), best_in = in;
  int left = num_columns - 1;
  Selection best;
  // A perfect fit must not drown the penalty.
  const double least_power = 1e-9 * power + 1e-300;
  while (true) {
    const double residual =
        std::max(products.at(num_columns, num_columns), least_power);
    const double criterion =
        (n - 1) * std::log(residual / (n - 1)) + penalty * left;
    if (criterion < best.criterion) {
      best.criterion = criterion;
      best_in = in;
    }
    if (left == 0) break;
    int weakest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int k = 1; k < num_columns; ++k) {
      if (!in[k]) continue;
      const double height = products.at(k, num_columns);
      const double explained = height * height / products.at(k, k);
      if (explained < least || weakest == 0) {
        least = explained;
        weakest = k;
      }
    }
    products.Sweep(weakest);
    in[weakest] = 0;
    --left;
  }
  for (int k = 1; k < num_columns; ++k) {
    if (best_in[k]) best.steps.push_back(candidates[k - 1]);
  }
  return best;
}

}  // namespace

std::vector<int> SelectCorrelatedSteps(absl::Span<const double> values,
                                       absl::Span<const int> candidates,
                                       double penalty) {
  const int n = static_cast<int>(values.size());
  std::vector<int> steps;
  const int groups =
      (static_cast<int>(candidates.size()) + kMostCandidates - 1) /
      kMostCandidates;
  for (int g = 0; g < groups; ++g) {
    const int first = static_cast<int>(candidates.size()) * g / groups;
    const int last = static_cast<int>(candidates.size()) * (g + 1) / groups;
    // A group sees the series from the candidate before it to the one after.
    const int begin = first > 0 ? candidates[first - 1] : 0;
    const int end =
        last < static_cast<int>(candidates.size()) ? candidates[last] : n;
    std::vector<int> group;
    for (int k = first; k < last; ++k) group.push_back(candidates[k] - begin);
    const absl::Span<const double> part = values.subspan(begin, end - begin);

    Selection best = SelectWithMemory(part, group, {0, 0}, penalty);
    for (const double phi : kPhi) {
      for (const double share : kThetaOverPhi) {
        Selection other =
            SelectWithMemory(part, group, {phi, phi * share}, penalty);
        if (other.criterion < best.criterion) best = std::move(other);
      }
    }
    for (const int step : best.steps) steps.push_back(begin + step);
  }
  return steps;
}

}  // namespace optrail::tracker
