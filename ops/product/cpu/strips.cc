#include "ops/product/cpu/strips.h"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/strips.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"
#include "ops/product/cpu/register-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {
namespace {

constexpr int kMostSteps = 16, kMostVectors = 12;

// The vectors of each step that fit into registers beside a row's sums and a
// value of A.
constexpr int MostVectors(int steps) {
  return HWY_TARGET == HWY_AVX3 ? std::min(kMostVectors, 31 / (steps + 1)) : 0;
}

#if HWY_TARGET == HWY_AVX3

// Vector j of a strip, whose last one has the columns of a mask.
template <int kVectors>
HWY_INLINE V LoadVector(const float* from, int j, M last) {
  const D d;
  from += j * hn::Lanes(d);
  return j < kVectors - 1 ? hn::LoadU(d, from) : hn::MaskedLoad(last, d, from);
}

// kRows rows of a strip.
template <int kRows, int kSteps, int kVectors, bool kEnds>
HWY_INLINE void MultiplyRows(const TileCall& call, const float* a, float* c,
                             const V (&b)[kSteps][kVectors], const float* scale,
                             const float* shift, M last) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V sums[kRows][kVectors];
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int p = 0; p < kSteps; ++p) {
      const V value = hn::Set(d, a[i * call.lda + p]);
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        sums[i][j] = p == 0 ? hn::Mul(value, b[p][j])
                            : hn::MulAdd(value, b[p][j], sums[i][j]);
      }
    }
  }
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      V& sum = sums[i][j];
      if constexpr (kEnds) {
        const V plus = shift == nullptr ? hn::Zero(d)
                                        : LoadVector<kVectors>(shift, j, last);
        sum = scale == nullptr
                  ? hn::Add(sum, plus)
                  : hn::MulAdd(sum, LoadVector<kVectors>(scale, j, last), plus);
        // NaN stays.
        if (call.relu) {
          sum = hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(d)), sum);
        }
      }
      float* const to = c + i * call.ldc + j * lanes;
      if (j < kVectors - 1) {
        hn::StoreU(sum, d, to);
      } else {
        hn::BlendedStore(sum, last, d, to);
      }
    }
  }
}

template <int kSteps, int kVectors, bool kEnds>
void MultiplyStrip(const TileCall& call, const float* first_a,
                   const float* first_b, float* first_c) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const M last =
      hn::FirstN(d, static_cast<size_t>(call.columns - (kVectors - 1) * lanes));
  // Rows of few operations hide what it takes to go on to the next.
  constexpr int kSums = kSteps * kVectors;
  constexpr int kRows = kSums <= 2 ? 4 : kSums <= 6 ? 2 : 1;
  for (int64_t tile = 0; tile < call.tiles; ++tile) {
    const int64_t column = tile * call.c_step;
    const float* const scale =
        call.scale == nullptr ? nullptr : call.scale + column;
    const float* const shift =
        call.shift == nullptr ? nullptr : call.shift + column;
    V b[kSteps][kVectors];
    OPTRAIL_UNROLL for (int p = 0; p < kSteps; ++p) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        b[p][j] = LoadVector<kVectors>(
            first_b + tile * call.b_step + p * call.ldb, j, last);
        KeepInRegister(b[p][j]);
      }
    }
    const float* a = first_a;
    float* c = first_c + column;
    int64_t left = call.rows;
    for (; left >= kRows; left -= kRows) {
      MultiplyRows<kRows, kSteps, kVectors, kEnds>(call, a, c, b, scale, shift,
                                                   last);
      a += kRows * call.lda;
      c += kRows * call.ldc;
    }
    for (; kRows > 1 && left > 0; --left) {
      MultiplyRows<1, kSteps, kVectors, kEnds>(call, a, c, b, scale, shift,
                                               last);
      a += call.lda;
      c += call.ldc;
    }
  }
}

#endif

// [steps][vectors]
using StripTable =
    std::array<std::array<StripFunctions, kMostVectors + 1>, kMostSteps + 1>;

template <int kSteps, int kVectors>
void AddStrip(StripTable& strips) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kVectors <= MostVectors(kSteps)) {
    strips[kSteps][kVectors] = {&MultiplyStrip<kSteps, kVectors, false>,
                                &MultiplyStrip<kSteps, kVectors, true>};
  }
#else
  (void)strips;
#endif
}

template <int kSteps, int... kVectors>
void AddStrips(StripTable& strips, std::integer_sequence<int, kVectors...>) {
  (AddStrip<kSteps, kVectors + 1>(strips), ...);
}

template <int... kSteps>
StripTable AllStrips(std::integer_sequence<int, kSteps...>) {
  StripTable strips;
  (AddStrips<kSteps + 1>(strips,
                         std::make_integer_sequence<int, kMostVectors>()),
   ...);
  return strips;
}

StripFunctions FindForTarget(int64_t steps, int64_t vectors) {
  static const StripTable strips =
      AllStrips(std::make_integer_sequence<int, kMostSteps>());
  if (steps < 1 || steps > kMostSteps || vectors < 1 ||
      vectors > kMostVectors) {
    return StripFunctions();
  }
  return strips[static_cast<size_t>(steps)][static_cast<size_t>(vectors)];
}

int64_t MostVectorsForTarget(int64_t steps) {
  return steps < 1 || steps > kMostSteps ? 0
                                         : MostVectors(static_cast<int>(steps));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {

HWY_EXPORT(FindForTarget);
HWY_EXPORT(MostVectorsForTarget);

StripFunctions FindStrip(int64_t steps, int64_t vectors) {
  return HWY_DYNAMIC_DISPATCH(FindForTarget)(steps, vectors);
}

int64_t MostVectorsOfStrip(int64_t steps) {
  return HWY_DYNAMIC_DISPATCH(MostVectorsForTarget)(steps);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
