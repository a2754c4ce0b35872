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

// Returns whether a matrix is transposed without tiles. On an H200 64 x 64
// takes 1.36 us so, where tiles take 1.9, 37 x 9101 2.9 in place of 3.3, and
// 513 x 1280 4.9 in place of 3.9.
bool IsDirect(int64_t rows, int64_t columns, bool odd) {
  constexpr int64_t kFewRows = 32;
  const int64_t most = !odd ? 32768 : rows <= kFewRows ? 1 << 20 : 1 << 19;
  return rows * columns <= most;
}

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
    // Rows of x, and of y, that start in the middle of an access.
    const bool odd_x = columns % vector != 0, odd_y = rows % vector != 0;
    // Then a tile has one fewer of them.
    const int64_t in_tile = tile_columns - (odd_x ? vector : 0);
    CudaPlan plan;
    plan.source = "transpose_cuda.cu";
    plan.function = "transpose";
    plan.block_x = static_cast<unsigned>(threads);
    if (IsDirect(rows, columns, odd_x || odd_y)) {
      plan.defines = {"DIRECT=1", absl::StrCat("THREADS=", threads),
                      absl::StrCat("STREAMING=", Knob(config, "streaming"))};
      plan.grid_x =
          static_cast<unsigned>(CeilDiv(rows * columns, threads * vector));
      return plan;
    }
    plan.defines = {"DIRECT=0",
                    absl::StrCat("TILE_ROWS=", tile_rows),
                    absl::StrCat("TILE_COLUMNS=", tile_columns),
                    absl::StrCat("THREADS=", threads),
                    absl::StrCat("ODD_X=", odd_x ? 1 : 0),
                    absl::StrCat("ODD_Y=", odd_y ? 1 : 0),
                    absl::StrCat("FLAT=", odd_y && rows <= tile_rows ? 1 : 0),
                    absl::StrCat("ROWS_FIRST=", Knob(config, "rows_first")),
                    absl::StrCat("STREAMING=", Knob(config, "streaming"))};
    plan.grid_x = static_cast<unsigned>(CeilDiv(rows, tile_rows) *
                                        CeilDiv(columns, in_tile));
    // Single elements, a column longer by 5 for the banks (transpose_cuda.cu),
    // or whole words.
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        odd_x || odd_y
            ? (tile_columns + vector) * (tile_rows + 5) * element_bytes
            : 4 * words * tile_columns);
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
