// The CUDA kernel of add: what to compile for a config, how to launch it.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

class AddCuda : public ElementsCuda {
 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    const int64_t n = shape.dims(0).value();
    const int64_t threads = cuda::Knob(config, "threads");
    const int64_t unroll = cuda::Knob(config, "unroll");
    const std::string loads = cuda::VariantKnob(config, "loads");
    const int64_t vector = ElementwiseVector(element_bytes);
    cuda::CudaPlan plan;
    plan.source = "add_cuda.cu";
    plan.function = "add";
    plan.defines = {absl::StrCat("THREADS=", threads),
                    absl::StrCat("VECTOR=", vector),
                    absl::StrCat("TAIL=", n % vector),
                    absl::StrCat("UNROLL=", unroll),
                    absl::StrCat("STREAMING=", cuda::Knob(config, "streaming")),
                    absl::StrCat("LOADS=", loads == "evict_first" ? 3
                                           : loads == "ahead"     ? 2
                                           : loads == "past_l1"   ? 1
                                                                  : 0)};
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
};

OPTRAIL_REGISTER_BACKEND("add", AddCuda)

}  // namespace
}  // namespace optrail::ops
