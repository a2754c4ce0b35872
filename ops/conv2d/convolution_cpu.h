#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_

// The CPU kernel that conv2d and its fused forms share: an implicit matrix
// product, whose left factor has the pixels under the filter for an output
// pixel in each row and is never there as a whole. A task computes some output
// pixels and finishes them while they are in cache. Their rows are either
// gathered into a workspace or read where they lie: the pixels under a row of
// the filter are neighbours, so that the rows of an output line are a constant
// step apart and consist of as many segments as the filter has rows. Where
// there is padding, the lines of the image are copied with a border of zeros
// first. Filters of 3 x 3 may go by Winograd's algorithm instead (winograd.h).
//
//   class Conv2dCpu : public ConvolutionCpu<Conv2dKnobs, /*kFused=*/false> {};

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/conv2d/convolution.h"
#include "ops/conv2d/winograd.h"
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

// Lines [line, line + lines) of an image with `padding` zeros around it; some
// of them may lie in the padding.
inline void PadLines(const ConvolutionSize& size, const float* image,
                     int64_t line, int64_t lines, float* to) {
  const int64_t border = size.padding * size.c;
  const int64_t width = size.w * size.c;
  for (int64_t i = line; i < line + lines; ++i, to += width + 2 * border) {
    if (i < 0 || i >= size.h) {
      std::fill_n(to, width + 2 * border, 0.0f);
      continue;
    }
    std::fill_n(to, border, 0.0f);
    std::memcpy(to + border, image + i * width, width * sizeof(float));
    std::fill_n(to + border + width, border, 0.0f);
  }
}

// Pixels are read where they lie.
class ConvolutionInPlace {
 public:
  static absl::StatusOr<ConvolutionInPlace> Plan(const ConvolutionSize& size,
                                                 Blocking blocking,
                                                 int64_t task_rows,
                                                 int64_t task_columns,
                                                 CpuDevice& device) {
    ConvolutionInPlace plan;
    blocking.pack_a = false;
    plan.size_ = size;
    plan.blocking_ = blocking;
    // A pixel is read once for all places of the filter.
    const TaskSize task = ShareOut(
        size.n,
        {size.p * size.q, size.q,
         std::max(task_rows / size.q, int64_t{1}) * size.q,
         12.0 / static_cast<double>(size.r * size.s)},
        {size.k, blocking.tile.columns, task_columns}, device.threads());
    plan.task_lines_ = task.rows / size.q;
    plan.task_columns_ = std::min(task.columns, size.k);
    plan.filter_rows_ = std::clamp<int64_t>(blocking.kc / (size.s * size.c),
                                            int64_t{1}, size.r);
    const int64_t columns = std::min(blocking.nc, plan.task_columns_);
    plan.lines_at_ =
        CeilDiv(WorkspaceFloats(blocking, {size.q, columns, size.depth()}),
                16) *
        16;
    const int64_t lines =
        size.padding == 0
            ? 0
            : ((plan.task_lines_ - 1) * size.stride + size.r) * plan.width();
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.workspaces_,
        Workspaces::Create(device,
                           std::min<int64_t>(device.threads(), plan.count()),
                           plan.lines_at_ + lines));
    return plan;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  void Run(CpuDevice& device, const float* x, const float* weights, float* y,
           const Epilogue& epilogue) const {
    device.ParallelFor(count(), [&](int64_t task) {
      const ConvolutionSize& s = size_;
      const int64_t column = task % column_parts() * task_columns_;
      const int64_t line = task / column_parts() % line_parts() * task_lines_;
      const int64_t image = task / column_parts() / line_parts();
      const int64_t lines = std::min(task_lines_, s.p - line);
      const int64_t end = std::min(column + task_columns_, s.k);
      const Workspaces::Lease lease(*workspaces_);
      const float* from = x + image * s.h * s.w * s.c;
      if (s.padding == 0) {
        from += line * s.stride * width();
      } else {
        float* const padded = lease.data() + lines_at_;
        PadLines(s, from, line * s.stride - s.padding,
                 (lines - 1) * s.stride + s.r, padded);
        from = padded;
      }
      // All lines meet a block of filters while it is in cache.
      const int64_t line_depth = s.s * s.c;
      for (int64_t j = column; j < end; j += blocking_.nc) {
        const int64_t columns = std::min(blocking_.nc, end - j);
        for (int64_t r = 0; r < s.r; r += filter_rows_) {
          const int64_t rows = std::min(filter_rows_, s.r - r);
          for (int64_t i = 0; i < lines; ++i) {
            float* const out = y + ((image * s.p + line + i) * s.q) * s.k + j;
            MultiplyBlocked(blocking_, {s.q, columns, rows * line_depth},
                            from + (i * s.stride + r) * width(), s.stride * s.c,
                            {line_depth, width()},
                            weights + r * line_depth * s.k + j, s.k, out, s.k,
                            lease.data(), /*accumulate=*/r > 0,
                            r + rows == s.r ? epilogue.From(j) : Epilogue());
          }
        }
      }
    });
  }

 private:
  int64_t width() const { return (size_.w + 2 * size_.padding) * size_.c; }
  int64_t line_parts() const { return CeilDiv(size_.p, task_lines_); }
  int64_t column_parts() const { return CeilDiv(size_.k, task_columns_); }
  int64_t count() const { return size_.n * line_parts() * column_parts(); }

  ConvolutionSize size_ = {};
  Blocking blocking_;
  int64_t task_lines_ = 0;  // of output, at most
  int64_t task_columns_ = 0;
  int64_t filter_rows_ = 0;  // of a block of filters
  int64_t lines_at_ = 0;     // where padded lines begin in a workspace
  std::shared_ptr<Workspaces> workspaces_;
};

// By Winograd's algorithm: filters of 3 x 3, stride 1.
class ConvolutionWinograd {
 public:
  static absl::StatusOr<ConvolutionWinograd> Plan(const ConvolutionSize& size,
                                                  const Blocking& blocking,
                                                  int64_t task_rows,
                                                  CpuDevice& device) {
    ConvolutionWinograd plan;
    plan.size_ = size;
    plan.blocking_ = blocking;
    // Lines of tiles, for all filters.
    const int64_t line = plan.columns() * kOutputs * kOutputs;
    plan.task_lines_ =
        ShareOut(size.n, {plan.lines() * line, line, task_rows / line * line},
                 {size.k, size.k, size.k}, device.threads())
            .rows /
        line;
    // Every part begins on a cache line.
    const auto parts = [](int64_t floats) { return CeilDiv(floats, 16) * 16; };
    const int64_t tiles = plan.task_lines_ * plan.columns();
    plan.inputs_at_ = parts(WorkspaceFloats(blocking, {tiles, size.k, size.c}));
    plan.products_at_ = plan.inputs_at_ + parts(kPoints * tiles * size.c);
    plan.outside_at_ = plan.products_at_ + parts(kPoints * tiles * size.k);
    plan.nowhere_at_ = plan.outside_at_ + parts(size.c);
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.workspaces_,
        Workspaces::Create(device,
                           std::min<int64_t>(device.threads(), plan.count()),
                           plan.nowhere_at_ + parts(size.k)));
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.filters_, Workspaces::Create(device, 1, kPoints * plan.filters()));
    return plan;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }
  const std::shared_ptr<Workspaces>& filter_space() const { return filters_; }

  void Run(CpuDevice& device, const float* x, const float* weights, float* y,
           const Epilogue& epilogue) const {
    const WinogradTransforms& winograd = FindWinograd();
    float* const u = filters_->at(0);
    ForBlocks(device, filters(), kFiltersAtOnce,
              [&](int64_t begin, int64_t count) {
                winograd.filters(weights, filters(), begin, begin + count, u);
              });
    device.ParallelFor(count(), [&](int64_t task) {
      const ConvolutionSize& s = size_;
      const int64_t first = task % line_parts() * task_lines_;
      const int64_t image = task / line_parts();
      const int64_t tiles = std::min(task_lines_, lines() - first) * columns();
      const Workspaces::Lease lease(*workspaces_);
      float* const inputs = lease.data() + inputs_at_;
      float* const products = lease.data() + products_at_;
      float* const outside = lease.data() + outside_at_;
      std::fill_n(outside, s.c, 0.0f);
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t line = (first + tile / columns()) * kOutputs - s.padding;
        const int64_t column = tile % columns() * kOutputs - s.padding;
        const float* pixels[kPoints];
        for (int64_t e = 0; e < kPoints; ++e) {
          const int64_t i = line + e / kSide, j = column + e % kSide;
          const bool inside = i >= 0 && i < s.h && j >= 0 && j < s.w;
          pixels[e] =
              inside ? x + ((image * s.h + i) * s.w + j) * s.c : outside;
        }
        winograd.input(pixels, s.c, tiles * s.c, inputs + tile * s.c);
      }
      for (int64_t e = 0; e < kPoints; ++e) {
        MultiplyBlocked(blocking_, {tiles, s.k, s.c}, inputs + e * tiles * s.c,
                        s.c, u + e * filters(), s.k, products + e * tiles * s.k,
                        s.k, lease.data());
      }
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t line = (first + tile / columns()) * kOutputs;
        const int64_t column = tile % columns() * kOutputs;
        float* outputs[kOutputs * kOutputs];
        for (int64_t e = 0; e < kOutputs * kOutputs; ++e) {
          const int64_t i = line + e / kOutputs, j = column + e % kOutputs;
          const bool inside = i < s.p && j < s.q;
          outputs[e] = inside ? y + ((image * s.p + i) * s.q + j) * s.k
                              : lease.data() + nowhere_at_;
        }
        winograd.output(products + tile * s.k, tiles * s.k, s.k, outputs);
      }
      const int64_t line = first * kOutputs;
      const int64_t out_lines = std::min(task_lines_ * kOutputs, s.p - line);
      ScaleShiftActivate(epilogue, y + (image * s.p + line) * s.q * s.k,
                         out_lines * s.q, s.k, s.k);
    });
  }

 private:
  static constexpr int64_t kOutputs = WinogradTransforms::kOutputs;
  static constexpr int64_t kSide = WinogradTransforms::kSide;
  static constexpr int64_t kPoints = WinogradTransforms::kPoints;
  static constexpr int64_t kFiltersAtOnce = 1024;

  int64_t filters() const { return size_.c * size_.k; }
  // Tiles down and across an image.
  int64_t lines() const { return CeilDiv(size_.p, kOutputs); }
  int64_t columns() const { return CeilDiv(size_.q, kOutputs); }
  int64_t line_parts() const { return CeilDiv(lines(), task_lines_); }
  int64_t count() const { return size_.n * line_parts(); }

  ConvolutionSize size_ = {};
  Blocking blocking_;
  int64_t task_lines_ = 0;  // of tiles, at most
  // Where the parts of a workspace begin: transformed pixels, products, zeros
  // for pixels outside, and room for outputs that do not exist.
  int64_t inputs_at_ = 0;
  int64_t products_at_ = 0;
  int64_t outside_at_ = 0;
  int64_t nowhere_at_ = 0;
  std::shared_ptr<Workspaces> workspaces_;
  std::shared_ptr<Workspaces> filters_;
};

template <class Knobs, bool kFused>
class ConvolutionCpu : public KnobKernel<Knobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize size,
                             ConvolutionSizeOf(shape));
    OPTRAIL_ASSIGN_OR_RETURN(
        const Blocking blocking,
        BlockingOf(knobs, knobs.pixels == Knobs::Pixels::kWinograd
                              ? size.c
                              : size.depth()));
    if (knobs.pixels == Knobs::Pixels::kInPlace && !size.is_product()) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const ConvolutionInPlace plan,
          ConvolutionInPlace::Plan(size, blocking, knobs.task_rows,
                                   knobs.task_columns, device));
      return MakeInvocation(
          [=, &device](absl::Span<void* const> operands) {
            const Operands all(operands);
            plan.Run(device, all.x, all.weights, all.y, all.epilogue);
          },
          plan.workspaces());
    }
    if (knobs.pixels == Knobs::Pixels::kWinograd) {
      if (size.r != 3 || size.s != 3 || size.stride != 1) {
        return absl::InvalidArgumentError(
            "pixels=winograd: expected filters of 3x3 with stride 1");
      }
      OPTRAIL_ASSIGN_OR_RETURN(
          const ConvolutionWinograd plan,
          ConvolutionWinograd::Plan(size, blocking, knobs.task_rows, device));
      return MakeInvocation(
          [=, &device](absl::Span<void* const> operands) {
            const Operands all(operands);
            plan.Run(device, all.x, all.weights, all.y, all.epilogue);
          },
          plan.workspaces(), plan.filter_space());
    }
    ProductTasks::Cut cut;
    cut.size = {size.rows(), size.k, size.depth()};
    cut.task_rows = knobs.task_rows;
    cut.task_columns = knobs.task_columns;
    cut.gathers_a = !size.is_product();
    OPTRAIL_ASSIGN_OR_RETURN(const ProductTasks tasks,
                             ProductTasks::Plan(blocking, cut, device));
    return MakeInvocation(
        [=, &device](absl::Span<void* const> operands) {
          const Operands all(operands);
          tasks.Run(
              device,
              [&](int64_t, int64_t row, int64_t rows, float* space) {
                const int64_t depth = size.depth();
                if (size.is_product()) {
                  return BlockView{all.x + row * depth, depth};
                }
                GatherPixels(size, all.x, row, rows, space);
                return BlockView{space, depth};
              },
              [&](int64_t, int64_t column) {
                return BlockView{all.weights + column, size.k};
              },
              all.y, all.epilogue);
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

 private:
  // Of one call.
  struct Operands {
    explicit Operands(absl::Span<void* const> operands)
        : x(static_cast<const float*>(operands[0])),
          weights(static_cast<const float*>(operands[1])),
          y(static_cast<float*>(operands[kFused ? 4 : 2])) {
      if (!kFused) return;
      epilogue.scale = static_cast<const float*>(operands[2]);
      epilogue.shift = static_cast<const float*>(operands[3]);
      epilogue.activation = Activation::kRelu;
    }

    const float* x;
    const float* weights;
    float* y;
    Epilogue epilogue;
  };
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
