#include "ops/device/cuda/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace optrail::ops {

absl::Status CudaDriverStatus() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "unsupported here: libcuda.so.1 not found (", dlerror(), ")"));
  }
  using Init = int (*)(unsigned flags);
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  if (init == nullptr) {
    return absl::UnavailableError(
        "unsupported here: libcuda.so.1 has no function cuInit");
  }
  if (const int error = init(0); error != 0) {
    return absl::UnavailableError(absl::StrCat(
        "unsupported here: cuInit of libcuda.so.1 returns error ", error));
  }
  return absl::OkStatus();
}

}  // namespace optrail::ops
