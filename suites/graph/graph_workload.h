#ifndef OPTRAIL_SUITES_GRAPH_GRAPH_WORKLOAD_H_
#define OPTRAIL_SUITES_GRAPH_GRAPH_WORKLOAD_H_

// WriteGraphWorkload writes the operators that a model runs on a device with
// their shapes and how often a call of the model computes each, so that tuning
// spends its trials where the model gains most:
//
//   GraphRunCommand command;
//   command.path = "resnet50_bn.onnx";
//   OPTRAIL_RETURN_IF_ERROR(WriteGraphWorkload(
//       command, "resnet50_bn.workload.textproto", std::cout));
//
// Steps run one after another: what a shape's calls take together is its share
// of the end-to-end time. Generated loops have no knobs and are not listed.

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/runner/runner.h"
#include "ops/core/device.h"
#include "suites/graph/run_graph.h"
#include "suites/proto/workload.pb.h"

namespace optrail::suites {

// In the order of the graph. The workload's name is `name` in lower case, with
// '_' for what a name may not have. FailedPrecondition where no step is one of
// our operators.
absl::StatusOr<proto::Workload> WorkloadOf(const graph::Graph& graph,
                                           const std::string& name,
                                           ops::Device& device,
                                           const graph::RunnerOptions& options);

// A workload file.
std::string WorkloadText(const proto::Workload& workload);

// Takes the model, device, type, threads and store of the command, and its
// fuse, which may not be kMeasured. Says on `out` how to tune what was written.
absl::Status WriteGraphWorkload(const GraphRunCommand& command,
                                const std::string& path, std::ostream& out);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_GRAPH_WORKLOAD_H_
