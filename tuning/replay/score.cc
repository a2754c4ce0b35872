#include "tuning/replay/score.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace optrail::tuning {

double OptimumMs(const Recording& recording) {
  double optimum = std::numeric_limits<double>::infinity();
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome == proto::OK) {
      optimum = std::min(optimum, config.time_ms);
    }
  }
  return optimum;
}

bool WithinFivePercent(double time_ms, double optimum_ms) {
  return time_ms <= 1.05 * optimum_ms;
}

double RandomExpectedFraction(const Recording& recording, int budget) {
  const double optimum = OptimumMs(recording);
  std::vector<double> times;
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome == proto::OK) times.push_back(config.time_ms);
  }
  std::sort(times.begin(), times.end());
  const double n = static_cast<double>(recording.configs.size());
  // The probability that the sample has none of the i best, for growing i.
  double none_before = 1;
  double expected = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const double left = n - static_cast<double>(i);
    const double none_after = none_before * std::max(0.0, left - budget) / left;
    expected += (none_before - none_after) * optimum / times[i];
    none_before = none_after;
  }
  return expected;
}

double RandomExpectedEv5(const Recording& recording, int censored_at) {
  const double optimum = OptimumMs(recording);
  const double n = static_cast<double>(recording.configs.size());
  const double good = static_cast<double>(
      std::count_if(recording.configs.begin(), recording.configs.end(),
                    [optimum](const RecordedConfig& config) {
                      return config.outcome == proto::OK &&
                             WithinFivePercent(config.time_ms, optimum);
                    }));
  // E[min(T, c)] is the sum of P(T > t) over t < c.
  double not_yet = 1;
  double expected = 0;
  for (int t = 0; t < censored_at && t < n; ++t) {
    expected += not_yet;
    not_yet *= std::max(0.0, n - t - good) / (n - t);
  }
  return expected;
}

double LogHypervolume(std::vector<Point2> points, Point2 reference) {
  std::sort(points.begin(), points.end(), [](const Point2& a, const Point2& b) {
    return a.x != b.x ? a.x < b.x : a.y < b.y;
  });
  double area = 0;
  double lowest = reference.y;
  for (const Point2& point : points) {
    if (point.x >= reference.x || point.y >= lowest) continue;
    area += std::log(reference.x / point.x) * std::log(lowest / point.y);
    lowest = point.y;
  }
  return area;
}

}  // namespace optrail::tuning
