// CUDA GPUs as a kind of device.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "ops/core/device_type.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/driver.h"
#include "ops/device/cuda/nvrtc.h"

namespace optrail::ops::cuda {
namespace {

constexpr char kDeclared[] =
#include "ops/device/cuda/declared_hardware.inc"
    ;

class CudaType : public DeviceType {
 public:
  proto::DeviceKind kind() const override { return proto::CUDA; }

  absl::StatusOr<proto::Hardware> Hardware() const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
    return HardwareOf(*driver, 0);
  }

  proto::Hardware Declared() const override {
    auto declared =
        ParseTextProto<proto::Hardware>(kDeclared, "cuda.hardware.textproto");
    OPTRAIL_CHECK(declared.ok()) << declared.status().message();
    return std::move(declared->message);
  }

  absl::StatusOr<std::unique_ptr<Device>> Make(
      const DeviceOptions& options) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device,
                             CudaDevice::Make(*driver));
    return device;
  }

  std::vector<Support> DescribeSupport() const override {
    const absl::StatusOr<proto::Hardware> hardware = Hardware();
    const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Get();
    return {
        {"CUDA", hardware.ok() ? hardware->model()
                               : std::string(hardware.status().message())},
        {"CUDA compiler", nvrtc.ok() ? (*nvrtc)->version()
                                     : std::string(nvrtc.status().message())}};
  }
};

OPTRAIL_REGISTER_DEVICE_TYPE(CudaType)

}  // namespace
}  // namespace optrail::ops::cuda
