#ifndef OPTRAIL_BASE_STATS_RANK_CORRELATION_H_
#define OPTRAIL_BASE_STATS_RANK_CORRELATION_H_

// RankCorrelation says how well one list predicts the order of another,
// whatever their scales.
//
//   RankCorrelation(predicted_gains, realised_gains);  // 1: the same order

#include <vector>

#include "absl/types/span.h"

namespace optrail {

// Ranks from 1, ties sharing their mean.
std::vector<double> Ranks(absl::Span<const double> values);

// Spearman's coefficient, -1 to 1; of equal sizes. 0 where either side is
// constant, which has no order.
double RankCorrelation(absl::Span<const double> x, absl::Span<const double> y);

}  // namespace optrail

#endif  // OPTRAIL_BASE_STATS_RANK_CORRELATION_H_
