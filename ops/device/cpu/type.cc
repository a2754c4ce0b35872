// The CPU as a kind of device.

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/cpus.h"
#include "ops/core/device_type.h"
#include "ops/device/cpu/device.h"
#include "ops/device/cpu/energy.h"
#include "ops/device/cpu/fingerprint.h"
#include "ops/device/cpu/monitor.h"
#include "ops/device/cpu/noise.h"

namespace optrail::ops {
namespace {

// Processes that wait hold memory; more of them bring little.
constexpr int kMostTogether = 7;

class CpuType : public DeviceType {
 public:
  proto::DeviceKind kind() const override { return proto::CPU; }

  absl::StatusOr<proto::Hardware> Hardware() const override {
    return CpuHardware();
  }

  int max_threads(const proto::Hardware& hardware) const override {
    return std::max(1, hardware.cores());
  }

  proto::Hardware Declared() const override { return CpuHardware(); }

  absl::Status CheckOptions(const DeviceOptions& options,
                            const proto::Hardware& hardware) const override {
    const int cores = hardware.cores();
    if (options.threads >= 1 && options.threads <= cores) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(options.threads, " threads: this process may use ", cores,
                     cores == 1 ? " core" : " cores",
                     ", and threads that share one measure each other"));
  }

  absl::StatusOr<std::unique_ptr<Device>> Make(
      const DeviceOptions& options) const override {
    return MakeCpuDevice(options.threads);
  }

  std::vector<int> SpareCores(const DeviceOptions& options) const override {
    // Those behind the ones that threads are pinned to, but for the other
    // halves of these.
    const std::vector<int> usable = UsableCpus();
    const size_t measured =
        std::min(static_cast<size_t>(options.threads), usable.size());
    std::set<int> taken;
    for (size_t i = 0; i < measured; ++i) {
      for (const int sibling : SiblingCpus(usable[i])) taken.insert(sibling);
    }
    std::vector<int> spare;
    for (size_t i = measured; i < usable.size(); ++i) {
      if (taken.count(usable[i]) == 0) spare.push_back(usable[i]);
    }
    return spare;
  }

  MeasurementPolicy policy() const override {
    MeasurementPolicy policy;
    const int cores = static_cast<int>(UsableCpus().size());
    if (cores > 1)
      policy.processes_together = std::min(kMostTogether, cores + 1);
    return policy;
  }

  std::string isa() const override { return "native"; }

  void FillSettings(proto::MeasurementSettings* settings) const override {
    settings->set_max_run_delay_fraction(CpuMonitor::kMaxRunDelayFraction);
    settings->set_max_run_delay_ns(CpuMonitor::kMaxRunDelayNs);
    settings->set_max_calibration_ratio(CpuMonitor::kMaxCalibrationRatio);
  }

  std::vector<Support> DescribeSupport() const override {
    const auto energy = MakeEnergyMeter();
    return {
        {"energy meter", energy.ok() ? "RAPL, whole packages"
                                     : std::string(energy.status().message())},
        {"contention witnesses",
         absl::StrCat("run delay ",
                      RunDelayNs().has_value() ? "yes" : "unsupported here",
                      ", steal ",
                      StealNs().has_value() ? "yes" : "unsupported here")},
    };
  }
};

OPTRAIL_REGISTER_DEVICE_TYPE(CpuType)

}  // namespace
}  // namespace optrail::ops
