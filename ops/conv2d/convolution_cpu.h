#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_

// The CPU kernel that conv2d and its fused forms share: an implicit matrix
// product. A task gathers the pixels under the filter for a few output pixels
// (a block of the matrix that is never there as a whole), multiplies them with
// the weights and finishes its outputs while they are in cache.
//
//   class Conv2dCpu : public ConvolutionCpu<Conv2dKnobs, /*kFused=*/false> {};

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/conv2d/convolution.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/matmul/product_tasks.h"

namespace optrail::ops {

// Rows [row, row + rows) of the left factor, depth() values each.
inline void GatherPixels(const ConvolutionSize& size, const float* x,
                         int64_t row, int64_t rows, float* to) {
  for (int64_t i = row; i < row + rows; ++i) {
    const int64_t q = i % size.q;
    const int64_t p = i / size.q % size.p;
    const int64_t image = i / size.q / size.p;
    const int64_t col = q * size.stride - size.padding;
    // Of the filter's columns those that lie inside the image.
    const int64_t begin = std::clamp<int64_t>(-col, 0, size.s);
    const int64_t end = std::clamp<int64_t>(size.w - col, begin, size.s);
    for (int64_t r = 0; r < size.r; ++r, to += size.s * size.c) {
      const int64_t line = p * size.stride + r - size.padding;
      if (line < 0 || line >= size.h) {
        std::fill_n(to, size.s * size.c, 0.0f);
        continue;
      }
      std::fill_n(to, begin * size.c, 0.0f);
      if (end > begin) {
        std::memcpy(
            to + begin * size.c,
            x + ((image * size.h + line) * size.w + col + begin) * size.c,
            (end - begin) * size.c * sizeof(float));
      }
      std::fill(to + end * size.c, to + size.s * size.c, 0.0f);
    }
  }
}

template <class Knobs, bool kFused>
class ConvolutionCpu : public KnobKernel<Knobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize size,
                             ConvolutionSizeOf(shape));
    OPTRAIL_ASSIGN_OR_RETURN(const Blocking blocking, BlockingOf(knobs));
    ProductTasks::Cut cut;
    cut.size = {size.rows(), size.k, size.depth()};
    cut.task_rows = knobs.task_rows;
    cut.task_columns = knobs.task_columns;
    cut.gathers_a = !size.is_product();
    OPTRAIL_ASSIGN_OR_RETURN(const ProductTasks tasks,
                             ProductTasks::Plan(blocking, cut, device));
    return MakeInvocation(
        [=, &device](absl::Span<void* const> operands) {
          const auto* x = static_cast<const float*>(operands[0]);
          const auto* weights = static_cast<const float*>(operands[1]);
          Epilogue epilogue;
          if (kFused) {
            epilogue.scale = static_cast<const float*>(operands[2]);
            epilogue.shift = static_cast<const float*>(operands[3]);
            epilogue.activation = Activation::kRelu;
          }
          tasks.Run(
              device,
              [&](int64_t, int64_t row, int64_t rows, float* space) {
                const int64_t depth = size.depth();
                if (size.is_product()) return BlockView{x + row * depth, depth};
                GatherPixels(size, x, row, rows, space);
                return BlockView{space, depth};
              },
              [&](int64_t, int64_t column, int64_t, float*) {
                return BlockView{weights + column, size.k};
              },
              static_cast<float*>(operands[kFused ? 4 : 2]),
              [&](float* y, int64_t rows, int64_t columns, int64_t column) {
                if (!kFused) return;
                Epilogue part = epilogue;
                part.scale += column;
                part.shift += column;
                ScaleShiftActivate(part, y, rows, columns, size.k);
              });
        },
        tasks.workspaces());
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const Knobs& knobs) const override {
    return {{"w", knobs.mr},
            {"w", knobs.task_rows},
            {"k", knobs.nr_vectors * TileLanes()},
            {"k", knobs.task_columns},
            {"c", knobs.kc}};
  }
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
