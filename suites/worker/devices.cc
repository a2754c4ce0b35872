#include "suites/worker/devices.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/device/cpu/device.h"
#include "ops/device/cpu/fingerprint.h"
#include "ops/device/cuda/device.h"

namespace optrail::suites {

absl::StatusOr<std::unique_ptr<ops::Device>> MakeDevice(proto::DeviceKind kind,
                                                        int threads) {
  switch (kind) {
    case proto::CPU:
      return ops::MakeCpuDevice(threads);
    case proto::CUDA:
      return ops::MakeCudaDevice();
    default:
      return absl::UnimplementedError(
          absl::StrCat("unsupported here: device kind ", kind));
  }
}

absl::StatusOr<proto::Hardware> HardwareOf(proto::DeviceKind kind) {
  if (kind == proto::CPU) return ops::CpuHardware();
  const absl::StatusOr<std::unique_ptr<ops::Device>> device =
      MakeDevice(kind, 1);
  if (!device.ok()) return device.status();
  return (*device)->hardware();
}

}  // namespace optrail::suites
