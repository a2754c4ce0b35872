#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm_backward/rms_norm_backward_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/norm/norm-inl.h"
#include "ops/rms_norm_backward/rms_norm_backward_knobs.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

NormGradientLoops Choose(int64_t rows_at_once) {
  return ChooseNormGradient<false>(rows_at_once);
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

OPTRAIL_NORM_BACKWARD_CPU("rms_norm_backward", RmsNormBackwardKnobs,
                          /*centred=*/false)
