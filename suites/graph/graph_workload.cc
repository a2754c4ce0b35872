#include "suites/graph/graph_workload.h"

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "graph/fusion/fusion.h"
#include "graph/runner/program.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {

absl::StatusOr<proto::Workload> WorkloadOf(const graph::Graph& graph,
                                           const std::string& name, bool fuse) {
  OPTRAIL_ASSIGN_OR_RETURN(graph::Graph run, graph::Simplify(graph));
  if (fuse) {
    graph::FusionReport report;
    OPTRAIL_ASSIGN_OR_RETURN(run,
                             graph::Fuse(run, graph::FusionRules(), &report));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Program program, graph::Lower(run));
  proto::Workload workload;
  for (const char c : name) {
    workload.mutable_name()->push_back(
        absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_');
  }
  std::map<std::pair<std::string, std::string>, int> layers;
  for (const graph::Step& step : program.steps) {
    if (step.prepared || step.kernel == "generated" ||
        step.kernel == "reference") {
      continue;
    }
    const std::string shape = tuning::CanonicalText(step.shape);
    const auto [layer, is_new] =
        layers.insert({{step.kernel, shape}, workload.layer_size()});
    if (is_new) {
      proto::WorkloadLayer& added = *workload.add_layer();
      added.set_operator_name(step.kernel);
      added.set_shape(shape);
      added.set_doc(absl::CEscape(step.name));
    }
    proto::WorkloadLayer& counted = *workload.mutable_layer(layer->second);
    counted.set_count(counted.count() + 1);
  }
  if (workload.layer().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": none of its ", program.steps.size(),
        " steps is an operator that can be tuned; generated loops have no "
        "knobs"));
  }
  return workload;
}

std::string WorkloadText(const proto::Workload& workload) {
  return absl::StrCat(
      "# proto-file: suites/proto/workload.proto\n"
      "# proto-message: optrail.proto.Workload\n",
      PrintTextProto(workload));
}

}  // namespace optrail::suites
