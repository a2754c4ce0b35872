#include "tuning/replay/recorded_domain.h"

namespace optrail::tuning {

RecordedDomain::RecordedDomain(const Recording& recording)
    : recording_(recording) {
  index_.reserve(recording.configs.size());
  for (size_t i = 0; i < recording.configs.size(); ++i) {
    index_.emplace(recording.configs[i].levels, static_cast<int64_t>(i));
  }
}

absl::Span<const KnobLevels> RecordedDomain::knobs() const {
  return recording_.knobs;
}

bool RecordedDomain::IsValid(absl::Span<const uint16_t> levels) const {
  return IndexOf(levels).has_value();
}

absl::optional<int64_t> RecordedDomain::size() const {
  return static_cast<int64_t>(recording_.configs.size());
}

Levels RecordedDomain::At(int64_t index) const {
  return recording_.configs[index].levels;
}

absl::optional<int64_t> RecordedDomain::IndexOf(
    absl::Span<const uint16_t> levels) const {
  const auto it = index_.find(Levels(levels.begin(), levels.end()));
  if (it == index_.end()) return absl::nullopt;
  return it->second;
}

Levels RecordedDomain::Sample(Rng& rng) const {
  return At(rng.UniformInt(static_cast<int64_t>(recording_.configs.size())));
}

absl::optional<double> RecordedDomain::Prior(
    absl::Span<const uint16_t> levels) const {
  const absl::optional<int64_t> index = IndexOf(levels);
  if (prior_.empty() || !index) return absl::nullopt;
  return prior_[*index];
}

}  // namespace optrail::tuning
