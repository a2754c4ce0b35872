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
  // The sum of count numbers. Meanwhile as many of `ahead` are prefetched,
  // unless it is nullptr.
  float (*row)(const float* x, int64_t count, const float* ahead) = nullptr;
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
float Row(const float* x, int64_t count, const float* ahead) {
  return ahead == nullptr ? SumRow<kUnroll>(x, count)
                          : SumRow<kUnroll>(x, count, ahead);
}

template <int kUnroll>
void Columns(const float* x, int64_t rows, int64_t cols, int64_t stride,
             float* y) {
  SumColumns<kUnroll>(x, rows, cols, stride, y);
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
    if (axis == "rows") return BindColumns(loops, rows, cols, knobs);
    if (axis == "all") {
      cols *= rows;
      rows = 1;
    }
    return BindRows(loops, rows, cols, knobs);
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const SumKnobs& knobs) const override {
    return {{"cols", knobs.block_elements},
            {"cols", knobs.unroll * 16},
            {"rows", knobs.unroll},
            {"cols", 4096}};
  }

 private:
  // Long rows are cut into parts, short ones go several to a task.
  static absl::StatusOr<std::unique_ptr<Invocation>> BindRows(
      const SumLoops& loops, int64_t rows, int64_t cols,
      const SumKnobs& knobs) {
    const int64_t block =
        std::min({cols, knobs.block_elements, kLongestChain * knobs.unroll});
    const int64_t parts = CeilDiv(cols, block);
    // Exactly the numbers to be summed are read, none of them beyond x.
    const auto next = [ahead = knobs.ahead, all = rows * cols](
                          const float* x, int64_t begin,
                          int64_t count) -> const float* {
      return ahead == 0 ? nullptr : x + std::min(begin + ahead, all - count);
    };
    const int64_t rows_per_task =
        std::max<int64_t>(1, knobs.block_elements / cols);
    if (parts == 1) {
      return MakeInvocation([=](const Call& call) {
        const auto* x = static_cast<const float*>(call.operands[0]);
        auto* y = static_cast<float*>(call.operands[1]);
        ForBlocks(call, rows, rows_per_task, [&](int64_t row, int64_t count) {
          for (int64_t r = row; r < row + count; ++r) {
            y[r] = loops.row(x + r * cols, cols, next(x, r * cols, cols));
          }
        });
      });
    }
    WorkspaceLayout layout;
    const Workspaces partial(layout, 1, rows * parts);
    return MakeInvocation(layout, [=](const Call& call) {
      const auto* x = static_cast<const float*>(call.operands[0]);
      auto* y = static_cast<float*>(call.operands[1]);
      float* const sums = partial.at(call, 0);
      call.ParallelFor(rows * parts, [&](int64_t task) {
        const int64_t row = task / parts;
        const int64_t begin = task % parts * block;
        const int64_t count = std::min(block, cols - begin);
        const int64_t at = row * cols + begin;
        sums[task] = loops.row(x + at, count, next(x, at, count));
      });
      for (int64_t r = 0; r < rows; ++r) {
        y[r] = loops.row(sums + r * parts, parts, nullptr);
      }
    });
  }

  static absl::StatusOr<std::unique_ptr<Invocation>> BindColumns(
      const SumLoops& loops, int64_t rows, int64_t cols,
      const SumKnobs& knobs) {
    const int64_t block =
        std::min({std::max<int64_t>(1, knobs.block_elements / cols),
                  kLongestChain, rows});
    const int64_t parts = CeilDiv(rows, block);
    if (parts == 1) {
      return MakeInvocation([=](const Call& call) {
        const auto* x = static_cast<const float*>(call.operands[0]);
        auto* y = static_cast<float*>(call.operands[1]);
        // Few long rows: tasks share out columns.
        const int64_t width =
            std::max<int64_t>(64, knobs.block_elements / rows / 16 * 16);
        ForBlocks(call, cols, width, [&](int64_t begin, int64_t count) {
          loops.columns(x + begin, rows, count, cols, y + begin);
        });
      });
    }
    WorkspaceLayout layout;
    const Workspaces partial(layout, 1, parts * cols);
    return MakeInvocation(layout, [=](const Call& call) {
      const auto* x = static_cast<const float*>(call.operands[0]);
      float* const sums = partial.at(call, 0);
      call.ParallelFor(parts, [&](int64_t part) {
        const int64_t row = part * block;
        loops.columns(x + row * cols, std::min(block, rows - row), cols, cols,
                      sums + part * cols);
      });
      loops.columns(sums, parts, cols, cols,
                    static_cast<float*>(call.operands[1]));
    });
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("sum", SumCpu)

}  // namespace
}  // namespace optrail::ops

#endif  // HWY_ONCE
