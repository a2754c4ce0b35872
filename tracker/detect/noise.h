#ifndef OPTRAIL_TRACKER_DETECT_NOISE_H_
#define OPTRAIL_TRACKER_DETECT_NOISE_H_

// What the noise of a series is like, whatever its levels do: robust scale,
// shape and memory. Pieces of detect.h; no function here looks for changes.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace optrail::tracker {

// The power of two just below the largest absolute value, 1 if all are 0: what
// to divide by so that squares neither overflow nor vanish, exactly.
double PowerOfTwoUnit(absl::Span<const double> values);

// Standard deviation of normal noise from the median absolute difference of
// neighbours: steps, outliers and slow drift hardly touch it, because they
// touch few differences. If more than half of the values repeat their
// predecessor, it falls back to the mean absolute difference. 0 for a constant
// series.
double DifferenceScale(absl::Span<const double> values);

// 1.4826 times the median absolute value.
double ResidualScale(absl::Span<const double> residuals);

// Each value minus the median of its segment; `changes` are the first points of
// all segments but the first.
std::vector<double> SegmentResiduals(absl::Span<const double> values,
                                     absl::Span<const int> changes);

// The long-run variance over the variance: 1 + 2 * sum of autocorrelations,
// summed while they stay above 0.1. The variance of a mean of n points is this
// times what it is for independent noise. Residuals are clipped at three
// scales.
double VarianceInflation(absl::Span<const double> residuals, double scale);

// Correlation of neighbours, residuals clipped at one scale: outliers and
// stretches of larger variance don't pass for memory.
double NeighbourCorrelation(absl::Span<const double> residuals, double scale);

// Values with their residuals clipped at `limit`.
std::vector<double> ClipResiduals(absl::Span<const double> values,
                                  absl::Span<const double> residuals,
                                  double limit);

// Losses for level_path.h, in units of 1 / kLossUnit squared noise scales
// (twice a negative log-likelihood), never more than `cap`: so a point however
// wild costs no more than `cap`, and a level pays for itself only if it serves
// more than (2 * penalty / cap) points. That is what keeps isolated outliers
// and short bursts from becoming segments (Fearnhead and Rigaill 2019).
inline constexpr double kLossUnit = 256;

// min(cap, squared distance in scales).
std::vector<int32_t> TruncatedQuadraticLoss(double cells_per_scale, double cap);

// min(cap, -2 log(density / its maximum)), the density estimated from the
// residuals with a normal kernel of 0.3 scales. If noise has a sharp edge or
// two modes, it tells levels apart that a quadratic loss cannot.
std::vector<int32_t> DensityLoss(absl::Span<const double> residuals,
                                 double scale, double cells_per_scale,
                                 double cap);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_NOISE_H_
