#include "ops/core/tuned_kernel.h"

#include "base/status_macros.h"
#include "ops/core/attributes.h"
#include "ops/core/backend_space.h"
#include "ops/core/device_type.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

tuning::LookupResult LookUp(const KernelQuestion& question,
                            const ChosenKernel& kernel,
                            const BackendConfigs& configs,
                            const proto::Hardware& hardware,
                            const tuning::TunedConfigStore& store) {
  Target target{question.device_kind, "", hardware};
  if (const auto type = FindDeviceType(question.device_kind); type.ok()) {
    target.isa = (*type)->isa();
  }
  // A kernel without an id is one that nothing was verified with.
  const std::string id = kernel.backend->Id(target).value_or("");
  tuning::LookupRequest request;
  request.operator_name = question.operator_name;
  request.shape = &kernel.shape;
  request.threads = question.threads;
  request.cache_mode = question.cache_mode;
  request.launch_mode = question.launch_mode;
  request.hardware_id = hardware.id();
  request.device_kind = question.device_kind;
  request.kernel_id = id;
  // The kind's own backend may be named, too.
  if (question.backend != OwnBackendName(question.device_kind)) {
    request.backend = question.backend;
  }
  const auto is_valid = [&](const proto::Config& config) {
    return configs.Validate(config).ok();
  };
  const auto beats_default = [&](const proto::Config& config) {
    return configs.bound->PriorPrefers(config);
  };
  const tuning::ConfigPredicate valid(is_valid), beats(beats_default);
  request.is_valid = &valid;
  // Configs that no space lists, such as schedules, are of one shape.
  if (configs.configs == nullptr) request.beats_default = &beats;
  return store.Lookup(request);
}

}  // namespace

absl::StatusOr<ChosenKernel> ChooseKernel(
    const KernelQuestion& question, const proto::Hardware& hardware,
    const tuning::TunedConfigStore* store) {
  const Registry& registry = Registry::Get();
  ChosenKernel kernel;
  kernel.entry = registry.Find(question.operator_name);
  if (kernel.entry == nullptr) {
    return registry.UnknownOperator(question.operator_name);
  }
  const Operator& op = *kernel.entry->op;
  OPTRAIL_ASSIGN_OR_RETURN(kernel.shape,
                           NormaliseAttributes(op, question.shape));
  OPTRAIL_RETURN_IF_ERROR(CheckShape(op, kernel.shape));
  OPTRAIL_ASSIGN_OR_RETURN(
      kernel.backend,
      kernel.entry->FindBackend(question.device_kind, question.backend));
  OPTRAIL_RETURN_IF_ERROR(Computes(op, *kernel.backend, kernel.shape));
  const EmbeddedFile& file = SpaceFileOf(*kernel.backend);
  OPTRAIL_ASSIGN_OR_RETURN(BackendConfigs configs,
                           BindSpace(file.contents, file.path, kernel.shape,
                                     question.threads, hardware));
  OPTRAIL_ASSIGN_OR_RETURN(
      configs.configs, kernel.backend->Configs(kernel.shape, question.threads));
  if (!question.config.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Config config,
                             tuning::ParseConfig(question.config));
    OPTRAIL_RETURN_IF_ERROR(configs.Validate(config));
    kernel.config = configs.Complete(config);
    return kernel;
  }
  if (store != nullptr) {
    kernel.found = LookUp(question, kernel, configs, hardware, *store);
  }
  kernel.config = kernel.found.config == nullptr
                      ? configs.bound->default_config()
                      : configs.Complete(*kernel.found.config);
  return kernel;
}

}  // namespace optrail::ops
