// The state of a fold as a record, and a fold that goes on from it.

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/hash/hash.h"
#include "tracker/detect/fold.pb.h"
#include "tracker/detect/folded_change.h"
#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

uint64_t HashOf(absl::Span<const double> values) {
  return StableHash(
      absl::string_view(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(double)));
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
    *state.add_confirmed() = ToFolded(change);
  }
  for (const ChangePoint& change : returns_) {
    *state.add_returns() = ToFolded(change);
  }
  if (provisional_) *state.mutable_provisional() = ToFolded(*provisional_);
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
    confirmed_.push_back(FromFolded(kept));
  }
  for (const proto::FoldedChange& kept : state.returns()) {
    returns_.push_back(FromFolded(kept));
  }
  if (state.has_provisional()) provisional_ = FromFolded(state.provisional());
  return true;
}

}  // namespace optrail::tracker
