// The exponential function for Highway's vectors of float.
//
//   const V y = ExpOfNonPositive(d, x);
//
// Follows Cody and Waite ("Software manual for the elementary functions",
// 1980): e^x = 2^n * e^t with n = round(x / ln 2), and t = x - n ln 2 taken
// with ln 2 split in two so that no bit is lost for |n| < 2^15. On [-ln 2 / 2,
// ln 2 / 2], e^t is 1 + t + t^2 q(t) with q of degree 4, fitted by Remez'
// exchange algorithm to the smallest relative error, 3.1e-9.
//
// At most 1.5 ulp off where the result is a normal number (row_softmax_test.cc
// measures it); results below 2^-126 are 0. Softmax subtracts the maximum
// first, so there is no function for positive x: e^88.72 would need more care.
//
// Included once per SIMD target (hwy/foreach_target.h), hence the toggled
// guard.

#if defined(OPTRAIL_OPS_SOFTMAX_VECTOR_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_SOFTMAX_VECTOR_EXP_INL_H_
#undef OPTRAIL_OPS_SOFTMAX_VECTOR_EXP_INL_H_
#else
#define OPTRAIL_OPS_SOFTMAX_VECTOR_EXP_INL_H_
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

}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#endif  // OPTRAIL_OPS_SOFTMAX_VECTOR_EXP_INL_H_
