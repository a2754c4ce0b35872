#ifndef OPTRAIL_TRACKER_COMPARE_LEARNING_RUNS_H_
#define OPTRAIL_TRACKER_COMPARE_LEARNING_RUNS_H_

// LearningRuns reads the runs of a history from which `compare` and `gate`
// learn the noise between two sides. Both ask here, so that they learn the
// noise of one pair of sides from the same runs.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns(filter));
//   const std::vector<proto::Run> learned =
//       LearningRuns(history, list.runs, {&base}, {&candidate}, {});
//
// A run teaches if it has the toolchain and settings of the candidate, is on
// the branch of the baseline, has no local changes, and is on neither side.

#include <functional>
#include <vector>

#include "tracker/history/history.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct LearningOptions {
  // Runs that were measured with other settings teach as well.
  bool any_settings = false;
  // The baseline is a window: only the runs before its last one teach. Else the
  // runs before the later side do, and where those are fewer than
  // kMostLearningRuns, the runs after it as well.
  bool window = false;
};

constexpr size_t kMostLearningRuns = 60;

// `runs` are of one suite and hardware, in series order, as are the sides; no
// side is empty. Returns at most kMostLearningRuns, the nearest, in series
// order, without results of configs that somebody forced (`bench --config`). A
// run that cannot be read teaches nothing.
std::vector<proto::Run> LearningRuns(
    const History& history, const std::vector<RunInfo>& runs,
    const std::vector<const proto::Run*>& baseline,
    const std::vector<const proto::Run*>& candidate,
    const LearningOptions& options);

// Removes the results that `drop` holds for.
void DropResults(const std::function<bool(const proto::BenchmarkResult&)>& drop,
                 proto::Run* run);

// Removes the results of configs that somebody forced: those are judged as a
// candidate and are no yardstick for others.
void DropGivenConfigs(std::vector<proto::Run>* runs);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_LEARNING_RUNS_H_
