#include "tracker/detect/correlated_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>

#include "tracker/detect/widest_vectors.h"

namespace optrail::tracker {
namespace {

constexpr int kMostCandidates = 32;

// The grid of memories. The last is none at all.
constexpr double kPhi[] = {0.95, 0.9, 0.8, 0.7, 0.5, 0.3};
constexpr double kThetaOverPhi[] = {0.7, 0.35, 0};
constexpr int kNumMemories = std::size(kPhi) * std::size(kThetaOverPhi) + 1;
constexpr int kPadded = (kNumMemories + 3) / 4 * 4;  // to whole vectors

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

struct Memory {
  Memory(double phi, double theta)
      : phi(phi), theta(theta), powers(theta), squares(theta * theta) {}

  double phi;
  double theta;
  Powers powers;   // of theta
  Powers squares;  // of theta^2
};

const std::vector<Memory>& Memories() {
  static const std::vector<Memory>* const memories = [] {
    auto* all = new std::vector<Memory>;
    for (const double phi : kPhi) {
      for (const double share : kThetaOverPhi) {
        all->emplace_back(phi, phi * share);
      }
    }
    all->emplace_back(0, 0);
    return all;
  }();
  return *memories;
}

// What the steps need to know of the whitened series e_t, under each memory:
// from the beginning of each column to the end, the plain sum and the sum
// discounted by theta per point; and the sum of squares.
struct Whitened {
  using PerMemory = std::array<double, kPadded>;
  std::vector<PerMemory> sum, discounted;  // one per column
  PerMemory power;
};

// One pass for all memories side by side: each is a chain of dependent
// operations, but the chains are independent.
OPTRAIL_WIDEST_VECTORS Whitened WhitenAll(absl::Span<const double> values,
                                          const std::vector<int>& begins) {
  using PerMemory = Whitened::PerMemory;
  const std::vector<Memory>& memories = Memories();
  PerMemory phi, theta, white;
  phi.fill(0);
  theta.fill(0);
  for (int m = 0; m < kNumMemories; ++m) {
    phi[m] = memories[m].phi;
    theta[m] = memories[m].theta;
  }
  Whitened result;
  white.fill(0);
  result.power.fill(0);
  const int n = static_cast<int>(values.size());
  const int num_columns = static_cast<int>(begins.size());
  for (int k = 0; k < num_columns; ++k) {
    PerMemory sum, discounted, weight;
    sum.fill(0);
    discounted.fill(0);
    weight.fill(1);
    const int end = k + 1 < num_columns ? begins[k + 1] : n;
    for (int t = begins[k]; t < end; ++t) {
      const double now = values[t] - values[0];
      const double before = values[t - 1] - values[0];
      for (int m = 0; m < kPadded; ++m) {
        white[m] = now - phi[m] * before + theta[m] * white[m];
        sum[m] += white[m];
        discounted[m] += weight[m] * white[m];
        weight[m] *= theta[m];
        result.power[m] += white[m] * white[m];
      }
    }
    result.sum.push_back(sum);
    result.discounted.push_back(discounted);
  }
  for (int k = num_columns - 2; k >= 0; --k) {
    const int length = begins[k + 1] - begins[k];
    for (int m = 0; m < kNumMemories; ++m) {
      result.sum[k][m] += result.sum[k + 1][m];
      result.discounted[k][m] +=
          memories[m].powers.Power(length) * result.discounted[k + 1][m];
    }
  }
  return result;
}

// Takes multiples of `row` from the rows of the upper triangle `a`: so many
// that column k would vanish.
OPTRAIL_WIDEST_VECTORS void SubtractAllRows(const double* __restrict row,
                                            const char* gone, int k,
                                            double pivot, int size,
                                            double* __restrict a) {
  for (int i = 0; i < size; ++i) {
    if (gone[i] || i == k) continue;
    const double factor = row[i] / pivot;
    for (int j = i; j < size; ++j) a[i * size + j] -= factor * row[j];
  }
}

// Least squares by the sweep operator (Goodnight 1979) on the cross products of
// all columns and, last, the series: a column enters and leaves in O(size^2).
// Symmetric, so only what is on and above the diagonal is kept.
class Sweeper {
 public:
  explicit Sweeper(int size)
      : size_(size), a_(size * size), row_(size), gone_(size, 0) {}

  // i <= j.
  double& at(int i, int j) { return a_[i * size_ + j]; }
  // Of the series, by the columns that are in.
  double Residual() { return at(size_ - 1, size_ - 1); }
  // By how much it would grow without column k.
  double ExplainedBy(int k) {
    const double height = at(k, size_ - 1);
    return -height * height / at(k, k);
  }

  void Enter(int k) {
    const double pivot = at(k, k);
    Eliminate(k);
    for (int j = 0; j < size_; ++j) row_[j] /= pivot;
    row_[k] = -1 / pivot;
    for (int i = 0; i <= k; ++i) at(i, k) = row_[i];
    for (int j = k; j < size_; ++j) at(k, j) = row_[j];
  }

  // For good.
  void Leave(int k) {
    gone_[k] = 1;
    Eliminate(k);
  }

 private:
  void Eliminate(int k) {
    const double pivot = at(k, k);
    for (int i = 0; i < size_; ++i) {
      row_[i] = gone_[i] && i != k ? 0 : i < k ? at(i, k) : at(k, i);
    }
    SubtractAllRows(row_.data(), gone_.data(), k, pivot, size_, a_.data());
  }

  int size_;
  std::vector<double> a_, row_;
  std::vector<char> gone_;
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

Sweeper CrossProducts(const Whitened& whitened, int memory_index,
                      const std::vector<int>& begins, int n) {
  const Memory& memory = Memories()[memory_index];
  const double level = (1 - memory.phi) / (1 - memory.theta);
  std::vector<Column> columns = {{1, level, -level * memory.theta}};
  for (size_t k = 1; k < begins.size(); ++k) {
    columns.push_back({begins[k], level, 1 - level});
  }
  const int num_columns = static_cast<int>(columns.size());
  Sweeper products(num_columns + 1);
  for (int j = 0; j < num_columns; ++j) {
    const Column& right = columns[j];
    const int count = n - right.begin;
    const double once = memory.powers.Sum(count);
    const double twice = memory.squares.Sum(count);
    for (int i = 0; i <= j; ++i) {
      const Column& left = columns[i];
      const double decay = memory.powers.Power(right.begin - left.begin);
      products.at(i, j) = left.level * right.level * count +
                          (left.level * right.transient +
                           right.level * left.transient * decay) *
                              once +
                          left.transient * right.transient * decay * twice;
    }
    products.at(j, num_columns) =
        right.level * whitened.sum[j][memory_index] +
        right.transient * whitened.discounted[j][memory_index];
  }
  products.at(num_columns, num_columns) = whitened.power[memory_index];
  return products;
}

// Replaces `best` if this memory does better.
void SelectWithMemory(const Whitened& whitened, int memory_index,
                      const std::vector<int>& begins, int n, double penalty,
                      Selection& best) {
  const int num_columns = static_cast<int>(begins.size());
  Sweeper products = CrossProducts(whitened, memory_index, begins, n);
  for (int k = 0; k < num_columns; ++k) products.Enter(k);

  // Take away the step that explains least until none is left; keep the best.
  std::vector<int> left(begins.begin() + 1, begins.end());
  std::vector<int> columns(left.size());
  std::iota(columns.begin(), columns.end(), 1);
  // A perfect fit must not drown the penalty.
  const double least_power = 1e-9 * whitened.power[memory_index] + 1e-300;
  while (true) {
    const double residual = std::max(products.Residual(), least_power);
    const double fit = (n - 1) * std::log(residual / (n - 1));
    // With fewer steps the fit only gets worse.
    if (fit >= best.criterion) break;
    const double criterion = fit + penalty * left.size();
    if (criterion < best.criterion) best = {criterion, left};
    if (left.empty()) break;
    size_t weakest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < columns.size(); ++k) {
      const double explained = products.ExplainedBy(columns[k]);
      if (explained < least) {
        least = explained;
        weakest = k;
      }
    }
    products.Leave(columns[weakest]);
    columns.erase(columns.begin() + weakest);
    left.erase(left.begin() + weakest);
  }
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
    std::vector<int> begins = {1};
    for (int k = first; k < last; ++k) begins.push_back(candidates[k] - begin);
    const absl::Span<const double> part = values.subspan(begin, end - begin);

    const Whitened whitened = WhitenAll(part, begins);
    Selection best;
    for (int m = 0; m < kNumMemories; ++m) {
      SelectWithMemory(whitened, m, begins, end - begin, penalty, best);
    }
    for (const int step : best.steps) steps.push_back(begin + step);
  }
  return steps;
}

}  // namespace optrail::tracker
