#ifndef OPTRAIL_LIB_PLANNING_DEVICE_H_
#define OPTRAIL_LIB_PLANNING_DEVICE_H_

// Devices as kernels see them while plans are made: what the hardware is, how
// many threads a kernel may use, where code is loaded. Calls bring threads,
// streams and memory; nothing is measured.
//
//   PlanningDevice device(CpuHardware(), 4);
//   backend.Load(artifact, shape, config, device);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/cpu_device.h"
#include "tuning/proto/context.pb.h"

namespace optrail::lib {

// `Base` is a kind of device. It has no memory and no clock here.
template <class Base>
class ForPlans : public Base {
 public:
  using Base::Base;

  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<ops::Buffer>> Allocate(size_t) override {
    return Nothing();
  }
  absl::StatusOr<std::unique_ptr<ops::Timer>> MakeTimer(
      ops::Runnable&, ops::OperandSets&, ops::TimingMode) override {
    return Nothing();
  }
  std::unique_ptr<ops::Monitor> MakeMonitor() override { return nullptr; }
  absl::StatusOr<proto::Ceilings> MeasureCeilings() override {
    return Nothing();
  }

 private:
  static absl::Status Nothing() {
    return absl::UnimplementedError(
        "unsupported here: a device for plans has no memory and no clock");
  }
};

// The CPU.
class PlanningDevice final : public ForPlans<ops::CpuDevice> {
 public:
  PlanningDevice(proto::Hardware hardware, int threads)
      : hardware_(std::move(hardware)), threads_(threads) {}

  const proto::Hardware& hardware() const override { return hardware_; }
  int threads() const override { return threads_; }
  void ParallelFor(int64_t count,
                   absl::FunctionRef<void(int64_t)> body) override {
    for (int64_t i = 0; i < count; ++i) body(i);
  }
  void FlushCaches() override {}

 private:
  const proto::Hardware hardware_;
  const int threads_;
};

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_PLANNING_DEVICE_H_
