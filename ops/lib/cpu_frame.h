#ifndef OPTRAIL_OPS_LIB_CPU_FRAME_H_
#define OPTRAIL_OPS_LIB_CPU_FRAME_H_

// What kernels for CPUs share around their loops: knobs, tasks, workspaces.
//
//   class SumCpu : public KnobKernel<SumKnobs> {
//     absl::StatusOr<std::unique_ptr<Invocation>> Bind(
//         const proto::Shape& shape, const SumKnobs& knobs,
//         CpuDevice& device) const override {
//       return MakeInvocation([=](absl::Span<void* const> operands) { ... });
//     }
//   };
//
// The loops themselves are compiled once per SIMD target: simd-inl.h.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/cpu_kernel.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What streaming stores need: the alignment of the widest vector.
inline bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 64 == 0;
}

// body(begin, count) for pieces of at most `block` out of [0, total), as tasks.
template <class Body>
void ForBlocks(CpuDevice& device, int64_t total, int64_t block,
               const Body& body) {
  const int64_t tasks = CeilDiv(total, block);
  if (tasks == 1) return body(int64_t{0}, total);
  device.ParallelFor(tasks, [&](int64_t task) {
    const int64_t begin = task * block;
    body(begin, std::min(block, total - begin));
  });
}

// Equal pieces of memory, one for each task that may run at a time.
class Workspaces {
 public:
  // ResourceExhausted if there is not enough memory.
  static absl::StatusOr<std::shared_ptr<Workspaces>> Create(CpuDevice& device,
                                                            int64_t count,
                                                            int64_t floats) {
    auto workspaces = std::make_shared<Workspaces>();
    for (int64_t i = 0; i < count; ++i) {
      OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                               device.Allocate(floats * sizeof(float)));
      workspaces->free_.push_back(static_cast<float*>(buffer->data()));
      workspaces->bytes_ += static_cast<int64_t>(buffer->size_bytes());
      workspaces->buffers_.push_back(std::move(buffer));
    }
    return workspaces;
  }

  // One of them, for as long as the lease lives. There must be one left.
  class Lease {
   public:
    explicit Lease(Workspaces& workspaces) : workspaces_(workspaces) {
      const std::lock_guard<std::mutex> lock(workspaces_.mutex_);
      data_ = workspaces_.free_.back();
      workspaces_.free_.pop_back();
    }
    ~Lease() {
      const std::lock_guard<std::mutex> lock(workspaces_.mutex_);
      workspaces_.free_.push_back(data_);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    float* data() const { return data_; }

   private:
    Workspaces& workspaces_;
    float* data_;
  };

  float* at(int64_t i) const {
    return static_cast<float*>(buffers_[i]->data());
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<std::unique_ptr<Buffer>> buffers_;
  int64_t bytes_ = 0;
  std::mutex mutex_;
  std::vector<float*> free_;
};

// An invocation that is run(operands), with the workspaces that it uses.
template <class Function, class... SharedWorkspaces>
std::unique_ptr<Invocation> MakeInvocation(
    Function run, const SharedWorkspaces&... workspaces) {
  class Made : public Invocation {
   public:
    Made(Function run, int64_t workspace_bytes)
        : run_(std::move(run)), workspace_bytes_(workspace_bytes) {}
    void Run(absl::Span<void* const> operands) override { run_(operands); }
    int64_t workspace_bytes() const override { return workspace_bytes_; }

   private:
    const Function run_;  // holds the workspaces
    const int64_t workspace_bytes_;
  };
  return std::make_unique<Made>(std::move(run),
                                (int64_t{0} + ... + workspaces->bytes()));
}

// A kernel whose config is read into the knobs that the macro generates.
template <class Knobs>
class KnobKernel : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(const proto::Config& config) const final {
    OPTRAIL_ASSIGN_OR_RETURN(const Knobs knobs, Knobs::From(config));
    return knobs.InstantiationIndex();
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const final {
    OPTRAIL_ASSIGN_OR_RETURN(const Knobs knobs, Knobs::From(config));
    return Bind(shape, knobs, device);
  }

  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const final {
    const absl::StatusOr<Knobs> knobs = Knobs::From(config);
    if (!knobs.ok()) return {};
    return BlocksOf(*knobs);
  }

 protected:
  // As CpuKernel::Prepare.
  virtual absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const = 0;

  // As CpuKernel::Blocks.
  virtual std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const Knobs& knobs) const {
    return {};
  }

  static absl::Status NotCompiled() {
    return absl::InvalidArgumentError("config was not compiled");
  }
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_CPU_FRAME_H_
