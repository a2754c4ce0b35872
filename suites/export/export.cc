#include "suites/export/export.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/file/writable_folder.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "base/text/units.h"
#include "nlohmann/json.hpp"
#include "ops/core/compile_cache.h"
#include "ops/core/tuned_kernel.h"
#include "ops/device/cuda/exported.h"
#include "suites/tune/task_store.h"
#include "suites/worker/opened_task.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using Json = nlohmann::ordered_json;

const char* RoleName(ops::Role role) {
  switch (role) {
    case ops::Role::kInput:
      return "input";
    case ops::Role::kOutput:
      return "output";
    default:
      return "in-out";
  }
}

std::string SourceName(const tuning::LookupResult& found,
                       const proto::Hardware& hardware) {
  switch (found.source) {
    case tuning::LookupSource::kExact:
      return "tuned exactly";
    case tuning::LookupSource::kBucket:
      return "tuned for a bucket";
    case tuning::LookupSource::kNearest:
      return found.hardware_id == hardware.id() ? "tuned for another shape"
                                                : "tuned on other hardware";
    default:
      return "default config";
  }
}

// An operand's number, or "workspace".
Json AddressJson(const ops::cuda::ExportedAddress& address) {
  Json json;
  if (address.operand < 0) {
    json["of"] = "workspace";
  } else {
    json["of"] = address.operand;
  }
  json["plus"] = address.plus;
  return json;
}

Json MapJson(const ops::cuda::ExportedTensorMap& map) {
  Json json;
  json["encode"] =
      map.im2col ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
  json["data_type"] = map.data_type;
  json["address"] = AddressJson(map.address);
  json["dims"] = map.dims;
  json["stride_bytes"] = map.stride_bytes;
  if (map.im2col) {
    json["lower"] = map.lower;
    json["upper"] = map.upper;
    json["channels"] = map.channels;
    json["pixels"] = map.pixels;
  } else {
    json["box"] = map.box;
  }
  json["element_strides"] = map.element_strides;
  json["interleave"] = map.interleave;
  json["swizzle"] = map.swizzle;
  json["l2_promotion"] = map.l2_promotion;
  json["fill"] = map.fill;
  return json;
}

Json ParameterJson(const ops::cuda::ExportedParameter& parameter) {
  Json json;
  json["bytes"] = parameter.bytes.size();
  json["hex"] = absl::BytesToHexString(parameter.bytes);
  json["addresses"] = Json::array();
  for (const auto& one : parameter.addresses) {
    Json address = AddressJson(one.address);
    address["at"] = one.at;
    json["addresses"].push_back(std::move(address));
  }
  json["tensor_maps"] = Json::array();
  for (const auto& one : parameter.tensor_maps) {
    Json map = MapJson(one.map);
    map["at"] = one.at;
    json["tensor_maps"].push_back(std::move(map));
  }
  return json;
}

Json LaunchJson(const ops::cuda::ExportedPlan::Launch& exported,
                const std::string& cubin) {
  const ops::cuda::CudaLaunch& launch = exported.launch;
  Json json;
  json["cubin"] = cubin;
  json["function"] = launch.function;
  json["grid"] = {launch.grid_x, launch.grid_y, 1};
  json["block"] = {launch.block_x, 1, 1};
  json["shared_bytes"] = launch.dynamic_shared_bytes;
  json["cluster"] = launch.cluster;
  json["parameters"] = Json::array();
  for (const ops::cuda::ExportedParameter& parameter : exported.parameters) {
    json["parameters"].push_back(ParameterJson(parameter));
  }
  return json;
}

struct Exported {
  Json kernel;
  std::string cubin;  // its name in the folder
  std::string code;
  std::string compiler;
};

absl::StatusOr<Exported> ExportTask(const TaskEntry& task,
                                    const RunContext& context,
                                    const tuning::TunedConfigStore& store) {
  ops::KernelQuestion question;
  question.operator_name = task.task.operator_name();
  question.shape = task.task.shape();
  question.device_kind = task.task.device_kind();
  question.backend = task.task.backend();
  question.cache_mode = task.task.cache_mode();
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::ChosenKernel kernel,
      ops::ChooseKernel(question, context.hardware, &store));
  const auto* const backend =
      dynamic_cast<const ops::cuda::CudaBackend*>(kernel.backend);
  if (backend == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "not exportable: ",
        kernel.backend->library().empty() ? kernel.backend->name()
                                          : kernel.backend->library(),
        " brings its own launches; expected the kernels of "
        "backend cuda"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<ops::OperandSpec> operands,
                           kernel.entry->op->Operands(kernel.shape));
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::cuda::ExportedPlan plan,
      ops::cuda::ExportPlan(*backend, kernel.shape, kernel.config,
                            context.hardware,
                            static_cast<int>(operands.size())));
  const ops::Target target{proto::CUDA, "", context.hardware};
  const ops::CompileRequest request = kernel.Request(target);
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Recipe recipe,
                           backend->Describe(request));
  OPTRAIL_ASSIGN_OR_RETURN(
      ops::Artifact artifact,
      ops::CompileCached(*backend, request,
                         JoinPath(context.state, kCompiledFolder)));
  Exported exported;
  exported.compiler = recipe.compiler;
  exported.cubin = absl::StrCat(task.task.operator_name(), "-",
                                recipe.Key().substr(0, 16), ".cubin");
  exported.code = std::move(artifact.bytes);
  Json& json = exported.kernel;
  json["operator"] = task.task.operator_name();
  json["shape"] = tuning::CanonicalText(kernel.shape);
  json["config"] = tuning::CanonicalText(kernel.config);
  json["source"] = SourceName(kernel.found, context.hardware);
  json["operands"] = Json::array();
  for (const ops::OperandSpec& spec : operands) {
    json["operands"].push_back({{"name", spec.name},
                                {"role", RoleName(spec.role)},
                                {"type", tuning::DataTypeName(spec.data_type)},
                                {"dims", spec.dims},
                                {"bytes", spec.size_bytes()}});
  }
  json["workspace_bytes"] = plan.workspace_bytes;
  json["launches"] = Json::array();
  for (const ops::cuda::ExportedPlan::Launch& launch : plan.launches) {
    json["launches"].push_back(LaunchJson(launch, exported.cubin));
  }
  return exported;
}

}  // namespace

absl::StatusOr<int> RunExport(const ExportCommand& command, std::ostream& out,
                              std::ostream& notes) {
  const RunContext& context = command.context;
  if (context.hardware.device_kind() != proto::CUDA) {
    return absl::InvalidArgumentError(
        "flag --device: cubins are for GPUs, expected cuda");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(context, command.tasks));
  Json manifest;
  manifest["format"] = 1;
  manifest["hardware"] = context.hardware.id();
  manifest["compute_capability"] =
      ops::cuda::ComputeCapability(context.hardware);
  manifest["compiler"] = "";
  manifest["alignment"] = ops::cuda::kExportAlignment;
  manifest["kernels"] = Json::array();
  manifest["refused"] = Json::array();
  Table table({{"operator and shape"},
               {"config"},
               {"launches", Align::kRight},
               {"cubin"},
               {"size", Align::kRight, "cubin_bytes"}});
  absl::Status first_error;
  std::map<std::string, std::vector<std::string>> refused;  // tasks by reason
  const auto refuse = [&](const proto::Task& task, const absl::Status& why) {
    if (first_error.ok()) first_error = why;
    manifest["refused"].push_back(
        {{"operator", task.operator_name()},
         {"shape", tuning::CanonicalText(task.shape())},
         {"why", std::string(why.message())}});
    refused[std::string(why.message())].push_back(ShortTaskText(task));
  };
  for (const LeftOutTask& left : command.left_out) refuse(left.task, left.why);
  for (const TaskEntry& task : command.tasks) {
    absl::StatusOr<Exported> exported = ExportTask(task, context, store);
    if (!exported.ok()) {
      refuse(task.task, exported.status());
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(CreateOutputFolder(command.out));
    OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
        JoinPath(command.out, exported->cubin), exported->code));
    manifest["compiler"] = exported->compiler;
    table.AddRow({ShortTaskText(task.task),
                  exported->kernel["source"].get<std::string>(),
                  Cell::Integer(static_cast<int64_t>(
                      exported->kernel["launches"].size())),
                  exported->cubin,
                  Cell::Number(static_cast<double>(exported->code.size()),
                               FormatBytes(exported->code.size()))});
    manifest["kernels"].push_back(std::move(exported->kernel));
  }
  const bool is_none = manifest["kernels"].empty();
  if (is_none && refused.size() <= 1) return first_error;
  for (const auto& [why, tasks] : refused) {
    notes << "note: " << JoinFirst(tasks, /*most=*/1) << ": " << why << "\n";
  }
  if (is_none) return first_error;
  const std::string text = manifest.dump(1) + "\n";
  OPTRAIL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(command.out, kManifestName), text));
  out << (command.format == OutputFormat::kJson
              ? text
              : table.Format(command.format, TerminalWidth()));
  return ToInt(manifest["refused"].empty() ? ExitCode::kOk
                                           : ExitCode::kCheckFailed);
}

}  // namespace optrail::suites
