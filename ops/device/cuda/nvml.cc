#include "ops/device/cuda/nvml.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/device/cuda/library.h"

namespace optrail::ops::cuda {
namespace {

constexpr int kSmClock = 1;
constexpr int kGpuTemperature = 0;
constexpr unsigned kPowerAverage = 185;  // NVML_FI_DEV_POWER_AVERAGE
constexpr unsigned kPowerInstant = 186;  // NVML_FI_DEV_POWER_INSTANT

absl::optional<double> Watts(int (*get)(void* device, unsigned* milliwatts),
                             void* device) {
  unsigned milliwatts = 0;
  if (get == nullptr || get(device, &milliwatts) != 0) return absl::nullopt;
  return milliwatts * 1e-3;
}

}  // namespace

absl::StatusOr<Nvml> Nvml::Open(const std::string& pci_bus_id,
                                const std::string& library) {
  OPTRAIL_ASSIGN_OR_RETURN(const ToolkitLibrary opened,
                           ToolkitLibrary::Open({library}));
  Nvml nvml;
  int (*init)() = nullptr;
  int (*by_bus_id)(const char* id, void** device) = nullptr;
  for (const absl::Status& found :
       {opened.Get("nvmlInit_v2", init),
        opened.Get("nvmlDeviceGetHandleByPciBusId_v2", by_bus_id),
        opened.Get("nvmlDeviceGetClockInfo", nvml.GetClockInfo),
        opened.Get("nvmlDeviceGetCurrentClocksThrottleReasons",
                   nvml.GetThrottleReasons),
        opened.Get("nvmlDeviceGetTotalEnergyConsumption", nvml.GetTotalEnergy),
        opened.Get("nvmlDeviceGetComputeRunningProcesses_v3",
                   nvml.GetComputeProcesses)}) {
    OPTRAIL_RETURN_IF_ERROR(found);
  }
  const auto get = [&](const char* name, auto& function) {
    opened.Get(name, function).IgnoreError();
  };
  get("nvmlDeviceGetFieldValues", nvml.GetFieldValues);
  get("nvmlDeviceGetPowerUsage", nvml.GetPowerUsage);
  get("nvmlDeviceGetEnforcedPowerLimit", nvml.GetPowerLimit);
  get("nvmlDeviceGetTemperature", nvml.GetTemperature);
  get("nvmlDeviceGetProcessUtilization", nvml.GetProcessUtilization);
  if (const int result = init(); result != 0) {
    return absl::UnavailableError(
        absl::StrCat("unsupported here: nvmlInit returns error ", result));
  }
  if (const int result = by_bus_id(pci_bus_id.c_str(), &nvml.device_);
      result != 0) {
    return absl::UnavailableError(
        absl::StrCat("unsupported here: NVML knows no device ", pci_bus_id,
                     " (error ", result, ")"));
  }
  return nvml;
}

absl::optional<int64_t> Nvml::SmClockHz() const {
  unsigned mhz = 0;
  if (GetClockInfo(device_, kSmClock, &mhz) != 0) return absl::nullopt;
  return int64_t{mhz} * 1'000'000;
}

absl::optional<uint64_t> Nvml::ThrottleReasons() const {
  unsigned long long reasons = 0;
  if (GetThrottleReasons(device_, &reasons) != 0) return absl::nullopt;
  return reasons;
}

absl::optional<int64_t> Nvml::EnergyMillijoules() const {
  unsigned long long millijoules = 0;
  if (GetTotalEnergy(device_, &millijoules) != 0) return absl::nullopt;
  return static_cast<int64_t>(millijoules);
}

absl::optional<double> Nvml::FieldWatts(unsigned field) const {
  struct FieldValue {  // nvmlFieldValue_t
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, result;
    union {
      double real;
      unsigned word;
      unsigned long long number;
    } value;
  };
  constexpr int kUnsignedInt = 1;  // NVML_VALUE_TYPE_UNSIGNED_INT
  FieldValue value = {};
  value.field = field;
  if (GetFieldValues == nullptr || GetFieldValues(device_, 1, &value) != 0 ||
      value.result != 0 || value.type != kUnsignedInt) {
    return absl::nullopt;
  }
  return value.value.word * 1e-3;
}

absl::optional<double> Nvml::InstantWatts() const {
  return FieldWatts(kPowerInstant);
}

absl::optional<double> Nvml::AverageWatts() const {
  const absl::optional<double> average = FieldWatts(kPowerAverage);
  return average ? average : Watts(GetPowerUsage, device_);
}

absl::optional<double> Nvml::PowerLimitWatts() const {
  return Watts(GetPowerLimit, device_);
}

absl::optional<double> Nvml::Celsius() const {
  unsigned celsius = 0;
  if (GetTemperature == nullptr ||
      GetTemperature(device_, kGpuTemperature, &celsius) != 0) {
    return absl::nullopt;
  }
  return celsius;
}

absl::optional<std::vector<int>> Nvml::ComputeProcesses() const {
  struct Info {  // nvmlProcessInfo_t
    unsigned pid;
    unsigned long long memory_bytes;
    unsigned gpu_instance, compute_instance;
  };
  // More than this many are too many anyway.
  Info infos[64];
  unsigned count = 64;
  if (GetComputeProcesses(device_, &count, infos) != 0) return absl::nullopt;
  std::vector<int> pids;
  for (unsigned i = 0; i < count; ++i) {
    pids.push_back(static_cast<int>(infos[i].pid));
  }
  return pids;
}

absl::optional<std::vector<ProcessActivity>> Nvml::Activity(
    int64_t since_unix_us) const {
  struct Sample {  // nvmlProcessUtilizationSample_t
    unsigned pid;
    unsigned long long unix_us;
    unsigned multiprocessors, memory, encoder, decoder;
  };
  constexpr int kNotFound = 6;  // NVML_ERROR_NOT_FOUND: nobody did anything
  // More than this many periods since the last time are too many anyway.
  Sample samples[256];
  unsigned count = 256;
  if (GetProcessUtilization == nullptr) return absl::nullopt;
  const int result = GetProcessUtilization(
      device_, samples, &count, static_cast<unsigned long long>(since_unix_us));
  if (result == kNotFound) count = 0;
  if (result != 0 && result != kNotFound) return absl::nullopt;
  std::vector<ProcessActivity> activity;
  for (unsigned i = 0; i < count; ++i) {
    activity.push_back({static_cast<int>(samples[i].pid),
                        static_cast<int64_t>(samples[i].unix_us),
                        static_cast<int>(std::max(samples[i].multiprocessors,
                                                  samples[i].memory))});
  }
  return activity;
}

}  // namespace optrail::ops::cuda
