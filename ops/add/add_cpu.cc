// The CPU kernel of c = a + b.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/add/add_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/add/add_knobs.h"
#include "ops/lib/cpu_frame.h"
#include "ops/lib/simd-inl.h"

#ifndef OPTRAIL_ADD_ONCE
#define OPTRAIL_ADD_ONCE

namespace optrail::ops {

// Adds the elements of [0, count) of one task.
using AddRange = void (*)(const float* a, const float* b, float* c,
                          int64_t count, int64_t prefetch_bytes);

}  // namespace optrail::ops

#endif  // OPTRAIL_ADD_ONCE

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

template <int kUnroll, AddKnobs::Stores kStores>
void AddRangeImpl(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                  float* HWY_RESTRICT c, int64_t count,
                  int64_t prefetch_bytes) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + kUnroll * lanes <= count; i += kUnroll * lanes) {
    if (prefetch_bytes != 0) {
      // Addresses beyond the end are harmless: prefetches do not fault.
      hwy::Prefetch(reinterpret_cast<const char*>(a + i) + prefetch_bytes);
      hwy::Prefetch(reinterpret_cast<const char*>(b + i) + prefetch_bytes);
    }
    for (int u = 0; u < kUnroll; ++u) {  // unrolled: the bound is a constant
      const int64_t at = i + u * lanes;
      const V sum = hn::Add(hn::LoadU(d, a + at), hn::LoadU(d, b + at));
      if (kStores == AddKnobs::Stores::kStreaming) {
        hn::Stream(sum, d, c + at);
      } else {
        hn::StoreU(sum, d, c + at);
      }
    }
  }
  for (; i < count; ++i) c[i] = a[i] + b[i];
  // Streamed data must be visible when the task counts as done.
  if (kStores == AddKnobs::Stores::kStreaming) hwy::FlushStream();
}

AddRange Choose(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, unroll, stores) \
  case index:                               \
    return &AddRangeImpl<unroll, stores>;
    OPTRAIL_ADD_INSTANTIATIONS(OPTRAIL_CASE)
#undef OPTRAIL_CASE
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace optrail::ops {
namespace {

HWY_EXPORT(Choose);

class AddCpu : public KnobKernel<AddKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const AddKnobs& knobs,
      CpuDevice& device) const override {
    AddKnobs cached = knobs;
    cached.stores = AddKnobs::Stores::kCached;
    const auto choose = HWY_DYNAMIC_DISPATCH(Choose);
    const AddRange aligned = choose(knobs.InstantiationIndex());
    const AddRange unaligned = choose(cached.InstantiationIndex());
    if (aligned == nullptr || unaligned == nullptr) return NotCompiled();
    const int64_t n = shape.dims(0).value();
    return MakeInvocation([=](const Call& call) {
      const auto* a = static_cast<const float*>(call.operands[0]);
      const auto* b = static_cast<const float*>(call.operands[1]);
      auto* c = static_cast<float*>(call.operands[2]);
      const AddRange add_range = IsAligned(c) ? aligned : unaligned;
      ForBlocks(call, n, knobs.block_elements,
                [&](int64_t begin, int64_t count) {
                  add_range(a + begin, b + begin, c + begin, count,
                            knobs.prefetch_bytes);
                });
    });
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("add", AddCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
