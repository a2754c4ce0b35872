#ifndef OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_
#define OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_

// A CUDA GPU as a device: memory between guard zones, one stream, and the
// clocks of the GPU itself.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> gpu,
//                            CudaDevice::Make(*driver));
//
// Which GPU: the first that CUDA_VISIBLE_DEVICES leaves. One device, one
// context, one thread. After an illegal address or a failed assertion the
// context is of no more use: every call fails until the process ends, which is
// why configs are measured in processes of their own.

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/device/cuda/buffer.h"
#include "ops/device/cuda/driver.h"
#include "ops/device/cuda/monitor.h"
#include "ops/device/cuda/nvml.h"
#include "ops/device/cuda/turns.h"

namespace optrail::ops::cuda {

class CudaDevice : public Device {
 public:
  static constexpr proto::DeviceKind kKind = proto::CUDA;
  static constexpr char kKindName[] = "CUDA";

  // Unavailable, "unsupported here: why", if the GPU cannot be used.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Make(const Driver& driver);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const proto::Hardware& hardware() const override { return hardware_; }
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
  std::unique_ptr<Monitor> MakeMonitor() override;
  absl::Span<Meter* const> meters() override { return meters_; }
  std::unique_ptr<Turn> TakeTurn(absl::FunctionRef<void()> waits) override;
  absl::StatusOr<proto::Ceilings> MeasureCeilings() override;

  const Driver& driver() const { return driver_; }
  // Everything is launched into it.
  Stream driver_stream() const { return stream_; }
  int64_t l2_bytes() const { return hardware_.l2_bytes(); }

  // Keeps the first failure of a launch until Synchronize() reports it.
  void Note(absl::Status launched);

  absl::optional<int64_t> busy_ns() const override {
    return busy_ns_ + comparer_->busy_ns();
  }
  // What is noted while a graph is captured does not run yet.
  void SetCapturing(bool capturing) { capturing_ = capturing; }

  // Compiled code, loaded once: many configs of a search have the same, and
  // while another process opens a context loading and unloading wait for it.
  absl::StatusOr<Module> Load(const std::string& code);

  // A function may be launched with so much dynamic shared memory from now on,
  // and with as much as anybody allowed it before: configs of the same code
  // that ask for different amounts are measured interleaved.
  absl::Status AllowShared(Function function, int64_t bytes);

  // Memory for one use at a time, kept for the next: allocating takes longer
  // than most kernels. Valid until the next call that asks for more; one that
  // does not has the same.
  absl::StatusOr<char*> Scratch(size_t size_bytes);

  // Copies `size_bytes` behind themselves, so that they lie there `times`
  // times.
  void Repeat(void* first, size_t size_bytes, int64_t times);

  // Fills the L2 with something else; asynchronous.
  absl::Status FlushL2();
  // With those bytes; asynchronous.
  absl::Status ReadThroughL2(const void* from, size_t size_bytes);

 private:
  explicit CudaDevice(const Driver& driver) : driver_(driver) {}

  const Driver& driver_;
  proto::Hardware hardware_;
  Stream stream_ = nullptr;
  absl::Status launched_;
  bool capturing_ = false;
  int64_t busy_ns_ = 0;
  absl::optional<int64_t> busy_since_ns_;  // nothing was waited for since
  std::unique_ptr<MemoryComparer> comparer_;
  std::unique_ptr<Buffer> flush_;      // made when it is first needed
  std::unique_ptr<Buffer> scratch_;    // the largest so far
  std::unique_ptr<Buffer> workspace_;  // likewise, unless it is taken
  absl::flat_hash_map<std::string, Module> modules_;     // by their code
  absl::flat_hash_map<Function, int64_t> shared_bytes_;  // that are allowed
  absl::StatusOr<Turns> turns_ = absl::UnavailableError("not asked");
  absl::StatusOr<Nvml> nvml_ = absl::UnavailableError("not asked");
  std::unique_ptr<GpuWatch> watch_;  // uses these two
  std::unique_ptr<Meter> energy_;
  std::vector<Meter*> meters_;
};

// The fingerprint of GPU `ordinal`, without a context. What NVML tells (the
// driver's version is an epoch) is no part of it.
absl::StatusOr<proto::Hardware> HardwareOf(const Driver& driver, int ordinal);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_
