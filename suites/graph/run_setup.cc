// How a model runs, as the flags of `optrail graph` say: its device, options
// and runner.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/cpus.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "ops/core/device_type.h"
#include "ops/device/cpu/device.h"
#include "suites/graph/run_graph.h"

namespace optrail::suites {

bool AbslParseFlag(absl::string_view text, FuseMode* mode, std::string* error) {
  for (const FuseMode known :
       {FuseMode::kRules, FuseMode::kNone, FuseMode::kMeasured}) {
    if (text != AbslUnparseFlag(known)) continue;
    *mode = known;
    return true;
  }
  *error = ExpectedOneOf(text, {"rules", "none", "measured"});
  return false;
}

std::string AbslUnparseFlag(FuseMode mode) {
  return mode == FuseMode::kRules  ? "rules"
         : mode == FuseMode::kNone ? "none"
                                   : "measured";
}

absl::StatusOr<std::unique_ptr<ops::Device>> DeviceOf(
    GraphRunCommand& command) {
  if (command.device == "cpu") {
    if (command.threads == 0) {
      command.threads = static_cast<int>(UsableCpus().size());
    }
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<ops::CpuDevice> device,
                             ops::MakeCpuDevice(command.threads));
    return device;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* const type,
                           ops::FindDeviceTypeNamed(command.device));
  return type->Make({});
}

absl::StatusOr<graph::RunnerOptions> RunnerOptionsOf(
    const GraphRunCommand& command) {
  graph::RunnerOptions options;
  if (command.type == "bf16") {
    options.type = proto::ELEMENT_BF16;
  } else if (command.type != "f32") {
    return absl::InvalidArgumentError(
        absl::StrCat("--type=", command.type, ": expected f32 or bf16"));
  }
  options.compile_cache = command.compile_cache;
  options.fuse = command.fuse != FuseMode::kNone;
  options.store = command.store;
  return options;
}

absl::StatusOr<std::unique_ptr<graph::Runner>> MakeRunner(
    const GraphRunCommand& command, const graph::Graph& graph,
    ops::Device& device, graph::RunnerOptions& options,
    std::unique_ptr<MeasuredFusion>& fusion) {
  if (command.fuse == FuseMode::kMeasured) {
    OPTRAIL_ASSIGN_OR_RETURN(
        fusion, MeasuredFusion::Create(command.fusion_store, device, options));
    options.choose = fusion->chooser();
  }
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<graph::Runner> runner,
                           graph::Runner::Create(graph, device, options));
  if (fusion != nullptr) OPTRAIL_RETURN_IF_ERROR(fusion->Save());
  return runner;
}

}  // namespace optrail::suites
