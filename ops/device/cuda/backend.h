#ifndef OPTRAIL_OPS_DEVICE_CUDA_BACKEND_H_
#define OPTRAIL_OPS_DEVICE_CUDA_BACKEND_H_

// A backend whose kernels are CUDA C++ that NVRTC compiles when asked: for one
// GPU architecture, one config and as much of the shape as the kernel wants to
// know. An operator's *_cuda.cc says what to compile and how to launch it; the
// *.cu files beside it are embedded by the `operator` macro.
//
//   class SoftmaxCuda : public CudaBackend {
//     absl::StatusOr<CudaPlan> Plan(...) const override;
//     absl::Status Arguments(...) const override;
//   };
//   OPTRAIL_REGISTER_BACKEND("softmax", SoftmaxCuda)

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/backend.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/driver.h"

namespace optrail::ops::cuda {

// How one config computes one shape on one GPU.
struct CudaPlan {
  // "softmax_cuda.cu": a file that the macro embedded. It may include embedded
  // *.cuh files by their names without folders.
  std::string source;
  std::string function;  // extern "C"
  // A function of the same source that is launched first, if any.
  struct Before {
    std::string function;
    unsigned grid_x = 1, block_x = 1;
  } before;
  std::vector<std::string> defines;  // "THREADS=256"
  // Uses the architecture's own instructions (wgmma): sm_90a instead of sm_90.
  bool architecture_specific = false;
  unsigned grid_x = 1, grid_y = 1, block_x = 1;
  unsigned dynamic_shared_bytes = 0;
  int cluster = 1;  // blocks; declared by the kernel itself
  // Zeroed once. A kernel leaves zeroed what it needs so, and writes the rest
  // before it reads it.
  size_t workspace_bytes = 0;
};

// One of the launches of a call.
struct CudaLaunch {
  std::string function;
  unsigned grid_x = 1, grid_y = 1, block_x = 1;
  unsigned dynamic_shared_bytes = 0;
  int cluster = 1;
};
// In the order of a call.
std::vector<CudaLaunch> LaunchesOf(const CudaPlan& plan);

// The parameters of one launch, in the kernel's order.
class CudaArguments {
 public:
  template <typename T>
  void Add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto holder = std::make_unique<Holder<T>>(value);
    pointers_.push_back(&holder->value);
    holders_.push_back(std::move(holder));
  }
  void** pointers() { return pointers_.data(); }

  int count() const { return static_cast<int>(pointers_.size()); }
  absl::string_view bytes(int i) const {
    return {static_cast<const char*>(pointers_[i]), holders_[i]->size()};
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual size_t size() const = 0;
  };
  template <typename T>
  struct Holder : Base {
    explicit Holder(const T& v) : value(v) {}
    size_t size() const override { return sizeof(T); }
    T value;
  };
  std::vector<std::unique_ptr<Base>> holders_;
  std::vector<void*> pointers_;
};

class CudaBackend : public BackendFor<CudaDevice> {
 public:
  std::string name() const override { return "cuda"; }
  bool compiles() const override { return true; }

  absl::StatusOr<std::string> Id(const Target& target) const override;
  absl::StatusOr<Recipe> Describe(const CompileRequest& request) const override;
  absl::StatusOr<Artifact> Compile(const Recipe& recipe) const override;
  // InvalidArgument for a config that cannot compute the shape on such a GPU,
  // Unimplemented for data types that no kernel has.
  virtual absl::StatusOr<CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const = 0;

  // `operands` are device addresses in the order of Operator::Operands().
  virtual absl::Status Arguments(const CudaPlan& plan,
                                 const proto::Shape& shape,
                                 const proto::Config& config,
                                 absl::Span<void* const> operands,
                                 void* workspace, const Driver& driver,
                                 CudaArguments* arguments) const = 0;
  // The same for plan.before.
  virtual void ArgumentsBefore(const CudaPlan& plan, const proto::Shape& shape,
                               const proto::Config& config,
                               absl::Span<void* const> operands,
                               void* workspace,
                               CudaArguments* arguments) const {}
  // Returns whether all kernels of the sources await the launches before them
  // (ops/lib/predecessors.cuh).
  bool AwaitsPredecessors() const;
  // The same for number `launch` of LaunchesOf(plan).
  absl::Status ArgumentsOf(int launch, const CudaPlan& plan,
                           const proto::Shape& shape,
                           const proto::Config& config,
                           absl::Span<void* const> operands, void* workspace,
                           const Driver& driver,
                           CudaArguments* arguments) const;

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CudaDevice& device) const final;
};

// Helpers of kernels.

// The value of an integer or boolean knob that the space guarantees.
int64_t Knob(const proto::Config& config, absl::string_view name);
std::string VariantKnob(const proto::Config& config, absl::string_view name);

// The name that kernels give to a data type: the macro ELEMENT.
struct Element {
  int code = 0;  // 0 f32, 1 f16, 2 bf16
  int64_t bytes = 4;
};
// Unimplemented for others.
absl::StatusOr<Element> ElementOf(proto::DataType type);

// Elements per access: 16 bytes' worth, less where `count` is no multiple.
int64_t VectorOf(int64_t count, int64_t element_bytes);

// hw.compute_capability, 90 for 9.0; 0 if unknown.
int64_t ComputeCapability(const proto::Hardware& hardware);

// How the bulk copy engine sees 16-bit elements, in rows of 64 with the
// 128-byte swizzle; what lies beyond reads as zero and is not written.
// InvalidArgument unless the innermost dimension is a multiple of 8 and the
// address of 16.

// A row-major matrix, in boxes of box_rows x 64.
absl::Status EncodeMatrix(const Driver& driver, void* address, int64_t rows,
                          int64_t columns, proto::DataType type,
                          uint32_t box_rows, TensorMap* map);

// `count` matrices one behind another, in boxes of one of them.
absl::Status EncodeMatrices(const Driver& driver, void* address, int64_t count,
                            int64_t rows, int64_t columns, proto::DataType type,
                            uint32_t box_rows, TensorMap* map);

// Images, channels last, and the places in them where a filter begins.
struct Images {
  int64_t n, h, w, c;
  int64_t r, s;  // the filter
  int64_t stride_h, stride_w, padding_h, padding_w;
};
// In boxes of 64 channels of `pixels` such places one after another, by lines
// and images ("im2col"): coordinates {channel, column, row, image} of the first
// place, which is where the filter begins, and an offset within the filter.
absl::Status EncodeImages(const Driver& driver, void* address,
                          const Images& images, proto::DataType type,
                          uint32_t pixels, TensorMap* map);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_BACKEND_H_
