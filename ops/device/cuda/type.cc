// CUDA GPUs as a kind of device.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "ops/core/device_type.h"
#include "ops/device/cuda/driver.h"
#include "ops/device/cuda/measured_gpu.h"
#include "ops/device/cuda/neighbours.h"
#include "ops/device/cuda/nvml.h"
#include "ops/device/cuda/nvrtc.h"

namespace optrail::ops::cuda {
namespace {

constexpr char kDeclared[] =
#include "ops/device/cuda/declared_hardware.inc"
    ;

// The driver, and the GPUs in the order of their addresses, as the kernel
// module lists them.
constexpr char kModule[] = "/proc/driver/nvidia";

absl::StatusOr<Nvml> NvmlHere() {
  OPTRAIL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
  char bus_id[64] = "";
  int device = 0;
  if (driver->DeviceGet(&device, 0) != 0 ||
      driver->DeviceGetPciBusId(bus_id, sizeof(bus_id), device) != 0) {
    return absl::UnavailableError(
        "unsupported here: the driver names no device");
  }
  return Nvml::Open(bus_id);
}

// Who else has the GPU open.
std::string NeighboursText(const absl::StatusOr<Nvml>& nvml) {
  if (!nvml.ok()) return std::string(nvml.status().message());
  auto pids = nvml->ComputeProcesses();
  if (!pids) return "unsupported here: NVML does not tell who uses this GPU";
  pids->erase(std::remove(pids->begin(), pids->end(), getpid()), pids->end());
  if (pids->empty()) return "none";
  const absl::Time now = absl::Now();
  Neighbours neighbours(kActivityLag);
  const auto activity =
      nvml->Activity(absl::ToUnixMicros(now - 2 * kActivityLag));
  neighbours.Tell(now, *pids, activity);
  const NeighbourNames names = neighbours.Names(now);
  if (!activity) {
    return absl::StrCat(names.active,
                        "; NVML does not tell whether they compute, so each "
                        "disturbs");
  }
  std::vector<std::string> texts;
  if (!names.active.empty()) {
    texts.push_back(absl::StrCat(names.active, " (computes: disturbs)"));
  }
  if (!names.idle.empty()) {
    texts.push_back(absl::StrCat(names.idle, " (idle: ignored)"));
  }
  return absl::StrJoin(texts, "; ");
}

// What tells the energy of the GPU here, or why nothing does.
std::string EnergyText(const absl::StatusOr<Nvml>& nvml) {
  if (!nvml.ok()) return std::string(nvml.status().message());
  std::vector<std::string> sources;
  if (nvml->EnergyMillijoules()) sources.push_back("energy counter");
  if (nvml->InstantWatts()) sources.push_back("power at the moment");
  if (nvml->AverageWatts()) sources.push_back("power averaged");
  if (sources.empty()) {
    return "unsupported here: this GPU tells neither its energy nor its power";
  }
  return absl::StrCat("NVML: ", absl::StrJoin(sources, ", "), "; whole boards");
}

class CudaType : public DeviceType {
 public:
  proto::DeviceKind kind() const override { return proto::CUDA; }

  std::string Identity() const override {
    const absl::StatusOr<std::string> version =
        ReadFile(JoinPath(kModule, "version"));
    const auto gpus = ListDirectory(JoinPath(kModule, "gpus"));
    if (!version.ok() || !gpus.ok() || gpus->empty()) return "";
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    std::string identity =
        absl::StrCat(*version, "\n", visible != nullptr ? visible : "all");
    for (const std::string& gpu : *gpus) {
      const absl::StatusOr<std::string> information = ReadFile(
          JoinPath(JoinPath(JoinPath(kModule, "gpus"), gpu), "information"));
      if (!information.ok()) return "";
      absl::StrAppend(&identity, "\n", gpu, "\n", *information);
    }
    return identity;
  }

  absl::StatusOr<proto::Hardware> Hardware() const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
    int device = 0;
    OPTRAIL_RETURN_IF_ERROR(
        driver->Check(driver->DeviceGet(&device, 0), "cuDeviceGet"));
    return HardwareOf(*driver, device);
  }

  std::vector<proto::LaunchMode> launch_modes() const override {
    return {proto::STREAM, proto::GRAPH};
  }

  // A context that waits takes memory and no time; the clock of a GPU falls by
  // a fifth within half a second of products.
  MeasurementPolicy policy() const override {
    MeasurementPolicy policy;
    policy.host_is_free = true;
    policy.processes_ahead = 5;
    policy.processes_kept = 12;
    policy.interleaves_rounds = true;
    policy.proof_processes = 5;
    policy.round_sample_ns = 1'000'000;
    policy.search_warm_up_ns = 500'000;
    return policy;
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
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<MeasuredGpu> device,
                             MeasuredGpu::Make(*driver));
    return device;
  }

  std::vector<Support> DescribeSupport() const override {
    const absl::StatusOr<proto::Hardware> hardware = Hardware();
    const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Get();
    const absl::StatusOr<Nvml> nvml = NvmlHere();
    return {
        {"CUDA", hardware.ok() ? hardware->model()
                               : std::string(hardware.status().message())},
        {"energy meter, CUDA", EnergyText(nvml)},
        {"other processes on the GPU", NeighboursText(nvml)},
        {"CUDA compiler", nvrtc.ok() ? (*nvrtc)->version()
                                     : std::string(nvrtc.status().message())}};
  }
};

OPTRAIL_REGISTER_DEVICE_TYPE(CudaType)

}  // namespace
}  // namespace optrail::ops::cuda
