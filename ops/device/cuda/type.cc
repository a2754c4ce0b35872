// CUDA as a kind of device: so far it only says why there is none.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ops/core/device_type.h"
#include "ops/device/cuda/driver.h"

namespace optrail::ops {
namespace {

class CudaType : public DeviceType {
 public:
  proto::DeviceKind kind() const override { return proto::CUDA; }

  absl::StatusOr<proto::Hardware> Hardware() const override {
    OPTRAIL_RETURN_IF_ERROR(CudaDriverStatus());
    return absl::UnimplementedError(
        "the CUDA driver is here, but this version of Optrail has no CUDA "
        "device");
  }

  absl::StatusOr<std::unique_ptr<Device>> Make(
      const DeviceOptions& options) const override {
    return Hardware().status();
  }

  std::vector<Support> DescribeSupport() const override {
    return {{"CUDA", std::string(Hardware().status().message())}};
  }
};

OPTRAIL_REGISTER_DEVICE_TYPE(CudaType)

}  // namespace
}  // namespace optrail::ops
