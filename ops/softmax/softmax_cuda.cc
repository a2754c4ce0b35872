// The CUDA kernel of softmax: what to compile for a config, how to launch it.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

// Of a row, in the registers of a thread; as the space says, and what rounding
// up to whole accesses adds.
constexpr int64_t kMaxElements = 64 + 8;
constexpr int64_t kInFlight = 4;

class SoftmaxCuda : public ElementsCuda {
 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t columns = shape.dims(1).value();
    const int64_t threads_per_row = cuda::Knob(config, "threads_per_row");
    const int64_t rows_per_block = cuda::Knob(config, "rows_per_block");
    const int64_t cluster = cuda::Knob(config, "cluster");
    const int64_t vector = cuda::VectorOf(columns, element_bytes);
    const int64_t items = CeilDiv(columns, threads_per_row * cluster * vector);
    const bool resident = cuda::Knob(config, "resident") != 0;
    if (resident && items * vector > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("a thread would hold ", items * vector,
                       " elements, at most ", kMaxElements));
    }
    cuda::CudaPlan plan;
    plan.source = "softmax_cuda.cu";
    plan.function = "softmax";
    plan.defines = {absl::StrCat("THREADS_PER_ROW=", threads_per_row),
                    absl::StrCat("ROWS_PER_BLOCK=", rows_per_block),
                    absl::StrCat("CLUSTER=", cluster),
                    absl::StrCat("VECTOR=", vector),
                    absl::StrCat("RESIDENT=", resident ? 1 : 0),
                    absl::StrCat("KEEP=", cuda::Knob(config, "keep")),
                    absl::StrCat("PAST_L1=", cuda::Knob(config, "past_l1")),
                    absl::StrCat("STREAMING=", cuda::Knob(config, "streaming")),
                    // Of rows that are read twice, those in flight.
                    absl::StrCat("ITEMS=", resident ? items : kInFlight)};
    plan.cluster = static_cast<int>(cluster);
    plan.grid_x =
        static_cast<unsigned>(CeilDiv(rows, rows_per_block) * cluster);
    plan.block_x = static_cast<unsigned>(threads_per_row * rows_per_block);
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    arguments->Add<long long>(shape.dims(0).value());
    arguments->Add(static_cast<int>(shape.dims(1).value()));
  }
};

OPTRAIL_REGISTER_BACKEND("softmax", SoftmaxCuda)

}  // namespace
}  // namespace optrail::ops
