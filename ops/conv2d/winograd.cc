#include "ops/conv2d/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/conv2d/winograd.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

constexpr int kSide = WinogradTransforms::kSide;
constexpr int kOutputs = WinogradTransforms::kOutputs;
constexpr int kPoints = WinogradTransforms::kPoints;

// Along one dimension; twice, they make those of a tile. The matrices are those
// of the paper.
HWY_INLINE void InputLine(const V* d, V* to) {
  to[0] = hn::Sub(d[0], d[2]);
  to[1] = hn::Add(d[1], d[2]);
  to[2] = hn::Sub(d[2], d[1]);
  to[3] = hn::Sub(d[1], d[3]);
}

HWY_INLINE void FilterLine(const V* g, V* to) {
  const V half = hn::Set(D(), 0.5f);
  const V outer = hn::Mul(hn::Add(g[0], g[2]), half);
  const V inner = hn::Mul(g[1], half);
  to[0] = g[0];
  to[1] = hn::Add(outer, inner);
  to[2] = hn::Sub(outer, inner);
  to[3] = g[2];
}

HWY_INLINE void OutputLine(const V* m, V* to) {
  to[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
  to[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
}

// from[kFrom][kFrom] to to[kTo][kTo], `line` being what a line becomes.
template <int kFrom, int kTo, class Transform>
HWY_INLINE void Twice(const V (&from)[kFrom][kFrom], V (&to)[kTo][kTo],
                      const Transform& line) {
  V half[kFrom][kTo];  // lines transformed
  OPTRAIL_UNROLL for (int i = 0; i < kFrom; ++i) line(from[i], half[i]);
  OPTRAIL_UNROLL for (int j = 0; j < kTo; ++j) {
    V column[kFrom], transformed[kTo];
    OPTRAIL_UNROLL for (int i = 0; i < kFrom; ++i) column[i] = half[i][j];
    line(column, transformed);
    OPTRAIL_UNROLL for (int i = 0; i < kTo; ++i) to[i][j] = transformed[i];
  }
}

HWY_INLINE V Load(const float* from, int64_t left) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  return left >= lanes ? hn::LoadU(d, from)
                       : LoadFirst(from, left, hn::Zero(d));
}

HWY_INLINE void Store(V v, int64_t left, float* to) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  if (left >= lanes) {
    hn::StoreU(v, d, to);
  } else {
    StoreFirst(v, left, to);
  }
}

void TransformFilters(const float* weights, int64_t count, int64_t begin,
                      int64_t end, float* u) {
  const int64_t lanes = hn::Lanes(D());
  for (int64_t at = begin; at < end; at += lanes) {
    V from[3][3], to[kSide][kSide];
    OPTRAIL_UNROLL for (int e = 0; e < 9; ++e) {
      from[e / 3][e % 3] = Load(weights + e * count + at, end - at);
    }
    Twice(from, to,
          [](const V* g, V* t) OPTRAIL_INLINE_LAMBDA { FilterLine(g, t); });
    OPTRAIL_UNROLL for (int e = 0; e < kPoints; ++e) {
      Store(to[e / kSide][e % kSide], end - at, u + e * count + at);
    }
  }
}

void TransformInput(const float* const* pixels, int64_t c, int64_t step,
                    float* v) {
  const int64_t lanes = hn::Lanes(D());
  for (int64_t at = 0; at < c; at += lanes) {
    V from[kSide][kSide], to[kSide][kSide];
    OPTRAIL_UNROLL for (int e = 0; e < kPoints; ++e) {
      from[e / kSide][e % kSide] = Load(pixels[e] + at, c - at);
    }
    Twice(from, to,
          [](const V* d, V* t) OPTRAIL_INLINE_LAMBDA { InputLine(d, t); });
    OPTRAIL_UNROLL for (int e = 0; e < kPoints; ++e) {
      Store(to[e / kSide][e % kSide], c - at, v + e * step + at);
    }
  }
}

void TransformOutput(const float* products, int64_t step, int64_t k,
                     float* const* outputs) {
  const int64_t lanes = hn::Lanes(D());
  for (int64_t at = 0; at < k; at += lanes) {
    V from[kSide][kSide], to[kOutputs][kOutputs];
    OPTRAIL_UNROLL for (int e = 0; e < kPoints; ++e) {
      from[e / kSide][e % kSide] = Load(products + e * step + at, k - at);
    }
    Twice(from, to,
          [](const V* m, V* t) OPTRAIL_INLINE_LAMBDA { OutputLine(m, t); });
    OPTRAIL_UNROLL for (int e = 0; e < kOutputs * kOutputs; ++e) {
      Store(to[e / kOutputs][e % kOutputs], k - at, outputs[e] + at);
    }
  }
}

WinogradTransforms ForTarget() {
  return {&TransformFilters, &TransformInput, &TransformOutput};
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {

HWY_EXPORT(ForTarget);

const WinogradTransforms& FindWinograd() {
  static const WinogradTransforms transforms =
      HWY_DYNAMIC_DISPATCH(ForTarget)();
  return transforms;
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
