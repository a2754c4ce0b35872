#include "suites/graph/graph_workload.h"

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "graph/onnx/import.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {

absl::StatusOr<proto::Workload> WorkloadOf(
    const graph::Graph& graph, const std::string& name, ops::Device& device,
    const graph::RunnerOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Program program,
                           graph::ProgramOn(graph, device, options));
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

absl::Status WriteGraphWorkload(const GraphRunCommand& asked,
                                const std::string& path, std::ostream& out) {
  if (asked.fuse == FuseMode::kMeasured) {
    return absl::InvalidArgumentError(
        "--fuse=measured: a workload is written before anything is measured; "
        "expected rules or none");
  }
  GraphRunCommand command = asked;
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Imported imported,
                           graph::ImportOnnx(command.path, command.import));
  OPTRAIL_RETURN_IF_ERROR(graph::CheckCovered(imported, command.path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Device> device,
                           DeviceOf(command));
  OPTRAIL_ASSIGN_OR_RETURN(const graph::RunnerOptions options,
                           RunnerOptionsOf(command));
  OPTRAIL_ASSIGN_OR_RETURN(
      proto::Workload workload,
      WorkloadOf(imported.graph,
                 std::filesystem::path(command.path).stem().string(), *device,
                 options));
  const bool on_cpu = device->kind() == optrail::proto::CPU;
  if (on_cpu && command.threads != 1) workload.add_threads(command.threads);
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(path, WorkloadText(workload)));
  // The runner looks tuned configs up by these (graph/runner/machine.h).
  out << "wrote " << path << ", " << workload.layer_size()
      << " layers; next: optrail tune --workload=" << path
      << (on_cpu ? ""
                 : absl::StrCat(" --device=", command.device,
                                " --cache=cold --launch=graph"))
      << " --total_trials=200\n";
  return absl::OkStatus();
}

}  // namespace optrail::suites
