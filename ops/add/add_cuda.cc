// The CUDA kernel of add: what to compile for a config, how to launch it.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/backend.h"

namespace optrail::ops {
namespace {

class AddCuda : public cuda::CudaBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    const int64_t threads = cuda::Knob(config, "threads");
    const int64_t unroll = cuda::Knob(config, "unroll");
    const std::string loads = cuda::VariantKnob(config, "loads");
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    const int64_t vector = cuda::VectorOf(shape.dims(0).value(), element.bytes);
    const int64_t per_block = threads * unroll;
    cuda::CudaPlan plan;
    plan.source = "add_cuda.cu";
    plan.function = "add";
    plan.defines = {absl::StrCat("ELEMENT=", element.code),
                    absl::StrCat("THREADS=", threads),
                    absl::StrCat("VECTOR=", vector),
                    absl::StrCat("UNROLL=", unroll),
                    absl::StrCat("STREAMING=", cuda::Knob(config, "streaming")),
                    absl::StrCat("LOADS=", loads == "evict_first" ? 3
                                           : loads == "ahead"     ? 2
                                           : loads == "past_l1"   ? 1
                                                                  : 0)};
    const int64_t vectors = shape.dims(0).value() / vector;
    plan.grid_x = static_cast<unsigned>((vectors + per_block - 1) / per_block);
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
    for (void* operand : operands) arguments->Add(operand);
    arguments->Add<long long>(
        shape.dims(0).value() /
        cuda::VectorOf(shape.dims(0).value(), element.bytes));
    return absl::OkStatus();
  }
};

OPTRAIL_REGISTER_BACKEND("add", AddCuda)

}  // namespace
}  // namespace optrail::ops
