#ifndef OPTRAIL_OPS_DEVICE_CUDA_NVML_H_
#define OPTRAIL_OPS_DEVICE_CUDA_NVML_H_

// NVML, what the driver tells of a GPU's state, loaded at run time. It only
// reads: clocks, limits and modes are left alone.
//
//   const absl::StatusOr<Nvml> nvml = Nvml::Open(pci_bus_id);
//   if (nvml.ok()) Use(nvml->ThrottleReasons());

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace optrail::ops::cuda {

// Bits of ThrottleReasons() that tell of somebody else or of heat, not of this
// load's own power: a kernel that runs into its power limit is measured as it
// will run.
inline constexpr uint64_t kApplicationsClocks = 1 << 1;
inline constexpr uint64_t kPowerCap = 1 << 2;
inline constexpr uint64_t kHardwareSlowdown = 1 << 3;
inline constexpr uint64_t kSoftwareThermal = 1 << 5;
inline constexpr uint64_t kHardwareThermal = 1 << 6;
inline constexpr uint64_t kPowerBrake = 1 << 7;

// The activity of a process on the device in the period that ended then.
struct ProcessActivity {
  int pid = 0;
  int64_t until_unix_us = 0;
  int percent = 0;  // of the period: multiprocessors or memory were busy
};

class Nvml {
 public:
  // The device with this PCI bus id, as the driver writes it. Unavailable where
  // there is no NVML. Another library: for tests.
  static absl::StatusOr<Nvml> Open(
      const std::string& pci_bus_id,
      const std::string& library = "libnvidia-ml.so.1");

  // Absent where the device does not tell.
  absl::optional<int64_t> SmClockHz() const;
  absl::optional<uint64_t> ThrottleReasons() const;
  // Since the driver was loaded.
  absl::optional<int64_t> EnergyMillijoules() const;
  // Power of the whole board at this moment, and over what the driver averages
  // (a second, from Ampere on). Older drivers have one of them only.
  absl::optional<double> InstantWatts() const;
  absl::optional<double> AverageWatts() const;
  absl::optional<double> PowerLimitWatts() const;
  absl::optional<double> Celsius() const;
  // Processes that compute on the device, this one included.
  absl::optional<std::vector<int>> ComputeProcesses() const;
  // Processes that computed in the periods that ended after `since_unix_us`;
  // those that did nothing may be left out.
  absl::optional<std::vector<ProcessActivity>> Activity(
      int64_t since_unix_us) const;

 private:
  void* device_ = nullptr;
  int (*GetClockInfo)(void* device, int type, unsigned* mhz);
  int (*GetThrottleReasons)(void* device, unsigned long long* reasons);
  int (*GetTotalEnergy)(void* device, unsigned long long* millijoules);
  int (*GetComputeProcesses)(void* device, unsigned* count, void* infos);
  // Null where the library is older than they are.
  int (*GetFieldValues)(void* device, int count, void* values) = nullptr;
  int (*GetPowerUsage)(void* device, unsigned* milliwatts) = nullptr;
  int (*GetPowerLimit)(void* device, unsigned* milliwatts) = nullptr;
  int (*GetTemperature)(void* device, int sensor, unsigned* celsius) = nullptr;
  int (*GetProcessUtilization)(void* device, void* samples, unsigned* count,
                               unsigned long long since_unix_us) = nullptr;

  absl::optional<double> FieldWatts(unsigned field) const;
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_NVML_H_
