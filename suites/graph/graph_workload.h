#ifndef OPTRAIL_SUITES_GRAPH_GRAPH_WORKLOAD_H_
#define OPTRAIL_SUITES_GRAPH_GRAPH_WORKLOAD_H_

// WorkloadOf lists the operators that a graph runs on a CPU with their shapes
// and how often a call of the graph computes each, so that tuning spends its
// trials where the graph gains most:
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const proto::Workload workload,
//       WorkloadOf(graph, "resnet50_bn", /*fuse=*/true));
//   OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
//       "resnet50_bn.workload.textproto", WorkloadText(workload)));
//
// Steps run one after another: what a shape's calls take together is its share
// of the end-to-end time. Generated loops have no knobs and are not listed.

#include <string>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "suites/proto/workload.pb.h"

namespace optrail::suites {

// In the order of the graph. The workload's name is `name` in lower case, with
// '_' for what a name may not have. FailedPrecondition where no step is one of
// our operators.
absl::StatusOr<proto::Workload> WorkloadOf(const graph::Graph& graph,
                                           const std::string& name, bool fuse);

// A workload file.
std::string WorkloadText(const proto::Workload& workload);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_GRAPH_WORKLOAD_H_
