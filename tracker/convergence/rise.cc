#include "tracker/convergence/rise.h"

#include <cmath>

#include "base/random.h"
#include "base/stats/rank_correlation.h"
#include "base/stats/statistics.h"

namespace optrail::tracker {
namespace {

constexpr uint64_t kPermutationSeed = 20260101;

struct Rise {
  double z = 0;
  int boundary = 0;
};

Rise LargestZ(const std::vector<std::vector<double>>& ranks,
              const std::vector<Stratum>& strata, int group_count) {
  Rise largest;
  for (int boundary = 1; boundary < group_count; ++boundary) {
    double sum = 0;
    double variance = 0;
    for (size_t s = 0; s < strata.size(); ++s) {
      const double n = static_cast<double>(ranks[s].size());
      double after = 0;
      double rank_sum = 0;
      for (size_t i = 0; i < ranks[s].size(); ++i) {
        if (strata[s].groups[i] < boundary) continue;
        ++after;
        rank_sum += ranks[s][i];
      }
      if (after == 0 || after == n) continue;
      // Weight 1 / (n + 1): the locally most powerful combination.
      sum += (rank_sum - after * (n + 1) / 2) / (n + 1);
      variance += after * (n - after) / (12 * (n + 1));
    }
    if (variance <= 0) continue;
    const double z = sum / std::sqrt(variance);
    if (z > largest.z) largest = {z, boundary};
  }
  return largest;
}

// One per stratum with values on both sides.
std::vector<double> Differences(const std::vector<Stratum>& strata,
                                int boundary) {
  std::vector<double> differences;
  for (const Stratum& stratum : strata) {
    std::vector<double> before;
    std::vector<double> after;
    for (size_t i = 0; i < stratum.values.size(); ++i) {
      (stratum.groups[i] < boundary ? before : after)
          .push_back(stratum.values[i]);
    }
    if (before.empty() || after.empty()) continue;
    differences.push_back(Median(after) - Median(before));
  }
  return differences;
}

}  // namespace

double MedianDifference(const std::vector<Stratum>& strata, int boundary) {
  const std::vector<double> differences = Differences(strata, boundary);
  return differences.empty() ? 0 : Median(differences);
}

Shift LargestRise(const std::vector<Stratum>& strata, int group_count,
                  int permutations) {
  std::vector<std::vector<double>> ranks;
  for (const Stratum& stratum : strata) ranks.push_back(Ranks(stratum.values));
  const Rise observed = LargestZ(ranks, strata, group_count);
  Shift shift;
  if (observed.boundary == 0) return shift;
  shift.boundary = observed.boundary;

  shift.strata = static_cast<int>(Differences(strata, shift.boundary).size());
  shift.difference = MedianDifference(strata, shift.boundary);

  Rng rng(kPermutationSeed);
  int as_large = 1;  // the observed order is one of the permutations
  for (int i = 0; i < permutations; ++i) {
    for (std::vector<double>& stratum : ranks) rng.Shuffle(stratum);
    // Equal sums may differ in their last bit.
    if (LargestZ(ranks, strata, group_count).z >= observed.z - 1e-9) {
      ++as_large;
    }
  }
  shift.p_value = static_cast<double>(as_large) / (permutations + 1);
  return shift;
}

}  // namespace optrail::tracker
