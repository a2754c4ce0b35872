#ifndef OPTRAIL_TUNING_MODEL_CONFIG_FEATURES_H_
#define OPTRAIL_TUNING_MODEL_CONFIG_FEATURES_H_

// ConfigFeatures turns the levels of a config into the numbers that surrogate
// models compare. Per knob with more than one level:
//  - ordinal: its position in [0, 1], on a log2 scale if all values are
//  positive
//    (tile sizes act through ratios), else by level;
//  - positive, more than four levels: also the number of trailing zero bits in
//    [0, 1] (alignment: 96 and 128 differ from 100 in the same way);
//  - more than two levels, or categorical: whether two values differ at all (a
//    kernel may be good at one value only).
//
// It also packs a config into a few codes, each of which stands for the levels
// of several knobs, so that a distance is a sum of a few table lookups.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

struct Feature {
  int knob = 0;
  bool indicator = false;  // the distance is 1 where two values differ, else 0
  std::vector<float> value;  // per level
};

class ConfigFeatures {
 public:
  explicit ConfigFeatures(absl::Span<const KnobLevels> knobs);

  absl::Span<const Feature> features() const { return features_; }
  // One level count per knob.
  absl::Span<const int> knob_sizes() const { return knob_sizes_; }

  // The squared distance of two levels in one feature.
  static float SquaredDistance(const Feature& feature, int a, int b) {
    if (feature.indicator) return a == b ? 0.0f : 1.0f;
    const float d = feature.value[a] - feature.value[b];
    return d * d;
  }

  // The sum over all features; what designs of experiments spread out.
  float SquaredDistance(absl::Span<const uint16_t> a,
                        absl::Span<const uint16_t> b) const;

  // The knobs of one code, in the order in which their levels are packed: the
  // last varies fastest.
  struct Group {
    std::vector<int> knobs;
    int codes = 1;
  };
  absl::Span<const Group> groups() const { return groups_; }

  uint16_t Code(const Group& group, absl::Span<const uint16_t> levels) const;

  // The values of all features that are not indicators, and the level of each
  // knob that has one: the columns of a tree model.
  std::vector<float> Columns(absl::Span<const uint16_t> levels) const;

 private:
  std::vector<int> knob_sizes_;
  std::vector<Feature> features_;
  std::vector<Group> groups_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_MODEL_CONFIG_FEATURES_H_
