#include "ops/core/tuned_kernel.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ops/core/attributes.h"
#include "ops/core/backend_space.h"
#include "ops/core/device_type.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/config_source.h"
#include "tuning/space/space.h"

namespace optrail::ops {
namespace {

// The configs that a backend has for one shape.
struct Configs {
  std::unique_ptr<tuning::BoundSpace> bound;
  std::shared_ptr<const tuning::ConfigSource> others;  // may be null

  absl::Status Validate(const proto::Config& config) const {
    const absl::Status listed = bound->Validate(config);
    return listed.ok() || others == nullptr ? listed : others->Validate(config);
  }
  // With the values of knobs that it lacks, where the space lists it.
  proto::Config Complete(const proto::Config& config) const {
    auto complete = bound->Complete(config);
    return complete.ok() ? *std::move(complete) : config;
  }
};

absl::StatusOr<Configs> ConfigsOf(const Backend& backend,
                                  const proto::Shape& shape, int threads,
                                  const proto::Hardware& hardware) {
  const EmbeddedFile& file = SpaceFileOf(backend);
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::Space space,
                           tuning::Space::Parse(file.contents, file.path));
  tuning::BindOptions bind;
  bind.threads = threads;
  Configs configs;
  OPTRAIL_ASSIGN_OR_RETURN(configs.bound, space.Bind(shape, hardware, bind));
  OPTRAIL_ASSIGN_OR_RETURN(configs.others, backend.Configs(shape, threads));
  return configs;
}

tuning::LookupResult LookUp(const KernelQuestion& question,
                            const ChosenKernel& kernel, const Configs& configs,
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
  if (configs.others == nullptr) request.beats_default = &beats;
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
  OPTRAIL_ASSIGN_OR_RETURN(
      const Configs configs,
      ConfigsOf(*kernel.backend, kernel.shape, question.threads, hardware));
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
