// The CPU kernel of embedding_bag: sums stay in registers while rows come from
// anywhere in memory. With every lookup the row of one to come, of this bag or
// the next ones, is prefetched into the L2 cache: the L1 cache has too few
// misses in flight for it.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/embedding_bag/embedding_bag_knobs.h"
#include "ops/lib/cpu_frame.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/embedding_bag/embedding_bag_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

#ifndef OPTRAIL_EMBEDDING_BAG_ONCE
#define OPTRAIL_EMBEDDING_BAG_ONCE
namespace optrail::ops {

struct Bags {
  const float* table = nullptr;
  const int32_t* indices = nullptr;  // of the first of these bags
  float* y = nullptr;
  int64_t cols = 0;
  int64_t bags = 0;
  int64_t bags_left = 0;  // these and what other tasks have after them
  int64_t lookups = 0;
  int64_t ahead = 0;  // lookups between a prefetch and its use
};

using BagFunction = void (*)(const Bags&);

}  // namespace optrail::ops
#endif  // OPTRAIL_EMBEDDING_BAG_ONCE

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

// Columns [c, c + kVectors * lanes) of a bag that `left` lookups begin with:
// its own and those of the bags after it.
template <int kVectors>
HWY_INLINE void SumPart(const Bags& work, const int32_t* indices, int64_t left,
                        int64_t c, float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V sum[kVectors];
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  auto add = [&](int64_t i) OPTRAIL_INLINE_LAMBDA {
    const float* const row = work.table + indices[i] * work.cols + c;
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Add(sum[v], hn::LoadU(d, row + v * lanes));
    }
  };
  const int64_t ahead = work.ahead;
  const int64_t known =
      ahead == 0 ? 0 : std::clamp<int64_t>(left - ahead, 0, work.lookups);
  for (int64_t i = 0; i < known; ++i) {
    const float* const row = work.table + indices[i + ahead] * work.cols + c;
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      __builtin_prefetch(row + v * lanes, /*write=*/0, /*locality=*/2);
    }
    add(i);
  }
  for (int64_t i = known; i < work.lookups; ++i) add(i);
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(sum[v], d, y + c + v * lanes);
  }
}

template <int kVectors>
void SumBags(const Bags& work) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t bag = 0; bag < work.bags; ++bag) {
    const int32_t* const indices = work.indices + bag * work.lookups;
    const int64_t left = (work.bags_left - bag) * work.lookups;
    float* const y = work.y + bag * work.cols;
    int64_t c = 0;
    for (; c + kVectors * lanes <= work.cols; c += kVectors * lanes) {
      SumPart<kVectors>(work, indices, left, c, y);
    }
    for (; c + lanes <= work.cols; c += lanes) {
      SumPart<1>(work, indices, left, c, y);
    }
    if (c < work.cols) {
      V sum = hn::Zero(d);
      for (int64_t i = 0; i < work.lookups; ++i) {
        sum = hn::Add(sum, LoadFirst(work.table + indices[i] * work.cols + c,
                                     work.cols - c, hn::Zero(d)));
      }
      StoreFirst(sum, work.cols - c, y + c);
    }
  }
}

BagFunction Choose(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, vectors) \
  case index:                        \
    return &SumBags<vectors>;
    OPTRAIL_EMBEDDING_BAG_INSTANTIATIONS(OPTRAIL_CASE)
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

class EmbeddingBagCpu : public KnobKernel<EmbeddingBagKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const EmbeddingBagKnobs& knobs,
      CpuDevice& device) const override {
    const BagFunction sum =
        HWY_DYNAMIC_DISPATCH(Choose)(knobs.InstantiationIndex());
    if (sum == nullptr) return NotCompiled();
    const int64_t cols = shape.dims(1).value();
    const int64_t bags = shape.dims(2).value();
    const int64_t lookups = shape.dims(3).value();
    return MakeInvocation([=](const Call& call) {
      ForBlocks(
          call, bags, knobs.bags_per_task, [&](int64_t bag, int64_t count) {
            Bags work;
            work.table = static_cast<const float*>(call.operands[0]);
            work.indices =
                static_cast<const int32_t*>(call.operands[1]) + bag * lookups;
            work.y = static_cast<float*>(call.operands[2]) + bag * cols;
            work.cols = cols;
            work.bags = count;
            work.bags_left = bags - bag;
            work.lookups = lookups;
            work.ahead = knobs.prefetch_lookups;
            sum(work);
          });
    });
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const EmbeddingBagKnobs& knobs) const override {
    return {{"bags", knobs.bags_per_task},
            {"cols", knobs.vectors * 16},
            {"cols", knobs.vectors * 4},
            {"lookups", knobs.prefetch_lookups}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("embedding_bag", EmbeddingBagCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
