#ifndef OPTRAIL_TRACKER_DETECT_EVALUATION_SCORE_H_
#define OPTRAIL_TRACKER_DETECT_EVALUATION_SCORE_H_

// How well predicted change points agree with labels: F1 with a margin and
// segmentation covering, as defined by van den Burg and Williams, "An
// evaluation of change point detection algorithms" (2020). A change point is
// the first index of the new segment.

#include <vector>

namespace optrail::tracker {

inline constexpr int kScoreMargin = 5;

// How many labels have a prediction within the margin, each prediction used
// once: labels in ascending order take the nearest one left (the smaller of
// two equally near).
int TruePositives(std::vector<int> labels, std::vector<int> predicted,
                  int margin = kScoreMargin);

// Several annotators, one vector of labels each. Index 0 counts as a change
// point of everybody, as in the paper.
double F1(const std::vector<std::vector<int>>& annotators,
          const std::vector<int>& predicted, int margin = kScoreMargin);

// Mean over annotators of the length-weighted best Jaccard index of each of
// their segments with a predicted one; `num_points` is the series' length.
double Covering(const std::vector<std::vector<int>>& annotators,
                const std::vector<int>& predicted, int num_points);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_EVALUATION_SCORE_H_
