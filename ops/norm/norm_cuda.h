#ifndef OPTRAIL_OPS_NORM_NORM_CUDA_H_
#define OPTRAIL_OPS_NORM_NORM_CUDA_H_

// The CUDA backends of layer_norm and rms_norm, forward (norm.cuh) and backward
// (norm_backward.cuh).
//
//   class RmsNormCuda : public NormCuda {
//    public:
//     RmsNormCuda() : NormCuda("rms_norm_cuda.cu") {}
//   };
//   OPTRAIL_REGISTER_BACKEND("rms_norm", RmsNormCuda)

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/device/cuda/backend.h"
#include "ops/lib/cuda_frame.h"
#include "ops/lib/rows_cuda.h"

namespace optrail::ops {

// How the threads of a block lie over rows.
struct NormThreads {
  int64_t per_row, groups;
};

// Of the knobs threads and threads_per_row, which as 0 is `by_formula`: then a
// block has more than `threads` where a row takes more.
inline NormThreads NormThreadsOf(const proto::Config& config,
                                 int64_t by_formula) {
  const int64_t threads = cuda::Knob(config, "threads");
  int64_t per_row = cuda::Knob(config, "threads_per_row");
  if (per_row == 0) per_row = by_formula;
  return {per_row, std::max<int64_t>(1, threads / per_row)};
}

// Returns the threads of a row of `words` accesses, which start within words of
// memory where rows are `odd`. A thread has up to four accesses, or two where
// the row is long and no more threads load nothing. Half as many threads take
// wide rows where fewer of them then load nothing: an H200 took 7 to 27% less
// time so for three shapes of 8,746 to 13,888 columns of bfloat16. With seven
// accesses, odd rows of 13,599 columns took 15% more.
inline int64_t NormThreadsByFormula(int64_t words, bool odd, int64_t rows,
                                    int64_t multiprocessors) {
  constexpr int64_t kMostThreads = 1024, kLongRow = 192, kWideRow = 1024;
  constexpr int64_t kMostAligned = 7, kMostOdd = 5;
  const auto with_accesses = [&](int64_t most) {
    return ThreadsOfRow(words, rows, multiprocessors, kMostThreads, most);
  };
  const auto slots = [&](int64_t threads) {
    return threads * CeilDiv(words, threads);
  };
  const int64_t few = with_accesses(4), many = with_accesses(2);
  const int64_t threads =
      words >= kLongRow && slots(many) <= slots(few) ? many : few;
  const int64_t half = few / 2;
  if (words >= kWideRow && 2 * few < words && slots(half) < slots(threads) &&
      CeilDiv(words, half) <= (odd ? kMostOdd : kMostAligned)) {
    return half;
  }
  return threads;
}

class NormCuda : public ElementsCuda {
 public:
  // `source` sets CENTRED and includes norm.cuh.
  explicit NormCuda(std::string source) : source_(std::move(source)) {}

 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    // Of a row in the registers of a thread, as the space says, with what
    // rounding up to whole accesses adds; and how much of a longer one it has
    // in flight.
    constexpr int64_t kMaxElements = 64 + 8;
    constexpr int64_t kInFlight = 4;
    const int64_t rows = shape.dims(0).value();
    const int64_t columns = shape.dims(1).value();
    const int64_t cluster = cuda::Knob(config, "cluster");
    const RowLayout layout = RowLayoutOf(columns, element_bytes);
    const int64_t vectors = layout.words;
    const NormThreads threads = NormThreadsOf(
        config, NormThreadsByFormula(CeilDiv(vectors, cluster), layout.odd,
                                     rows, hardware.cores()));
    const int64_t rows_at_once = cuda::Knob(config, "rows");
    const int64_t items = CeilDiv(vectors, threads.per_row * cluster);
    const bool resident = items * layout.vector <= kMaxElements;
    if (!resident && rows_at_once > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a thread would hold ", items * layout.vector,
                       " elements of a row, at most ", kMaxElements,
                       ", and only one row at a time is read twice"));
    }
    cuda::CudaPlan plan;
    plan.source = source_;
    plan.function = "normalize";
    plan.defines = {
        absl::StrCat("STATISTICS=",
                     NamedVariant(shape, "statistics") == "written" ? 1 : 0),
        absl::StrCat("THREADS_PER_ROW=", threads.per_row),
        absl::StrCat("GROUPS=", threads.groups),
        absl::StrCat("ROWS=", rows_at_once),
        absl::StrCat("CLUSTER=", cluster),
        layout.VectorDefine(),
        layout.OddDefine(),
        absl::StrCat("ITEMS=", resident ? items : kInFlight),
        absl::StrCat("RESIDENT=", resident ? 1 : 0),
        absl::StrCat("EARLY=", cuda::Knob(config, "early")),
        absl::StrCat("STREAMING=", cuda::Knob(config, "streaming"))};
    plan.cluster = static_cast<int>(cluster);
    plan.grid_x = static_cast<unsigned>(
        CeilDiv(rows, threads.groups * rows_at_once) * cluster);
    plan.block_x = static_cast<unsigned>(threads.per_row * threads.groups);
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    arguments->Add<long long>(shape.dims(0).value());
    arguments->Add(static_cast<int>(shape.dims(1).value()));
  }

 private:
  const std::string source_;
};

class NormBackwardCuda : public ElementsCuda {
 public:
  // `source` sets CENTRED, as it is here, and includes norm_backward.cuh.
  NormBackwardCuda(std::string source, bool centred)
      : source_(std::move(source)), results_(centred ? 2 : 1) {}

 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    // By rows: accesses of a row in the registers of a thread. By columns: rows
    // of one access each.
    constexpr int64_t kMaxItems = 4;
    constexpr int64_t kMaxRows = 8;
    const int64_t rows = shape.dims(0).value();
    const int64_t columns = shape.dims(1).value();
    RowLayout layout = RowLayoutOf(columns, element_bytes);
    const int64_t blocks = cuda::Knob(config, "blocks");
    const int64_t resident_blocks = blocks * std::max(1, hardware.cores());
    // From a warp on, two accesses a thread.
    int64_t per_row = 32;
    while (per_row < cuda::Knob(config, "threads") &&
           2 * per_row < layout.words) {
      per_row *= 2;
    }
    NormThreads threads = NormThreadsOf(config, per_row);
    const bool wants_rows = cuda::VariantKnob(config, "method") == "rows";
    // The space counts elements of 16 bits: of wider ones a row takes more.
    while (wants_rows && threads.groups > 1 &&
           CeilDiv(layout.words, threads.per_row) > kMaxItems) {
      threads.per_row *= 2;
      threads.groups /= 2;
    }
    const int64_t block_x = threads.per_row * threads.groups;
    int64_t items = CeilDiv(layout.words, threads.per_row);
    const bool by_rows = wants_rows && items <= kMaxItems &&
                         (!layout.odd || resident_blocks >= layout.vector);
    cuda::CudaPlan plan;
    int64_t at_once = 16;
    int64_t prefetch = cuda::Knob(config, "prefetch");
    bool resident = false;
    if (by_rows) {
      plan.grid_x = static_cast<unsigned>(
          RowBlocks(resident_blocks, rows, threads.groups, layout));
      while (at_once < std::min<int64_t>(block_x, 128) &&
             at_once * plan.grid_x < results_ * columns) {
        at_once *= 2;
      }
      // In shared memory there are as many as fit, and whole words alone.
      const int64_t padded = layout.odd ? (columns + 2 * layout.vector - 2) /
                                              layout.vector * layout.vector
                                        : columns;
      const int64_t row_bytes = 2 * threads.groups * padded * element_bytes;
      const int64_t fit =
          (SharedBytes(hardware) - kSharedForSums) / (blocks * row_bytes) - 1;
      if (prefetch > 1) {
        prefetch = layout.vector * element_bytes == 16
                       ? std::max<int64_t>(1, std::min(prefetch, fit))
                       : 1;
      }
      int64_t shared_bytes =
          threads.groups > 1 ? 4 * threads.groups * columns : 0;
      if (prefetch > 1) {
        shared_bytes = std::max(shared_bytes, (prefetch + 1) * row_bytes);
      }
      plan.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes);
      plan.workspace_bytes =
          static_cast<size_t>(256 + 4 * results_ * columns * plan.grid_x);
    } else {
      // Columns are shared out in accesses that no row begins within. Where
      // rows were asked for but are too long, to a warp each: then there are
      // slices for all multiprocessors.
      if (wants_rows) threads = {32, block_x / 32};
      const int64_t vector = cuda::VectorOf(columns, element_bytes);
      const int64_t vectors = columns / vector;
      layout = {vector, false, vectors};
      plan.grid_x = static_cast<unsigned>(
          std::min(resident_blocks, CeilDiv(vectors, threads.per_row)));
      items = CeilDiv(rows, threads.groups);
      resident = items <= kMaxRows && plan.grid_x * threads.per_row >= vectors;
      if (!resident) items = 1;
      plan.workspace_bytes = static_cast<size_t>(
          256 + 8 * rows * plan.grid_x * threads.per_row / 32);
    }
    plan.source = source_;
    plan.function = "backward";
    plan.defines = {absl::StrCat("BY_ROWS=", by_rows ? 1 : 0),
                    absl::StrCat("RESIDENT=", resident ? 1 : 0),
                    absl::StrCat("THREADS_PER_ROW=", threads.per_row),
                    absl::StrCat("GROUPS=", threads.groups),
                    absl::StrCat("BLOCKS=", blocks),
                    layout.VectorDefine(),
                    layout.OddDefine(),
                    absl::StrCat("ITEMS=", items),
                    absl::StrCat("PREFETCH=", prefetch),
                    absl::StrCat("AT_ONCE=", at_once)};
    plan.block_x = static_cast<unsigned>(block_x);
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    arguments->Add<long long>(shape.dims(0).value());
    arguments->Add(static_cast<int>(shape.dims(1).value()));
  }

 private:
  // A block needs this for sums of a row on their way between warps and blocks.
  static constexpr int64_t kSharedForSums = 16384;

  // Where rows start in the middle of words, those of a group start alike: they
  // are a multiple of `layout.vector` rows apart, or there is one.
  static int64_t RowBlocks(int64_t resident_blocks, int64_t rows,
                           int64_t groups, const RowLayout& layout) {
    const int64_t all = CeilDiv(rows, groups);
    if (all <= resident_blocks || !layout.odd) {
      return std::min(resident_blocks, all);
    }
    const int64_t step = layout.vector / std::gcd(layout.vector, groups);
    return std::max(step, resident_blocks / step * step);
  }

  // Returns the most shared memory of a block; 0: unknown.
  static int64_t SharedBytes(const proto::Hardware& hardware) {
    for (const proto::HardwareAttribute& attribute : hardware.attributes()) {
      if (attribute.name() == "shared_bytes_per_block") return attribute.int_();
    }
    return 0;
  }

  const std::string source_;
  const int64_t results_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_NORM_NORM_CUDA_H_
