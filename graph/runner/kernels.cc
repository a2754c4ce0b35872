#include "graph/runner/kernels.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/process/parallel_for.h"
#include "base/status_macros.h"
#include "ops/core/compile_cache.h"
#include "tuning/proto/canonical.h"

namespace optrail::graph {

KernelLoader::KernelLoader(Machine& machine, std::string cache,
                           std::string store, bool tuned)
    : machine_(machine),
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
  const std::string key = absl::StrCat(name, " ", tuning::CanonicalText(shape));
  const auto known = choices_.find(key);
  if (known != choices_.end()) return known->second;
  return choices_.emplace(key, MakeChoice(name, shape)).first->second;
}

absl::Status KernelLoader::Computes(const std::string& name,
                                    const optrail::proto::Shape& shape) {
  OPTRAIL_ASSIGN_OR_RETURN(const KernelChoice choice, Choose(name, shape));
  return choice.chosen.backend->Describe(choice.chosen.Request(choice.target))
      .status();
}

absl::Status KernelLoader::Compile(
    const std::vector<std::pair<std::string, optrail::proto::Shape>>& wanted) {
  if (cache_.empty()) return absl::OkStatus();
  std::map<std::string, KernelChoice> choices;
  for (const auto& [name, shape] : wanted) {
    OPTRAIL_ASSIGN_OR_RETURN(const KernelChoice choice, Choose(name, shape));
    if (!choice.chosen.backend->compiles()) continue;
    choices.emplace(absl::StrCat(name, " ", tuning::CanonicalText(shape)),
                    choice);
  }
  std::vector<const KernelChoice*> left;
  for (const auto& [key, choice] : choices) left.push_back(&choice);
  constexpr unsigned kMostThreads = 16;
  const unsigned threads =
      std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
  ParallelFor(static_cast<int64_t>(left.size()), static_cast<int>(threads),
              [&](int64_t i) {
                const ops::ChosenKernel& chosen = left[i]->chosen;
                // An error is told where the kernel is loaded, with the node's
                // name.
                (void)ops::CompileCached(
                    *chosen.backend, chosen.Request(left[i]->target), cache_);
              });
  return absl::OkStatus();
}

absl::StatusOr<KernelChoice> KernelLoader::MakeChoice(
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
  question.device_kind = machine_.device().kind();
  question.threads = machine_.threads();
  question.cache_mode = machine_.cache_mode();
  question.launch_mode = machine_.launch_mode();
  KernelChoice choice;
  OPTRAIL_ASSIGN_OR_RETURN(
      choice.chosen,
      ops::ChooseKernel(question, machine_.device().hardware(), store));
  choice.target = machine_.target();
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
                          chosen.config, machine_.device()));
  loaded_[key] = kernel;
  return kernel;
}

absl::StatusOr<std::vector<LoadedKernel>> KernelLoader::LoadGenerated(
    const std::vector<GeneratedKernel>& kernels,
    const std::vector<int>& operands) {
  const std::shared_ptr<ops::Backend> backend =
      machine_.Generated(kernels, operands);
  generated_.push_back(backend);
  const optrail::proto::Config config;
  const ops::Target target = machine_.target();
  optrail::proto::Shape shape;
  const auto set_number = [&](size_t k) {
    if (machine_.takes_number()) return;
    shape.clear_dims();
    optrail::proto::Dim& number = *shape.add_dims();
    number.set_name("kernel");
    number.set_value(static_cast<int64_t>(k));
  };
  set_number(0);
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::Artifact artifact,
      ops::CompileCached(*backend, {shape, config, target}, cache_));
  std::vector<LoadedKernel> loaded;
  for (size_t k = 0; k < kernels.size(); ++k) {
    LoadedKernel kernel;
    kernel.source = "generated";
    if (machine_.takes_number() && k > 0) {
      kernel.runnable = loaded[0].runnable;
    } else {
      set_number(k);
      OPTRAIL_ASSIGN_OR_RETURN(kernel.runnable,
                               ops::Runnable::Load(*backend, artifact, shape,
                                                   config, machine_.device()));
    }
    loaded.push_back(std::move(kernel));
  }
  return loaded;
}

}  // namespace optrail::graph
