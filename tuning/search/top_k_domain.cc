#include "tuning/search/top_k_domain.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace optrail::tuning {
namespace {

constexpr int64_t kListed = int64_t{1} << 22;
constexpr int kSampled = 1 << 15;
constexpr int kClimbers = 64;

struct Ranked {
  double prior;
  Levels levels;
};

double PriorOf(const Domain& domain, const Levels& levels) {
  return domain.Prior(levels).value_or(
      -std::numeric_limits<double>::infinity());
}

// Higher prior first; ties in the domain's order.
bool Before(const Ranked& a, const Ranked& b) {
  return a.prior != b.prior ? a.prior > b.prior : a.levels < b.levels;
}

std::vector<Ranked> List(const Domain& domain) {
  std::vector<Ranked> all;
  for (int64_t i = 0; i < *domain.size(); ++i) {
    Levels levels = domain.At(i);
    const double prior = PriorOf(domain, levels);
    all.push_back({prior, std::move(levels)});
  }
  return all;
}

std::vector<Ranked> SampleAndClimb(const Domain& domain, uint64_t seed) {
  Rng rng(seed);
  std::vector<Ranked> met;
  absl::flat_hash_set<Levels> known;
  for (int i = 0; i < kSampled; ++i) {
    Levels levels = domain.Sample(rng);
    if (!known.insert(levels).second) continue;
    const double prior = PriorOf(domain, levels);
    met.push_back({prior, std::move(levels)});
  }
  std::sort(met.begin(), met.end(), Before);
  const size_t climbers = std::min<size_t>(kClimbers, met.size());
  for (size_t i = 0; i < climbers; ++i) {
    Ranked at = met[i];
    for (bool higher = true; higher;) {
      higher = false;
      for (Levels& next :
           domain.Neighbours(at.levels, Neighbourhood::kHamming)) {
        const double prior = PriorOf(domain, next);
        Ranked ranked = {prior, std::move(next)};
        if (known.insert(ranked.levels).second) met.push_back(ranked);
        if (prior > at.prior) {
          at = std::move(ranked);
          higher = true;
        }
      }
    }
  }
  return met;
}

}  // namespace

TopKDomain::TopKDomain(const Domain& full, int top_k, uint64_t seed)
    : full_(full) {
  std::vector<Ranked> ranked = full.size() && *full.size() <= kListed
                                   ? List(full)
                                   : SampleAndClimb(full, seed);
  const size_t kept = std::min<size_t>(top_k, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + kept, ranked.end(),
                    Before);
  for (size_t i = 0; i < kept; ++i) {
    configs_.push_back(std::move(ranked[i].levels));
  }
  std::sort(configs_.begin(), configs_.end());
  for (size_t i = 0; i < kept; ++i) index_.emplace(configs_[i], i);
}

absl::optional<int64_t> TopKDomain::IndexOf(
    absl::Span<const uint16_t> levels) const {
  const auto it = index_.find(Levels(levels.begin(), levels.end()));
  if (it == index_.end()) return absl::nullopt;
  return it->second;
}

}  // namespace optrail::tuning
