// The CUDA kernels of sum: what to compile for a config, how to launch it.

#include <algorithm>
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
#include "ops/lib/rows_cuda.h"

namespace optrail::ops {
namespace {

using cuda::CudaPlan;
using cuda::Knob;

// What parts=0 means: so many warps on every multiprocessor keep its memory
// busy, and a part is at least so many accesses of every thread.
constexpr int64_t kWarpsPerMultiprocessor = 32;
constexpr int64_t kLeastAccesses = 4;

// x as the kernels see it.
struct Matrix {
  int64_t rows, columns;
  bool across_rows;
  RowLayout layout;
};
Matrix MatrixOf(const proto::Shape& shape, int64_t element_bytes) {
  Matrix x = {shape.dims(0).value(), shape.dims(1).value(), false, {}};
  const std::string axis = NamedVariant(shape, "axis");
  x.across_rows = axis == "rows";
  if (axis == "all") x = {1, x.rows * x.columns, false, {}};
  x.layout = RowLayoutOf(x.columns, element_bytes);
  // Of a few rows, groups of threads that each have rows which start alike
  // would have none.
  constexpr int64_t kFewRows = 16;
  if (x.across_rows && x.layout.odd && x.rows <= kFewRows) {
    const int64_t vector = cuda::VectorOf(x.columns, element_bytes);
    x.layout = {vector, false, x.columns / vector};
  }
  return x;
}

class SumCuda : public ElementsCuda {
 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    const Matrix x = MatrixOf(shape, element_bytes);
    const int64_t threads = Knob(config, "threads");
    int64_t lanes = Knob(config, "lanes");
    if (lanes == 0) {
      lanes = ThreadsOfRow(x.layout.words, x.rows, hardware.cores(), threads,
                           /*most_accesses=*/4);
    }
    const bool odd_columns = x.across_rows && x.layout.odd;
    // Rows that are so far apart start alike.
    if (odd_columns) lanes = std::min(lanes, threads / x.layout.vector);
    const int64_t groups = threads / lanes;
    // The lengths of a row and of a column of x, in accesses.
    const int64_t vectors = x.layout.words;
    const int64_t length =
        x.across_rows ? CeilDiv(x.rows, groups) : CeilDiv(vectors, lanes);
    const int64_t tiles =
        !x.across_rows ? CeilDiv(x.rows, groups)
        : odd_columns  ? CeilDiv(x.columns, (lanes - 1) * x.layout.vector)
                       : CeilDiv(vectors, lanes);
    int64_t parts = Knob(config, "parts");
    if (parts == 0) {
      const int64_t fill = CeilDiv(
          hardware.cores() * kWarpsPerMultiprocessor * 32, tiles * threads);
      parts = std::max<int64_t>(1, std::min(fill, length / kLeastAccesses));
    }
    parts = std::min(parts, x.across_rows ? x.rows : vectors);
    const bool cluster = Knob(config, "cluster") != 0 && parts > 1;
    CudaPlan plan;
    plan.source = "sum_cuda.cu";
    plan.function = "sum";
    plan.defines = {absl::StrCat("ACROSS_ROWS=", x.across_rows ? 1 : 0),
                    absl::StrCat("THREADS=", threads),
                    absl::StrCat("LANES=", lanes),
                    x.layout.VectorDefine(),
                    x.layout.OddDefine(),
                    absl::StrCat("UNROLL=", Knob(config, "unroll")),
                    absl::StrCat("PARTS=", parts),
                    absl::StrCat("CLUSTER=", cluster ? 1 : 0)};
    plan.cluster = static_cast<int>(cluster ? parts : 1);
    plan.grid_x = static_cast<unsigned>(tiles * parts);
    plan.block_x = static_cast<unsigned>(threads);
    if (parts > 1 && !cluster) {
      const int64_t sums = x.across_rows ? x.columns : x.rows;
      // Counters, in whole pieces of 256 bytes, and parts.
      plan.workspace_bytes =
          static_cast<size_t>(CeilDiv(tiles, 64) * 256 + 4 * parts * sums);
    }
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    const Matrix x = MatrixOf(shape, element_bytes);
    arguments->Add<long long>(x.rows);
    arguments->Add<long long>(x.columns);
  }
};

OPTRAIL_REGISTER_BACKEND("sum", SumCuda)

}  // namespace
}  // namespace optrail::ops
