#include "ops/core/library_backend.h"

#include "base/status_macros.h"
#include "ops/core/registry.h"

namespace optrail::ops {

absl::StatusOr<std::string> LibraryBackend::Id(const Target& target) const {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string version, Version());
  return KernelId(files().sources_hash, version);
}

}  // namespace optrail::ops
