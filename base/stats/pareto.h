#ifndef OPTRAIL_BASE_STATS_PARETO_H_
#define OPTRAIL_BASE_STATS_PARETO_H_

// What remains when several costs count: those that no other beats.
//
//   for (const int i : ParetoFront({{1, 9}, {2, 3}, {4, 3}})) ...  // 0, 1

#include <vector>

#include "absl/types/span.h"

namespace optrail {

// Whether `a` is no higher than `b` in any cost and lower in one. Both have
// equally many costs. A NaN is an unknown cost: such two do not compare.
bool Dominates(absl::Span<const double> a, absl::Span<const double> b);

// Indices of those that no other dominates, ascending.
std::vector<int> ParetoFront(absl::Span<const std::vector<double>> costs);

}  // namespace optrail

#endif  // OPTRAIL_BASE_STATS_PARETO_H_
