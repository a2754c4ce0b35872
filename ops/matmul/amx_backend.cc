#include "ops/matmul/amx_backend.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/lib/amx.h"

namespace optrail::ops {

absl::StatusOr<AmxKnobs> AmxKnobsFrom(const proto::Config& config) {
  absl::Status missing;
  const auto value = [&](absl::string_view name) -> int64_t {
    for (const proto::KnobValue& knob : config.set()) {
      if (knob.knob() != name) continue;
      return knob.has_bool_() ? knob.bool_() : knob.int_();
    }
    missing = absl::InvalidArgumentError(absl::StrCat("no knob ", name));
    return 0;
  };
  AmxKnobs knobs;
  knobs.n_panels = value("n_panels");
  knobs.kc = value("kc");
  knobs.pack_a = value("pack_a") != 0;
  knobs.prefetch_a = value("prefetch_a") != 0;
  knobs.round_between = value("round_between") != 0;
  knobs.task_rows = value("task_rows");
  knobs.task_columns = value("task_columns");
  OPTRAIL_RETURN_IF_ERROR(missing);
  return knobs;
}

absl::StatusOr<std::string> AmxBackend::Id(const Target& target) const {
  OPTRAIL_RETURN_IF_ERROR(AmxForBf16());
  return KernelId(files().sources_hash, files().compiler);
}

absl::StatusOr<Recipe> AmxBackend::Describe(
    const CompileRequest& request) const {
  if (request.ablation != Ablation::kNone) {
    return absl::UnimplementedError("no ablated variants");
  }
  Recipe recipe;
  recipe.index = 0;
  return recipe;
}

absl::StatusOr<std::unique_ptr<Invocation>> AmxBackend::Load(
    const Artifact& artifact, const proto::Shape& shape,
    const proto::Config& config, Device& device) const {
  OPTRAIL_RETURN_IF_ERROR(AmxForBf16());
  auto* const cpu = dynamic_cast<CpuDevice*>(&device);
  if (cpu == nullptr) {
    return absl::InvalidArgumentError("AMX needs a CPU device");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const AmxKnobs knobs, AmxKnobsFrom(config));
  return Bind(shape, knobs, *cpu);
}

std::vector<std::pair<std::string, int64_t>> AmxBackend::Blocks(
    const proto::Config& config) const {
  const absl::StatusOr<AmxKnobs> knobs = AmxKnobsFrom(config);
  if (!knobs.ok()) return {};
  return {
      {"m", kTileRows},           {"m", kPanel},     {"m", knobs->task_rows},
      {"n", kTileColumns},        {"n", kPanel},     {"n", knobs->nc()},
      {"n", knobs->task_columns}, {"k", kTileSteps}, {"k", knobs->kc}};
}

}  // namespace optrail::ops
