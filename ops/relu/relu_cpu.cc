#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/relu/relu_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/elementwise/elementwise-inl.h"
#include "ops/relu/relu_knobs.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

struct Relu {  // a maximum would depend on the machine where x is NaN
  HWY_INLINE V operator()(V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(D())), x);
  }
};

MapFunction Choose(const proto::Shape&, int64_t unroll, bool stream) {
  return ChooseMap<Relu>(unroll, stream);
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

OPTRAIL_ELEMENTWISE_CPU("relu", ReluKnobs)
