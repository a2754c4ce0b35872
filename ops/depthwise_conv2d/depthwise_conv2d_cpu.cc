// The CPU kernel of depthwise_conv2d: sums of some vectors of channels stay in
// registers while the filter passes by.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/depthwise_conv2d/depthwise_conv2d_knobs.h"
#include "ops/depthwise_conv2d/depthwise_size.h"
#include "ops/lib/cpu_frame.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/depthwise_conv2d/depthwise_conv2d_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

#ifndef OPTRAIL_DEPTHWISE_CONV2D_ONCE
#define OPTRAIL_DEPTHWISE_CONV2D_ONCE
namespace optrail::ops {

// One line of output pixels; x is its image.
using DepthwiseLine = void (*)(const DepthwiseSize& s, const float* x,
                               const float* weights, int64_t p, float* y);

}  // namespace optrail::ops
#endif  // OPTRAIL_DEPTHWISE_CONV2D_ONCE

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

// The taps that padding multiplies by 0 matter where a weight is not finite.
HWY_INLINE V TapOf(const V x, bool inside) {
  return inside ? x : hn::Zero(D());
}

// kVectors vectors of channels, the last of `lanes_left` lanes; 0: whole.
template <int kVectors>
HWY_INLINE void Pixel(const DepthwiseSize& s, const float* x,
                      const float* weights, int64_t p, int64_t q,
                      int64_t lanes_left, float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const auto load = [&](const float* from) HWY_ATTR {
    return lanes_left == 0 ? hn::LoadU(d, from)
                           : LoadFirst(from, lanes_left, hn::Zero(d));
  };
  V sum[kVectors];
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int64_t i = 0; i < s.r; ++i) {
    const int64_t row = p * s.stride + i - s.padding;
    for (int64_t j = 0; j < s.s; ++j) {
      const int64_t col = q * s.stride + j - s.padding;
      const bool inside = row >= 0 && row < s.h && col >= 0 && col < s.w;
      const float* const in = inside ? x + (row * s.w + col) * s.c : x;
      const float* const filter = weights + (i * s.s + j) * s.c;
      OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::MulAdd(TapOf(load(in + v * lanes), inside),
                            load(filter + v * lanes), sum[v]);
      }
    }
  }
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
    if (lanes_left == 0) {
      hn::StoreU(sum[v], d, y + v * lanes);
    } else {
      StoreFirst(sum[v], lanes_left, y + v * lanes);
    }
  }
}

template <int kVectors>
void Line(const DepthwiseSize& s, const float* x, const float* weights,
          int64_t p, float* y) {
  const int64_t lanes = hn::Lanes(D());
  for (int64_t q = 0; q < s.q; ++q) {
    float* const out = y + q * s.c;
    int64_t c = 0;
    for (; c + kVectors * lanes <= s.c; c += kVectors * lanes) {
      Pixel<kVectors>(s, x + c, weights + c, p, q, 0, out + c);
    }
    for (; c + lanes <= s.c; c += lanes) {
      Pixel<1>(s, x + c, weights + c, p, q, 0, out + c);
    }
    if (c < s.c) Pixel<1>(s, x + c, weights + c, p, q, s.c - c, out + c);
  }
}

DepthwiseLine Choose(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, vectors) \
  case index:                        \
    return &Line<vectors>;
    OPTRAIL_DEPTHWISE_CONV2D_INSTANTIATIONS(OPTRAIL_CASE)
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

class DepthwiseConv2dCpu : public KnobKernel<DepthwiseConv2dKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const DepthwiseConv2dKnobs& knobs,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const DepthwiseSize s, DepthwiseSizeOf(shape));
    const DepthwiseLine line =
        HWY_DYNAMIC_DISPATCH(Choose)(knobs.InstantiationIndex());
    if (line == nullptr) return NotCompiled();
    const int64_t block = knobs.lines_per_task;
    return MakeInvocation([=](const Call& call) {
      const auto* x = static_cast<const float*>(call.operands[0]);
      const auto* weights = static_cast<const float*>(call.operands[1]);
      auto* y = static_cast<float*>(call.operands[2]);
      ForBlocks(call, s.n * s.p, block, [&](int64_t begin, int64_t count) {
        for (int64_t l = begin; l < begin + count; ++l) {
          line(s, x + l / s.p * s.h * s.w * s.c, weights, l % s.p,
               y + l * s.q * s.c);
        }
      });
    });
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const DepthwiseConv2dKnobs& knobs) const override {
    return {{"h", knobs.lines_per_task}, {"c", 16 * knobs.vectors}, {"c", 16}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("depthwise_conv2d", DepthwiseConv2dCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
