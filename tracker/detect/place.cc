#include "tracker/detect/place.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace optrail::tracker {
namespace {

constexpr double kProbability = 0.95;
constexpr double kLossCap = 16;
constexpr int kReach = 100;

}  // namespace

PlaceRange RangeOfPlaces(absl::Span<const double> values, int middle,
                         double before, double after, double variance) {
  const int n = static_cast<int>(values.size());
  const int first = std::max(1, middle - kReach);
  const int last = std::min(n - 1, middle + kReach);
  if (!(variance > 0)) return {middle, middle};
  // What it costs that point t, of the old level, is counted to the new one.
  const auto loss = [variance](double d) {
    return std::min(kLossCap, d * d / variance);
  };
  std::vector<double> cost = {0};
  for (int t = first; t < last; ++t) {
    cost.push_back(cost.back() + loss(values[t] - before) -
                   loss(values[t] - after));
  }
  const double least = *std::min_element(cost.begin(), cost.end());
  double total = 0;
  for (const double c : cost) total += std::exp((least - c) / 2);

  std::vector<int> likeliest(cost.size());
  std::iota(likeliest.begin(), likeliest.end(), 0);
  std::stable_sort(likeliest.begin(), likeliest.end(),
                   [&cost](int i, int j) { return cost[i] < cost[j]; });
  PlaceRange range = {middle, middle};
  double sum = 0;
  for (const int i : likeliest) {
    range.earliest = std::min(range.earliest, first + i);
    range.latest = std::max(range.latest, first + i);
    sum += std::exp((least - cost[i]) / 2);
    if (sum >= kProbability * total) break;
  }
  return range;
}

}  // namespace optrail::tracker
