#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm/rms_norm_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/norm/norm-inl.h"
#include "ops/rms_norm/rms_norm_knobs.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

NormFunction Choose(int64_t unroll) { return ChooseNorm<false>(unroll); }

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

OPTRAIL_NORM_CPU("rms_norm", RmsNormKnobs, /*centred=*/false)
