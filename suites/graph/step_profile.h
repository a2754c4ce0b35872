#ifndef OPTRAIL_SUITES_GRAPH_STEP_PROFILE_H_
#define OPTRAIL_SUITES_GRAPH_STEP_PROFILE_H_

// ProfileSteps tells what each step of a graph takes where it stands.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> steps_ns,
//                            ProfileSteps(*runner, *device));
//   Use(runner->steps()[0].name, steps_ns[0]);
//
// On a CPU these are medians over calls of the whole graph with a look at the
// clock between steps, so that 20,000 of them take no longer than a few calls.
// On a GPU each step is captured several times over and timed alone: its
// operands are in the L2 where they fit.

#include <vector>

#include "absl/status/statusor.h"
#include "graph/runner/runner.h"
#include "ops/core/device.h"

namespace optrail::suites {

// In nanoseconds. Errors are the runner's, which runs on `device`. A step that
// works in place is run on its own results: run the whole graph again before
// its outputs are read.
absl::StatusOr<std::vector<double>> ProfileSteps(graph::Runner& runner,
                                                 ops::Device& device);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_STEP_PROFILE_H_
