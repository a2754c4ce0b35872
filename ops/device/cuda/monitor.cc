#include "ops/device/cuda/monitor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "ops/device/energy/sensor_meter.h"

namespace optrail::ops::cuda {
namespace {

constexpr uint64_t kDisturbing =
    kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kPowerBrake;

// The driver looks at clocks, and at what slows them down, every few
// milliseconds itself; asking for the list of processes takes longer than most
// samples.
constexpr absl::Duration kLookEvery = absl::Milliseconds(5);
constexpr absl::Duration kAskEvery = absl::Milliseconds(20);
// The periods that a watch asks about after a long sleep.
constexpr int kMostPeriods = 2;
// Some ten times what an answer takes.
constexpr absl::Duration kPatience = absl::Milliseconds(2);
// Before anything is known: as long as the driver may answer nobody.
constexpr absl::Duration kFirstPatience = absl::Seconds(1);

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

// Returns whether this process's parent started it, directly or through another
// process.
bool IsSibling(int pid) {
  constexpr int kMostGenerations = 8;
  for (int i = 0; i < kMostGenerations && pid > 1 && pid != getpid(); ++i) {
    pid = ParentOf(pid);
    if (pid == getppid()) return true;
  }
  return false;
}

class CudaMonitor : public Monitor, public LateMonitor {
 public:
  explicit CudaMonitor(GpuWatch* watch) : watch_(watch) {
    if (watch_ != nullptr) watch_->Begin();
  }
  ~CudaMonitor() override {
    if (watch_ != nullptr) watch_->End();
  }

  void Begin() override { began_.push_back(absl::Now()); }
  bool End(int64_t elapsed_ns) override {
    return watch_ != nullptr && watch_->disturbed();
  }
  int CountDisturbedLate() override {
    if (watch_ == nullptr || began_.empty()) return 0;
    const std::vector<absl::Time> began = std::exchange(began_, {});
    const absl::Time since = watch_->DisturbedSince(began.front(), absl::Now());
    if (since == absl::InfiniteFuture()) return 0;
    // A sample lasts until the next one begins.
    const auto after = std::upper_bound(began.begin(), began.end(), since);
    return static_cast<int>(began.end() - after) +
           (after == began.begin() ? 0 : 1);
  }
  void Fill(proto::Conditions* conditions) override {
    if (watch_ != nullptr && watch_->clock_hz() > 0) {
      conditions->set_clock_hz(watch_->clock_hz());
    }
  }

 private:
  GpuWatch* const watch_;
  std::vector<absl::Time> began_;
};

class NvmlSensor : public EnergySensor {
 public:
  NvmlSensor(const Nvml& nvml, const GpuWatch* watch)
      : nvml_(nvml), watch_(watch) {}

  std::string name() const override {
    return nvml_.EnergyMillijoules() ? "NVML energy counter" : "NVML power";
  }
  SensorReading Read() override {
    SensorReading reading;
    if (const auto mj = nvml_.EnergyMillijoules()) {
      reading.joules = static_cast<double>(*mj) * 1e-3;
    }
    reading.now_ns = Clock::Real()->NowNs();
    reading.watts = nvml_.InstantWatts();
    if (!reading.watts) reading.average_watts = nvml_.AverageWatts();
    return reading;
  }
  DeviceState State() override {
    DeviceState state;
    state.celsius = nvml_.Celsius();
    state.clock_hz = nvml_.SmClockHz();
    state.throttle_reasons = nvml_.ThrottleReasons();
    state.power_limit_watts = nvml_.PowerLimitWatts();
    if (watch_ != nullptr) state.shared = watch_->others();
    return state;
  }

 private:
  const Nvml& nvml_;
  const GpuWatch* const watch_;
};

}  // namespace

GpuWatch::GpuWatch(const Nvml& nvml, const Turns* turns, absl::Duration lag)
    : nvml_(nvml), turns_(turns), lag_(lag), neighbours_(lag), thread_([this] {
        Watch();
      }) {}

GpuWatch::~GpuWatch() {
  {
    const absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void GpuWatch::Begin() {
  const absl::MutexLock lock(&mutex_);
  measuring_ = true;
  const absl::Time now = absl::Now();
  if (now - asked_ < kAskEvery) return;
  const auto is_answered = [this, now]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return asked_ >= now;
  };
  mutex_.AwaitWithTimeout(
      absl::Condition(&is_answered),
      asked_ == absl::InfinitePast() ? kFirstPatience : kPatience);
}

void GpuWatch::End() {
  const absl::MutexLock lock(&mutex_);
  measuring_ = false;
}

void GpuWatch::Watch() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return measuring_ || ending_;
  };
  absl::Time asked = absl::InfinitePast();
  while (true) {
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (ending_) return;
    }
    const absl::Time now = absl::Now();
    clock_hz_ = nvml_.SmClockHz().value_or(clock_hz_);
    slowed_ = (nvml_.ThrottleReasons().value_or(0) & kDisturbing) != 0;
    if (now - asked >= kAskEvery) {
      Ask(now);
      asked = now;
    }
    const absl::MutexLock lock(&mutex_);
    if (asked == now) asked_ = absl::Now();
    mutex_.AwaitWithTimeout(absl::Condition(&ending_), kLookEvery);
  }
}

void GpuWatch::Ask(absl::Time now) {
  const std::vector<int> strangers = Strangers();
  absl::Time since;
  {
    const absl::MutexLock lock(&mutex_);
    if (strangers.empty() && neighbours_.empty()) {
      neighbours_.Tell(now, {}, std::vector<ProcessActivity>());
      others_ = false;
      return;
    }
    since = std::max(asked_, now - kMostPeriods * lag_);
  }
  const auto activity = nvml_.Activity(absl::ToUnixMicros(since - lag_));
  const absl::MutexLock lock(&mutex_);
  neighbours_.Tell(now, strangers, activity);
  others_ = neighbours_.Disturb(now);
}

// Processes that take turns wait for theirs: those of this session hold a
// context and compute nothing, and so do those of others. The driver's other
// descendants are measured in turns with this one, and it may have measured
// ceilings itself. Where a container does not let this process see itself among
// the others, nobody knows who they are.
std::vector<int> GpuWatch::Strangers() {
  const auto pids = nvml_.ComputeProcesses();
  if (!pids.has_value() ||
      std::find(pids->begin(), pids->end(), getpid()) == pids->end()) {
    return {};
  }
  std::vector<int> strangers;
  for (const int pid : *pids) {
    if (pid == getpid() || pid == getppid() || siblings_.count(pid) > 0) {
      continue;
    }
    if (turns_ != nullptr && turns_->TakesPart(pid)) continue;
    if (IsSibling(pid)) {
      siblings_.insert(pid);
    } else {
      strangers.push_back(pid);
    }
  }
  return strangers;
}

void GpuWatch::AwaitQuiet(absl::Duration patience,
                          absl::FunctionRef<void()> waits) {
  Begin();
  const auto is_quiet = [this] { return !others_; };
  if (is_quiet()) {
    has_patience_ = true;
  } else if (has_patience_) {
    waits();
    const absl::MutexLock lock(&mutex_);
    has_patience_ =
        mutex_.AwaitWithTimeout(absl::Condition(&is_quiet), patience);
  }
  End();
}

absl::Time GpuWatch::DisturbedSince(absl::Time start, absl::Time end) {
  absl::Time first;
  const auto is_told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    first = neighbours_.FirstActive(start);
    return neighbours_.empty() || first != absl::InfiniteFuture() ||
           asked_ >= end + lag_;
  };
  const absl::MutexLock lock(&mutex_);
  // The watch answers every few milliseconds; a driver that does not is no
  // reason to wait for ever.
  mutex_.AwaitWithTimeout(absl::Condition(&is_told), 3 * lag_ + kPatience);
  // It computed at some time in the period that ended then.
  return first - lag_;
}

NeighbourNames GpuWatch::Names() {
  const absl::MutexLock lock(&mutex_);
  return neighbours_.Names(absl::Now());
}

std::unique_ptr<Monitor> MakeCudaMonitor(GpuWatch* watch) {
  return std::make_unique<CudaMonitor>(watch);
}

absl::StatusOr<std::unique_ptr<Meter>> MakeCudaEnergyMeter(
    const Nvml& nvml, const GpuWatch* watch, const std::string& device) {
  if (!nvml.EnergyMillijoules() && !nvml.InstantWatts() &&
      !nvml.AverageWatts()) {
    return absl::UnavailableError(
        "unsupported here: this GPU tells neither its energy nor its power");
  }
  SensorMeterOptions options;
  options.device = device;
  return std::make_unique<SensorMeter>(
      std::make_unique<NvmlSensor>(nvml, watch), std::move(options));
}

}  // namespace optrail::ops::cuda
