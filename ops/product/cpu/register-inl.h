// KeepInRegister makes the compiler load a vector once. It would else read it
// from memory in each multiplication by it where those are two or three, and
// every load whose bytes are in two lines of the cache takes two turns: 3 x 7
// vectors took 1.65 times as long, 2 x 8 vectors 1.4 times.
//
//   V v = hn::LoadU(d, from);
//   KeepInRegister(v);
//
// Included once per SIMD target (simd_targets.h), hence the toggled guard.

#if defined(OPTRAIL_OPS_PRODUCT_CPU_REGISTER_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_PRODUCT_CPU_REGISTER_INL_H_
#undef OPTRAIL_OPS_PRODUCT_CPU_REGISTER_INL_H_
#else
#define OPTRAIL_OPS_PRODUCT_CPU_REGISTER_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

HWY_INLINE void KeepInRegister(V& v) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  asm("" : "+v"(v.raw));
#endif
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // OPTRAIL_OPS_PRODUCT_CPU_REGISTER_INL_H_
