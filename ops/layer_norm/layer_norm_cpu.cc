#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/layer_norm/layer_norm_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/layer_norm/layer_norm_knobs.h"
#include "ops/norm/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

NormFunction Choose(int64_t unroll) { return ChooseNorm<true>(unroll); }

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

OPTRAIL_NORM_CPU("layer_norm", LayerNormKnobs, /*centred=*/true)
