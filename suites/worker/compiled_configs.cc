#include "suites/worker/compiled_configs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/cpus.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "suites/worker/opened_task.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {

CompilePoolOptions CompilePoolFor(proto::DeviceKind kind, int threads,
                                  const WorkerOptions& worker) {
  CompilePoolOptions options;
  options.binary = BinaryOf(worker);
  options.deadline = worker.compile_deadline;
  options.max_bytes = worker.max_compiler_bytes;
  ops::DeviceOptions device;
  device.threads = threads;
  if (const auto type = ops::FindDeviceType(kind); type.ok()) {
    options.cores = (*type)->SpareCores(device);
  }
  if (options.cores.empty()) {
    options.cores = UsableCpus();
    options.pauses = true;
  }
  return options;
}

CompiledConfigs::CompiledConfigs(proto::Task task, WorkerOptions options)
    : task_(std::move(task)),
      options_(std::move(options)),
      pool_(options_.compilers) {}

CompilePool& CompiledConfigs::pool() {
  if (pool_ == nullptr) {
    pool_ = std::make_shared<CompilePool>(
        CompilePoolFor(task_.device_kind(), task_.threads(), options_));
  }
  return *pool_;
}

std::string CompiledConfigs::KeyOf(const proto::Config& config,
                                   const std::string& backend_name) {
  const auto [entry, is_new] = keys_.try_emplace(
      absl::StrCat(backend_name, " ", tuning::CanonicalText(config)));
  std::string& key = entry->second;
  // Without a folder, what one process compiles is of no use to another.
  if (!is_new || options_.shared_folder.empty()) return key;
  const ops::OperatorEntry* op =
      ops::Registry::Get().Find(task_.operator_name());
  if (op == nullptr) return key;
  const auto backend = op->FindBackend(task_.device_kind(), backend_name);
  if (!backend.ok()) return key;
  if (!target_.has_value()) {
    target_ = LocalTarget(task_.device_kind(), options_.hardware);
  }
  if (!target_->ok()) return key;
  const absl::StatusOr<ops::Recipe> recipe =
      (*backend)->Describe({task_.shape(), config, **target_});
  if (recipe.ok() && recipe->NeedsCompiler()) key = recipe->Key();
  return key;
}

absl::optional<proto::Evaluation> CompiledConfigs::Find(
    const std::string& key) {
  if (pool_ != nullptr) {
    if (auto compiled = pool_->Find(key); compiled.has_value()) {
      return compiled;
    }
  }
  const auto cached = cached_.find(key);
  if (cached != cached_.end()) return cached->second;
  // It is asked often. The compiler's process asks the shared level, once.
  const ops::CompileCache cache(
      JoinPath(options_.shared_folder, kCompiledFolder), /*shared=*/nullptr);
  const absl::StatusOr<ops::Artifact> artifact = cache.Get(key);
  if (!artifact.ok()) return absl::nullopt;
  proto::Evaluation& compiled = cached_[key];
  compiled = EvaluationOf(proto::OK);
  AddFacts(*artifact, compiled.mutable_trial());
  return compiled;
}

void CompiledConfigs::Prepare(const std::string& key,
                              const proto::Config& config,
                              const std::string& backend) {
  if (key.empty() || Find(key).has_value()) return;
  proto::WorkerRequest::Compile request;
  *request.mutable_task() = task_;
  request.mutable_task()->set_backend(backend);
  *request.mutable_config() = config;
  request.set_shared_folder(options_.shared_folder);
  // The compiler need not ask the device, which takes longer than some kernels.
  *request.mutable_hardware() = (*target_)->hardware;
  request.set_isa((*target_)->isa);
  pool().Start(key, std::move(request));
}

absl::optional<proto::Evaluation> CompiledConfigs::Await(
    const std::string& key, const proto::Config& config,
    const std::string& backend) {
  if (key.empty()) return absl::nullopt;
  Prepare(key, config, backend);
  if (!Find(key).has_value()) {
    pool().WaitForAny({key}, absl::InfiniteDuration());
  }
  return Find(key);
}

int64_t CompiledConfigs::TakeTime(const std::string& key,
                                  const proto::Evaluation& compiled) {
  return told_.insert(key).second ? compiled.trial().compile_ns() : 0;
}

}  // namespace optrail::suites
