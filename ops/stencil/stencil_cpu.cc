// The CPU kernel of stencil: a task takes some rows of the result through all
// steps while they are in its caches, and computes what they share with their
// neighbours' twice.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/lib/cpu_frame.h"
#include "ops/stencil/stencil_knobs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/stencil/stencil_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

#ifndef OPTRAIL_STENCIL_ONCE
#define OPTRAIL_STENCIL_ONCE
namespace optrail::ops {

// A step: `cols` values of y from three rows of x, each `stride` further.
using StencilRow = void (*)(const float* x, int64_t stride,
                            const float* weights, int64_t cols, float* y);

}  // namespace optrail::ops
#endif  // OPTRAIL_STENCIL_ONCE

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

// kVectors vectors, the last of `lanes_left` lanes; 0: whole.
template <int kVectors>
HWY_INLINE void Piece(const float* x, int64_t stride, const V* weights,
                      int64_t lanes_left, float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V sum[kVectors];
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  OPTRAIL_UNROLL for (int tap = 0; tap < 9; ++tap) {
    const float* const from = x + tap / 3 * stride + tap % 3;
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      const V value = lanes_left == 0
                          ? hn::LoadU(d, from + v * lanes)
                          : LoadFirst(from, lanes_left, hn::Zero(d));
      sum[v] = hn::MulAdd(weights[tap], value, sum[v]);
    }
  }
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
    if (lanes_left == 0) {
      hn::StoreU(sum[v], d, y + v * lanes);
    } else {
      StoreFirst(sum[v], lanes_left, y);
    }
  }
}

template <int kVectors>
void Row(const float* x, int64_t stride, const float* weights, int64_t cols,
         float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V taps[9];
  OPTRAIL_UNROLL for (int tap = 0; tap < 9; ++tap) {
    taps[tap] = hn::Set(d, weights[tap]);
  }
  int64_t j = 0;
  for (; j + kVectors * lanes <= cols; j += kVectors * lanes) {
    Piece<kVectors>(x + j, stride, taps, 0, y + j);
  }
  for (; j + lanes <= cols; j += lanes) {
    Piece<1>(x + j, stride, taps, 0, y + j);
  }
  if (j < cols) Piece<1>(x + j, stride, taps, cols - j, y + j);
}

StencilRow Choose(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, vectors) \
  case index:                        \
    return &Row<vectors>;
    OPTRAIL_STENCIL_INSTANTIATIONS(OPTRAIL_CASE)
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

class StencilCpu : public KnobKernel<StencilKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const StencilKnobs& knobs,
      CpuDevice& device) const override {
    int64_t steps = 2;
    for (const proto::Attribute& attribute : shape.attributes()) {
      if (attribute.name() == "steps") steps = attribute.int_();
    }
    const StencilRow row =
        HWY_DYNAMIC_DISPATCH(Choose)(knobs.InstantiationIndex());
    if (row == nullptr) return NotCompiled();
    const int64_t w = shape.dims(1).value();
    const int64_t rows = shape.dims(0).value() - 2 * steps;
    const int64_t block = std::min(knobs.rows_per_task, rows);
    // Two steps' rows, which take turns.
    const int64_t half = (block + 2 * (steps - 1)) * w;
    WorkspaceLayout layout;
    const Workspaces workspaces(layout, device.threads(), 2 * half);
    return MakeInvocation(layout, [=](const Call& call) {
      Workspaces::Shared shared(workspaces, call);
      const auto* x = static_cast<const float*>(call.operands[0]);
      const auto* weights = static_cast<const float*>(call.operands[1]);
      auto* y = static_cast<float*>(call.operands[2]);
      ForBlocks(call, rows, block, [&](int64_t begin, int64_t count) {
        const Workspaces::Lease lease(shared);
        const float* from = x + begin * w;
        for (int64_t t = 1; t <= steps; ++t) {
          const int64_t cols = w - 2 * t;
          float* const to =
              t == steps ? y + begin * cols : lease.data() + (t % 2) * half;
          for (int64_t i = 0; i < count + 2 * (steps - t); ++i) {
            row(from + i * (cols + 2), cols + 2, weights, cols, to + i * cols);
          }
          from = to;
        }
      });
    });
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const StencilKnobs& knobs) const override {
    return {{"h", knobs.rows_per_task}, {"w", 16 * knobs.vectors}, {"w", 16}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("stencil", StencilCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
