#include "base/stats/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace optrail {

std::vector<double> Ranks(absl::Span<const double> values) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) {
      ranks[order[j]] = (static_cast<double>(i + end) + 1) / 2;
    }
    i = end;
  }
  return ranks;
}

double RankCorrelation(absl::Span<const double> x, absl::Span<const double> y) {
  const std::vector<double> a = Ranks(x);
  const std::vector<double> b = Ranks(y);
  const double mean = (static_cast<double>(x.size()) + 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace optrail
