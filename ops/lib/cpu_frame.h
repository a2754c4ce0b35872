#ifndef OPTRAIL_OPS_LIB_CPU_FRAME_H_
#define OPTRAIL_OPS_LIB_CPU_FRAME_H_

// Kernels for CPUs share this around their loops: knobs, tasks, workspaces.
//
//   class SumCpu : public KnobKernel<SumKnobs> {
//     absl::StatusOr<std::unique_ptr<Invocation>> Bind(
//         const proto::Shape& shape, const SumKnobs& knobs,
//         CpuDevice& device) const override {
//       WorkspaceLayout layout;
//       const Workspaces sums(layout, device.threads(), cols);
//       return MakeInvocation(layout, [=](const Call& call) {
//         Workspaces::Shared shared(sums, call);
//         ForBlocks(call, rows, block, [&](int64_t begin, int64_t count) {
//           const Workspaces::Lease lease(shared);
//           ...
//         });
//       });
//     }
//   };
//
// The loops themselves are compiled once per SIMD target: simd-inl.h.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/check.h"
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
void ForBlocks(const Call& call, int64_t total, int64_t block,
               const Body& body) {
  const int64_t tasks = CeilDiv(total, block);
  if (tasks == 1) return body(int64_t{0}, total);
  call.ParallelFor(tasks, [&](int64_t task) {
    const int64_t begin = task * block;
    body(begin, std::min(block, total - begin));
  });
}

// What of a call's workspace is whose: parts are added one behind the other.
class WorkspaceLayout {
 public:
  // Adds a part of so many bytes; returns its offset.
  int64_t Add(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += bytes;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// Equal pieces of a call's workspace, one for each task that may run at a time.
// No two of the first 64 begin at the same offset in 4 KiB.
class Workspaces {
 public:
  static constexpr int64_t kMost = 1024;  // as threads of a device
  class Lease;

  Workspaces() = default;
  // 1 <= count <= kMost.
  Workspaces(WorkspaceLayout& layout, int64_t count, int64_t floats)
      : count_(count), step_(StepOf(floats)), at_(layout.Add(count * step_)) {
    OPTRAIL_CHECK(count >= 1 && count <= kMost) << count;
  }

  float* at(const Call& call, int64_t i) const {
    return reinterpret_cast<float*>(static_cast<char*>(call.workspace) + at_ +
                                    i * step_);
  }

  // The pieces of one call, which its tasks lease.
  class Shared {
   public:
    Shared(const Workspaces& workspaces, const Call& call)
        : first_(workspaces.at(call, 0)),
          step_(workspaces.step_),
          count_(workspaces.count_) {}
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

   private:
    friend class Lease;

    // The lowest that nobody has. Where a caller's threads are more than the
    // invocation was made for, some wait here.
    int64_t Take() {
      while (true) {
        for (int64_t first = 0; first < count_; first += 64) {
          std::atomic<uint64_t>& word = taken_[first / 64];
          const int64_t bits = std::min<int64_t>(count_ - first, 64);
          const uint64_t all = ~uint64_t{0} >> (64 - bits);
          uint64_t taken = word.load(std::memory_order_relaxed);
          while (taken != all) {
            const int bit = __builtin_ctzll(~taken);
            if (word.compare_exchange_weak(taken, taken | uint64_t{1} << bit,
                                           std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
              return first + bit;
            }
          }
        }
        std::this_thread::yield();
      }
    }
    void Give(int64_t piece) {
      taken_[piece / 64].fetch_and(~(uint64_t{1} << piece % 64),
                                   std::memory_order_release);
    }

    float* const first_;
    const int64_t step_;
    const int64_t count_;
    std::atomic<uint64_t> taken_[kMost / 64] = {};
  };

  // One of them, for as long as the lease lives.
  class Lease {
   public:
    explicit Lease(Shared& shared) : shared_(shared), piece_(shared.Take()) {}
    ~Lease() { shared_.Give(piece_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    float* data() const {
      return reinterpret_cast<float*>(reinterpret_cast<char*>(shared_.first_) +
                                      piece_ * shared_.step_);
    }

   private:
    Shared& shared_;
    const int64_t piece_;
  };

 private:
  // Whole cache lines, 17 beyond a multiple of 64.
  static int64_t StepOf(int64_t floats) {
    const int64_t lines = CeilDiv(floats * int64_t{sizeof(float)}, 64);
    return (CeilDiv(std::max<int64_t>(lines - 17, 0), 64) * 64 + 17) * 64;
  }

  int64_t count_ = 0;
  int64_t step_ = 0;  // bytes
  int64_t at_ = 0;
};

// An invocation that is run(call), with the workspaces of the layout.
template <class Function>
std::unique_ptr<Invocation> MakeInvocation(const WorkspaceLayout& layout,
                                           Function run) {
  class Made : public Invocation {
   public:
    Made(Function run, int64_t workspace_bytes)
        : run_(std::move(run)), workspace_bytes_(workspace_bytes) {}
    absl::Status Run(const Call& call) const override {
      run_(call);
      return absl::OkStatus();
    }
    int64_t workspace_bytes() const override { return workspace_bytes_; }

   private:
    const Function run_;
    const int64_t workspace_bytes_;
  };
  return std::make_unique<Made>(std::move(run), layout.bytes());
}

// One without workspaces.
template <class Function>
std::unique_ptr<Invocation> MakeInvocation(Function run) {
  return MakeInvocation(WorkspaceLayout(), std::move(run));
}

// One that keeps an operand, a layer's weights, in so many floats of its own
// layout: pack(call, to) writes them, and run(call, packed) reads them.
template <class PackFunction, class Function>
std::unique_ptr<Invocation> MakePackingInvocation(const WorkspaceLayout& layout,
                                                  int64_t packed_floats,
                                                  PackFunction pack,
                                                  Function run) {
  class Made : public Invocation {
   public:
    Made(PackFunction pack, Function run, int64_t workspace_bytes,
         int64_t packed_bytes)
        : pack_(std::move(pack)),
          run_(std::move(run)),
          workspace_bytes_(workspace_bytes),
          packed_bytes_(packed_bytes) {}
    absl::Status Pack(const Call& call) const override {
      if (packed_bytes_ > 0) pack_(call, static_cast<float*>(call.packed));
      return absl::OkStatus();
    }
    absl::Status Run(const Call& call) const override {
      run_(call, static_cast<const float*>(call.packed));
      return absl::OkStatus();
    }
    int64_t workspace_bytes() const override { return workspace_bytes_; }
    int64_t packed_bytes() const override { return packed_bytes_; }

   private:
    const PackFunction pack_;
    const Function run_;
    const int64_t workspace_bytes_;
    const int64_t packed_bytes_;
  };
  return std::make_unique<Made>(std::move(pack), std::move(run), layout.bytes(),
                                packed_floats * int64_t{sizeof(float)});
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
  // Does the work of CpuKernel::Prepare.
  virtual absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const = 0;

  // Implements CpuKernel::Blocks.
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
