#ifndef OPTRAIL_OPS_LIB_CUDA_FRAME_H_
#define OPTRAIL_OPS_LIB_CUDA_FRAME_H_

// What the CUDA backends of operators share on the host: small helpers, and the
// backend of y[i] = f(x[i]).
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

// The data types of kernels that are compiled with elements.cuh.
inline std::vector<std::vector<proto::DataType>> ElementTypes() {
  return {{proto::F32}, {proto::F16}, {proto::BF16}};
}

// The variant that a shape names for an attribute, empty where it has the
// default: shapes name no defaults.
inline std::string NamedVariant(const proto::Shape& shape,
                                absl::string_view name) {
  for (const proto::Attribute& attribute : shape.attributes()) {
    if (attribute.name() == name) return attribute.variant();
  }
  return "";
}

class ElementwiseCuda : public cuda::CudaBackend {
 public:
  // `source`: the *.cu file of the macro that defines Apply.
  explicit ElementwiseCuda(std::string source) : source_(std::move(source)) {}

  // Macros that f needs.
  virtual std::vector<std::string> Defines(const proto::Shape& shape) const {
    return {};
  }

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return ElementTypes();
  }

  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    const int64_t n = shape.dims(0).value();
    const int64_t vector = cuda::VectorOf(n, element.bytes);
    const int64_t threads = cuda::Knob(config, "threads");
    const int64_t unroll = cuda::Knob(config, "unroll");
    cuda::CudaPlan plan;
    plan.source = source_;
    plan.function = "map";
    plan.defines = Defines(shape);
    for (const std::string& define :
         {absl::StrCat("ELEMENT=", element.code),
          absl::StrCat("THREADS=", threads), absl::StrCat("VECTOR=", vector),
          absl::StrCat("UNROLL=", unroll),
          absl::StrCat("STREAMING=", cuda::Knob(config, "streaming"))}) {
      plan.defines.push_back(define);
    }
    plan.grid_x = static_cast<unsigned>(CeilDiv(n / vector, threads * unroll));
    plan.block_x = static_cast<unsigned>(threads);
    return plan;
  }

  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    const int64_t n = shape.dims(0).value();
    for (void* operand : operands) arguments->Add(operand);
    arguments->Add<long long>(n / cuda::VectorOf(n, element.bytes));
    return absl::OkStatus();
  }

 private:
  const std::string source_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_CUDA_FRAME_H_
