#include "clockwork/clockwork.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ops/core/device_type.h"
#include "ops/core/runnable.h"

namespace clockwork {
namespace {

namespace ops = optrail::ops;
namespace proto = optrail::proto;

constexpr double kNsPerTick = 10;
constexpr size_t kGuardBytes = 64;
constexpr char kGuard = '\xcd';

// $CLOCKWORK_FRICTION makes every turn take this many times as long.
double Friction() {
  const char* const text = std::getenv("CLOCKWORK_FRICTION");
  return text == nullptr ? 1 : std::atof(text);
}

proto::Hardware Fingerprint() {
  proto::Hardware hardware;
  hardware.set_id("acme-clockwork-4g");
  hardware.set_device_kind(kKind);
  hardware.set_vendor("Acme");
  hardware.set_model("Clockwork 4G");
  hardware.set_memory_bytes(1 << 20);
  proto::HardwareAttribute* gears = hardware.add_attributes();
  gears->set_name("gears");
  gears->set_int_(4);
  proto::HardwareAttribute* spring = hardware.add_attributes();
  spring->set_name("spring_ticks");
  spring->set_int_(1000000);
  return hardware;
}

class Memory : public ops::Buffer {
 public:
  explicit Memory(size_t size_bytes)
      : bytes_(size_bytes + 2 * kGuardBytes), size_bytes_(size_bytes) {}

  void* data() override { return bytes_.data() + kGuardBytes; }
  size_t size_bytes() const override { return size_bytes_; }
  size_t page_bytes() const override { return 4096; }
  absl::Status CopyFromHost(const void* source) override {
    std::memcpy(data(), source, size_bytes_);
    return absl::OkStatus();
  }
  absl::Status CopyToHost(void* destination) override {
    std::memcpy(destination, data(), size_bytes_);
    return absl::OkStatus();
  }
  void ArmGuards() override {
    std::memset(bytes_.data(), kGuard, kGuardBytes);
    std::memset(bytes_.data() + kGuardBytes + size_bytes_, kGuard, kGuardBytes);
  }
  absl::Status CheckGuards() override {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const bool inside = i >= kGuardBytes && i < kGuardBytes + size_bytes_;
      if (!inside && bytes_[i] != kGuard) {
        return absl::DataLossError(absl::StrCat("a write outside, byte ", i));
      }
    }
    return absl::OkStatus();
  }

 private:
  std::vector<char> bytes_;
  const size_t size_bytes_;
};

class Spring : public ops::Meter {
 public:
  Spring() {
    info_.metric = "spring_joules";
    info_.unit = "J";
    info_.min_window = absl::Milliseconds(1);
  }
  const ops::MeterInfo& info() const override { return info_; }
  absl::Status Begin() override {
    used_joules_ = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<proto::MeterWindow> End(int64_t calls) override {
    proto::MeterWindow window;
    window.set_metric(info_.metric);
    window.set_unit(info_.unit);
    window.set_direction(info_.direction);
    window.set_value(used_joules_);
    return window;
  }
  void Use(double joules) { used_joules_ += joules; }

 private:
  ops::MeterInfo info_;
  double used_joules_ = 0;
};

// Every tenth sample somebody winds the clock up.
class Winder : public ops::Monitor {
 public:
  void Begin() override {}
  bool End(int64_t elapsed_ns) override { return ++samples_ % 10 == 0; }
  void Fill(proto::Conditions* conditions) override {
    conditions->set_clock_hz(static_cast<int64_t>(1e9 / kNsPerTick));
  }

 private:
  int samples_ = 0;
};

class ClockworkDevice : public Clockwork {
 public:
  const proto::Hardware& hardware() const override { return hardware_; }

  absl::StatusOr<std::unique_ptr<ops::Buffer>> Allocate(
      size_t size_bytes) override {
    return std::make_unique<Memory>(size_bytes);
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<ops::Timer>> MakeTimer(
      ops::Runnable& runnable, ops::OperandSets& operands,
      ops::TimingMode mode) override;
  std::unique_ptr<ops::Monitor> MakeMonitor() override {
    return std::make_unique<Winder>();
  }
  absl::Span<ops::Meter* const> meters() override { return meters_; }
  absl::StatusOr<proto::Ceilings> MeasureCeilings() override {
    return absl::UnimplementedError("nobody knows what gears can do at best");
  }

  void Turn(double ticks, double joules) override {
    // No two processes are wound up alike, no two turns quite the same.
    const double unlike = static_cast<double>(getpid() % 7) / 2000 +
                          static_cast<double>(++turns_ % 5) / 5000;
    ticks_ += ticks * (1 + unlike) * friction_;
    spring_.Use(joules);
  }
  double ticks() const { return ticks_; }

 private:
  const proto::Hardware hardware_ = Fingerprint();
  const double friction_ = Friction();
  double ticks_ = 0;
  int64_t turns_ = 0;
  Spring spring_;
  std::vector<ops::Meter*> meters_ = {&spring_};
};

class Ticker : public ops::Timer {
 public:
  Ticker(const ops::Invocation& invocation, const ops::Call& call,
         ops::OperandSets& operands, ClockworkDevice& device)
      : invocation_(invocation),
        call_(call),
        operands_(operands),
        device_(device) {}

  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return operands_.Restore();
  }
  absl::StatusOr<int64_t> TimeNs() override {
    const double before = device_.ticks();
    for (int64_t i = 0; i < calls_; ++i) {
      const absl::Status status = invocation_.Run(call_);
      if (!status.ok()) return status;
    }
    return static_cast<int64_t>((device_.ticks() - before) * kNsPerTick);
  }
  absl::StatusOr<Ran> Run(int64_t calls) override {
    const double before = device_.ticks();
    for (int64_t i = 0; i < calls; ++i) {
      const absl::Status status = invocation_.Run(call_);
      if (!status.ok()) return status;
    }
    return Ran{calls,
               static_cast<int64_t>((device_.ticks() - before) * kNsPerTick)};
  }
  int64_t max_calls() const override { return 1000; }

 private:
  const ops::Invocation& invocation_;
  const ops::Call call_;
  ops::OperandSets& operands_;
  ClockworkDevice& device_;
  int64_t calls_ = 0;
};

absl::StatusOr<std::unique_ptr<ops::Timer>> ClockworkDevice::MakeTimer(
    ops::Runnable& runnable, ops::OperandSets& operands, ops::TimingMode mode) {
  if (mode.cache == proto::COLD) {
    return absl::UnimplementedError("a clockwork has no caches");
  }
  const absl::StatusOr<ops::Call> call =
      runnable.Prepare(operands.addresses(0));
  if (!call.ok()) return call.status();
  return std::make_unique<Ticker>(runnable.invocation(), *call, operands,
                                  *this);
}

class ClockworkType : public ops::DeviceType {
 public:
  proto::DeviceKind kind() const override { return kKind; }
  std::string name() const override { return "clockwork"; }
  absl::StatusOr<proto::Hardware> Hardware() const override {
    return Fingerprint();
  }
  absl::StatusOr<std::unique_ptr<ops::Device>> Make(
      const ops::DeviceOptions& options) const override {
    return std::make_unique<ClockworkDevice>();
  }
};

OPTRAIL_REGISTER_DEVICE_TYPE(ClockworkType)

}  // namespace
}  // namespace clockwork
