#ifndef OPTRAIL_SUITES_GRAPH_STEP_PROFILE_H_
#define OPTRAIL_SUITES_GRAPH_STEP_PROFILE_H_

// ProfileSteps tells what each step of a graph takes where it stands.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> steps_ns,
//                            ProfileSteps(*runner));
//   Use(runner->steps()[0].name, steps_ns[0]);
//
// These are medians over calls of the whole graph with a look at the clock
// between steps, so that 20,000 of them take no longer than a few calls.

#include <vector>

#include "absl/status/statusor.h"
#include "graph/runner/runner.h"

namespace optrail::suites {

// In nanoseconds. Errors are the runner's.
absl::StatusOr<std::vector<double>> ProfileSteps(graph::Runner& runner);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_STEP_PROFILE_H_
