#include "tracker/series/similar.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/text/closest.h"

namespace optrail::tracker {
namespace {

std::string NumbersIn(absl::string_view name) {
  std::string numbers;
  for (const char c : name) {
    if (absl::ascii_isdigit(c)) {
      numbers.push_back(c);
    } else if (!numbers.empty() && numbers.back() != ' ') {
      numbers.push_back(' ');
    }
  }
  if (!numbers.empty() && numbers.back() == ' ') numbers.pop_back();
  return numbers;
}

// The index of the largest of at least `minimum`, -1 if none is.
template <typename Value>
int ArgMax(int count, double minimum, const Value& value) {
  int best = -1;
  double best_value = minimum;
  for (int i = 0; i < count; ++i) {
    const double v = value(i);
    if (v > best_value || (best < 0 && v >= best_value)) {
      best = i;
      best_value = v;
    }
  }
  return best;
}

}  // namespace

double NameSimilarity(absl::string_view a, absl::string_view b) {
  if (NumbersIn(a) != NumbersIn(b)) return 0;
  const size_t longer = std::max(a.size(), b.size());
  if (longer == 0) return 1;
  return std::max(0.0, 1 - EditDistance(a, b) / static_cast<double>(longer));
}

std::vector<std::pair<int, int>> MatchRenamed(
    const std::vector<std::string>& vanished,
    const std::vector<std::string>& added, double min_similarity) {
  // Whole suites may come and go; then a guess for each would be slow and
  // worthless.
  constexpr size_t kMostPairs = 20000;
  if (vanished.size() * added.size() > kMostPairs) return {};
  std::vector<std::vector<double>> similarity(vanished.size());
  for (size_t i = 0; i < vanished.size(); ++i) {
    for (const std::string& name : added) {
      similarity[i].push_back(NameSimilarity(vanished[i], name));
    }
  }
  const int vanished_count = static_cast<int>(vanished.size());
  const int added_count = static_cast<int>(added.size());
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < vanished_count; ++i) {
    const int j = ArgMax(added_count, min_similarity,
                         [&](int k) { return similarity[i][k]; });
    if (j < 0) continue;
    const int back = ArgMax(vanished_count, min_similarity,
                            [&](int k) { return similarity[k][j]; });
    if (back == i) pairs.push_back({i, j});
  }
  return pairs;
}

}  // namespace optrail::tracker
