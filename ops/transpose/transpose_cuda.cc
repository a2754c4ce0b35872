// The CUDA kernel of transpose: what to compile for a config, how to launch it.

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

// Words of a column and accesses of a row in the smallest tile.
constexpr int64_t kWords = 8;
constexpr int64_t kAccesses = 2;

class TransposeCuda : public ElementsCuda {
 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t columns = shape.dims(1).value();
    const int64_t vector = 16 / element_bytes;
    const int64_t words = kWords * Knob(config, "tall");
    const int64_t tile_rows = words * 4 / element_bytes;
    const int64_t tile_columns = kAccesses * Knob(config, "wide") * vector;
    const int64_t threads = Knob(config, "threads");
    CudaPlan plan;
    plan.source = "transpose_cuda.cu";
    plan.function = "transpose";
    plan.defines = {absl::StrCat("TILE_ROWS=", tile_rows),
                    absl::StrCat("TILE_COLUMNS=", tile_columns),
                    absl::StrCat("THREADS=", threads),
                    absl::StrCat("ALIGNED_X=", columns % vector == 0 ? 1 : 0),
                    absl::StrCat("ALIGNED_Y=", rows % vector == 0 ? 1 : 0),
                    absl::StrCat("ROWS_FIRST=", Knob(config, "rows_first")),
                    absl::StrCat("STREAMING=", Knob(config, "streaming"))};
    plan.grid_x = static_cast<unsigned>(CeilDiv(rows, tile_rows) *
                                        CeilDiv(columns, tile_columns));
    plan.block_x = static_cast<unsigned>(threads);
    plan.dynamic_shared_bytes = static_cast<unsigned>(4 * words * tile_columns);
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    for (const proto::Dim& dim : shape.dims()) {
      arguments->Add<long long>(dim.value());
    }
  }
};

OPTRAIL_REGISTER_BACKEND("transpose", TransposeCuda)

}  // namespace
}  // namespace optrail::ops
