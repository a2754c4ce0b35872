// The CPU kernel of transpose: blocks for the caches, squares in registers
// (ops/lib/transpose-inl.h).

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
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

}  // namespace optrail::ops
#endif  // OPTRAIL_TRANSPOSE_ONCE

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

template <TransposeKnobs::Stores kStores>
void Block(const float* x, int64_t rows, int64_t cols, int64_t ldx, float* y,
           int64_t ldy) {
  constexpr bool kStream = kStores == TransposeKnobs::Stores::kStreaming;
  TransposeBlock<kStream>(x, rows, cols, ldx, y, ldy);
  if (kStream) hwy::FlushStream();
}

BlockTranspose Choose(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, stores) \
  case index:                       \
    return &Block<stores>;
    OPTRAIL_TRANSPOSE_INSTANTIATIONS(OPTRAIL_CASE)
#undef OPTRAIL_CASE
    default:
      return nullptr;
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
    TransposeKnobs cached = knobs;
    cached.stores = TransposeKnobs::Stores::kCached;
    const BlockTranspose unaligned =
        HWY_DYNAMIC_DISPATCH(Choose)(cached.InstantiationIndex());
    // A row of y may start anywhere in a cache line.
    const BlockTranspose block =
        rows % 16 == 0
            ? HWY_DYNAMIC_DISPATCH(Choose)(knobs.InstantiationIndex())
            : unaligned;
    if (block == nullptr || unaligned == nullptr) return NotCompiled();
    const int64_t block_rows = knobs.block_rows;
    const int64_t block_cols = knobs.block_cols;
    const bool down = knobs.order == TransposeKnobs::Order::kDown;
    return MakeInvocation([=, &device](absl::Span<void* const> operands) {
      const auto* x = static_cast<const float*>(operands[0]);
      auto* y = static_cast<float*>(operands[1]);
      const BlockTranspose run = IsAligned(y) ? block : unaligned;
      const int64_t across = CeilDiv(cols, block_cols);
      const int64_t along = CeilDiv(rows, block_rows);
      device.ParallelFor(across * along, [&](int64_t task) {
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
