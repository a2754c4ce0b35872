#include "base/stats/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/stats/distributions.h"

namespace optrail {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> Sorted(Samples x) {
  std::vector<double> sorted(x.begin(), x.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Medians of up to so many values need no memory.
constexpr size_t kMedianBuffer = 256;
// What is sorted rather than split, and after how many splits something is
// wrong with the pivots.
constexpr size_t kFewToSelect = 8;
constexpr int kMostSplits = 64;

// The value of rank `rank` (from 0) of the `n` at `values`, by quickselect into
// `scratch`. Each round counts and copies without a branch that depends on the
// values: mispredicted ones are what std::nth_element spends its time on.
double Select(const double* values, size_t n, size_t rank, double* scratch) {
  const double* in = values;
  for (int split = 0; n > kFewToSelect && split < kMostSplits; ++split) {
    const double a = in[0], b = in[n / 2], c = in[n - 1];
    const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    size_t smaller = 0;
    for (size_t i = 0; i < n; ++i) smaller += in[i] < pivot;
    size_t kept = 0;
    if (rank < smaller) {
      for (size_t i = 0; i < n; ++i) {
        const double v = in[i];
        scratch[kept] = v;
        kept += v < pivot;
      }
    } else if (smaller > 0) {
      for (size_t i = 0; i < n; ++i) {
        const double v = in[i];
        scratch[kept] = v;
        kept += !(v < pivot);
      }
      rank -= smaller;
    } else {
      // The pivot is the smallest, perhaps many times.
      size_t larger = 0;
      for (size_t i = 0; i < n; ++i) larger += in[i] > pivot;
      if (rank < n - larger) return pivot;
      for (size_t i = 0; i < n; ++i) {
        const double v = in[i];
        scratch[kept] = v;
        kept += v > pivot;
      }
      rank -= n - larger;
    }
    n = kept;
    in = scratch;
  }
  if (in != scratch) std::copy(in, in + n, scratch);
  std::nth_element(scratch, scratch + rank, scratch + n);
  return scratch[rank];
}

// counts[u]: the ways to choose m of m + n ranks with statistic u. The
// generating function is the Gaussian binomial coefficient, the product of
// (1 - q^(n + i)) / (1 - q^i) for i = 1 ... m.
std::vector<double> RankSumCounts(int m, int n) {
  const int size = m * n + 1;
  std::vector<double> counts(static_cast<size_t>(size), 0.0);
  counts[0] = 1;
  for (int i = 1; i <= m; ++i) {
    for (int u = size - 1; u >= n + i; --u) counts[u] -= counts[u - n - i];
    for (int u = i; u < size; ++u) counts[u] += counts[u - i];
  }
  return counts;
}

}  // namespace

double Mean(Samples x) {
  if (x.empty()) return kNan;
  return std::accumulate(x.begin(), x.end(), 0.0) /
         static_cast<double>(x.size());
}

double Median(Samples x) {
  const size_t n = x.size();
  if (n == 0) return kNan;
  double buffer[kMedianBuffer];
  std::vector<double> large;
  if (n > kMedianBuffer) large.resize(n);
  const size_t middle = n / 2;
  const double upper =
      Select(x.data(), n, middle, large.empty() ? buffer : large.data());
  if (n % 2 == 1) return upper;
  // Its neighbour below: the same again, if fewer are smaller.
  size_t smaller = 0;
  double below = -HUGE_VAL;
  for (const double v : x) {
    smaller += v < upper;
    below = std::max(below, v < upper ? v : -HUGE_VAL);
  }
  if (smaller < middle) return upper;
  return below + (upper - below) / 2;
}

double Quantile(Samples x, double p) {
  OPTRAIL_CHECK(p >= 0 && p <= 1) << "p = " << p;
  if (x.empty()) return kNan;
  std::vector<double> copy(x.begin(), x.end());
  const double position = p * static_cast<double>(copy.size() - 1);
  const auto index = static_cast<int64_t>(position);
  const auto at = copy.begin() + index;
  std::nth_element(copy.begin(), at, copy.end());
  if (at + 1 == copy.end()) return *at;
  const double next = *std::min_element(at + 1, copy.end());
  return *at + (position - static_cast<double>(index)) * (next - *at);
}

double Variance(Samples x) {
  if (x.size() < 2) return kNan;
  const double mean = Mean(x);
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(x.size() - 1);
}

double StandardDeviation(Samples x) { return std::sqrt(Variance(x)); }

double MedianAbsoluteDeviation(Samples x, bool consistent) {
  const double center = Median(x);
  std::vector<double> distances;
  distances.reserve(x.size());
  for (const double value : x) distances.push_back(std::abs(value - center));
  return Median(distances) * (consistent ? 1.4826 : 1.0);
}

Interval MedianInterval(Samples x, double confidence) {
  if (x.empty()) return {kNan, kNan, 0};
  const std::vector<double> sorted = Sorted(x);
  const auto n = static_cast<int64_t>(sorted.size());
  // [x(d), x(n + 1 - d)] covers the median unless fewer than d values lie on
  // one side of it: 1 - 2 P(Binomial(n, 1/2) <= d - 1). Coverage falls with d.
  auto coverage = [n](int64_t d) { return 1 - 2 * BinomialCdf(d - 1, n, 0.5); };
  int64_t low = 1, high = std::max<int64_t>(1, n / 2);
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (coverage(middle) >= confidence) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return {sorted[static_cast<size_t>(low - 1)],
          sorted[static_cast<size_t>(n - low)], std::max(0.0, coverage(low))};
}

Interval MeanInterval(Samples x, double confidence) {
  if (x.size() < 2) return {kNan, kNan, 0};
  const auto n = static_cast<double>(x.size());
  const double half_width = StudentTQuantile(0.5 + confidence / 2, n - 1) *
                            StandardDeviation(x) / std::sqrt(n);
  const double mean = Mean(x);
  return {mean - half_width, mean + half_width, confidence};
}

double ClopperPearsonUpper(int64_t successes, int64_t trials,
                           double confidence) {
  OPTRAIL_CHECK(successes >= 0 && successes <= trials)
      << successes << " of " << trials;
  if (successes == trials) return 1;
  return InverseRegularizedIncompleteBeta(
      static_cast<double>(successes + 1),
      static_cast<double>(trials - successes), confidence);
}

double ClopperPearsonLower(int64_t successes, int64_t trials,
                           double confidence) {
  return 1 - ClopperPearsonUpper(trials - successes, trials, confidence);
}

RankTest MannWhitneyU(Samples x, Samples y) {
  if (x.empty() || y.empty()) return {kNan, kNan, false};
  struct Value {
    double value;
    bool is_y;
  };
  std::vector<Value> all;
  for (const double value : x) all.push_back({value, false});
  for (const double value : y) all.push_back({value, true});
  std::sort(all.begin(), all.end(),
            [](const Value& a, const Value& b) { return a.value < b.value; });
  const auto m = static_cast<double>(x.size());
  const auto n = static_cast<double>(y.size());
  double y_ranks = 0;
  double tie_term = 0;  // the sum of t^3 - t over groups of t equal values
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    int64_t ys = 0;
    while (end < all.size() && all[end].value == all[begin].value) {
      ys += all[end++].is_y;
    }
    const auto tied = static_cast<double>(end - begin);
    y_ranks +=
        static_cast<double>(ys) * static_cast<double>(begin + end + 1) / 2;
    tie_term += tied * tied * tied - tied;
    begin = end;
  }
  RankTest test;
  test.u = y_ranks - n * (n + 1) / 2;
  test.exact = tie_term == 0 && x.size() <= 50 && y.size() <= 50;
  const double mean = m * n / 2;
  if (test.exact) {
    const std::vector<double> counts =
        RankSumCounts(static_cast<int>(x.size()), static_cast<int>(y.size()));
    const auto extreme = static_cast<size_t>(std::min(test.u, m * n - test.u));
    const double tail = std::accumulate(
        counts.begin(), counts.begin() + static_cast<int64_t>(extreme) + 1,
        0.0);
    const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
    test.p_value = std::min(1.0, 2 * tail / total);
    return test;
  }
  const double sum = m + n;
  const double variance = m * n / 12 * (sum + 1 - tie_term / (sum * (sum - 1)));
  if (variance <= 0) {  // all values are equal
    test.p_value = 1;
    return test;
  }
  const double distance = std::max(0.0, std::abs(test.u - mean) - 0.5);
  test.p_value = 2 * NormalCdf(-distance / std::sqrt(variance));
  return test;
}

std::vector<double> BenjaminiHochberg(absl::Span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return p_values[a] > p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double least = 1;
  const size_t n = p_values.size();
  for (size_t i = 0; i < n; ++i) {
    // order[i] has rank n - i from the smallest.
    least = std::min(least, p_values[order[i]] * static_cast<double>(n) /
                                static_cast<double>(n - i));
    adjusted[order[i]] = least;
  }
  return adjusted;
}

}  // namespace optrail
