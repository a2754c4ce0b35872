// The CPU kernel of sum: cuts x into tasks, whose sums are then added in a
// fixed order, so that results do not depend on who was first.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/lib/cpu_frame.h"
#include "ops/sum/sum_knobs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sum/sum_cpu.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

#ifndef OPTRAIL_SUM_ONCE
#define OPTRAIL_SUM_ONCE
namespace optrail::ops {

struct SumLoops {
  // The sum of count numbers. Prefetches those that lie `ahead` elements
  // further on, within memory or beyond it; 0: does not.
  float (*row)(const float* x, int64_t count, int64_t ahead) = nullptr;
  // y[c] = the sum of column c; rows lie `stride` apart.
  void (*columns)(const float* x, int64_t rows, int64_t cols, int64_t stride,
                  float* y) = nullptr;
};

}  // namespace optrail::ops
#endif  // OPTRAIL_SUM_ONCE

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

template <int kUnroll>
float Row(const float* x, int64_t count, int64_t ahead) {
  if (ahead == 0) return SumRow<kUnroll>(x, count);
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kUnroll];
  OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) sum[u] = hn::Zero(d);
  int64_t j = 0;
  for (; j + kUnroll * lanes <= count; j += kUnroll * lanes) {
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      hwy::Prefetch(x + j + u * lanes + ahead);
      sum[u] = hn::Add(sum[u], hn::LoadU(d, x + j + u * lanes));
    }
  }
  OPTRAIL_UNROLL for (int u = 1; u < kUnroll; ++u) {
    sum[0] = hn::Add(sum[0], sum[u]);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum[0])) + SumRow<1>(x + j, count - j);
}

// y[c] = the sum over i < kRows of x[i * stride + c], added to what y has
// unless these are the first rows. Four vectors of a row before those of the
// next: taking one of each in turn, Zen 5 read memory at two thirds the rate.
template <int kRows>
HWY_INLINE void AddRows(const float* x, int64_t cols, int64_t stride,
                        bool first, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kVectors = 4;
  int64_t c = 0;
  for (; c + kVectors * lanes <= cols; c += kVectors * lanes) {
    V sum[kVectors];
    OPTRAIL_UNROLL for (int u = 0; u < kVectors; ++u) {
      sum[u] = hn::LoadU(d, x + c + u * lanes);
    }
    OPTRAIL_UNROLL for (int i = 1; i < kRows; ++i) {
      OPTRAIL_UNROLL for (int u = 0; u < kVectors; ++u) {
        sum[u] = hn::Add(sum[u], hn::LoadU(d, x + i * stride + c + u * lanes));
      }
    }
    OPTRAIL_UNROLL for (int u = 0; u < kVectors; ++u) {
      float* const to = y + c + u * lanes;
      if (!first) sum[u] = hn::Add(sum[u], hn::LoadU(d, to));
      hn::StoreU(sum[u], d, to);
    }
  }
  for (; c < cols; c += lanes) {
    const int64_t left = std::min(lanes, cols - c);
    auto load = [&](const float* from) OPTRAIL_INLINE_LAMBDA {
      return left == lanes ? hn::LoadU(d, from)
                           : LoadFirst(from, left, hn::Zero(d));
    };
    V sum = load(x + c);
    OPTRAIL_UNROLL for (int i = 1; i < kRows; ++i) {
      sum = hn::Add(sum, load(x + i * stride + c));
    }
    if (!first) sum = hn::Add(sum, load(y + c));
    if (left == lanes) {
      hn::StoreU(sum, d, y + c);
    } else {
      StoreFirst(sum, left, y + c);
    }
  }
}

// kRows rows per reading of y. Columns go in pieces, so that those of y stay in
// the L1 cache.
template <int kRows>
void Columns(const float* x, int64_t rows, int64_t cols, int64_t stride,
             float* y) {
  constexpr int64_t kPiece = 4096;
  for (int64_t begin = 0; begin < cols; begin += kPiece) {
    const int64_t count = std::min(kPiece, cols - begin);
    const float* const from = x + begin;
    int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      AddRows<kRows>(from + r * stride, count, stride, r == 0, y + begin);
    }
    for (; r < rows; ++r) {
      AddRows<1>(from + r * stride, count, stride, r == 0, y + begin);
    }
  }
}

SumLoops Choose(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, unroll) \
  case index:                       \
    return {&Row<unroll>, &Columns<unroll>};
    OPTRAIL_SUM_INSTANTIATIONS(OPTRAIL_CASE)
#undef OPTRAIL_CASE
    default:
      return {};
  }
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace optrail::ops {
namespace {

HWY_EXPORT(Choose);

// No chain of additions is longer, whatever the knobs say: the operator's
// tolerance counts on it.
constexpr int64_t kLongestChain = 65536;

class SumCpu : public KnobKernel<SumKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const SumKnobs& knobs,
      CpuDevice& device) const override {
    const SumLoops loops =
        HWY_DYNAMIC_DISPATCH(Choose)(knobs.InstantiationIndex());
    if (loops.row == nullptr) return NotCompiled();
    int64_t rows = shape.dims(0).value();
    int64_t cols = shape.dims(1).value();
    const std::string axis =
        shape.attributes().empty() ? "cols" : shape.attributes(0).variant();
    if (axis == "rows") return BindColumns(loops, rows, cols, knobs, device);
    if (axis == "all") {
      cols *= rows;
      rows = 1;
    }
    return BindRows(loops, rows, cols, knobs, device);
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const SumKnobs& knobs) const override {
    return {{"cols", knobs.block_elements},
            {"cols", knobs.unroll * 16},
            {"rows", knobs.unroll},
            {"cols", 2048}};
  }

 private:
  // Long rows are cut into parts, short ones go several to a task.
  static absl::StatusOr<std::unique_ptr<Invocation>> BindRows(
      const SumLoops& loops, int64_t rows, int64_t cols, const SumKnobs& knobs,
      CpuDevice& device) {
    const int64_t block =
        std::min({cols, knobs.block_elements, kLongestChain * knobs.unroll});
    const int64_t parts = CeilDiv(cols, block);
    const int64_t ahead = knobs.ahead;
    const int64_t rows_per_task =
        std::max<int64_t>(1, knobs.block_elements / cols);
    if (parts == 1) {
      return MakeInvocation([=, &device](absl::Span<void* const> operands) {
        const auto* x = static_cast<const float*>(operands[0]);
        auto* y = static_cast<float*>(operands[1]);
        ForBlocks(device, rows, rows_per_task, [&](int64_t row, int64_t count) {
          for (int64_t r = row; r < row + count; ++r) {
            y[r] = loops.row(x + r * cols, cols, ahead);
          }
        });
      });
    }
    OPTRAIL_ASSIGN_OR_RETURN(auto partial,
                             Workspaces::Create(device, 1, rows * parts));
    return MakeInvocation(
        [=, &device](absl::Span<void* const> operands) {
          const auto* x = static_cast<const float*>(operands[0]);
          auto* y = static_cast<float*>(operands[1]);
          float* const sums = partial->at(0);
          device.ParallelFor(rows * parts, [&](int64_t task) {
            const int64_t row = task / parts;
            const int64_t begin = task % parts * block;
            sums[task] = loops.row(x + row * cols + begin,
                                   std::min(block, cols - begin), ahead);
          });
          for (int64_t r = 0; r < rows; ++r) {
            y[r] = loops.row(sums + r * parts, parts, 0);
          }
        },
        partial);
  }

  static absl::StatusOr<std::unique_ptr<Invocation>> BindColumns(
      const SumLoops& loops, int64_t rows, int64_t cols, const SumKnobs& knobs,
      CpuDevice& device) {
    const int64_t block =
        std::min({std::max<int64_t>(1, knobs.block_elements / cols),
                  kLongestChain, rows});
    const int64_t parts = CeilDiv(rows, block);
    if (parts == 1) {
      return MakeInvocation([=, &device](absl::Span<void* const> operands) {
        const auto* x = static_cast<const float*>(operands[0]);
        auto* y = static_cast<float*>(operands[1]);
        // Few long rows: tasks share out columns.
        const int64_t width =
            std::max<int64_t>(64, knobs.block_elements / rows / 16 * 16);
        ForBlocks(device, cols, width, [&](int64_t begin, int64_t count) {
          loops.columns(x + begin, rows, count, cols, y + begin);
        });
      });
    }
    OPTRAIL_ASSIGN_OR_RETURN(auto partial,
                             Workspaces::Create(device, 1, parts * cols));
    return MakeInvocation(
        [=, &device](absl::Span<void* const> operands) {
          const auto* x = static_cast<const float*>(operands[0]);
          float* const sums = partial->at(0);
          device.ParallelFor(parts, [&](int64_t part) {
            const int64_t row = part * block;
            loops.columns(x + row * cols, std::min(block, rows - row), cols,
                          cols, sums + part * cols);
          });
          loops.columns(sums, parts, cols, cols,
                        static_cast<float*>(operands[1]));
        },
        partial);
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("sum", SumCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
