#ifndef OPTRAIL_OPS_DEVICE_CUDA_LIBRARY_H_
#define OPTRAIL_OPS_DEVICE_CUDA_LIBRARY_H_

// A library of the CUDA toolkit, looked up at run time.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const ToolkitLibrary cublas,
//       ToolkitLibrary::Open({"libcublas.so.13", "libcublas.so.12"}));
//   OPTRAIL_RETURN_IF_ERROR(cublas.Get("cublasCreate_v2", create));
//
// Looked for where the loader looks, then in the folder of the toolkit's
// installer. Opened once and never unloaded.

#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optrail::ops::cuda {

class ToolkitLibrary {
 public:
  // The first of `names` that is found: newest first. Unavailable, "unsupported
  // here: why", if none is.
  static absl::StatusOr<ToolkitLibrary> Open(
      const std::vector<std::string>& names);

  // Unavailable if the library has no such function.
  template <typename Function>
  absl::Status Get(const char* name, Function& function) const {
    static_assert(std::is_pointer_v<Function>);
    void* found = nullptr;
    const absl::Status status = Find(name, &found);
    function = reinterpret_cast<Function>(found);
    return status;
  }

 private:
  absl::Status Find(const char* name, void** found) const;

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_LIBRARY_H_
