// The state of a fold as a record, and a fold that goes on from it.

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/hash/hash.h"
#include "tracker/detect/fold.pb.h"
#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

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
  folded->set_between(change.between);
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
  change.between = folded.between();
  change.confidence = folded.confidence();
  change.level_before = folded.level_before();
  change.level_after = folded.level_after();
  change.relative_change = folded.relative_change();
  change.relative_change_low = folded.relative_change_low();
  change.relative_change_high = folded.relative_change_high();
  return change;
}

}  // namespace

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

}  // namespace optrail::tracker
