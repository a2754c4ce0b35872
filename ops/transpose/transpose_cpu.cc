// The CPU kernel of transpose: blocks for the caches, squares in registers
// (ops/lib/transpose-inl.h). What a block gives to a row of y may be put
// together first, and is written from there: where rows of y begin in the
// middle of a line, so that whole lines are written but for the first and the
// last; where they lie a multiple of pages apart, so that runs of lines are,
// since squares of such a matrix push one another out of L1, where all their
// lines fall into one set.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/lib/cpu_frame.h"
#include "ops/transpose/transpose_knobs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/transpose/transpose_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/transpose-inl.h"

#ifndef OPTRAIL_TRANSPOSE_ONCE
#define OPTRAIL_TRANSPOSE_ONCE
namespace optrail::ops {

using BlockTranspose = void (*)(const float* x, int64_t rows, int64_t cols,
                                int64_t ldx, float* y, int64_t ldy);

struct BlockTransposes {
  BlockTranspose aligned = nullptr;  // every row of y, to 64 bytes
  BlockTranspose unaligned = nullptr;
};

// Rows of a block, as the space has it.
constexpr int64_t MostBlockRows(TransposeKnobs::Stores stores) {
  return stores == TransposeKnobs::Stores::kRuns ? 128 : 512;
}

}  // namespace optrail::ops
#endif  // OPTRAIL_TRANSPOSE_ONCE

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

template <bool kStream>
void AlignedBlock(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                  float* y, int64_t ldy) {
  TransposeBlock<kStream>(x, rows, cols, ldx, y, ldy);
  if (kStream) hwy::FlushStream();
}

// y[i] = x[i], in whole vectors of y but for the first and the last.
template <bool kStream>
HWY_INLINE void CopyToLines(const float* x, int64_t count, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto beyond = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) /
                                           sizeof(float) % hn::Lanes(d));
  int64_t i = beyond == 0 ? 0 : std::min(lanes - beyond, count);
  if (i > 0) StoreFirst(LoadFirst(x, i, hn::Zero(d)), i, y);
  for (; i + lanes <= count; i += lanes) {
    const V v = hn::LoadU(d, x + i);
    if (kStream) {
      hn::Stream(v, d, y + i);
    } else {
      hn::Store(v, d, y + i);
    }
  }
  if (i < count) {
    StoreFirst(LoadFirst(x + i, count - i, hn::Zero(d)), count - i, y + i);
  }
}

template <TransposeKnobs::Stores kStores>
void BlockByRuns(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                 float* y, int64_t ldy) {
  // So few rows hardly fill a whole cache line.
  if (rows < 4 * kSquare) {
    return TransposeBlock<false>(x, rows, cols, ldx, y, ldy);
  }
  constexpr bool kStream = kStores == TransposeKnobs::Stores::kStreaming;
  // Runs are read, too. All of it stays in an L1 of 48 KiB.
  constexpr int64_t kCols =
      kStores == TransposeKnobs::Stores::kRuns ? 64 : kSquare;
  // A line more than the rows need, so that they fall into different sets.
  constexpr int64_t kStride = MostBlockRows(kStores) + 16;
  HWY_ALIGN float strip[kCols * kStride];
  for (int64_t c = 0; c < cols; c += kCols) {
    const int64_t count = std::min<int64_t>(kCols, cols - c);
    for (int64_t r = 0; r < rows; r += kSquare) {
      TransposeBlock<false>(x + r * ldx + c,
                            std::min<int64_t>(kSquare, rows - r), count, ldx,
                            strip + r, kStride);
    }
    for (int64_t i = 0; i < count; ++i) {
      CopyToLines<kStream>(strip + i * kStride, rows, y + (c + i) * ldy);
    }
  }
  if (kStream) hwy::FlushStream();
}

template <TransposeKnobs::Stores kStores>
BlockTransposes BlocksFor() {
  constexpr bool kStream = kStores == TransposeKnobs::Stores::kStreaming;
  return {kStores == TransposeKnobs::Stores::kRuns ? &BlockByRuns<kStores>
                                                   : &AlignedBlock<kStream>,
          &BlockByRuns<kStores>};
}

BlockTransposes Choose(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, stores) \
  case index:                       \
    return BlocksFor<stores>();
    OPTRAIL_TRANSPOSE_INSTANTIATIONS(OPTRAIL_CASE)
#undef OPTRAIL_CASE
    default:
      return {};
  }
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace optrail::ops {
namespace {

HWY_EXPORT(Choose);

class TransposeCpu : public KnobKernel<TransposeKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const TransposeKnobs& knobs,
      CpuDevice& device) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const BlockTransposes blocks =
        HWY_DYNAMIC_DISPATCH(Choose)(knobs.InstantiationIndex());
    if (blocks.aligned == nullptr) return NotCompiled();
    if (const int64_t most = MostBlockRows(knobs.stores);
        knobs.block_rows > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("at most ", most, " rows of x in a task"));
    }
    const int64_t block_rows = knobs.block_rows;
    const int64_t block_cols = knobs.block_cols;
    const bool down = knobs.order == TransposeKnobs::Order::kDown;
    return MakeInvocation([=](const Call& call) {
      const auto* x = static_cast<const float*>(call.operands[0]);
      auto* y = static_cast<float*>(call.operands[1]);
      // A row of y may start anywhere in a cache line.
      const BlockTranspose run =
          rows % 16 == 0 && IsAligned(y) ? blocks.aligned : blocks.unaligned;
      const int64_t across = CeilDiv(cols, block_cols);
      const int64_t along = CeilDiv(rows, block_rows);
      call.ParallelFor(across * along, [&](int64_t task) {
        const int64_t r = (down ? task % along : task / across) * block_rows;
        const int64_t c = (down ? task / along : task % across) * block_cols;
        run(x + r * cols + c, std::min(block_rows, rows - r),
            std::min(block_cols, cols - c), cols, y + c * rows + r, rows);
      });
    });
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const TransposeKnobs& knobs) const override {
    return {{"rows", knobs.block_rows},
            {"cols", knobs.block_cols},
            {"rows", 16},
            {"cols", 16}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("transpose", TransposeCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
