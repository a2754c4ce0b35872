#include "tuning/model/config_features.h"

#include <algorithm>
#include <cmath>

namespace optrail::tuning {
namespace {

// Few enough codes that a group's table stays in the first-level cache.
constexpr int kMaxCodes = 1024;
constexpr int kLevelsForZeroBits = 5;

// Scales to [0, 1]; false if all values are equal.
bool Normalise(std::vector<float>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float least = *low, range = *high - *low;
  if (!(range > 0)) return false;
  for (float& value : values) value = (value - least) / range;
  return true;
}

int TrailingZeroBits(int64_t value) {
  int bits = 0;
  for (; value % 2 == 0; value /= 2) ++bits;
  return bits;
}

}  // namespace

ConfigFeatures::ConfigFeatures(absl::Span<const KnobLevels> knobs) {
  for (int k = 0; k < static_cast<int>(knobs.size()); ++k) {
    const KnobLevels& knob = knobs[k];
    const int levels = knob.size();
    knob_sizes_.push_back(levels);
    if (levels < 2) continue;
    if (groups_.empty() || groups_.back().codes * levels > kMaxCodes) {
      groups_.emplace_back();
    }
    groups_.back().knobs.push_back(k);
    groups_.back().codes *= levels;
    if (knob.ordinal) {
      const bool positive = knob.ints.front() > 0;
      std::vector<float> position(levels), zeros(levels);
      for (int l = 0; l < levels; ++l) {
        position[l] =
            positive ? std::log2(static_cast<float>(knob.ints[l])) : l;
        zeros[l] = positive ? TrailingZeroBits(knob.ints[l]) : 0;
      }
      if (Normalise(position)) features_.push_back({k, false, position});
      if (levels >= kLevelsForZeroBits && Normalise(zeros)) {
        features_.push_back({k, false, zeros});
      }
    }
    if (levels > 2 || !knob.ordinal) {
      std::vector<float> own(levels);
      for (int l = 0; l < levels; ++l) own[l] = l;
      features_.push_back({k, true, own});
    }
  }
}

float ConfigFeatures::SquaredDistance(absl::Span<const uint16_t> a,
                                      absl::Span<const uint16_t> b) const {
  float sum = 0;
  for (const Feature& feature : features_) {
    sum += SquaredDistance(feature, a[feature.knob], b[feature.knob]);
  }
  return sum;
}

uint16_t ConfigFeatures::Code(const Group& group,
                              absl::Span<const uint16_t> levels) const {
  int code = 0;
  for (const int k : group.knobs) code = code * knob_sizes_[k] + levels[k];
  return static_cast<uint16_t>(code);
}

std::vector<float> ConfigFeatures::Columns(
    absl::Span<const uint16_t> levels) const {
  std::vector<float> columns;
  for (const Feature& feature : features_) {
    columns.push_back(feature.value[levels[feature.knob]]);
  }
  return columns;
}

}  // namespace optrail::tuning
