#include "graph/runner/kernels.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "graph/runner/codegen.h"
#include "graph/runner/jit_header.h"
#include "ops/core/backend_space.h"
#include "ops/core/compile_cache.h"
#include "ops/core/jit_backend.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::graph {

KernelLoader::KernelLoader(ops::CpuDevice& device, std::string cache,
                           std::string store)
    : device_(device), cache_(std::move(cache)), store_(std::move(store)) {}

absl::StatusOr<ops::Artifact> KernelLoader::ArtifactOf(
    const ops::Backend& backend, const ops::CompileRequest& request) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Recipe recipe, backend.Describe(request));
  if (!recipe.NeedsCompiler()) return ops::Artifact();
  if (cache_.empty()) return backend.Compile(recipe);
  const ops::CompileCache cache(cache_);
  absl::StatusOr<ops::Artifact> artifact = cache.Get(recipe.Key());
  if (artifact.ok()) return artifact;
  artifact = backend.Compile(recipe);
  // A cache that cannot be written costs time, no result.
  if (artifact.ok()) cache.Put(*artifact).IgnoreError();
  return artifact;
}

absl::StatusOr<const tuning::TunedConfigStore*> KernelLoader::StoreOf(
    const ops::OperatorEntry& entry) {
  const std::string name = entry.op->name();
  const auto found = stores_.find(name);
  if (found != stores_.end()) return &found->second;
  tuning::StoreOptions options;
  options.overlay_directory = store_;
  for (const ops::EmbeddedFile& file : entry.tuned) {
    options.checked_in.push_back({file.path, file.contents});
  }
  OPTRAIL_ASSIGN_OR_RETURN(tuning::TunedConfigStore store,
                           tuning::TunedConfigStore::Load(options));
  return &stores_.emplace(name, std::move(store)).first->second;
}

absl::StatusOr<LoadedKernel> KernelLoader::LoadOperator(
    const std::string& name, const optrail::proto::Shape& shape) {
  const std::string key = absl::StrCat(name, " ", tuning::CanonicalText(shape));
  const auto known = loaded_.find(key);
  if (known != loaded_.end()) return known->second;
  const ops::OperatorEntry* const entry = ops::Registry::Get().Find(name);
  if (entry == nullptr) return ops::Registry::Get().UnknownOperator(name);
  OPTRAIL_RETURN_IF_ERROR(ops::CheckShape(*entry->op, shape));
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Backend* backend,
                           entry->FindBackend(optrail::proto::CPU, ""));
  const ops::EmbeddedFile& file = ops::SpaceFileOf(*backend);
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::Space space,
                           tuning::Space::Parse(file.contents, file.path));
  tuning::BindOptions bind;
  bind.threads = device_.threads();
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<tuning::BoundSpace> bound,
                           space.Bind(shape, device_.hardware(), bind));
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore* store,
                           StoreOf(*entry));
  tuning::LookupRequest request;
  request.operator_name = name;
  request.shape = &shape;
  request.threads = device_.threads();
  request.hardware_id = device_.hardware().id();
  const auto is_valid = [&](const optrail::proto::Config& config) {
    return bound->Validate(config).ok();
  };
  const auto beats_default = [&](const optrail::proto::Config& config) {
    return bound->PriorPrefers(config);
  };
  const tuning::ConfigPredicate valid(is_valid), beats(beats_default);
  request.is_valid = &valid;
  request.beats_default = &beats;
  const tuning::LookupResult found = store->Lookup(request);
  optrail::proto::Config config = bound->default_config();
  LoadedKernel kernel;
  kernel.source = "default";
  if (found.config != nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(config, bound->Complete(*found.config));
    kernel.source = found.source == tuning::LookupSource::kExact
                        ? "tuned"
                        : absl::StrCat("tuned on ", found.hardware_id);
  }
  kernel.config = tuning::CanonicalText(config);
  const ops::Target target = {optrail::proto::CPU, "native",
                              device_.hardware()};
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Artifact artifact,
                           ArtifactOf(*backend, {shape, config, target}));
  OPTRAIL_ASSIGN_OR_RETURN(
      kernel.runnable,
      ops::Runnable::Load(*backend, artifact, shape, config, device_));
  loaded_[key] = kernel;
  return kernel;
}

absl::StatusOr<LoadedKernel> KernelLoader::LoadGenerated(
    const std::vector<std::string>& bodies) {
  std::shared_ptr<ops::Backend> backend = ops::MakeJitBackend("generated");
  ops::BackendFiles files;
  files.sources = {{"jit.h", kJitHeader}, {"graph.jit.cc", KernelFile(bodies)}};
  files.sources_hash = Fingerprint(files.sources[1].contents);
  backend->SetFiles(std::move(files));
  generated_.push_back(backend);
  const optrail::proto::Shape shape;
  const optrail::proto::Config config;
  const ops::Target target = {optrail::proto::CPU, "native",
                              device_.hardware()};
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Artifact artifact,
                           ArtifactOf(*backend, {shape, config, target}));
  LoadedKernel kernel;
  kernel.source = "generated";
  OPTRAIL_ASSIGN_OR_RETURN(
      kernel.runnable,
      ops::Runnable::Load(*backend, artifact, shape, config, device_));
  return kernel;
}

}  // namespace optrail::graph
