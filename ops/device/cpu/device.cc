#include "ops/device/cpu/device.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process/cpus.h"
#include "base/status_macros.h"
#include "ops/core/perturbation.h"
#include "ops/core/runnable.h"
#include "ops/device/cpu/calibration.h"
#include "ops/device/cpu/ceilings.h"
#include "ops/device/cpu/energy.h"
#include "ops/device/cpu/fingerprint.h"
#include "ops/device/cpu/memory.h"
#include "ops/device/cpu/monitor.h"
#include "ops/device/cpu/perturbation.h"
#include "ops/device/cpu/thread_pool.h"
#include "ops/device/cpu/timer.h"

namespace optrail::ops {
namespace {

constexpr int64_t kRecalibrateNs = 200'000'000;

class CpuBuffer;

// The live buffers of a device, for flushing. Not thread-safe, as the device.
using LiveBuffers = std::vector<CpuBuffer*>;

class CpuBuffer : public Buffer {
 public:
  CpuBuffer(GuardedMemory memory, LiveBuffers& live)
      : memory_(std::move(memory)), live_(live) {
    live_.push_back(this);
  }
  ~CpuBuffer() override {
    live_.erase(std::find(live_.begin(), live_.end(), this));
  }

  void* data() override { return memory_.data(); }
  size_t size_bytes() const override { return memory_.size_bytes(); }
  size_t page_bytes() const override { return memory_.page_bytes(); }

  absl::Status CopyFromHost(const void* source) override {
    std::memcpy(data(), source, size_bytes());
    return absl::OkStatus();
  }
  absl::Status CopyToHost(void* destination) override {
    std::memcpy(destination, data(), size_bytes());
    return absl::OkStatus();
  }

  void ArmGuards() override { memory_.ArmGuards(); }
  absl::Status CheckGuards() override { return memory_.CheckGuards(); }

 private:
  GuardedMemory memory_;
  LiveBuffers& live_;
};

class RealCpuDevice : public CpuDevice, public Perturbable {
 public:
  RealCpuDevice(const CpuOptions& options, const std::vector<int>& cpus)
      : hardware_(CpuHardware()),
        pool_(options.threads, cpus),
        flush_lines_(options.flush_lines) {
    if (!flush_lines_ && CanFlushLines()) flush_lines_ = FlushLines;
    absl::StatusOr<std::unique_ptr<Meter>> energy =
        MakeEnergyMeter("/sys/class/powercap", hardware_.id());
    if (!energy.ok()) return;
    energy_ = *std::move(energy);
    meters_.push_back(energy_.get());
  }

  const proto::Hardware& hardware() const override { return hardware_; }
  int threads() const override { return pool_.threads(); }

  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t size_bytes) override {
    // 17 lines apart: different sets of every cache, and no two of the first
    // 64 buffers at the same offset in a 4 KiB page.
    const size_t stagger = live_.size() * 17 % 64 * 64;
    absl::StatusOr<GuardedMemory> memory =
        GuardedMemory::Allocate(size_bytes, stagger);
    if (!memory.ok()) return memory.status();
    return std::make_unique<CpuBuffer>(*std::move(memory), live_);
  }

  void ParallelFor(int64_t count,
                   absl::FunctionRef<void(int64_t)> body) override {
    pool_.ParallelFor(count, body);
  }

  std::unique_ptr<Monitor> MakeMonitor() override {
    CpuMonitor::Options options;
    // A process that measures one thing shall know its machine well; where many
    // are measured one after another, the machine need not be asked each time.
    const int64_t now_ns = Clock::Real()->NowNs();
    if (calibration_ == nullptr) {
      calibration_ = std::make_unique<Calibration>(hardware_);
      options.calibration_turns = 3;
    } else if (now_ns - calibrated_ns_ > kRecalibrateNs) {
      options.calibration_turns = 1;
    }
    if (options.calibration_turns > 0) calibrated_ns_ = now_ns;
    options.calibration = calibration_.get();
    return std::make_unique<CpuMonitor>(std::move(options));
  }

  absl::StatusOr<std::unique_ptr<Timer>> MakeTimer(Runnable& runnable,
                                                   OperandSets& operands,
                                                   TimingMode mode) override {
    if (mode.launch != proto::LAUNCH_MODE_UNSPECIFIED) {
      return absl::UnimplementedError(
          "a CPU has no launch modes: its calls are function calls");
    }
    return CpuTimer::Create(runnable, operands, *this, mode);
  }

  absl::StatusOr<std::unique_ptr<Timer>> MakePerturbedTimer(
      Runnable& runnable, OperandSets& operands, TimingMode mode,
      const proto::Perturbation& perturbation) override {
    return MakePerturbedCpuTimer(runnable, operands, *this, mode, perturbation);
  }
  absl::StatusOr<std::vector<proto::MetricSamples>> ProfileCalls(
      Runnable& runnable, OperandSets& operands) override {
    return ProfileCpuCalls(runnable, operands, *this);
  }

  absl::Span<Meter* const> meters() override { return meters_; }

  absl::StatusOr<proto::Ceilings> MeasureCeilings() override {
    return ops::MeasureCeilings(*this);
  }

  absl::Status Synchronize() override { return absl::OkStatus(); }

  void FlushCaches() override {
    if (flush_lines_) {
      for (CpuBuffer* buffer : live_) {
        flush_lines_(buffer->data(), buffer->size_bytes());
      }
      return;
    }
    constexpr int64_t kMaxSweepBytes = int64_t{256} << 20;
    const int64_t cache_bytes = std::max<int64_t>(
        {hardware_.l3_bytes(), hardware_.l2_bytes(), int64_t{4} << 20});
    sweep_.resize(std::min(2 * cache_bytes, kMaxSweepBytes));
    for (size_t i = 0; i < sweep_.size(); i += 64) {
      ++*const_cast<volatile char*>(&sweep_[i]);
    }
  }

 private:
  const proto::Hardware hardware_;
  ThreadPool pool_;
  std::function<void(const void*, size_t)> flush_lines_;
  LiveBuffers live_;
  std::vector<char> sweep_;
  std::unique_ptr<Meter> energy_;  // may be null
  std::vector<Meter*> meters_;
  std::unique_ptr<Calibration> calibration_;
  int64_t calibrated_ns_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CpuDevice>> MakeCpuDevice(
    const CpuOptions& options) {
  if (options.threads < 1 || options.threads > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, ", expected 1 to 1024"));
  }
  std::vector<int> worker_cpus;
  // Before pinning, which would otherwise look like a machine of one core.
  (void)CpuHardware();
  if (options.pin) {
    const std::vector<int> cpus = UsableCpus();
    if (options.threads > static_cast<int>(cpus.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot pin ", options.threads, " threads to ",
                       cpus.size(), " usable cores"));
    }
    OPTRAIL_RETURN_IF_ERROR(UseCpus({cpus[0]}));
    worker_cpus.assign(cpus.begin() + 1, cpus.begin() + options.threads);
  }
  return std::make_unique<RealCpuDevice>(options, worker_cpus);
}

absl::StatusOr<std::unique_ptr<CpuDevice>> MakeCpuDevice(int threads) {
  CpuOptions options;
  options.threads = threads;
  return MakeCpuDevice(options);
}

}  // namespace optrail::ops
