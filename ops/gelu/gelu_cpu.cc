#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gelu/gelu_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/elementwise/elementwise-inl.h"
#include "ops/gelu/gelu_knobs.h"
#include "ops/lib/gelu-inl.h"
#include "ops/lib/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

struct GeluErf {
  HWY_INLINE V operator()(V x) const { return Gelu(D(), pieces, x); }
  const NormalCdfPieces& pieces = NormalCdfPieces::Get();
};

struct GeluTanh {
  HWY_INLINE V operator()(V x) const {
    const D d;
    const V inner =
        hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.044715f * 1.5957691f),
                   hn::Set(d, 1.5957691f));  // sqrt(8 / pi)
    return hn::Mul(x, Sigmoid(d, hn::Mul(x, inner)));
  }
};

MapFunction Choose(const proto::Shape& shape, int64_t unroll, bool stream) {
  // None but the attribute that is not the default is in a shape.
  return shape.attributes().empty() ? ChooseMap<GeluErf>(unroll, stream)
                                    : ChooseMap<GeluTanh>(unroll, stream);
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

OPTRAIL_ELEMENTWISE_CPU("gelu", GeluKnobs)
