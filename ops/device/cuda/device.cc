#include "ops/device/cuda/device.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

// "NVIDIA H200" -> "nvidia-h200"; the fingerprint's letters.
std::string IdOf(const std::string& name) {
  std::string id;
  for (const char c : name) {
    if (absl::ascii_isalnum(c)) {
      id.push_back(absl::ascii_tolower(c));
    } else if (!id.empty() && id.back() != '-') {
      id.push_back('-');
    }
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  return id;
}

}  // namespace

absl::StatusOr<proto::Hardware> HardwareOf(const Driver& driver, int device) {
  char name[256] = "";
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.DeviceGetName(name, sizeof(name), device), "cuDeviceGetName"));
  size_t memory_bytes = 0;
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.DeviceTotalMem(&memory_bytes, device), "cuDeviceTotalMem"));
  proto::Hardware hardware;
  hardware.set_id(IdOf(name));
  hardware.set_device_kind(proto::CUDA);
  hardware.set_vendor("NVIDIA");
  hardware.set_model(name);
  hardware.set_memory_bytes(static_cast<int64_t>(memory_bytes));

  absl::Status status;
  const auto read = [&](DeviceAttribute attribute) -> int64_t {
    int value = 0;
    if (status.ok()) {
      status = driver.Check(
          driver.DeviceGetAttribute(&value, static_cast<int>(attribute),
                                    device),
          absl::StrCat("cuDeviceGetAttribute ", static_cast<int>(attribute)));
    }
    return value;
  };
  hardware.set_cores(
      static_cast<int32_t>(read(DeviceAttribute::kMultiprocessors)));
  hardware.set_l2_bytes(read(DeviceAttribute::kL2Bytes));
  // Sorted by name.
  const auto add = [&](const char* attribute, int64_t value) {
    proto::HardwareAttribute* added = hardware.add_attributes();
    added->set_name(attribute);
    added->set_int_(value);
  };
  add("clock_khz", read(DeviceAttribute::kClockKhz));
  add("compute_capability",
      read(DeviceAttribute::kMajor) * 10 + read(DeviceAttribute::kMinor));
  add("multiprocessors", hardware.cores());
  add("registers_per_block", read(DeviceAttribute::kRegistersPerBlock));
  add("registers_per_multiprocessor",
      read(DeviceAttribute::kRegistersPerMultiprocessor));
  add("shared_bytes_per_block", read(DeviceAttribute::kSharedBytesPerBlock));
  add("shared_bytes_per_multiprocessor",
      read(DeviceAttribute::kSharedBytesPerMultiprocessor));
  add("warp_size", read(DeviceAttribute::kWarpSize));
  OPTRAIL_RETURN_IF_ERROR(status);
  return hardware;
}

void CudaDevice::Unload() {
  for (const auto& [code, module] : modules_) driver_.ModuleUnload(module);
  modules_.clear();
}

absl::StatusOr<Module> CudaDevice::Load(const std::string& code) {
  const auto [found, is_new] = modules_.try_emplace(code, nullptr);
  if (!is_new) return found->second;
  const absl::Status loaded = driver_.Check(
      driver_.ModuleLoadData(&found->second, code.data()), "cuModuleLoadData");
  if (loaded.ok()) return found->second;
  modules_.erase(found);
  return loaded;
}

absl::Status CudaDevice::AllowShared(Function function, int64_t bytes) {
  int64_t& allowed = shared_bytes_[function];
  if (bytes <= allowed) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.FuncSetAttribute(
          function, static_cast<int>(FunctionAttribute::kMaxDynamicSharedBytes),
          static_cast<int>(bytes)),
      absl::StrCat(bytes, " bytes of dynamic shared memory")));
  allowed = bytes;
  return absl::OkStatus();
}

}  // namespace optrail::ops::cuda
