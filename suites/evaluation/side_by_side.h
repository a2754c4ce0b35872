#ifndef OPTRAIL_SUITES_EVALUATION_SIDE_BY_SIDE_H_
#define OPTRAIL_SUITES_EVALUATION_SIDE_BY_SIDE_H_

// Several ways to compute one task, measured interleaved: every round measures
// every side once, in shuffled order, so that clocks and temperature are the
// same for all. Where the device can (Evaluator::Measure), samples of
// the sides are interleaved, a millisecond each.
//
//   std::vector<Side> sides;
//   sides.push_back(OurSide("cuda:default", task, config, context));
//   sides.push_back(PeerSide("torch"));
//   MeasureSides(task.task, options, peer.get(), sides);
//   sides[1].MedianOver(sides[0]);  // above 1: the first is faster
//
// Not thread-safe.

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "suites/evaluation/line_peer.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct Side {
  std::string name;
  std::string backend, config;             // of ours and of libraries
  std::shared_ptr<WorkerEvaluator> ours;   // null: the peer answers
  std::vector<absl::optional<double>> us;  // by round
  std::string trouble;                     // the first

  // Microseconds a call; nullopt where no round was measured.
  absl::optional<double> Median() const;
  // The median of the rounds' ratios to the times of `other`.
  absl::optional<double> MedianOver(const Side& other) const;
};

// `task` names the backend.
Side OurSide(std::string name, const TaskEntry& task, std::string config,
             const RunContext& context);
// Another config of the same backend, measured by the same process.
Side SideOfProcess(const Side& side, std::string name, std::string config);
Side PeerSide(std::string name);

struct SideOptions {
  int rounds = 7;
  // Sampling of one side in one round.
  absl::Duration reading = absl::Milliseconds(50);
  // For machines that others use: a reading is its least sample of half a
  // millisecond, disturbed or not, since interference only slows code down.
  // Else it is the median, and a disturbed reading is left out.
  bool least_sample = false;
};

// `sides[0]` is ours. `peer` answers questions "OP SHAPE CACHE SIDE" with
// microseconds a call, or "error: ..."; "once" behind a question asks for a
// single sample of about a millisecond. It may be null if no side needs it.
void MeasureSides(const proto::Task& task, const SideOptions& options,
                  LinePeer* peer, std::vector<Side>& sides);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EVALUATION_SIDE_BY_SIDE_H_
