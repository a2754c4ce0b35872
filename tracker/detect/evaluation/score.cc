#include "tracker/detect/evaluation/score.h"

#include <algorithm>
#include <cstdlib>

namespace optrail::tracker {
namespace {

std::vector<int> WithZero(std::vector<int> indices) {
  indices.push_back(0);
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

struct Segment {
  int begin;
  int end;
};

std::vector<Segment> Segments(const std::vector<int>& changes, int num_points) {
  std::vector<Segment> segments;
  for (const int begin : WithZero(changes)) {
    if (begin < 0 || begin >= num_points) continue;
    if (!segments.empty()) segments.back().end = begin;
    segments.push_back({begin, num_points});
  }
  return segments;
}

}  // namespace

int TruePositives(std::vector<int> labels, std::vector<int> predicted,
                  int margin) {
  std::sort(labels.begin(), labels.end());
  std::sort(predicted.begin(), predicted.end());
  int count = 0;
  for (const int label : labels) {
    auto nearest = predicted.end();
    for (auto p = predicted.begin(); p != predicted.end(); ++p) {
      if (std::abs(*p - label) > margin) continue;
      if (nearest == predicted.end() ||
          std::abs(*p - label) < std::abs(*nearest - label)) {
        nearest = p;
      }
    }
    if (nearest == predicted.end()) continue;
    predicted.erase(nearest);
    ++count;
  }
  return count;
}

double F1(const std::vector<std::vector<int>>& annotators,
          const std::vector<int>& predicted, int margin) {
  const std::vector<int> found = WithZero(predicted);
  std::vector<int> all;
  double recall = 0;
  for (const std::vector<int>& annotator : annotators) {
    const std::vector<int> labels = WithZero(annotator);
    recall += static_cast<double>(TruePositives(labels, found, margin)) /
              labels.size() / annotators.size();
    all.insert(all.end(), labels.begin(), labels.end());
  }
  const double precision =
      static_cast<double>(TruePositives(WithZero(all), found, margin)) /
      found.size();
  if (precision + recall == 0) return 0;
  return 2 * precision * recall / (precision + recall);
}

double Covering(const std::vector<std::vector<int>>& annotators,
                const std::vector<int>& predicted, int num_points) {
  const std::vector<Segment> found = Segments(predicted, num_points);
  double total = 0;
  for (const std::vector<int>& annotator : annotators) {
    for (const Segment& a : Segments(annotator, num_points)) {
      double best = 0;
      for (const Segment& b : found) {
        const int both = std::min(a.end, b.end) - std::max(a.begin, b.begin);
        const int either = std::max(a.end, b.end) - std::min(a.begin, b.begin);
        if (both > 0) best = std::max(best, static_cast<double>(both) / either);
      }
      total += best * (a.end - a.begin) / num_points;
    }
  }
  return total / annotators.size();
}

}  // namespace optrail::tracker
