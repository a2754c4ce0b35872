// The CUDA kernel of embedding_bag: what to compile for a config, how to launch
// it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/backend.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

using cuda::CudaPlan;
using cuda::Knob;

class EmbeddingBagCuda : public ElementsCuda {
 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    const int64_t columns = shape.dims(1).value();
    const int64_t bags = shape.dims(2).value();
    const int64_t threads = Knob(config, "threads");
    const int64_t lanes = Knob(config, "lanes");
    const int64_t parts = Knob(config, "parts");
    const int64_t vector = cuda::VectorOf(columns, element_bytes);
    const int64_t items = CeilDiv(columns / vector, lanes);
    CudaPlan plan;
    plan.source = "embedding_bag_cuda.cu";
    plan.function = "embedding_bag";
    plan.defines = {absl::StrCat("THREADS=", threads),
                    absl::StrCat("LANES=", lanes),
                    absl::StrCat("PARTS=", parts),
                    absl::StrCat("VECTOR=", vector),
                    absl::StrCat("ITEMS=", items),
                    absl::StrCat("UNROLL=", Knob(config, "unroll"))};
    plan.grid_x =
        static_cast<unsigned>(CeilDiv(bags, threads / (lanes * parts)));
    plan.block_x = static_cast<unsigned>(threads);
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    const int64_t columns = shape.dims(1).value();
    arguments->Add<long long>(shape.dims(2).value());
    arguments->Add(static_cast<int>(shape.dims(3).value()));
    arguments->Add(
        static_cast<int>(columns / cuda::VectorOf(columns, element_bytes)));
  }
};

OPTRAIL_REGISTER_BACKEND("embedding_bag", EmbeddingBagCuda)

}  // namespace
}  // namespace optrail::ops
