#include "ops/product/amx/amx_backend.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/product/amx/amx.h"

namespace optrail::ops {

absl::StatusOr<std::string> AmxBackend::Id(const Target& target) const {
  OPTRAIL_RETURN_IF_ERROR(AmxForBf16());
  return KernelId(files().sources_hash, files().compiler);
}

absl::StatusOr<Recipe> AmxBackend::Describe(
    const CompileRequest& request) const {
  Recipe recipe;
  recipe.index = 0;
  return recipe;
}

absl::StatusOr<std::unique_ptr<Invocation>> AmxBackend::LoadOn(
    const Artifact& artifact, const proto::Shape& shape,
    const proto::Config& config, CpuDevice& device) const {
  OPTRAIL_RETURN_IF_ERROR(AmxForBf16());
  return Bind(shape, config, device);
}

const proto::KnobValue& KnobReader::Find(absl::string_view name) {
  for (const proto::KnobValue& knob : config_.set()) {
    if (knob.knob() == name) return knob;
  }
  status_ = absl::InvalidArgumentError(absl::StrCat("no knob ", name));
  return proto::KnobValue::default_instance();
}

}  // namespace optrail::ops
