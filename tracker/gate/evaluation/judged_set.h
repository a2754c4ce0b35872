#ifndef OPTRAIL_TRACKER_GATE_EVALUATION_JUDGED_SET_H_
#define OPTRAIL_TRACKER_GATE_EVALUATION_JUDGED_SET_H_

// The slow-downs that the judge of series marks in runs of identical code,
// where nothing changes and behind a step that is planted and known.
//
//   for (const auto& [name, marks] : JudgeRecordedSet(set, 12, rng)) {
//     Print(name, 1000. * marks.marked / marks.judged);
//   }

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tracker/gate/evaluation/recorded_set.h"

namespace optrail::tracker {

struct FalseMarks {
  int judged = 0;  // commits of a series, each judged as its newest
  int marked = 0;  // of them with an open slow-down that nobody planted
  int alerts = 0;  // of them with one for which `changes` exits with 1
};

// By what was planted before the commits that are judged: nothing, a slow-down
// of 10% that was acknowledged, a gain of 10%; and such a slow-down with one of
// 20% two commits later, which is to be found. The runs come in the order of
// time and in `shuffles` others.
std::vector<std::pair<std::string, FalseMarks>> JudgeRecordedSet(
    const RecordedSet& set, int shuffles, Rng& rng);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_EVALUATION_JUDGED_SET_H_
