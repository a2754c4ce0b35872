#include "tracker/detect/online.h"

#include <algorithm>
#include <cmath>

#include "base/stats/statistics.h"
#include "tracker/detect/noise.h"
#include "tracker/detect/place.h"
#include "tracker/detect/sudden.h"

namespace optrail::tracker {
namespace {

// A change is confirmed with this many points after it (in noise with memory,
// as many as make two independent ones), seen by this many looks at places no
// further apart than this.
constexpr int kSettledPoints = 12;
constexpr double kSettledPerInflation = 2;
constexpr int kLooksToConfirm = 2;
constexpr int kSamePlace = 3;

// Changes closer to each other are not told apart online, and a level is not
// known before it had this many points in the look-back.
constexpr int kLeastDistance = 8;
constexpr int kLeastHistory = 15;
// Fewer will do at the series' own beginning, whose ranks tell enough.
constexpr int kLeastBeginning = 5;

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
constexpr double kConfidenceOfMark = 0.5;

// Levels are the same if they differ by this share of the shift. A shift that
// is undone within so many points was an excursion.
constexpr double kSameLevel = 0.3;
constexpr int kLastingPoints = 20;
// A shift that was made before is no news for kLookBackPoints; between levels
// that have changed places so often, for as many points as this.
constexpr int kAlternatingShifts = 3;
constexpr int kAlternatingPoints = 1000;

}  // namespace

std::vector<double> OnlineDetector::ValuesOf(absl::Span<const Point> points) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const Point& point : points) values.push_back(point.value);
  return values;
}

int64_t OnlineDetector::LastShift() const {
  int64_t last = -kLookBackPoints;
  if (!confirmed_.empty()) last = confirmed_.back().index;
  if (!returns_.empty()) last = std::max<int64_t>(last, returns_.back().index);
  return last;
}

int OnlineDetector::PointsOfLevel() const {
  const int64_t last = LastShift();
  int points = 0;
  for (auto it = window_.rbegin(); it != window_.rend() && it->index >= last;
       ++it) {
    ++points;
  }
  return points;
}

bool OnlineDetector::IsReturn(const ChangePoint& change) const {
  const double tolerance =
      kSameLevel * std::abs(change.level_after - change.level_before);
  const auto same = [&](double a, double b) {
    return std::abs(a - b) <= tolerance;
  };
  int between = 0;  // shifts between these two levels, either way
  bool known = false;
  for (const std::vector<ChangePoint>* shifts : {&confirmed_, &returns_}) {
    for (auto it = shifts->rbegin(); it != shifts->rend(); ++it) {
      const int age = change.index - it->index;
      if (age > kAlternatingPoints) break;
      // The same shift once more.
      if (same(it->level_before, change.level_before) &&
          same(it->level_after, change.level_after)) {
        if (age <= kLookBackPoints) return true;
        known = true;
        ++between;
      }
      if (!same(it->level_before, change.level_after)) continue;
      // Back from an excursion.
      if (age < kLastingPoints && it->index == LastShift()) return true;
      between += same(it->level_after, change.level_before);
    }
  }
  return known && between >= kAlternatingShifts;
}

void OnlineDetector::Settle(const ChangePoint& change, OnlineUpdate& update) {
  if (IsReturn(change)) {
    returns_.push_back(change);
  } else {
    confirmed_.push_back(change);
    update.confirmed.push_back(change);
  }
}

OnlineUpdate OnlineDetector::Append(double value) {
  OnlineUpdate update;
  const int64_t index = size_++;
  if (!std::isfinite(value)) return update;
  if (!last_look_.empty()) RepeatLastLook();
  ++values_;
  if (window_.size() == kLookBackPoints) window_.erase(window_.begin());
  window_.push_back({index, value});

  if (auto sudden = FindSuddenInWindow()) {
    Settle(*sudden, update);
    sightings_.clear();
    if (provisional_) {
      provisional_.reset();
      update.withdrawn = update.confirmed.empty();
    }
  }
  if (values_ % kPointsPerLook == 0) Look(update);
  if (!provisional_) {
    provisional_ = Suspect();
    update.marked = provisional_.has_value();
  } else if (size_ - provisional_->index > kPatiencePoints) {
    provisional_.reset();
    update.withdrawn = true;
  }
  return update;
}

absl::optional<ChangePoint> OnlineDetector::FindSuddenInWindow() const {
  std::vector<double> level;
  for (size_t i = window_.size() - PointsOfLevel(); i < window_.size(); ++i) {
    level.push_back(window_[i].value);
  }
  absl::optional<ChangePoint> change = FindSudden(level);
  if (change) PlaceInSeries(window_.size() - level.size(), *change);
  return change;
}

void OnlineDetector::PlaceInSeries(size_t begin, ChangePoint& change) const {
  const auto index = [&](int place) { return window_[begin + place].index; };
  change.earliest = static_cast<int>(index(change.earliest - 1)) + 1;
  change.index = static_cast<int>(index(change.index));
  change.latest = static_cast<int>(index(change.latest));
  change.begin = static_cast<int>(index(change.begin));
  change.end = static_cast<int>(index(change.end - 1)) + 1;
}

void OnlineDetector::Look(OnlineUpdate& update) {
  const std::vector<double> values = ValuesOf(window_);
  const Analysis analysis = Analyze(values);

  const double settled = std::max<double>(
      kSettledPoints, kSettledPerInflation * analysis.inflation);
  SharpStepsOfLook sharp;
  std::vector<Sighting> sightings;
  absl::optional<ChangePoint> suspect;  // the newest that is not settled
  for (const ChangePoint& found : analysis.changes) {
    const bool from_the_beginning =
        values_ == static_cast<int64_t>(window_.size());
    if (found.index < (from_the_beginning ? kLeastBeginning : kLeastHistory)) {
      continue;
    }
    ChangePoint change = found;
    PlaceInSeries(0, change);
    if (change.index < LastShift() + kLeastDistance) continue;
    Sighting sighting{change.index, 1};
    for (const Sighting& before : sightings_) {
      if (std::abs(before.index - sighting.index) <= kSamePlace) {
        sighting.looks = before.looks + 1;
      }
    }
    const int after = static_cast<int>(values.size()) - found.index;
    if (sighting.looks >= kLooksToConfirm && after >= settled &&
        IsSure(values, found, analysis, sharp)) {
      Settle(change, update);
      suspect.reset();
      continue;
    }
    sightings.push_back(sighting);
    if (IsSuspect(values, found, change, analysis.scale)) suspect = change;
  }
  sightings_ = std::move(sightings);
  UpdateRegime(window_, values, analysis);
  UpdateMark(suspect, update);
}

void OnlineDetector::UpdateMark(const absl::optional<ChangePoint>& suspect,
                                OnlineUpdate& update) {
  if (provisional_ && provisional_->index < LastShift() + kLeastDistance) {
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
  // The analysis places a mark better than the few points that put it up.
  if (!suspect ||
      (provisional_ &&
       std::abs(suspect->index - provisional_->index) > kLeastDistance)) {
    return;
  }
  update.marked = !provisional_.has_value();
  provisional_ = suspect;
  provisional_->confidence = kConfidenceOfMark;
}

void OnlineDetector::UpdateRegime(absl::Span<const Point> looked_at,
                                  absl::Span<const double> values,
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
  regime_.level = Median(values.subspan(begin));
  regime_.begin = looked_at[begin].index;
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
    if (suspects[0].index < LastShift() + kLeastDistance) break;
    // No more can be saved than they cost, which is little while all is calm.
    if (cost_regime <= most) continue;
    double buffer[kMostSuspects];
    for (int i = 0; i < m; ++i) buffer[i] = suspects[i].value;
    const double own = Median(absl::MakeSpan(buffer, m));
    double local_values[kLocalPoints];
    for (int i = 0; i < kLocalPoints; ++i) {
      local_values[i] = window_[n - m - kLocalPoints + i].value;
    }
    const double local = Median(local_values);
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
      change.confidence = kConfidenceOfMark;
      change.level_before = regime_.level;
      change.level_after = own;
      change.begin =
          static_cast<int>(std::max<int64_t>(regime_.begin, window_[0].index));
      change.end = static_cast<int>(window_.back().index) + 1;
      best = change;
    }
  }
  if (best) {
    // Exactly the points that it names.
    std::vector<double> before;
    for (const Point& point : window_) {
      if (point.index < regime_.begin) continue;
      if (point.index >= best->index) break;
      before.push_back(point.value);
    }
    best->level_before = Median(before);
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
    SetRelativeChange(2 * regime_.scale, *best);
  }
  return best;
}

void OnlineDetector::RepeatLastLook() {
  const std::vector<double> values = ValuesOf(last_look_);
  UpdateRegime(last_look_, values, Analyze(values));
  last_look_.clear();
}

OnlineResult DetectOnline(absl::Span<const double> values) {
  OnlineDetector detector;
  for (const double value : values) detector.Append(value);
  return {detector.confirmed(), detector.returns(), detector.provisional()};
}

}  // namespace optrail::tracker
