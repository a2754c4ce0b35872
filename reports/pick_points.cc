#include "reports/pick_points.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace optrail::reports {

std::vector<int> PickPoints(const std::vector<double>& values,
                            const std::vector<int>& must_keep, int limit) {
  const int n = static_cast<int>(values.size());
  std::vector<bool> keep(n, n <= limit);
  int kept = 0;
  if (n > limit) {
    const auto mark = [&](int i) {
      if (i < 0 || i >= n || keep[i]) return;
      keep[i] = true;
      ++kept;
    };
    mark(0);
    mark(n - 1);
    for (int i : must_keep) mark(i);

    const int buckets = std::max(0, (limit - kept) / 2);
    for (int b = 0; b < buckets; ++b) {
      const int begin = static_cast<int64_t>(b) * n / buckets;
      const int end = static_cast<int64_t>(b + 1) * n / buckets;
      int low = -1;
      int high = -1;
      for (int i = begin; i < end; ++i) {
        if (std::isnan(values[i])) continue;
        if (low < 0 || values[i] < values[low]) low = i;
        if (high < 0 || values[i] > values[high]) high = i;
      }
      mark(low);
      mark(high);
    }
  }
  std::vector<int> picked;
  for (int i = 0; i < n; ++i) {
    if (keep[i]) picked.push_back(i);
  }
  return picked;
}

}  // namespace optrail::reports
