#include "base/stats/pareto.h"

#include <algorithm>

namespace optrail {

bool Dominates(absl::Span<const double> a, absl::Span<const double> b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] <= b[i])) return false;
    better |= a[i] < b[i];
  }
  return better;
}

std::vector<int> ParetoFront(absl::Span<const std::vector<double>> costs) {
  std::vector<int> front;
  for (size_t i = 0; i < costs.size(); ++i) {
    const bool beaten = std::any_of(
        costs.begin(), costs.end(),
        [&](const auto& other) { return Dominates(other, costs[i]); });
    if (!beaten) front.push_back(static_cast<int>(i));
  }
  return front;
}

}  // namespace optrail
