// The CPU kernel that operators y[i] = f(x[i]) share: their file has f alone.
//
//   HWY_BEFORE_NAMESPACE();
//   namespace optrail::ops::HWY_NAMESPACE {
//   namespace {
//   struct Relu {
//     HWY_INLINE V operator()(V x) const { ... }
//   };
//   MapFunction Choose(const proto::Shape&, int64_t unroll, bool stream) {
//     return ChooseMap<Relu>(unroll, stream);
//   }
//   }  // namespace
//   }  // namespace optrail::ops::HWY_NAMESPACE
//   HWY_AFTER_NAMESPACE();
//   OPTRAIL_ELEMENTWISE_CPU("relu", ReluKnobs)
//
// f is applied to the lanes of the last vector beyond the end, too: to 0.

#include "ops/lib/cpu_frame.h"
#include "ops/lib/simd-inl.h"

#ifndef OPTRAIL_OPS_LIB_ELEMENTWISE_ONCE
#define OPTRAIL_OPS_LIB_ELEMENTWISE_ONCE
namespace optrail::ops {

using MapFunction = void (*)(const float* x, int64_t count, float* y);

// Knobs: those of elementwise.space.textproto.
template <class Knobs>
class ElementwiseCpu : public KnobKernel<Knobs> {
 protected:
  // For the SIMD target of this machine; nullptr for what was not compiled.
  virtual MapFunction Find(const proto::Shape& shape, int64_t unroll,
                           bool stream) const = 0;

  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const override {
    const bool stream = knobs.stores == Knobs::Stores::kStreaming;
    const MapFunction map = Find(shape, knobs.unroll, stream);
    const MapFunction unaligned = Find(shape, knobs.unroll, false);
    if (map == nullptr || unaligned == nullptr) return this->NotCompiled();
    const int64_t n = shape.dims(0).value();
    const int64_t block = knobs.block_elements;
    return MakeInvocation([=](const Call& call) {
      const auto* x = static_cast<const float*>(call.operands[0]);
      auto* y = static_cast<float*>(call.operands[1]);
      const MapFunction run = IsAligned(y) ? map : unaligned;
      ForBlocks(call, n, block, [&](int64_t begin, int64_t count) {
        run(x + begin, count, y + begin);
      });
    });
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const Knobs& knobs) const override {
    return {{"n", knobs.block_elements},
            {"n", knobs.unroll * 16},
            {"n", knobs.unroll * 4}};
  }
};

}  // namespace optrail::ops
#endif  // OPTRAIL_OPS_LIB_ELEMENTWISE_ONCE

// The names of guards are part of kernel ids, and so keep the first folder.
#if defined(OPTRAIL_OPS_LIB_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_LIB_ELEMENTWISE_INL_H_
#undef OPTRAIL_OPS_LIB_ELEMENTWISE_INL_H_
#else
#define OPTRAIL_OPS_LIB_ELEMENTWISE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {

template <class F, int kUnroll, bool kStream>
void MapElements(const float* HWY_RESTRICT x, int64_t count,
                 float* HWY_RESTRICT y) {
  MapRow<kUnroll>(x, count, kStream, y, F());
  // Streamed data must be visible when the task counts as done.
  if (kStream) hwy::FlushStream();
}

template <class F>
MapFunction ChooseMap(int64_t unroll, bool stream) {
  switch (unroll) {
    case 1:
      return stream ? &MapElements<F, 1, true> : &MapElements<F, 1, false>;
    case 2:
      return stream ? &MapElements<F, 2, true> : &MapElements<F, 2, false>;
    case 4:
      return stream ? &MapElements<F, 4, true> : &MapElements<F, 4, false>;
    default:
      return nullptr;
  }
}

}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// Registers the kernel around the file's Choose().
#undef OPTRAIL_ELEMENTWISE_CPU
#if HWY_ONCE
#define OPTRAIL_ELEMENTWISE_CPU(op, Knobs)                        \
  namespace optrail::ops {                                        \
  namespace {                                                     \
  HWY_EXPORT(Choose);                                             \
  class ElementwiseKernel : public ElementwiseCpu<Knobs> {        \
   protected:                                                     \
    MapFunction Find(const proto::Shape& shape, int64_t unroll,   \
                     bool stream) const override {                \
      return HWY_DYNAMIC_DISPATCH(Choose)(shape, unroll, stream); \
    }                                                             \
  };                                                              \
  OPTRAIL_REGISTER_CPU_KERNEL(op, ElementwiseKernel)              \
  }                                                               \
  }
#else
#define OPTRAIL_ELEMENTWISE_CPU(op, Knobs)
#endif

#endif  // OPTRAIL_OPS_LIB_ELEMENTWISE_INL_H_
