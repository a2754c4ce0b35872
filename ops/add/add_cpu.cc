// The CPU kernel of c = a + b.
//
// Highway compiles the part between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE once per SIMD target, by including this file again from
// foreach_target.h; HWY_TARGET_INCLUDE is how it finds the file. What follows
// under HWY_ONCE is compiled once and chooses among the targets at run time.
// SSSE3 and SSE4 are left out: no machine that is worth tuning stops there, and
// each target costs compile time. A scalar baseline remains.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/add/add_knobs.h"
#include "ops/core/cpu_kernel.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/add/add_cpu.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

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

namespace hn = hwy::HWY_NAMESPACE;

template <int kUnroll, AddKnobs::Stores kStores>
void AddRangeImpl(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                  float* HWY_RESTRICT c, int64_t count,
                  int64_t prefetch_bytes) {
  const hn::ScalableTag<float> d;
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
      const auto sum = hn::Add(hn::LoadU(d, a + at), hn::LoadU(d, b + at));
      if (kStores == AddKnobs::Stores::kStreaming) {
        hn::Stream(sum, d, c + at);
      } else {
        hn::StoreU(sum, d, c + at);
      }
    }
  }
  for (; i < count; ++i) c[i] = a[i] + b[i];
  if (kStores == AddKnobs::Stores::kStreaming) {
    // Streamed data must be visible when the task counts as done.
    hwy::FlushStream();
  }
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

}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace optrail::ops {
namespace {

HWY_EXPORT(Choose);

// Streaming stores need the alignment of the widest vector.
bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 64 == 0;
}

class AddCpuInvocation : public Invocation {
 public:
  AddCpuInvocation(int64_t n, const AddKnobs& knobs, AddRange add_range,
                   AddRange add_range_unaligned)
      : n_(n),
        knobs_(knobs),
        add_range_(add_range),
        add_range_unaligned_(add_range_unaligned) {}

  absl::Status Run(const Call& call) const override {
    const auto* a = static_cast<const float*>(call.operands[0]);
    const auto* b = static_cast<const float*>(call.operands[1]);
    auto* c = static_cast<float*>(call.operands[2]);
    const AddRange add_range = IsAligned(c) ? add_range_ : add_range_unaligned_;
    const int64_t block = knobs_.block_elements;
    call.ParallelFor((n_ + block - 1) / block, [&](int64_t task) {
      const int64_t begin = task * block;
      add_range(a + begin, b + begin, c + begin, std::min(block, n_ - begin),
                knobs_.prefetch_bytes);
    });
    return absl::OkStatus();
  }

 private:
  const int64_t n_;
  const AddKnobs knobs_;
  const AddRange add_range_;
  const AddRange add_range_unaligned_;
};

class AddCpu : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(
      const proto::Config& config) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const AddKnobs knobs, AddKnobs::From(config));
    return knobs.InstantiationIndex();
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const AddKnobs knobs, AddKnobs::From(config));
    AddKnobs unaligned = knobs;
    unaligned.stores = AddKnobs::Stores::kCached;
    const AddRange add_range =
        HWY_DYNAMIC_DISPATCH(Choose)(knobs.InstantiationIndex());
    const AddRange add_range_unaligned =
        HWY_DYNAMIC_DISPATCH(Choose)(unaligned.InstantiationIndex());
    if (add_range == nullptr || add_range_unaligned == nullptr) {
      return absl::InvalidArgumentError("config was not compiled");
    }
    return std::make_unique<AddCpuInvocation>(shape.dims(0).value(), knobs,
                                              add_range, add_range_unaligned);
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("add", AddCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
