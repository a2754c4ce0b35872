#ifndef OPTRAIL_OPS_LIB_CUDA_FRAME_H_
#define OPTRAIL_OPS_LIB_CUDA_FRAME_H_

// The CUDA backends of operators share this on the host: small helpers, the
// launch of kernels compiled with elements.cuh, and the backend of
// y[i] = f(x[i]).
//
//   // gelu_cuda.cc
//   class GeluCuda : public ElementwiseCuda {
//    public:
//     GeluCuda() : ElementwiseCuda("gelu_cuda.cu") {}
//   };
//   OPTRAIL_REGISTER_BACKEND("gelu", GeluCuda)
//
// The device's side is elementwise.cuh; its space
// elementwise_cuda.space.textproto.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/device/cuda/backend.h"

namespace optrail::ops {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The variant that a shape names for an attribute, empty where it has the
// default: shapes name no defaults.
inline std::string NamedVariant(const proto::Shape& shape,
                                absl::string_view name) {
  for (const proto::Attribute& attribute : shape.attributes()) {
    if (attribute.name() == name) return attribute.variant();
  }
  return "";
}

// The data types of kernels that multiply on tensor cores, and the macro that
// says which of them it is.
inline std::vector<std::vector<proto::DataType>> HalfTypes() {
  return {{proto::BF16}, {proto::F16}};
}
inline std::string InputOf(const cuda::Element& element) {
  return element.code == 2 ? "INPUT=\"bf16\"" : "INPUT=\"f16\"";
}

// Accesses of elementwise kernels: 16 bytes each; what is behind the last whole
// one is written one element at a time.
inline int64_t ElementwiseVector(int64_t element_bytes) {
  return 16 / element_bytes;
}

// A backend whose kernels are compiled with elements.cuh. They take all
// operands, then numbers, then the workspace if they have one.
class ElementsCuda : public cuda::CudaBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    OPTRAIL_ASSIGN_OR_RETURN(cuda::CudaPlan plan,
                             PlanFor(shape, config, hardware, element.bytes));
    plan.defines.push_back(absl::StrCat("ELEMENT=", element.code));
    return plan;
  }

  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    for (void* operand : operands) arguments->Add(operand);
    AddNumbers(shape, element.bytes, arguments);
    arguments->Add(workspace);
    return absl::OkStatus();
  }

 protected:
  // Does the work of Plan, for kernels that read ELEMENT.
  virtual absl::StatusOr<cuda::CudaPlan> PlanFor(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware, int64_t element_bytes) const = 0;
  virtual void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                          cuda::CudaArguments* arguments) const = 0;
};

class ElementwiseCuda : public ElementsCuda {
 public:
  // `source`: the *.cu file of the macro that defines Apply.
  explicit ElementwiseCuda(std::string source) : source_(std::move(source)) {}

  // Macros that f needs.
  virtual std::vector<std::string> Defines(const proto::Shape& shape) const {
    return {};
  }

 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    const int64_t n = shape.dims(0).value();
    const int64_t vector = ElementwiseVector(element_bytes);
    const int64_t threads = cuda::Knob(config, "threads");
    const int64_t unroll = cuda::Knob(config, "unroll");
    cuda::CudaPlan plan;
    plan.source = source_;
    plan.function = "map";
    plan.defines = Defines(shape);
    for (const std::string& define :
         {absl::StrCat("THREADS=", threads), absl::StrCat("VECTOR=", vector),
          absl::StrCat("TAIL=", n % vector), absl::StrCat("UNROLL=", unroll),
          absl::StrCat("STREAMING=", cuda::Knob(config, "streaming"))}) {
      plan.defines.push_back(define);
    }
    // An element of the tail has a thread of its own.
    plan.grid_x = static_cast<unsigned>(
        CeilDiv(n / vector + n % vector, threads * unroll));
    plan.block_x = static_cast<unsigned>(threads);
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    const int64_t n = shape.dims(0).value();
    arguments->Add<long long>(n / ElementwiseVector(element_bytes));
  }

 private:
  const std::string source_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_CUDA_FRAME_H_
