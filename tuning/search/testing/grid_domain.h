#ifndef OPTRAIL_TUNING_SEARCH_TESTING_GRID_DOMAIN_H_
#define OPTRAIL_TUNING_SEARCH_TESTING_GRID_DOMAIN_H_

// GridDomain is a small domain for tests: the product of some knobs, less what
// a predicate forbids. Set `listed` to false and it pretends to be too large to
// enumerate.

#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

class GridDomain final : public Domain {
 public:
  using Predicate = std::function<bool(absl::Span<const uint16_t>)>;
  using PriorFunction = std::function<double(absl::Span<const uint16_t>)>;

  explicit GridDomain(std::vector<KnobLevels> knobs, Predicate valid = nullptr,
                      bool listed = true)
      : knobs_(std::move(knobs)), valid_(std::move(valid)), listed_(listed) {
    if (listed_) List(Levels(knobs_.size(), 0), 0);
  }

  void SetPrior(PriorFunction prior) { prior_ = std::move(prior); }

  absl::Span<const KnobLevels> knobs() const override { return knobs_; }
  bool IsValid(absl::Span<const uint16_t> levels) const override {
    return !valid_ || valid_(levels);
  }
  absl::optional<int64_t> size() const override {
    if (!listed_) return absl::nullopt;
    return static_cast<int64_t>(configs_.size());
  }
  Levels At(int64_t index) const override { return configs_[index]; }
  absl::optional<int64_t> IndexOf(
      absl::Span<const uint16_t> levels) const override {
    const auto it = index_.find(Levels(levels.begin(), levels.end()));
    if (it == index_.end()) return absl::nullopt;
    return it->second;
  }
  Levels Sample(Rng& rng) const override {
    Levels levels(knobs_.size(), 0);
    do {
      for (size_t k = 0; k < knobs_.size(); ++k) {
        levels[k] = static_cast<uint16_t>(rng.UniformInt(knobs_[k].size()));
      }
    } while (!IsValid(levels));
    return levels;
  }
  absl::optional<double> Prior(
      absl::Span<const uint16_t> levels) const override {
    if (!prior_) return absl::nullopt;
    return prior_(levels);
  }

  // Powers of two from 1, as many as `levels`.
  static KnobLevels Powers(const std::string& name, int levels) {
    KnobLevels knob;
    knob.name = name;
    knob.ordinal = true;
    for (int l = 0; l < levels; ++l) {
      knob.ints.push_back(int64_t{1} << l);
      knob.labels.push_back(std::to_string(knob.ints.back()));
    }
    return knob;
  }
  // 0, 1, 2, ..., as many as `levels`.
  static KnobLevels Range(const std::string& name, int levels) {
    KnobLevels knob;
    knob.name = name;
    knob.ordinal = true;
    for (int l = 0; l < levels; ++l) {
      knob.ints.push_back(l);
      knob.labels.push_back(std::to_string(l));
    }
    return knob;
  }
  static KnobLevels Variants(const std::string& name, int levels) {
    KnobLevels knob;
    knob.name = name;
    for (int l = 0; l < levels; ++l) {
      knob.labels.push_back("v" + std::to_string(l));
    }
    return knob;
  }

 private:
  void List(Levels levels, size_t knob) {
    if (knob == knobs_.size()) {
      if (!IsValid(levels)) return;
      index_.emplace(levels, static_cast<int64_t>(configs_.size()));
      configs_.push_back(std::move(levels));
      return;
    }
    for (int l = 0; l < knobs_[knob].size(); ++l) {
      levels[knob] = static_cast<uint16_t>(l);
      List(levels, knob + 1);
    }
  }

  std::vector<KnobLevels> knobs_;
  Predicate valid_;
  PriorFunction prior_;
  bool listed_;
  std::vector<Levels> configs_;
  absl::flat_hash_map<Levels, int64_t> index_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_TESTING_GRID_DOMAIN_H_
