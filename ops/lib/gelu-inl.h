// gelu of Highway's vectors of float: x times the probability that a standard
// normal variable is below x.
//
//   const NormalCdfPieces& pieces = NormalCdfPieces::Get();
//   const V y = Gelu(d, pieces, x);
//   const V z = GeluOfSum(d, pieces, x);
//
// Where a vector has 16 lanes both take polynomials of pieces, 20 instructions
// in place of the 38 and a division of NormalCdf; elsewhere they are that
// function. NaN stays NaN, infinity is infinity, and minus infinity gives NaN.
//
// Included once per SIMD target (hwy/foreach_target.h), hence the toggled
// guard.

#if defined(OPTRAIL_OPS_LIB_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_LIB_GELU_INL_H_
#undef OPTRAIL_OPS_LIB_GELU_INL_H_
#else
#define OPTRAIL_OPS_LIB_GELU_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/lib/normal_cdf_pieces.h"
#include "ops/lib/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// Beyond, the probability is 0 or 1 to the precision of 1; within the pieces.
constexpr float kNearLimit = 5.8f;

// For |x| <= kNearLimit.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V NearNormalCdf(D d, const NormalCdfPieces& pieces, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the last bits,
  // of which five choose among 32 lanes.
  const V rounder = hn::Set(d, 12582912.0f);
  const V rounded =
      hn::MulAdd(x, hn::Set(d, 1 / NormalCdfPieces::kWidth), rounder);
  const V t = hn::NegMulAdd(hn::Sub(rounded, rounder),
                            hn::Set(d, NormalCdfPieces::kWidth), x);
  const __m512i piece = _mm512_castps_si512(rounded.raw);
  const auto coefficient = [&](int power) HWY_ATTR {
    const float* const of = pieces.coefficients[power];
    return V{_mm512_permutex2var_ps(_mm512_load_ps(of), piece,
                                    _mm512_load_ps(of + 16))};
  };
  static_assert(NormalCdfPieces::kDegree == 6, "as many steps");
  V p = coefficient(6);
  p = hn::MulAdd(p, t, coefficient(5));
  p = hn::MulAdd(p, t, coefficient(4));
  p = hn::MulAdd(p, t, coefficient(3));
  p = hn::MulAdd(p, t, coefficient(2));
  p = hn::MulAdd(p, t, coefficient(1));
  return hn::MulAdd(p, t, coefficient(0));
}

#endif

// Keeps the digits of the tail, as NormalCdf does.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Gelu(D d, const NormalCdfPieces& pieces, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX3
  // False for NaN.
  if (HWY_LIKELY(hn::AllTrue(d, hn::Ge(x, hn::Set(d, -4.0f))))) {
    return hn::Mul(
        x, NearNormalCdf(d, pieces, hn::Min(x, hn::Set(d, kNearLimit))));
  }
#endif
  return hn::Mul(x, NormalCdf(d, x));
}

// Where x is a sum, whose rounding hides that of the probability: good to 2^-22
// |x|, and 0 below -5.8 here. Takes as long wherever x lies.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V GeluOfSum(D d, const NormalCdfPieces& pieces, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX3
  const V limit = hn::Set(d, kNearLimit);
  const V low = hn::Set(d, -kNearLimit);
  const V p = NearNormalCdf(d, pieces, hn::Max(hn::Min(x, limit), low));
  return hn::Mul(x, hn::IfThenZeroElse(hn::Lt(x, low), p));
#else
  return hn::Mul(x, NormalCdf(d, x));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#endif  // OPTRAIL_OPS_LIB_GELU_INL_H_
