#ifndef OPTRAIL_TRACKER_SERIES_SIMILAR_H_
#define OPTRAIL_TRACKER_SERIES_SIMILAR_H_

// Was a benchmark renamed? Guesses from names which of the vanished benchmarks
// a new one may be. A guess is printed, never acted upon.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::tracker {

// 1 for equal names, 0 for names with nothing in common: 1 - edit distance /
// length of the longer, and 0 where the numbers in them differ ("m=512" became
// "m=513": another benchmark, not another name).
double NameSimilarity(absl::string_view a, absl::string_view b);

// Pairs (index into vanished, index into added) that are each other's most
// similar name, of at least `min_similarity`.
std::vector<std::pair<int, int>> MatchRenamed(
    const std::vector<std::string>& vanished,
    const std::vector<std::string>& added, double min_similarity = .6);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_SIMILAR_H_
