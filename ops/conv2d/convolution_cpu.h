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
// Filters are packed before calls, as a layer would keep them: in panels, or
// transformed. Pixels and filters of bfloat16 are widened to float as they are
// copied, in blocks; sums of a task are rounded once, when they are whole.
//
//   class Conv2dCpu : public ConvolutionCpu<Conv2dKnobs, /*kFused=*/false> {};

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/conv2d/convolution.h"
#include "ops/conv2d/winograd.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/lib/packed_operand.h"
#include "ops/matmul/product_tasks.h"
#include "ops/matmul/widened_tasks.h"

namespace optrail::ops {

// `count` values of x, which are floats or become some.
inline void CopyValues(const float* x, int64_t count, float* to) {
  std::memcpy(to, x, count * sizeof(float));
}
inline void CopyValues(const uint16_t* x, int64_t count, float* to) {
  Widen(x, 1, count, count, to, count);
}

// Steps [step, step + steps) of rows [row, row + rows) of the left factor.
template <class T>
void GatherPixels(const ConvolutionSize& size, const T* x, int64_t row,
                  int64_t rows, int64_t step, int64_t steps, float* to) {
  const int64_t line_depth = size.s * size.c;
  for (int64_t i = row; i < row + rows; ++i) {
    const int64_t q = i % size.q;
    const int64_t p = i / size.q % size.p;
    const int64_t image = i / size.q / size.p;
    const int64_t col = q * size.stride - size.padding;
    // Of the filter's columns those that lie inside the image.
    const int64_t begin = std::clamp<int64_t>(-col, 0, size.s);
    const int64_t end = std::clamp<int64_t>(size.w - col, begin, size.s);
    for (int64_t at = step; at < step + steps;) {
      const int64_t r = at / line_depth;
      const int64_t line = p * size.stride + r - size.padding;
      // Of this row of the filter.
      const int64_t first = at - r * line_depth;
      const int64_t last = std::min(line_depth, step + steps - r * line_depth);
      const bool inside = line >= 0 && line < size.h;
      const int64_t copied =
          inside ? std::clamp(begin * size.c, first, last) : last;
      const int64_t after =
          inside ? std::clamp(end * size.c, copied, last) : last;
      std::fill_n(to, copied - first, 0.0f);
      if (after > copied) {
        CopyValues(
            x + ((image * size.h + line) * size.w + col) * size.c + copied,
            after - copied, to + copied - first);
      }
      std::fill_n(to + after - first, last - after, 0.0f);
      to += last - first;
      at += last - first;
    }
  }
}

// Lines [line, line + lines) of an image with `padding` zeros around it; some
// of them may lie in the padding.
template <class T>
void PadLines(const ConvolutionSize& size, const T* image, int64_t line,
              int64_t lines, float* to) {
  const int64_t border = size.padding * size.c;
  const int64_t width = size.w * size.c;
  for (int64_t i = line; i < line + lines; ++i, to += width + 2 * border) {
    if (i < 0 || i >= size.h) {
      std::fill_n(to, width + 2 * border, 0.0f);
      continue;
    }
    std::fill_n(to, border, 0.0f);
    CopyValues(image + i * width, width, to + border);
    std::fill_n(to + border + width, border, 0.0f);
  }
}

// Every part of a workspace begins on a cache line.
inline int64_t WholeLines(int64_t floats) { return CeilDiv(floats, 16) * 16; }

// Pixels are read where they lie.
template <class T>
class ConvolutionInPlace {
 public:
  static absl::StatusOr<ConvolutionInPlace> Plan(const ConvolutionSize& size,
                                                 Blocking blocking,
                                                 int64_t task_rows,
                                                 int64_t task_columns,
                                                 CpuDevice& device) {
    ConvolutionInPlace plan;
    blocking.pack_a = false;
    blocking.pack_b = false;
    blocking.b_in_panels = !kWidens;
    blocking.prefetch_a = false;  // knows no segments
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
    const auto after = [](int64_t at, int64_t floats) {
      return at + WholeLines(floats);
    };
    plan.lines_at_ =
        after(0, WorkspaceFloats(blocking, {size.q, columns, size.depth()}));
    const int64_t lines = (plan.task_lines_ - 1) * size.stride + size.r;
    plan.filters_at_ =
        after(plan.lines_at_, plan.copies_lines() ? lines * plan.width() : 0);
    plan.sums_at_ =
        after(plan.filters_at_,
              kWidens ? plan.filter_rows_ * size.s * size.c * columns : 0);
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.workspaces_,
        Workspaces::Create(
            device, std::min<int64_t>(device.threads(), plan.count()),
            after(plan.sums_at_,
                  kWidens ? plan.task_lines_ * size.q * columns : 0)));
    return plan;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  // `weights` as they lie, or floats in panels.
  void Run(CpuDevice& device, const T* x, const T* weights, T* y,
           const Epilogue& epilogue) const {
    device.ParallelFor(count(), [&](int64_t task) {
      const ConvolutionSize& s = size_;
      const int64_t column = task % column_parts() * task_columns_;
      const int64_t line = task / column_parts() % line_parts() * task_lines_;
      const int64_t image = task / column_parts() / line_parts();
      const int64_t lines = std::min(task_lines_, s.p - line);
      const int64_t end = std::min(column + task_columns_, s.k);
      const Workspaces::Lease lease(*workspaces_);
      const T* const pixels = x + image * s.h * s.w * s.c;
      const float* from = lease.data() + lines_at_;
      if constexpr (!kWidens) {
        if (!copies_lines()) from = pixels + line * s.stride * width();
      }
      // Copied right before they are read first, in L1.
      int64_t copied = 0;
      const auto copy_lines = [&](int64_t end) {
        if (!copies_lines() || end <= copied) return;
        PadLines(s, pixels, line * s.stride - s.padding + copied, end - copied,
                 lease.data() + lines_at_ + copied * width());
        copied = end;
      };
      // All lines meet a block of filters while it is in cache.
      const int64_t line_depth = s.s * s.c;
      for (int64_t j = column; j < end; j += blocking_.nc) {
        const int64_t columns = std::min(blocking_.nc, end - j);
        T* const out = y + ((image * s.p + line) * s.q) * s.k + j;
        for (int64_t r = 0; r < s.r; r += filter_rows_) {
          const int64_t rows = std::min(filter_rows_, s.r - r);
          // next_of(line) is brought near meanwhile.
          const auto multiply = [&](const float* filters, int64_t ldb,
                                    float* to, int64_t ldc,
                                    const auto& next_of) {
            for (int64_t i = 0; i < lines; ++i) {
              copy_lines(i * s.stride + s.r);
              MultiplyBlocked(blocking_, {s.q, columns, rows * line_depth},
                              from + (i * s.stride + r) * width(),
                              s.stride * s.c, {line_depth, width()}, filters,
                              ldb, to + i * s.q * ldc, ldc, lease.data(),
                              /*accumulate=*/r > 0,
                              r + rows == s.r ? epilogue.From(j) : Epilogue(),
                              next_of(i));
            }
          };
          if constexpr (kWidens) {
            float* const widened = lease.data() + filters_at_;
            Widen(weights + r * line_depth * s.k + j, rows * line_depth,
                  columns, s.k, widened, columns);
            multiply(widened, columns, lease.data() + sums_at_, columns,
                     [](int64_t) { return NextBlock(); });
          } else {
            const int64_t step = PanelFloats(blocking_.tile, s.depth());
            const int64_t width = blocking_.tile.columns;
            const auto block = [&](int64_t r, int64_t j) {
              return weights + j / width * step + r * line_depth * width;
            };
            // The next rows of the filters, the next filters, or the first.
            const bool last_rows = r + rows == s.r;
            const int64_t next_j = !last_rows          ? j
                                   : j + columns < end ? j + columns
                                                       : column;
            const int64_t next_r = last_rows ? 0 : r + rows;
            const int64_t steps =
                std::min(filter_rows_, s.r - next_r) * line_depth;
            const int64_t share = CeilDiv(steps, lines);
            const int64_t next_columns = std::min(blocking_.nc, end - next_j);
            const int64_t tiles =
                CeilDiv(s.q, blocking_.tile.rows) * CeilDiv(columns, width);
            multiply(block(r, j), step, out, s.k, [&](int64_t line) {
              return NextBlock(block(next_r, next_j) + line * share * width,
                               width, std::min(share, steps - line * share),
                               next_columns, width, step, tiles);
            });
          }
        }
        if constexpr (kWidens) {
          RoundToBf16(lease.data() + sums_at_, lines * s.q, columns, columns,
                      out, s.k);
        }
      }
    });
  }

 private:
  static constexpr bool kWidens = !std::is_same_v<T, float>;

  bool copies_lines() const { return kWidens || size_.padding > 0; }
  int64_t width() const { return (size_.w + 2 * size_.padding) * size_.c; }
  int64_t line_parts() const { return CeilDiv(size_.p, task_lines_); }
  int64_t column_parts() const { return CeilDiv(size_.k, task_columns_); }
  int64_t count() const { return size_.n * line_parts() * column_parts(); }

  ConvolutionSize size_ = {};
  Blocking blocking_;
  int64_t task_lines_ = 0;  // of output, at most
  int64_t task_columns_ = 0;
  int64_t filter_rows_ = 0;  // of a block of filters
  // Where padded lines, widened filters and sums begin in a workspace.
  int64_t lines_at_ = 0;
  int64_t filters_at_ = 0;
  int64_t sums_at_ = 0;
  std::shared_ptr<Workspaces> workspaces_;
};

// By Winograd's algorithm: filters of 3 x 3, stride 1.
template <class T>
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
    const int64_t tiles = plan.task_lines_ * plan.columns();
    plan.inputs_at_ =
        WholeLines(WorkspaceFloats(blocking, {tiles, size.k, size.c}));
    plan.products_at_ = plan.inputs_at_ + WholeLines(kPoints * tiles * size.c);
    plan.outside_at_ = plan.products_at_ + WholeLines(kPoints * tiles * size.k);
    plan.nowhere_at_ = plan.outside_at_ + WholeLines(size.c);
    plan.pixels_at_ = plan.nowhere_at_ + WholeLines(size.k);
    const int64_t lines = plan.task_lines_ * kOutputs;
    plan.outputs_at_ =
        plan.pixels_at_ +
        (kWidens ? WholeLines((lines + 2) * size.w * size.c) : 0);
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.workspaces_,
        Workspaces::Create(
            device, std::min<int64_t>(device.threads(), plan.count()),
            plan.outputs_at_ +
                (kWidens ? WholeLines(lines * size.q * size.k) : 0)));
    return plan;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }
  int64_t filter_floats() const { return kPoints * filters(); }

  void TransformFilters(CpuDevice& device, const T* weights, float* u) const {
    const WinogradTransforms& winograd = FindWinograd();
    const int64_t places = size_.r * size_.s;
    std::vector<float> widened(kWidens ? places * filters() : 0);
    ForBlocks(device, filters(), kFiltersAtOnce,
              [&](int64_t begin, int64_t count) {
                const float* from;
                if constexpr (kWidens) {
                  Widen(weights + begin, places, count, filters(),
                        widened.data() + begin, filters());
                  from = widened.data();
                } else {
                  from = weights;
                }
                winograd.filters(from, filters(), begin, begin + count, u);
              });
  }

  // `u`: filters, transformed.
  void Run(CpuDevice& device, const T* x, const float* u, T* y,
           const Epilogue& epilogue) const {
    const WinogradTransforms& winograd = FindWinograd();
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
      // Lines of pixels and outputs, which begin with those that are there.
      const int64_t out_line = first * kOutputs;
      const int64_t out_lines =
          std::min(task_lines_ * kOutputs, s.p - out_line);
      const int64_t width = s.w * s.c;
      const int64_t first_line =
          std::clamp<int64_t>(out_line - s.padding, 0, s.h);
      const T* const in = x + (image * s.h + first_line) * width;
      T* const out = y + (image * s.p + out_line) * s.q * s.k;
      const float* from;
      float* to;
      if constexpr (kWidens) {
        const int64_t end = std::clamp(
            out_line - s.padding + out_lines + s.r - 1, first_line, s.h);
        CopyValues(in, (end - first_line) * width, lease.data() + pixels_at_);
        from = lease.data() + pixels_at_;
        to = lease.data() + outputs_at_;
      } else {
        from = in;
        to = out;
      }
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t line = (first + tile / columns()) * kOutputs - s.padding;
        const int64_t column = tile % columns() * kOutputs - s.padding;
        const float* pixels[kPoints];
        for (int64_t e = 0; e < kPoints; ++e) {
          const int64_t i = line + e / kSide, j = column + e % kSide;
          const bool inside = i >= 0 && i < s.h && j >= 0 && j < s.w;
          pixels[e] =
              inside ? from + (i - first_line) * width + j * s.c : outside;
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
          outputs[e] = inside ? to + ((i - out_line) * s.q + j) * s.k
                              : lease.data() + nowhere_at_;
        }
        winograd.output(products + tile * s.k, tiles * s.k, s.k, outputs);
      }
      ScaleShiftActivate(epilogue, to, out_lines * s.q, s.k, s.k);
      if constexpr (kWidens) {
        RoundToBf16(to, out_lines * s.q, s.k, s.k, out, s.k);
      }
    });
  }

 private:
  static constexpr bool kWidens = !std::is_same_v<T, float>;
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
  // for pixels outside, room for outputs that do not exist, and, where they are
  // widened, pixels and outputs.
  int64_t inputs_at_ = 0;
  int64_t products_at_ = 0;
  int64_t outside_at_ = 0;
  int64_t nowhere_at_ = 0;
  int64_t pixels_at_ = 0;
  int64_t outputs_at_ = 0;
  std::shared_ptr<Workspaces> workspaces_;
};

template <class Knobs, bool kFused>
class ConvolutionCpu : public KnobKernel<Knobs> {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::BF16}};
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const override {
    return shape.data_types(0) == proto::BF16
               ? BindType<uint16_t>(shape, knobs, device)
               : BindType<float>(shape, knobs, device);
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
  // Of one call; scale and shift are floats always.
  template <class T>
  struct Operands {
    explicit Operands(absl::Span<void* const> operands)
        : x(static_cast<const T*>(operands[0])),
          weights(static_cast<const T*>(operands[1])),
          y(static_cast<T*>(operands[kFused ? 4 : 2])) {
      if (!kFused) return;
      epilogue.scale = static_cast<const float*>(operands[2]);
      epilogue.shift = static_cast<const float*>(operands[3]);
      epilogue.activation = Activation::kRelu;
    }

    const T* x;
    const T* weights;
    T* y;
    Epilogue epilogue;
  };

  template <class T>
  static absl::StatusOr<std::unique_ptr<Invocation>> BindType(
      const proto::Shape& shape, const Knobs& knobs, CpuDevice& device) {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize size,
                             ConvolutionSizeOf(shape));
    OPTRAIL_ASSIGN_OR_RETURN(
        const Blocking blocking,
        BlockingOf(knobs, knobs.pixels == Knobs::Pixels::kWinograd
                              ? size.c
                              : size.depth()));
    if (knobs.pixels == Knobs::Pixels::kInPlace && !size.is_product()) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const auto plan,
          ConvolutionInPlace<T>::Plan(size, blocking, knobs.task_rows,
                                      knobs.task_columns, device));
      if constexpr (std::is_same_v<T, float>) {
        return WithPanels(
            size, blocking.tile, device,
            [=, &device](const Operands<T>& all, const float* panels) {
              plan.Run(device, all.x, panels, all.y, all.epilogue);
            },
            plan.workspaces());
      } else {
        return MakeInvocation(
            [=, &device](absl::Span<void* const> operands) {
              const Operands<T> all(operands);
              plan.Run(device, all.x, all.weights, all.y, all.epilogue);
            },
            plan.workspaces());
      }
    }
    if (knobs.pixels == Knobs::Pixels::kWinograd) {
      if (size.r != 3 || size.s != 3 || size.stride != 1) {
        return absl::InvalidArgumentError(
            "pixels=winograd: expected filters of 3x3 with stride 1");
      }
      OPTRAIL_ASSIGN_OR_RETURN(const auto plan,
                               ConvolutionWinograd<T>::Plan(
                                   size, blocking, knobs.task_rows, device));
      const auto filters =
          std::make_shared<PackedOperand>(device, plan.filter_floats());
      return MakePackingInvocation(
          [=, &device](absl::Span<void* const> operands) {
            const Operands<T> all(operands);
            plan.TransformFilters(device, all.weights,
                                  filters->Keep(all.weights));
          },
          [=, &device](absl::Span<void* const> operands) {
            const Operands<T> all(operands);
            plan.Run(device, all.x, filters->Find(all.weights), all.y,
                     all.epilogue);
          },
          plan.workspaces());
    }
    ProductTasks::Cut cut;
    cut.size = {size.rows(), size.k, size.depth()};
    cut.task_rows = knobs.task_rows;
    cut.task_columns = knobs.task_columns;
    if constexpr (std::is_same_v<T, float>) {
      return BindProduct(size, blocking, cut, device);
    } else {
      return BindWidened(size, blocking, cut, device);
    }
  }

  // run(operands, panels), filters being packed before.
  template <class Run>
  static std::unique_ptr<Invocation> WithPanels(
      const ConvolutionSize& size, const RegisterTile& tile, CpuDevice& device,
      const Run& run, const std::shared_ptr<Workspaces>& workspaces) {
    const auto panels = std::make_shared<PackedOperand>(
        device, RightFactorFloats(tile, size.k, size.depth()));
    return MakePackingInvocation(
        [=](absl::Span<void* const> operands) {
          const Operands<float> all(operands);
          PackRightFactor(tile, size.k, size.depth(), all.weights, size.k,
                          panels->Keep(all.weights));
        },
        [=](absl::Span<void* const> operands) {
          const Operands<float> all(operands);
          run(all, panels->Find(all.weights));
        },
        workspaces);
  }

  // Pixels gathered, or a product of what is there.
  static absl::StatusOr<std::unique_ptr<Invocation>> BindProduct(
      const ConvolutionSize& size, Blocking blocking, ProductTasks::Cut cut,
      CpuDevice& device) {
    blocking.pack_b = false;
    blocking.b_in_panels = true;
    cut.gathers_a = !size.is_product();
    OPTRAIL_ASSIGN_OR_RETURN(const ProductTasks tasks,
                             ProductTasks::Plan(blocking, cut, device));
    return WithPanels(
        size, blocking.tile, device,
        [=, &device](const Operands<float>& all, const float* panels) {
          tasks.Run(
              device,
              [&](int64_t, int64_t row, int64_t rows, float* space) {
                const int64_t depth = size.depth();
                if (size.is_product()) {
                  return BlockView{all.x + row * depth, depth};
                }
                GatherPixels(size, all.x, row, rows, 0, depth, space);
                return BlockView{space, depth};
              },
              [&](int64_t, int64_t column) {
                const int64_t step = PanelFloats(blocking.tile, size.depth());
                return BlockView{panels + column / blocking.tile.columns * step,
                                 step};
              },
              all.y, all.epilogue);
        },
        tasks.workspaces());
  }

  // The same of bfloat16.
  static absl::StatusOr<std::unique_ptr<Invocation>> BindWidened(
      const ConvolutionSize& size, const Blocking& blocking,
      const ProductTasks::Cut& cut, CpuDevice& device) {
    OPTRAIL_ASSIGN_OR_RETURN(const WidenedTasks tasks,
                             WidenedTasks::Plan(blocking, cut, device));
    return MakeInvocation(
        [=, &device](absl::Span<void* const> operands) {
          const Operands<uint16_t> all(operands);
          if (size.is_product()) {
            tasks.Run(device, all.x, all.weights, all.y, all.epilogue);
            return;
          }
          tasks.Run(
              device,
              [&](int64_t row, int64_t rows, int64_t step, int64_t steps,
                  float* to) {
                GatherPixels(size, all.x, row, rows, step, steps, to);
              },
              all.weights, all.y, all.epilogue);
        },
        tasks.workspaces());
  }
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
