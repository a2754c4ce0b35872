#ifndef OPTRAIL_TUNING_SEARCH_TOP_K_DOMAIN_H_
#define OPTRAIL_TUNING_SEARCH_TOP_K_DOMAIN_H_

// TopKDomain is the k configs of another domain that its prior ranks highest:
// "rank by the prior, measure only the best". A domain that can be listed is
// ranked in full; of a larger one, the best of a uniform sample climb the prior
// to its local optima, and the best configs met on the way are kept.

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

class TopKDomain final : public Domain {
 public:
  // `full` must outlive this. Configs without a prior rank last.
  TopKDomain(const Domain& full, int top_k, uint64_t seed);

  absl::Span<const KnobLevels> knobs() const override { return full_.knobs(); }
  bool IsValid(absl::Span<const uint16_t> levels) const override {
    return IndexOf(levels).has_value();
  }
  absl::optional<int64_t> size() const override {
    return static_cast<int64_t>(configs_.size());
  }
  Levels At(int64_t index) const override { return configs_[index]; }
  absl::optional<int64_t> IndexOf(
      absl::Span<const uint16_t> levels) const override;
  Levels Sample(Rng& rng) const override {
    return configs_[rng.UniformInt(static_cast<int64_t>(configs_.size()))];
  }
  absl::optional<double> Prior(
      absl::Span<const uint16_t> levels) const override {
    return full_.Prior(levels);
  }

 private:
  const Domain& full_;
  std::vector<Levels> configs_;  // in lexicographic order
  absl::flat_hash_map<Levels, int64_t> index_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_TOP_K_DOMAIN_H_
