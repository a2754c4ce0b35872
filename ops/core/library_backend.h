#ifndef OPTRAIL_OPS_CORE_LIBRARY_BACKEND_H_
#define OPTRAIL_OPS_CORE_LIBRARY_BACKEND_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/core/backend.h"

namespace optrail::ops {

// A backend that calls a library found on the machine: nothing is compiled, and
// what was read is of the library's version.
class LibraryBackend : public Backend {
 public:
  absl::StatusOr<std::string> Id(const Target& target) const override;
  std::string library() const final { return Version().value_or(""); }
  absl::StatusOr<Recipe> Describe(const CompileRequest&) const final {
    Recipe recipe;
    recipe.index = 0;
    return recipe;
  }

 protected:
  // "OpenBLAS 0.3.21", or Unavailable: what is missing here, and how to get it.
  virtual absl::StatusOr<std::string> Version() const = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_LIBRARY_BACKEND_H_
