// OnlineDetector::IsSure, and what it asks: noise may explain what a look has
// found as well as a change does.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/stats/statistics.h"
#include "tracker/detect/correlated_steps.h"
#include "tracker/detect/noise.h"
#include "tracker/detect/online.h"
#include "tracker/detect/ranks.h"
#include "tracker/detect/slopes.h"

namespace optrail::tracker {
namespace {

// A change that is less sure than this waits for more points.
constexpr double kSureEnough = 0.9999;
// Noise with memory explains a change away at this cost at most, in units of
// log(points).
constexpr double kMemoryPenalty = 4;
// The cost is this where the level before the change has memory by itself.
constexpr double kMorePenalty = 6.5;
constexpr double kInflationOfMuchMemory = 2;
// Where neighbours on both sides of a change correlate more than this, as few
// points as this of a level and what follows it are a walk as well as a step.
constexpr double kNeighboursOfWalk = 0.25;
// By this over the number of points a correlation of .75 seems less than it is
// beside two fitted levels (Kendall 1954: (1 + 3 rho) / n for each).
constexpr double kFittedAway = 6.5;
// Noise scales.
constexpr double kReachOfWalk = 6;
constexpr int kPointsOfWalk = 100;
// A walk goes far in many steps: medians of so few neighbours that are so many
// noise scales apart, most of the way between the levels, are none of its own.
constexpr int kPointsOfJump = 3;
constexpr double kJump = 12;
constexpr double kShareOfJump = .7;
// How much better than a ramp a step has to fit, in squared noise scales.
constexpr double kRampPenalty = 10;
constexpr double kClipScales = 3;

// Points before a change whose ranks are compared with those after it; and the
// logarithm of the chance that is too small for chance.
constexpr int kRankedPoints = 60;
constexpr double kLogChance = -12.5;

// A change of so many noise scales is none if the level's own points rise or
// fall by this share of it between the medians of as many neighbours.
constexpr double kPlainStep = 5;
constexpr double kCommonShare = 0.7;
constexpr int kCommonPoints = 7;

// The changes that neither noise with memory nor a ramp could explain as well.
// On few points a wandering machine looks like steps, and so does the beginning
// of a ramp; only sharp ones remain until there are more.
std::vector<int> SharpSteps(absl::Span<const double> window,
                            const Analysis& analysis, double penalty) {
  const double unit = PowerOfTwoUnit(window);
  const double scale = analysis.scale / unit;
  std::vector<double> values(window.begin(), window.end());
  for (double& v : values) v /= unit;
  std::vector<int> bounds = {0};
  for (const ChangePoint& change : analysis.changes) {
    bounds.push_back(change.index);
  }
  const absl::Span<const int> steps = absl::MakeConstSpan(bounds).subspan(1);
  values = ClipResiduals(values, SegmentResiduals(values, steps),
                         kClipScales * scale);
  std::vector<int> sharp = SelectCorrelatedSteps(
      values, steps, penalty * std::log(static_cast<double>(values.size())));
  bounds.push_back(static_cast<int>(values.size()));
  const auto may_be_ramp = [&](int step) {
    const size_t k =
        std::lower_bound(bounds.begin(), bounds.end(), step) - bounds.begin();
    return StepOverKink(values, bounds[k - 1], step, bounds[k + 1]) <
           kRampPenalty * scale * scale;
  };
  sharp.erase(std::remove_if(sharp.begin(), sharp.end(), may_be_ramp),
              sharp.end());
  return sharp;
}

}  // namespace

bool OnlineDetector::RanksTell(absl::Span<const double> values,
                               int middle) const {
  const int n = static_cast<int>(values.size());
  const int begin = std::max({0, n - PointsOfLevel(), middle - kRankedPoints});
  return LogChanceOfRanks(values.subspan(begin, middle - begin),
                          values.subspan(middle)) <= kLogChance;
}

bool OnlineDetector::HasMemory(absl::Span<const double> values,
                               int middle) const {
  const int begin =
      std::max(0, static_cast<int>(values.size()) - PointsOfLevel());
  std::vector<double> residuals(values.begin() + begin,
                                values.begin() + middle);
  const double level = Median(residuals);
  for (double& r : residuals) r -= level;
  return VarianceInflation(residuals, ResidualScale(residuals)) >
         kInflationOfMuchMemory;
}

bool OnlineDetector::MayBeWalk(absl::Span<const double> values,
                               const ChangePoint& found, double scale) const {
  const int points = PointsOfLevel();
  if (points >= kPointsOfWalk) return false;
  const double step = std::abs(found.level_after - found.level_before);
  const double jump = std::abs(
      Median(values.subspan(found.index, kPointsOfJump)) -
      Median(values.subspan(found.index - kPointsOfJump, kPointsOfJump)));
  if (jump > kJump * scale && jump > kShareOfJump * step) return false;
  const int begin = std::max(0, static_cast<int>(values.size()) - points);
  const int change[] = {found.index - begin};
  const std::vector<double> residuals =
      SegmentResiduals(values.subspan(begin), change);
  // A walk of so few points hardly goes as far as the largest steps.
  const bool within_reach = step < kReachOfWalk * ResidualScale(residuals);
  return NeighbourCorrelation(residuals, scale) >
         kNeighboursOfWalk - (within_reach ? kFittedAway / points : 0);
}

bool OnlineDetector::IsUncommon(absl::Span<const double> values,
                                const ChangePoint& found, double scale) const {
  if (std::abs(found.level_after - found.level_before) < kPlainStep * scale) {
    return true;
  }
  const double sign = found.level_after > found.level_before ? 1 : -1;
  const auto median_from = [&](int place) {
    return sign * Median(values.subspan(place, kCommonPoints));
  };
  const auto step_at = [&](int place) {
    return median_from(place) - median_from(place - kCommonPoints);
  };
  const int n = static_cast<int>(values.size());
  const int middle = found.index;
  if (middle < kCommonPoints || middle + kCommonPoints > n) return true;
  const double limit = kCommonShare * step_at(middle);
  for (int i = std::max(0, n - PointsOfLevel()) + kCommonPoints;
       i + 2 * kCommonPoints <= middle; ++i) {
    if (step_at(i) > limit) return false;
  }
  // Or made it again since, from where it had come from.
  const double half = sign * (found.level_before + found.level_after) / 2;
  for (int i = middle + 2 * kCommonPoints; i + kCommonPoints <= n; ++i) {
    if (median_from(i - kCommonPoints) < half && step_at(i) > limit) {
      return false;
    }
  }
  return true;
}

bool OnlineDetector::IsSure(absl::Span<const double> values,
                            const ChangePoint& found, const Analysis& analysis,
                            SharpStepsOfLook& sharp) const {
  if (found.confidence < kSureEnough || !RanksTell(values, found.index) ||
      MayBeWalk(values, found, analysis.scale)) {
    return false;
  }
  const bool memory = HasMemory(values, found.index);
  if (!IsUncommon(values, found, memory ? 0 : analysis.scale)) return false;
  if (!sharp[memory]) {
    sharp[memory] =
        SharpSteps(values, analysis, memory ? kMorePenalty : kMemoryPenalty);
  }
  return std::binary_search(sharp[memory]->begin(), sharp[memory]->end(),
                            found.index);
}

bool OnlineDetector::IsSuspect(absl::Span<const double> values,
                               const ChangePoint& found,
                               const ChangePoint& in_series,
                               double scale) const {
  const bool far =
      std::abs(found.level_after - found.level_before) >= kReachOfWalk * scale;
  return found.confidence >= kSureEnough &&
         (far || !MayBeWalk(values, found, scale)) &&
         size_ - in_series.index <= kPatiencePoints && !IsReturn(in_series);
}

}  // namespace optrail::tracker
