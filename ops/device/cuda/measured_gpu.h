#ifndef OPTRAIL_OPS_DEVICE_CUDA_MEASURED_GPU_H_
#define OPTRAIL_OPS_DEVICE_CUDA_MEASURED_GPU_H_

// A CUDA GPU on which kernels are measured: memory between guard zones, one
// stream, and the clocks of the GPU itself.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<MeasuredGpu> gpu,
//                            MeasuredGpu::Make(*driver));
//
// Which GPU: the first that CUDA_VISIBLE_DEVICES leaves. One device, one
// context, one thread. After an illegal address or a failed assertion the
// context is of no more use: every call fails until the process ends, which is
// why configs are measured in processes of their own.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/core/neighbours.h"
#include "ops/core/perturbation.h"
#include "ops/device/cuda/buffer.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/driver.h"
#include "ops/device/cuda/monitor.h"
#include "ops/device/cuda/nvml.h"
#include "ops/device/cuda/turns.h"

namespace optrail::ops::cuda {

class MeasuredGpu : public CudaDevice, public SharedDevice, public Perturbable {
 public:
  // Unavailable, "unsupported here: why", if the GPU cannot be used.
  static absl::StatusOr<std::unique_ptr<MeasuredGpu>> Make(
      const Driver& driver);
  ~MeasuredGpu() override;

  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t size_bytes) override;
  // One buffer is kept when it is given back: allocating takes longer than most
  // kernels.
  absl::StatusOr<std::shared_ptr<Buffer>> AllocateWorkspace(
      size_t size_bytes) override;
  absl::Status Zero(void* memory, size_t size_bytes) override;
  ops::Stream stream() override;
  absl::Status Synchronize() override;
  absl::StatusOr<std::unique_ptr<Timer>> MakeTimer(Runnable& runnable,
                                                   OperandSets& operands,
                                                   TimingMode mode) override;
  absl::StatusOr<std::unique_ptr<Timer>> MakePerturbedTimer(
      Runnable& runnable, OperandSets& operands, TimingMode mode,
      const proto::Perturbation& perturbation) override;
  absl::StatusOr<std::vector<proto::MetricSamples>> ProfileCalls(
      Runnable& runnable, OperandSets& operands) override;
  std::unique_ptr<Monitor> MakeMonitor() override;
  absl::Span<Meter* const> meters() override { return meters_; }
  // Also waits until no neighbour computes, for half a minute at most.
  std::unique_ptr<Turn> TakeTurn(absl::FunctionRef<void()> waits) override;
  NeighbourNames FindNeighbours() override;
  absl::StatusOr<proto::Ceilings> MeasureCeilings() override;

  // Everything is launched into it.
  Stream driver_stream() const { return stream_; }
  int64_t l2_bytes() const { return hardware().l2_bytes(); }

  // Keeps the first failure of a launch until Synchronize() reports it.
  void Note(absl::Status launched);

  std::string uuid() const override { return uuid_; }

  absl::optional<int64_t> busy_ns() const override {
    return busy_ns_ + comparer_->busy_ns();
  }
  // What is noted while a graph is captured does not run yet.
  void SetCapturing(bool capturing) { capturing_ = capturing; }

  // Memory for one use at a time, kept for the next: allocating takes longer
  // than most kernels. Valid until the next call that asks for more; one that
  // does not has the same.
  absl::StatusOr<char*> Scratch(size_t size_bytes);

  // Copies `size_bytes` behind themselves, so that they lie there `times`
  // times.
  void Repeat(void* first, size_t size_bytes, int64_t times);

  // A launch of a kernel that does nothing, in a graph of many.
  absl::StatusOr<double> EmptyLaunchNs();

  // Fills the L2 with something else; asynchronous.
  absl::Status FlushL2();
  // With those bytes; asynchronous.
  absl::Status ReadThroughL2(const void* from, size_t size_bytes);

 private:
  MeasuredGpu(const Driver& driver, proto::Hardware hardware)
      : CudaDevice(driver, std::move(hardware)) {}

  std::string uuid_;
  Stream stream_ = nullptr;
  absl::Status launched_;
  bool capturing_ = false;
  int64_t busy_ns_ = 0;
  absl::optional<int64_t> busy_since_ns_;  // nothing was waited for since
  std::unique_ptr<MemoryComparer> comparer_;
  std::unique_ptr<Buffer> flush_;      // made when it is first needed
  std::unique_ptr<Buffer> scratch_;    // the largest so far
  std::unique_ptr<Buffer> workspace_;  // likewise, unless it is taken
  absl::StatusOr<Turns> turns_ = absl::UnavailableError("not asked");
  absl::StatusOr<Nvml> nvml_ = absl::UnavailableError("not asked");
  std::unique_ptr<GpuWatch> watch_;  // uses these two
  std::unique_ptr<Meter> energy_;
  std::vector<Meter*> meters_;
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_MEASURED_GPU_H_
