#include "ops/lib/blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/lib/blocks.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"
#include "ops/lib/transpose-inl.h"
#include "ops/lib/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

void TransposeForTarget(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                        float* y, int64_t ldy) {
  TransposeBlock<false>(x, rows, cols, ldx, y, ldy);
}

template <class F>
void ForEachRow(const Epilogue& epilogue, float* c, int64_t rows, int64_t cols,
                int64_t ldc, const F& activate) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = c + r * ldc;
    for (int64_t j = 0; j < cols; j += lanes) {
      const int64_t left = cols - j;
      auto load = [&](const float* from) OPTRAIL_INLINE_LAMBDA {
        return left >= lanes ? hn::LoadU(d, from)
                             : LoadFirst(from, left, hn::Zero(d));
      };
      V v = load(row + j);
      if (epilogue.scale != nullptr) v = hn::Mul(v, load(epilogue.scale + j));
      if (epilogue.shift != nullptr) v = hn::Add(v, load(epilogue.shift + j));
      v = activate(v);
      if (left >= lanes) {
        hn::StoreU(v, d, row + j);
      } else {
        StoreFirst(v, left, row + j);
      }
    }
  }
}

void EpilogueForTarget(const Epilogue& epilogue, float* c, int64_t rows,
                       int64_t cols, int64_t ldc) {
  switch (epilogue.activation) {
    case Activation::kNone:
      if (epilogue.scale == nullptr && epilogue.shift == nullptr) return;
      return ForEachRow(epilogue, c, rows, cols, ldc,
                        [](V v) OPTRAIL_INLINE_LAMBDA { return v; });
    case Activation::kRelu:
      return ForEachRow(
          epilogue, c, rows, cols, ldc, [](V v) OPTRAIL_INLINE_LAMBDA {
            return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(D())), v);
          });
    case Activation::kGelu:
      return ForEachRow(epilogue, c, rows, cols, ldc,
                        [](V v) OPTRAIL_INLINE_LAMBDA {
                          return hn::Mul(v, NormalCdf(D(), v));
                        });
  }
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {
namespace {
HWY_EXPORT(TransposeForTarget);
HWY_EXPORT(EpilogueForTarget);
}  // namespace

void TransposeInto(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                   float* y, int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(TransposeForTarget)(x, rows, cols, ldx, y, ldy);
}

void ScaleShiftActivate(const Epilogue& epilogue, float* c, int64_t rows,
                        int64_t cols, int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(EpilogueForTarget)(epilogue, c, rows, cols, ldc);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
