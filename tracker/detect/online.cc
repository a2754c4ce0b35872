#include "tracker/detect/online.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tracker/detect/correlated_steps.h"
#include "tracker/detect/noise.h"
#include "tracker/detect/place.h"
#include "tracker/detect/slopes.h"

namespace optrail::tracker {
namespace {

// Every so many points the look-back is analysed.
constexpr int kPointsPerLook = 5;
// A change is confirmed with this many points after it (in noise with memory,
// as many as make two independent ones), seen by this many looks at places no
// further apart than this, at least this sure.
constexpr int kSettledPoints = 12;
constexpr double kSettledPerInflation = 2;
constexpr int kLooksToConfirm = 2;
constexpr int kSamePlace = 3;
constexpr double kSureEnough = 0.9999;
// What noise with memory may cost to explain it away, in units of log(points).
constexpr double kMemoryPenalty = 4;
// How much better than a ramp a step has to fit, in squared noise scales.
constexpr double kRampPenalty = 10;
// Changes closer to each other are not told apart online, and a level is not
// known before it had this many points in the look-back.
constexpr int kLeastDistance = 8;
constexpr int kLeastHistory = 15;

// A provisional mark rests on the last 3 to 12 points and the few before them.
constexpr int kFewestSuspects = 3;
constexpr int kMostSuspects = 12;
constexpr int kLocalPoints = 8;
// How much less the suspects have to cost at a level of their own, in squared
// noise scales; more in noise with memory. Three points can save 3 * 9 at most.
constexpr double kSuspicion = 16;
constexpr double kSuspicionWithMemory = 23;
constexpr double kInflationOfMemory = 1.5;
constexpr double kCellsPerScale = 4;
constexpr double kLossCap = 9;
constexpr double kClipScales = 3;
// A mark not confirmed by then was wrong.
constexpr int kPatiencePoints = 40;

// The changes that neither noise with memory nor a ramp could explain as well.
// On few points a wandering machine looks like steps, and so does the beginning
// of a ramp; only sharp ones remain until there are more.
std::vector<int> SharpSteps(absl::Span<const double> window,
                            const Analysis& analysis) {
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
      values, steps,
      kMemoryPenalty * std::log(static_cast<double>(values.size())));
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

int64_t OnlineDetector::LastConfirmed() const {
  return confirmed_.empty() ? -kLookBackPoints : confirmed_.back().index;
}

OnlineUpdate OnlineDetector::Append(double value) {
  OnlineUpdate update;
  const int64_t index = size_++;
  if (!std::isfinite(value)) return update;
  if (window_.size() == kLookBackPoints) window_.erase(window_.begin());
  window_.push_back({index, value});

  if (size_ % kPointsPerLook == 0) Look(update);
  if (!provisional_) {
    provisional_ = Suspect();
    update.marked = provisional_.has_value();
  } else if (size_ - provisional_->index > kPatiencePoints) {
    provisional_.reset();
    update.withdrawn = true;
  }
  return update;
}

void OnlineDetector::Look(OnlineUpdate& update) {
  std::vector<double> values;
  values.reserve(window_.size());
  for (const Point& point : window_) values.push_back(point.value);
  const Analysis analysis = Analyze(values);

  const double settled = std::max<double>(
      kSettledPoints, kSettledPerInflation * analysis.inflation);
  absl::optional<std::vector<int>> sharp;  // computed when needed

  std::vector<Sighting> sightings;
  for (const ChangePoint& found : analysis.changes) {
    if (found.index < kLeastHistory) continue;
    ChangePoint change = found;
    change.index = static_cast<int>(window_[found.index].index);
    change.earliest = static_cast<int>(window_[found.earliest - 1].index) + 1;
    change.latest = static_cast<int>(window_[found.latest].index);
    if (change.index < LastConfirmed() + kLeastDistance) continue;
    Sighting sighting{change.index, 1};
    for (const Sighting& before : sightings_) {
      if (std::abs(before.index - sighting.index) <= kSamePlace) {
        sighting.looks = before.looks + 1;
      }
    }
    const int after = static_cast<int>(values.size()) - found.index;
    bool confirm = sighting.looks >= kLooksToConfirm && after >= settled &&
                   found.confidence >= kSureEnough;
    if (confirm) {
      if (!sharp) sharp = SharpSteps(values, analysis);
      confirm = std::binary_search(sharp->begin(), sharp->end(), found.index);
    }
    if (confirm) {
      confirmed_.push_back(change);
      update.confirmed.push_back(change);
      continue;
    }
    sightings.push_back(sighting);
  }
  sightings_ = std::move(sightings);
  UpdateRegime(values, analysis);

  if (provisional_ && provisional_->index < LastConfirmed() + kLeastDistance) {
    provisional_.reset();
    update.withdrawn = update.confirmed.empty();
  } else if (provisional_ && size_ - provisional_->index >= kSettledPoints) {
    // By now the analysis would have seen it.
    const bool seen = std::any_of(
        sightings_.begin(), sightings_.end(), [this](const Sighting& s) {
          return std::abs(s.index - provisional_->index) <= kLeastDistance;
        });
    if (!seen) {
      provisional_.reset();
      update.withdrawn = true;
    }
  }
}

void OnlineDetector::UpdateRegime(absl::Span<const double> values,
                                  const Analysis& analysis) {
  regime_ = Regime();
  if (analysis.scale <= 0) return;
  std::vector<int> steps;
  for (const ChangePoint& change : analysis.changes) {
    steps.push_back(change.index);
  }
  const std::vector<double> residuals = SegmentResiduals(values, steps);
  const int begin = steps.empty() ? 0 : steps.back();
  regime_.known = true;
  regime_.scale = analysis.scale;
  regime_.suspicion = analysis.inflation > kInflationOfMemory
                          ? kSuspicionWithMemory
                          : kSuspicion;
  regime_.level = MedianOf(values.subspan(begin));
  regime_.loss =
      DensityLoss(residuals, regime_.scale, kCellsPerScale, kLossCap);
}

absl::optional<ChangePoint> OnlineDetector::Suspect() const {
  const int n = static_cast<int>(window_.size());
  if (!regime_.known || n < kLocalPoints + kFewestSuspects) {
    return absl::nullopt;
  }
  const int reach = static_cast<int>(regime_.loss.size() / 2);
  const auto cost = [&](double value, double level) {
    const double cell =
        std::floor((value - level) / regime_.scale * kCellsPerScale + 0.5);
    return regime_.loss[reach + static_cast<int>(
                                    std::clamp<double>(cell, -reach, reach))] /
           kLossUnit;
  };
  absl::optional<ChangePoint> best;
  double most = regime_.suspicion;
  double cost_regime = 0;  // of the suspects at the level they are expected at
  for (int m = 1; m <= kMostSuspects && m + kLocalPoints <= n; ++m) {
    const Point* const suspects = &window_[n - m];
    cost_regime += cost(suspects[0].value, regime_.level);
    if (m < kFewestSuspects) continue;
    if (suspects[0].index < LastConfirmed() + kLeastDistance) break;
    // No more can be saved than they cost, which is little while all is calm.
    if (cost_regime <= most) continue;
    double buffer[kMostSuspects];
    for (int i = 0; i < m; ++i) buffer[i] = suspects[i].value;
    const double own = MedianOf(absl::MakeSpan(buffer, m));
    double local_values[kLocalPoints];
    for (int i = 0; i < kLocalPoints; ++i) {
      local_values[i] = window_[n - m - kLocalPoints + i].value;
    }
    const double local = MedianOf(local_values);
    double cost_own = 0, cost_local = 0;
    for (int i = 0; i < m; ++i) {
      cost_own += cost(suspects[i].value, own);
      cost_local += cost(suspects[i].value, local);
    }
    // Costs are multiples of a power of two, so that sums of them are exact.
    const double saved = std::min(cost_regime, cost_local) - cost_own;
    if (saved > most) {
      most = saved;
      ChangePoint change;
      change.index = static_cast<int>(suspects[0].index);
      change.confidence = 0.5;
      change.level_before = regime_.level;
      change.level_after = own;
      best = change;
    }
  }
  if (best) {
    std::vector<double> recent;
    int middle = 0;
    for (int i = n - kMostSuspects - kLocalPoints; i < n; ++i) {
      if (i < 0) continue;
      if (window_[i].index == best->index) {
        middle = static_cast<int>(recent.size());
      }
      recent.push_back(window_[i].value);
    }
    const PlaceRange places =
        RangeOfPlaces(recent, middle, best->level_before, best->level_after,
                      regime_.scale * regime_.scale);
    const Point* const oldest = &window_[n - recent.size()];
    best->earliest = static_cast<int>(oldest[places.earliest - 1].index) + 1;
    best->latest = static_cast<int>(oldest[places.latest].index);
    const double unit = best->level_before != 0 ? std::abs(best->level_before)
                                                : std::abs(best->level_after);
    const double shift = best->level_after - best->level_before;
    const double margin = 2 * regime_.scale;
    const auto ratio = [unit](double part) {
      return unit > 0 ? std::clamp(part / unit, -1e300, 1e300) : 0;
    };
    best->relative_change = ratio(shift);
    best->relative_change_low = ratio(shift - margin);
    best->relative_change_high = ratio(shift + margin);
  }
  return best;
}

OnlineResult DetectOnline(absl::Span<const double> values) {
  OnlineDetector detector;
  for (const double value : values) detector.Append(value);
  return {detector.confirmed(), detector.provisional()};
}

}  // namespace optrail::tracker
