#include "ops/core/library_backend.h"

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"

namespace optrail::ops {

absl::StatusOr<std::string> LibraryBackend::Id(const Target& target) const {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string version, Version());
  return KernelId(files().sources_hash, version);
}

absl::StatusOr<Recipe> LibraryBackend::Describe(
    const CompileRequest& request) const {
  if (request.ablation != Ablation::kNone) {
    return absl::UnimplementedError("a library has no ablated variants");
  }
  Recipe recipe;
  recipe.index = 0;
  return recipe;
}

}  // namespace optrail::ops
