#include "ops/lib/blocks.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/lib/blocks.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/gelu-inl.h"
#include "ops/lib/simd-inl.h"
#include "ops/lib/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

void TransposeForTarget(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                        float* y, int64_t ldy, bool pad) {
  TransposeBlock<false>(x, rows, cols, ldx, y, ldy, pad);
}

// Row by row: what lies together is read together.
void CopyPanelsForTarget(const float* x, int64_t rows, int64_t panels,
                         int64_t width, int64_t ldx, float* y, int64_t ldy,
                         int64_t step) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t whole = width / lanes * lanes;
  const M rest = hn::FirstN(d, static_cast<size_t>(width - whole));
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * ldx;
    float* to = y + r * ldy;
    for (int64_t i = 0; i < panels; ++i, from += width, to += step) {
      for (int64_t c = 0; c < whole; c += lanes) {
        hn::StoreU(hn::LoadU(d, from + c), d, to + c);
      }
      if (whole < width) {
        hn::BlendedStore(hn::MaskedLoad(rest, d, from + whole), rest, d,
                         to + whole);
      }
    }
  }
}

void WidenForTarget(const uint16_t* x, int64_t rows, int64_t cols, int64_t ldx,
                    float* y, int64_t ldy) {
  const D d;
  const hn::RebindToUnsigned<D> d32;
  const hn::Rebind<uint16_t, D> d16;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t r = 0; r < rows; ++r) {
    const uint16_t* const from = x + r * ldx;
    float* const to = y + r * ldy;
    int64_t c = 0;
    for (; c + lanes <= cols; c += lanes) {
      const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, from + c));
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(bits)), d, to + c);
    }
    for (; c < cols; ++c) {
      const uint32_t bits = uint32_t{from[c]} << 16;
      std::memcpy(to + c, &bits, sizeof(bits));
    }
  }
}

void RoundForTarget(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                    uint16_t* y, int64_t ldy) {
  const D d;
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> i32;
  const hn::Rebind<uint16_t, D> d16;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t r = 0; r < rows; ++r) {
    const float* const from = x + r * ldx;
    uint16_t* const to = y + r * ldy;
    for (int64_t c = 0; c < cols; c += lanes) {
      const int64_t left = cols - c;
      const V v = left >= lanes ? hn::LoadU(d, from + c)
                                : LoadFirst(from + c, left, hn::Zero(d));
      const auto bits = hn::BitCast(d32, v);
      const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
      const auto rounded =
          hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFF)), odd));
      // What is left of a NaN must not be an infinity.
      const auto nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d32, 0x40));
      const auto high =
          hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), nan, rounded);
      const auto narrow = hn::DemoteTo(d16, hn::BitCast(i32, high));
      if (left >= lanes) {
        hn::StoreU(narrow, d16, to + c);
      } else {
        HWY_ALIGN uint16_t last[HWY_MAX_BYTES];
        hn::StoreU(narrow, d16, last);
        std::memcpy(to + c, last, left * sizeof(uint16_t));
      }
    }
  }
}

// Some rows at a time, so that what belongs to a column is loaded once for all
// of them and they still lie in few pages.
template <class F>
void MapColumns(const Epilogue& epilogue, float* c, int64_t rows, int64_t cols,
                int64_t ldc, const F& activate) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  constexpr int64_t kRows = 8;
  for (int64_t r = 0; r < rows; r += kRows) {
    const int64_t count = rows - r < kRows ? rows - r : kRows;
    for (int64_t j = 0; j < cols; j += lanes) {
      float* const first = c + r * ldc + j;
      const int64_t left = cols - j;
      auto column = [&](const float* of, float otherwise) HWY_ATTR {
        if (of == nullptr) return hn::Set(d, otherwise);
        return left >= lanes ? hn::LoadU(d, of + j)
                             : LoadFirst(of + j, left, hn::Zero(d));
      };
      const V scale = column(epilogue.scale, 1.0f);
      const V shift = column(epilogue.shift, 0.0f);
      if (left >= lanes) {
        for (int64_t i = 0; i < count; ++i) {
          const V v = hn::LoadU(d, first + i * ldc);
          hn::StoreU(activate(hn::MulAdd(v, scale, shift)), d, first + i * ldc);
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          const V v = LoadFirst(first + i * ldc, left, hn::Zero(d));
          StoreFirst(activate(hn::MulAdd(v, scale, shift)), left,
                     first + i * ldc);
        }
      }
    }
  }
}

void EpilogueForTarget(const Epilogue& epilogue, float* c, int64_t rows,
                       int64_t cols, int64_t ldc) {
  switch (epilogue.activation) {
    case Activation::kNone:
      if (epilogue.changes_nothing()) return;
      return MapColumns(epilogue, c, rows, cols, ldc,
                        [](V v) OPTRAIL_INLINE_LAMBDA { return v; });
    case Activation::kRelu:
      return MapColumns(
          epilogue, c, rows, cols, ldc, [](V v) OPTRAIL_INLINE_LAMBDA {
            return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(D())), v);
          });
    case Activation::kGelu: {
      const NormalCdfPieces& pieces = NormalCdfPieces::Get();
      return MapColumns(
          epilogue, c, rows, cols, ldc,
          [&](V v) OPTRAIL_INLINE_LAMBDA { return GeluOfSum(D(), pieces, v); });
    }
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
HWY_EXPORT(CopyPanelsForTarget);
HWY_EXPORT(WidenForTarget);
HWY_EXPORT(RoundForTarget);
}  // namespace

void TransposeInto(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                   float* y, int64_t ldy, bool pad) {
  HWY_DYNAMIC_DISPATCH(TransposeForTarget)(x, rows, cols, ldx, y, ldy, pad);
}

void CopyPanels(const float* x, int64_t rows, int64_t panels, int64_t width,
                int64_t ldx, float* y, int64_t ldy, int64_t step) {
  HWY_DYNAMIC_DISPATCH(CopyPanelsForTarget)
  (x, rows, panels, width, ldx, y, ldy, step);
}

void Widen(const uint16_t* x, int64_t rows, int64_t cols, int64_t ldx, float* y,
           int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(WidenForTarget)(x, rows, cols, ldx, y, ldy);
}

void RoundToBf16(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                 uint16_t* y, int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(RoundForTarget)(x, rows, cols, ldx, y, ldy);
}

void ScaleShiftActivate(const Epilogue& epilogue, float* c, int64_t rows,
                        int64_t cols, int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(EpilogueForTarget)(epilogue, c, rows, cols, ldc);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
