#include "tracker/detect/online.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "base/statistics.h"
#include "tracker/detect/correlated_steps.h"
#include "tracker/detect/fold.pb.h"
#include "tracker/detect/noise.h"
#include "tracker/detect/place.h"
#include "tracker/detect/ranks.h"
#include "tracker/detect/slopes.h"
#include "tracker/detect/sudden.h"

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
// And where the level before the change, taken by itself, has memory.
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
constexpr double kClipScales = 3;
constexpr double kConfidenceOfMark = 0.5;
// A mark not confirmed by then was wrong.
constexpr int kPatiencePoints = 40;

// Points before a change whose ranks are compared with those after it; and the
// logarithm of the chance that is too small for chance.
constexpr int kRankedPoints = 60;
constexpr double kLogChance = -12.5;

// A change of so many noise scales is none if the level's own points rise or
// fall by this share of it between the medians of as many neighbours.
constexpr double kPlainStep = 5;
constexpr double kCommonShare = 0.7;
constexpr int kCommonPoints = 7;

// Levels are the same if they differ by this share of the shift. A shift that
// is undone within so many points was an excursion.
constexpr double kSameLevel = 0.3;
constexpr int kLastingPoints = 20;
// A shift that was made before is no news for kLookBackPoints; between levels
// that have changed places so often, for as many points as this.
constexpr int kAlternatingShifts = 3;
constexpr int kAlternatingPoints = 1000;

uint64_t HashOf(absl::Span<const double> values) {
  return StableHash(
      absl::string_view(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(double)));
}

void SetFolded(const ChangePoint& change, proto::FoldedChange* folded) {
  folded->set_index(change.index);
  folded->set_earliest(change.earliest);
  folded->set_latest(change.latest);
  folded->set_begin(change.begin);
  folded->set_end(change.end);
  folded->set_confidence(change.confidence);
  folded->set_level_before(change.level_before);
  folded->set_level_after(change.level_after);
  folded->set_relative_change(change.relative_change);
  folded->set_relative_change_low(change.relative_change_low);
  folded->set_relative_change_high(change.relative_change_high);
}

ChangePoint ChangeOf(const proto::FoldedChange& folded) {
  ChangePoint change;
  change.index = folded.index();
  change.earliest = folded.earliest();
  change.latest = folded.latest();
  change.begin = folded.begin();
  change.end = folded.end();
  change.confidence = folded.confidence();
  change.level_before = folded.level_before();
  change.level_after = folded.level_after();
  change.relative_change = folded.relative_change();
  change.relative_change_low = folded.relative_change_low();
  change.relative_change_high = folded.relative_change_high();
  return change;
}

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

proto::FoldState OnlineDetector::State(absl::Span<const double> values) const {
  proto::FoldState state;
  state.set_size(size_);
  state.set_values_hash(HashOf(values));
  for (const Sighting& sighting : sightings_) {
    proto::FoldSighting* const kept = state.add_sightings();
    kept->set_index(sighting.index);
    kept->set_looks(sighting.looks);
  }
  for (const ChangePoint& change : confirmed_) {
    SetFolded(change, state.add_confirmed());
  }
  for (const ChangePoint& change : returns_) {
    SetFolded(change, state.add_returns());
  }
  if (provisional_) SetFolded(*provisional_, state.mutable_provisional());
  return state;
}

bool OnlineDetector::Resume(const proto::FoldState& state,
                            absl::Span<const double> values) {
  if (state.size() < 0 || state.size() > static_cast<int64_t>(values.size())) {
    return false;
  }
  values = values.subspan(0, static_cast<size_t>(state.size()));
  if (HashOf(values) != state.values_hash()) return false;
  *this = OnlineDetector();
  size_ = state.size();
  std::vector<Point> finite;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    finite.push_back({static_cast<int64_t>(i), values[i]});
  }
  values_ = static_cast<int64_t>(finite.size());
  const auto last_before = [&](int64_t end) {
    const int64_t begin = std::max<int64_t>(0, end - kLookBackPoints);
    return std::vector<Point>(finite.begin() + begin, finite.begin() + end);
  };
  window_ = last_before(values_);
  last_look_ = last_before(values_ - values_ % kPointsPerLook);
  for (const proto::FoldSighting& kept : state.sightings()) {
    sightings_.push_back({kept.index(), kept.looks()});
  }
  for (const proto::FoldedChange& kept : state.confirmed()) {
    confirmed_.push_back(ChangeOf(kept));
  }
  for (const proto::FoldedChange& kept : state.returns()) {
    returns_.push_back(ChangeOf(kept));
  }
  if (state.has_provisional()) provisional_ = ChangeOf(state.provisional());
  return true;
}

OnlineResult DetectOnline(absl::Span<const double> values) {
  OnlineDetector detector;
  for (const double value : values) detector.Append(value);
  return {detector.confirmed(), detector.returns(), detector.provisional()};
}

}  // namespace optrail::tracker
