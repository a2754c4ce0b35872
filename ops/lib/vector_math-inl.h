// Functions of Highway's vectors of float.
//
//   const V y = ExpOfNonPositive(d, x);
//   const V p = NormalCdf(d, x);
//
// The exponential follows Cody and Waite ("Software manual for the elementary
// functions", 1980): e^x = 2^n * e^t with n = round(x / ln 2), and t = x - n ln
// 2 taken with ln 2 split in two so that no bit is lost for |n| < 2^15. On [-ln
// 2 / 2, ln 2 / 2], e^t is 1 + t + t^2 q(t) with q of degree 4, fitted by
// Remez' exchange algorithm to the smallest relative error, 3.1e-9.
//
// At most 1.5 ulp off where the result is a normal number (row_softmax_test.cc
// measures it); results below 2^-126 are 0. Softmax subtracts the maximum
// first, so there is no function for positive x: e^88.72 would need more care.
//
// NaN stays NaN in every function, and infinities give the limit.
//
// Included once per SIMD target (hwy/foreach_target.h), hence the toggled
// guard.

#if defined(OPTRAIL_OPS_LIB_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_LIB_VECTOR_MATH_INL_H_
#undef OPTRAIL_OPS_LIB_VECTOR_MATH_INL_H_
#else
#define OPTRAIL_OPS_LIB_VECTOR_MATH_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {

// e^x = mantissa * 2^exponent, mantissa in [0.70, 1.42], exponent a whole
// number. For |x| < 20000.
template <class V>
struct ScaledExp {
  V mantissa;
  V exponent;
};

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE ScaledExp<V> ExpParts(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V log2_e = hn::Set(d, 1.44269504f);
  const V ln2_high = hn::Set(d, 0.693359375f);  // 9 bits
  const V ln2_low = hn::Set(d, -0x1.bd0106p-13f);

  const V n = hn::Round(hn::Mul(x, log2_e));
  V t = hn::NegMulAdd(n, ln2_high, x);
  t = hn::NegMulAdd(n, ln2_low, t);

  V q = hn::Set(d, 0x1.6a242ep-10f);
  q = hn::MulAdd(q, t, hn::Set(d, 0x1.1239e2p-7f));
  q = hn::MulAdd(q, t, hn::Set(d, 0x1.5558f2p-5f));
  q = hn::MulAdd(q, t, hn::Set(d, 0x1.555492p-3f));
  q = hn::MulAdd(q, t, hn::Set(d, 0x1.fffffcp-2f));
  const V one_plus_t = hn::Add(t, hn::Set(d, 1.0f));
  return {hn::MulAdd(hn::Mul(t, t), q, one_plus_t), n};
}

// 2^n for whole n <= 127; n <= -127 gives 0.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V PowerOfTwo(D d, V n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const V clamped = hn::Max(n, hn::Set(d, -127.0f));
  const auto biased = hn::ConvertTo(di, hn::Add(clamped, hn::Set(d, 127.0f)));
  return hn::BitCast(d, hn::ShiftLeft<23>(biased));
}

// e^x for x <= 0, or NaN, which stays.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V ExpOfNonPositive(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const ScaledExp<V> parts = ExpParts(d, x);
  // Where this overflows, the result is replaced below, or NaN already.
  const auto biased =
      hn::ConvertTo(di, hn::Add(parts.exponent, hn::Set(d, 127.0f)));
  const V y =
      hn::Mul(parts.mantissa, hn::BitCast(d, hn::ShiftLeft<23>(biased)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33654f)), y);
}

// 1 / (1 + e^-x), to 4 units in the last place where e^-|x| is normal.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V one = hn::Set(d, 1.0f);
  const V e = ExpOfNonPositive(d, hn::Neg(hn::Abs(x)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

// The probability that a standard normal variable is below x. Its tail, for
// a = |x|, is e^(-a^2 / 2) q(t) with t = 1 / (1 + 0.3 a) (the substitution of
// Hastings, "Approximations for digital computers", 1955) and q of degree 8,
// fitted by Lawson's iteration to the smallest relative error up to a = 13.5,
// 1.3e-7. So the tail keeps its digits, where 1 + erf(x) cancels; what rounding
// a^2 / 2 costs remains, a^2 / 2 units in the last place.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V NormalCdf(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  // Beyond, the tail is below 2^-126 and 0: to multiply denormals takes the
  // processor longer than all the rest.
  const V farthest = hn::Set(d, 12.94f);
  const auto far = hn::Gt(hn::Abs(x), farthest);
  const V a = hn::IfThenElse(far, farthest, hn::Abs(x));  // NaN stays
  const V t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.3f), one));
  V q = hn::Set(d, 0.03593251609f);
  q = hn::MulAdd(q, t, hn::Set(d, -0.158279042f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.2082114745f));
  q = hn::MulAdd(q, t, hn::Set(d, -0.05539798129f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.1294712057f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.09963693913f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.120798439f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.119626385f));
  q = hn::Mul(q, t);

  // Splits as ExpParts does, for s = -2 times the exponent. Adding 1.5 * 2^23
  // rounds to a whole number and leaves it in the last bits.
  const V s = hn::Mul(a, a);
  const V rounder = hn::Set(d, 12582912.0f);
  const V rounded = hn::MulAdd(s, hn::Set(d, -0.72134752f), rounder);
  const V n = hn::Sub(rounded, rounder);
  V u = hn::MulAdd(n, hn::Set(d, 2 * 0.693359375f), s);
  u = hn::MulAdd(n, hn::Set(d, 2 * -0x1.bd0106p-13f), u);
  V e = hn::Set(d, 0x1.6a242ep-16f);
  e = hn::MulAdd(e, u, hn::Set(d, -0x1.1239e2p-12f));
  e = hn::MulAdd(e, u, hn::Set(d, 0x1.5558f2p-9f));
  e = hn::MulAdd(e, u, hn::Set(d, -0x1.555492p-6f));
  e = hn::MulAdd(e, u, hn::Set(d, 0x1.fffffcp-4f));
  e = hn::MulAdd(e, u, hn::Set(d, -0.5f));
  e = hn::MulAdd(e, u, one);
  const V power = hn::BitCast(
      d,
      hn::Add(hn::BitCast(di, e), hn::ShiftLeft<23>(hn::BitCast(di, rounded))));
  const V tail = hn::IfThenZeroElse(far, hn::Mul(power, q));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#endif  // OPTRAIL_OPS_LIB_VECTOR_MATH_INL_H_
