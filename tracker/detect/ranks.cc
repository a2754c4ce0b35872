#include "tracker/detect/ranks.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace optrail::tracker {

double LogChanceOfRanks(absl::Span<const double> before,
                        absl::Span<const double> after) {
  const double n = static_cast<double>(before.size());
  const double m = static_cast<double>(after.size());
  if (n == 0 || m == 0) return 0;
  std::vector<double> sorted(before.begin(), before.end());
  std::sort(sorted.begin(), sorted.end());
  double below = 0;  // pairs in which `after` is the larger; ties count half
  for (const double value : after) {
    below += ((std::lower_bound(sorted.begin(), sorted.end(), value) -
               sorted.begin()) +
              (std::upper_bound(sorted.begin(), sorted.end(), value) -
               sorted.begin())) /
             2.0;
  }
  const double exceptions = std::min(below, n * m - below);
  const double z =
      (n * m / 2 - exceptions) / std::sqrt(n * m * (n + m + 1) / 12);
  // log of 2 * the upper tail, by its bound exp(-z^2 / 2) / (z sqrt(2 pi)).
  double log_chance =
      z > 1 ? std::log(2 / (z * std::sqrt(2 * M_PI))) - z * z / 2 : 0;
  constexpr int kPartitions = 120;
  static const std::vector<double>& log_partitions = *[] {
    std::vector<double> partitions(kPartitions, 0);
    partitions[0] = 1;
    for (int part = 1; part < kPartitions; ++part) {
      for (int sum = part; sum < kPartitions; ++sum) {
        partitions[sum] += partitions[sum - part];
      }
    }
    auto* logs = new std::vector<double>;
    double total = 0;
    for (const double p : partitions) logs->push_back(std::log(total += p));
    return logs;
  }();
  if (exceptions < kPartitions) {
    log_chance = std::min(
        log_chance,
        std::log(2.0) +
            log_partitions[static_cast<int>(std::ceil(exceptions))] -
            (std::lgamma(n + m + 1) - std::lgamma(n + 1) - std::lgamma(m + 1)));
  }
  return std::min(log_chance, 0.0);
}

}  // namespace optrail::tracker
