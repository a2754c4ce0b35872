#include "ops/device/cuda/monitor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace optrail::ops::cuda {
namespace {

constexpr uint64_t kDisturbing =
    kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kPowerBrake;

// Asking for the list of processes takes longer than most samples.
constexpr int64_t kAskEveryNs = 20'000'000;
// So does asking for clocks and what slows them down, which the driver looks at
// every few milliseconds itself.
constexpr int64_t kLookEveryNs = 1'000'000;

int ParentOf(int pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(stat)),
                   std::istreambuf_iterator<char>());
  // "PID (name) S PPID ...", and names may hold anything.
  const size_t name_end = text.rfind(')');
  int parent = 0;
  if (name_end != std::string::npos && name_end + 4 < text.size()) {
    parent = std::atoi(text.c_str() + name_end + 4);
  }
  return parent;
}

class CudaMonitor : public Monitor {
 public:
  explicit CudaMonitor(const Nvml* nvml) : nvml_(nvml) {}

  void Begin() override {
    if (nvml_ != nullptr) Ask();
  }

  bool End(int64_t elapsed_ns) override {
    if (nvml_ == nullptr) return false;
    Look();
    Ask();
    return others_ || slowed_;
  }

  void Fill(proto::Conditions* conditions) override {
    if (clock_hz_ > 0) conditions->set_clock_hz(clock_hz_);
  }

 private:
  void Look() {
    const int64_t now_ns = absl::GetCurrentTimeNanos();
    if (now_ns - looked_ns_ < kLookEveryNs) return;
    looked_ns_ = now_ns;
    if (const auto clock_hz = nvml_->SmClockHz(); clock_hz.has_value()) {
      clock_hz_ = *clock_hz;
    }
    slowed_ = (nvml_->ThrottleReasons().value_or(0) & kDisturbing) != 0;
  }

  // Workers of the same driver take turns: those that wait hold a context and
  // compute nothing, and so does the driver, which may have measured ceilings.
  // Where a container does not let this process see itself
  // among the others, nobody knows who they are.
  void Ask() {
    const int64_t now_ns = absl::GetCurrentTimeNanos();
    if (now_ns - asked_ns_ < kAskEveryNs) return;
    asked_ns_ = now_ns;
    const auto pids = nvml_->ComputeProcesses();
    others_ = false;
    if (!pids.has_value() ||
        std::find(pids->begin(), pids->end(), getpid()) == pids->end()) {
      return;
    }
    for (const int pid : *pids) {
      if (pid == getpid() || pid == getppid()) continue;
      if (siblings_.count(pid) > 0) continue;
      if (ParentOf(pid) == getppid()) {
        siblings_.insert(pid);
      } else {
        others_ = true;
      }
    }
  }

  const Nvml* const nvml_;
  int64_t looked_ns_ = 0;
  bool slowed_ = false;
  int64_t asked_ns_ = 0;
  bool others_ = false;
  std::set<int> siblings_;
  int64_t clock_hz_ = 0;
};

class EnergyMeter : public Meter {
 public:
  explicit EnergyMeter(const Nvml& nvml) : nvml_(nvml) {
    info_.metric = "joules";
    info_.unit = "J";
    // The counter advances every 20 to 100 ms.
    info_.min_window = absl::Milliseconds(500);
    info_.whole_device = true;
  }

  const MeterInfo& info() const override { return info_; }

  absl::Status Begin() override {
    begin_mj_ = nvml_.EnergyMillijoules();
    if (begin_mj_.has_value()) return absl::OkStatus();
    return absl::UnavailableError("the GPU stopped counting energy");
  }

  absl::StatusOr<proto::MeterWindow> End(int64_t calls) override {
    const auto end_mj = nvml_.EnergyMillijoules();
    if (!end_mj.has_value()) {
      return absl::UnavailableError("the GPU stopped counting energy");
    }
    proto::MeterWindow window;
    window.set_metric(info_.metric);
    window.set_unit(info_.unit);
    window.set_direction(info_.direction);
    window.set_value(static_cast<double>(*end_mj - *begin_mj_) * 1e-3);
    window.set_calls(calls);
    window.set_whole_device(true);
    return window;
  }

 private:
  const Nvml& nvml_;
  MeterInfo info_;
  absl::optional<int64_t> begin_mj_;
};

}  // namespace

std::unique_ptr<Monitor> MakeCudaMonitor(const Nvml* nvml) {
  return std::make_unique<CudaMonitor>(nvml);
}

absl::StatusOr<std::unique_ptr<Meter>> MakeCudaEnergyMeter(const Nvml& nvml) {
  if (!nvml.EnergyMillijoules().has_value()) {
    return absl::UnavailableError(
        "unsupported here: this GPU does not count its energy");
  }
  return std::make_unique<EnergyMeter>(nvml);
}

}  // namespace optrail::ops::cuda
