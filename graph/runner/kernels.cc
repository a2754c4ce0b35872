#include "graph/runner/kernels.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "graph/runner/codegen.h"
#include "graph/runner/jit_header.h"
#include "ops/core/compile_cache.h"
#include "ops/core/jit_backend.h"
#include "tuning/proto/canonical.h"

namespace optrail::graph {

KernelLoader::KernelLoader(ops::CpuDevice& device, std::string cache,
                           std::string store, bool tuned)
    : device_(device),
      cache_(std::move(cache)),
      store_(std::move(store)),
      tuned_(tuned) {}

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

absl::StatusOr<KernelChoice> KernelLoader::Choose(
    const std::string& name, const optrail::proto::Shape& shape) {
  const ops::OperatorEntry* const entry = ops::Registry::Get().Find(name);
  if (entry == nullptr) return ops::Registry::Get().UnknownOperator(name);
  const tuning::TunedConfigStore* store = nullptr;
  if (tuned_) {
    OPTRAIL_ASSIGN_OR_RETURN(store, StoreOf(*entry));
  }
  ops::KernelQuestion question;
  question.operator_name = name;
  question.shape = shape;
  question.threads = device_.threads();
  KernelChoice choice;
  OPTRAIL_ASSIGN_OR_RETURN(
      choice.chosen, ops::ChooseKernel(question, device_.hardware(), store));
  choice.target = {optrail::proto::CPU, "native", device_.hardware()};
  choice.text = absl::StrCat(
      name, " ", choice.chosen.backend->Id(choice.target).value_or("-"), " ",
      tuning::CanonicalText(choice.chosen.config));
  return choice;
}

absl::StatusOr<LoadedKernel> KernelLoader::LoadOperator(
    const std::string& name, const optrail::proto::Shape& shape) {
  const std::string key = absl::StrCat(name, " ", tuning::CanonicalText(shape));
  const auto known = loaded_.find(key);
  if (known != loaded_.end()) return known->second;
  OPTRAIL_ASSIGN_OR_RETURN(const KernelChoice choice, Choose(name, shape));
  const ops::ChosenKernel& chosen = choice.chosen;
  LoadedKernel kernel;
  kernel.config = tuning::CanonicalText(chosen.config);
  kernel.source = chosen.found.config == nullptr ? "default"
                  : chosen.found.source == tuning::LookupSource::kExact
                      ? "tuned"
                      : absl::StrCat("tuned on ", chosen.found.hardware_id);
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::Artifact artifact,
      ops::CompileCached(*chosen.backend, chosen.Request(choice.target),
                         cache_));
  OPTRAIL_ASSIGN_OR_RETURN(
      kernel.runnable,
      ops::Runnable::Load(*chosen.backend, artifact, chosen.shape,
                          chosen.config, device_));
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
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::Artifact artifact,
      ops::CompileCached(*backend, {shape, config, target}, cache_));
  LoadedKernel kernel;
  kernel.source = "generated";
  OPTRAIL_ASSIGN_OR_RETURN(
      kernel.runnable,
      ops::Runnable::Load(*backend, artifact, shape, config, device_));
  return kernel;
}

}  // namespace optrail::graph
