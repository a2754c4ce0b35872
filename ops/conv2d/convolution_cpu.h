#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_

// The CPU kernel that conv2d and its fused forms share: an implicit matrix
// product, whose left factor has the pixels under the filter for an output
// pixel in each row and is never there as a whole. A task computes some output
// pixels and finishes them while they are in cache. Their rows are either
// gathered into a workspace or read where they lie: the pixels under a row of
// the filter are neighbours, so that those of an output line are a constant
// step apart (pixel_line.h). What lies outside of the image is left out there,
// so that a filter that is not finite makes no NaN of it, or copied as a border
// of zeros. Filters of 3 x 3 may go by Winograd's algorithm instead
// (winograd.h).
// Filters are packed before calls, as a layer would keep them: in panels, or
// transformed. Pixels and filters of bfloat16 are multiplied in pairs where the
// machine has instructions for it that pay, and widened to float as they are
// copied elsewhere; sums of a task are rounded once, when they are whole.
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
#include "ops/conv2d/pixel_line.h"
#include "ops/conv2d/winograd.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/lib/packed_operand.h"
#include "ops/product/cpu/pairs.h"
#include "ops/product/cpu/product.h"

namespace optrail::ops {

// `count` values of x, which are floats or become some.
inline void CopyValues(const float* x, int64_t count, float* to) {
  std::memcpy(to, x, count * sizeof(float));
}
inline void CopyValues(const uint16_t* x, int64_t count, float* to) {
  Widen(x, 1, count, count, to, count);
}
inline void CopyValues(const uint16_t* x, int64_t count, uint16_t* to) {
  std::memcpy(to, x, count * sizeof(uint16_t));
}

// Steps [step, step + steps) of rows [row, row + rows) of the left factor,
// which come to lie `stride` apart.
template <class T, class To>
void GatherPixels(const ConvolutionSize& size, const T* x, int64_t row,
                  int64_t rows, int64_t step, int64_t steps, int64_t stride,
                  To* space) {
  const int64_t line_depth = size.s * size.c;
  for (int64_t i = row; i < row + rows; ++i) {
    const int64_t q = i % size.q;
    const int64_t p = i / size.q % size.p;
    const int64_t image = i / size.q / size.p;
    const int64_t col = q * size.stride - size.padding;
    // Of the filter's columns those that lie inside the image.
    const int64_t begin = std::clamp<int64_t>(-col, 0, size.s);
    const int64_t end = std::clamp<int64_t>(size.w - col, begin, size.s);
    To* to = space + (i - row) * stride;
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
      std::fill_n(to, copied - first, To{});
      if (after > copied) {
        CopyValues(
            x + ((image * size.h + line) * size.w + col) * size.c + copied,
            after - copied, to + copied - first);
      }
      std::fill_n(to + after - first, last - after, To{});
      to += last - first;
      at += last - first;
    }
  }
}

// The rows of an implicit product's left factor: pixels under the filter.
template <class T>
class PixelRows final : public GatheredRows {
 public:
  PixelRows(const ConvolutionSize& size, const T* x) : size_(size), x_(x) {}

  void Copy(int64_t row, int64_t rows, int64_t step, int64_t steps,
            int64_t stride, float* to) const override {
    GatherPixels(size_, x_, row, rows, step, steps, stride, to);
  }
  void Copy(int64_t row, int64_t rows, int64_t step, int64_t steps,
            int64_t stride, uint16_t* to) const override {
    if constexpr (std::is_same_v<T, uint16_t>) {
      GatherPixels(size_, x_, row, rows, step, steps, stride, to);
    }
  }

 private:
  const ConvolutionSize& size_;
  const T* const x_;
};

// Pixels are read where they lie, line by line (pixel_line.h): rows of the
// filter that lie above or below the image are left out, and so are its columns
// left and right of it. Only where padding is wider than a step, or channels
// are few, lines are copied with a border of zeros first. Distances are counted
// in elements: floats, or pairs of channels.
template <class T>
class ConvolutionInPlace {
 public:
  // What the knobs say: tiles of at most `pixels` by `vectors`, `panels` and
  // roughly `steps` of the filters that all lines meet while they are in cache,
  // and tasks.
  struct Cut {
    int64_t pixels = 0;
    int64_t vectors = 0;
    int64_t panels = 0;
    int64_t steps = 0;
    int64_t task_rows = 0;
    int64_t task_columns = 0;
  };

  static absl::StatusOr<ConvolutionInPlace> Plan(const ConvolutionSize& size,
                                                 const Cut& cut,
                                                 CpuDevice& device) {
    ConvolutionInPlace plan;
    plan.size_ = size;
    const auto find_tile = [&](PixelElement element) {
      return FindTileForLine(static_cast<int>(cut.pixels),
                             static_cast<int>(cut.vectors), element, size.q);
    };
    // Pixels below the filter begin with whole pairs.
    if (kRounds && size.stride * size.c % 2 == 0 && PairsPay()) {
      plan.tile_ = find_tile(PixelElement::kPair);
    }
    plan.pairs_ = plan.tile_.multiply != nullptr;
    if (!plan.pairs_) plan.tile_ = find_tile(PixelElement::kFloat);
    if (plan.tile_.multiply == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a tile of mr=", cut.pixels, " pixels by nr_vectors=", cut.vectors,
          " does not fit into the vector registers of this machine"));
    }
    const int64_t width = plan.tile_.columns;
    // A pixel is read once for all places of the filter.
    const TaskSize task =
        ShareOut(size.n,
                 {size.p * size.q, size.q,
                  std::max(cut.task_rows / size.q, int64_t{1}) * size.q,
                  12.0 / static_cast<double>(size.r * size.s)},
                 {size.k, width, cut.task_columns}, device.threads());
    plan.task_lines_ = task.rows / size.q;
    plan.task_columns_ = std::min(task.columns, size.k);
    plan.block_columns_ = std::min(cut.panels * width, plan.task_columns_);
    plan.filter_rows_ =
        std::clamp<int64_t>(cut.steps / plan.line_depth(), int64_t{1}, size.r);
    // Of the filter's columns those that the last pixel of a line lacks.
    const int64_t beyond = std::max<int64_t>(
        (size.q - 1) * size.stride - size.padding + size.s - size.w, 0);
    plan.has_border_ =
        size.padding > size.stride || size.padding + beyond > size.s ||
        (size.padding > 0 &&
         (size.c < kFewChannels || (plan.pairs_ && size.c % 2 != 0)));
    plan.copies_lines_ =
        plan.has_border_ || (plan.pairs_ ? size.c % 2 != 0 : kRounds);
    if (!plan.has_border_) {
      plan.first_lacks_ = plan.Elements(size.padding * size.c);
      plan.last_lacks_ = plan.Elements(beyond * size.c);
    }
    plan.prefetch_y_ =
        !kRounds && PrefetchPays(size.rows() * size.k,
                                 plan.filter_rows_ * plan.line_depth(),
                                 device.hardware().l2_bytes());
    const int64_t lines = (plan.task_lines_ - 1) * size.stride + size.r;
    plan.sums_at_ = WholeLines(plan.copies_lines_ ? lines * plan.width() : 0);
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.workspaces_,
        Workspaces::Create(
            device, std::min<int64_t>(device.threads(), plan.count()),
            plan.sums_at_ +
                (kRounds ? plan.task_lines_ * size.q * plan.block_columns_
                         : 0)));
    return plan;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  int64_t filter_floats() const {
    return CeilDiv(size_.k, tile_.columns) * panel_floats();
  }

  void PackFilters(const T* weights, float* panels) const {
    const int64_t width = tile_.columns;
    if constexpr (!kRounds) {
      PackedB{width, size_.depth()}.Pack(size_.k, weights, size_.k, panels);
    } else if (pairs_) {
      const int64_t steps = size_.s * size_.c;
      for (int64_t r = 0; r < size_.r; ++r) {
        PackPairPanels(width, size_.k, steps, weights + r * steps * size_.k,
                       size_.k, panel_floats(),
                       panels + r * line_depth() * width);
      }
    } else {
      for (int64_t j = 0; j < size_.k; j += width, panels += panel_floats()) {
        const int64_t count = std::min(width, size_.k - j);
        if (count < width) std::fill_n(panels, panel_floats(), 0.0f);
        Widen(weights + j, size_.depth(), count, size_.k, panels, width);
      }
    }
  }

  void Run(CpuDevice& device, const T* x, const float* panels, T* y,
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
      // Line 0 of the image, or that of the first one that is copied.
      const float* from = lease.data();
      int64_t first_line = std::max(line * s.stride - s.padding, int64_t{0});
      if (!copies_lines_) {
        from = reinterpret_cast<const float*>(pixels);
        first_line = 0;
      }
      // Copied right before they are read first, in L1.
      int64_t copied = first_line;
      const auto copy_lines = [&](int64_t end) {
        if (!copies_lines_ || end <= copied) return;
        CopyLines(pixels, copied, end,
                  lease.data() + (copied - first_line) * width());
        copied = end;
      };
      for (int64_t j = column; j < end; j += block_columns_) {
        const int64_t columns = std::min(block_columns_, end - j);
        T* const out = y + ((image * s.p + line) * s.q) * s.k + j;
        // All lines meet a block of filters while it is in cache.
        for (int64_t r = 0; r < s.r; r += filter_rows_) {
          Filters filters = FindFilters(panels, r, j, columns);
          filters.SetNext(FindNext(panels, r, j, column, end),
                          lines * CeilDiv(s.q, tile_.pixels));
          for (int64_t i = 0; i < lines; ++i) {
            // Of the filter's rows those that lie inside the image, of them
            // those of this block.
            const int64_t top = (line + i) * s.stride - s.padding;
            const int64_t inside = std::clamp<int64_t>(-top, 0, s.r);
            const int64_t outside = std::clamp(s.h - top, inside, s.r);
            const int64_t begin = std::max(inside, r);
            const int64_t after = std::min(outside, r + filter_rows_);
            if (begin >= after && (inside < outside || r > 0)) continue;
            copy_lines(std::min(top + s.r, s.h));
            PixelLine all;
            all.x = from + (top + begin - first_line) * width() -
                    (has_border_ ? 0 : Elements(s.padding * s.c));
            all.pixel_step = Elements(s.stride * s.c);
            all.line_step = width();
            all.filter_rows = std::max(after - begin, int64_t{0});
            all.row_depth = Elements(s.s * s.c);
            all.ends_in_half = line_depth() > all.row_depth;
            all.first_lacks = first_lacks_;
            all.last_lacks = last_lacks_;
            all.pixels = s.q;
            all.accumulate = begin > inside;
            all.prefetch_y = prefetch_y_;
            const bool whole = after >= outside || inside == outside;
            if constexpr (kRounds) {
              float* const sums = lease.data() + sums_at_ + i * s.q * columns;
              MultiplyPanels(all, filters, begin - r, columns, sums, columns,
                             whole ? epilogue.From(j) : Epilogue());
            } else {
              MultiplyPanels(all, filters, begin - r, columns,
                             out + i * s.q * s.k, s.k,
                             whole ? epilogue.From(j) : Epilogue());
            }
          }
        }
        if constexpr (kRounds) {
          RoundToBf16(lease.data() + sums_at_, lines * s.q, columns, columns,
                      out, s.k);
        }
      }
    });
  }

 private:
  static constexpr bool kRounds = !std::is_same_v<T, float>;
  // Sums over few are not taken apart for the columns of a filter.
  static constexpr int64_t kFewChannels = 16;

  // A block of filters in panels: some rows of all columns of the filter.
  struct Filters {
    const float* panels = nullptr;
    int64_t panel_floats = 0;  // from one panel to the next
    int64_t steps = 0;
    int64_t count = 0;  // of panels
    // What is read next, as that lies, and how many of its rows are brought
    // near with each tile of a panel.
    const float* next = nullptr;
    int64_t next_floats = 0;
    int64_t next_steps = 0;
    int64_t next_count = 0;
    int64_t next_rows = 0;
    int64_t brought = 0;  // rows, of all panels

    void SetNext(const Filters& block, int64_t tiles) {
      next = block.panels;
      next_floats = block.panel_floats;
      next_steps = block.steps;
      next_count = block.count;
      next_rows = CeilDiv(next_steps * next_count, tiles * count);
    }

    // A line of `tiles` brings what follows in a panel of the next block.
    void PrefetchDuring(PixelLine& line, int64_t tiles) {
      const int64_t left = next_steps - brought % next_steps;
      line.next_rows = brought < next_steps * next_count
                           ? std::min(next_rows, CeilDiv(left, tiles))
                           : 0;
      if (line.next_rows == 0) return;
      line.next = next + brought / next_steps * next_floats +
                  brought % next_steps * line.panel_step;
      brought += std::min(left, line.next_rows * tiles);
    }
  };

  // Whole ones among `values`.
  int64_t Elements(int64_t values) const {
    return pairs_ ? values / 2 : values;
  }
  // A row of a filter, and a line that is read.
  int64_t line_depth() const {
    return pairs_ ? CeilDiv(size_.s * size_.c, 2) : size_.s * size_.c;
  }
  int64_t width() const {
    const int64_t values =
        (size_.w + (has_border_ ? 2 * size_.padding : 0)) * size_.c;
    return pairs_ ? CeilDiv(values, 2) : values;
  }
  int64_t panel_floats() const {
    return size_.r * line_depth() * tile_.columns;
  }
  int64_t line_parts() const { return CeilDiv(size_.p, task_lines_); }
  int64_t column_parts() const { return CeilDiv(size_.k, task_columns_); }
  int64_t count() const { return size_.n * line_parts() * column_parts(); }

  // Lines [begin, end) of an image, with borders where there are any.
  void CopyLines(const T* image, int64_t begin, int64_t end, float* to) const {
    if constexpr (kRounds) {
      if (pairs_) {
        CopyLinesAs(image, begin, end, 2 * width(),
                    reinterpret_cast<uint16_t*>(to));
        return;
      }
    }
    CopyLinesAs(image, begin, end, width(), to);
  }
  template <class To>
  void CopyLinesAs(const T* image, int64_t begin, int64_t end, int64_t step,
                   To* to) const {
    const int64_t border = has_border_ ? size_.padding * size_.c : 0;
    const int64_t inside = size_.w * size_.c;
    for (int64_t i = begin; i < end; ++i, to += step) {
      std::fill_n(to, border, To{});
      CopyValues(image + i * inside, inside, to + border);
      std::fill_n(to + border + inside, step - border - inside, To{});
    }
  }

  // Of packed filters rows [r, r + filter_rows_) of `columns` from j on.
  Filters FindFilters(const float* panels, int64_t r, int64_t j,
                      int64_t columns) const {
    Filters filters;
    filters.panel_floats = panel_floats();
    filters.panels = panels + j / tile_.columns * filters.panel_floats +
                     r * line_depth() * tile_.columns;
    filters.steps = std::min(filter_rows_, size_.r - r) * line_depth();
    filters.count = CeilDiv(columns, tile_.columns);
    return filters;
  }

  // The next rows of the filters, the next filters, or the first of the task.
  Filters FindNext(const float* panels, int64_t r, int64_t j, int64_t column,
                   int64_t end) const {
    r += filter_rows_;
    if (r >= size_.r) {
      r = 0;
      j += block_columns_;
      if (j >= end) j = column;
    }
    return FindFilters(panels, r, j, std::min(block_columns_, end - j));
  }

  // A line of output pixels, `row` being the first of the block's rows.
  void MultiplyPanels(PixelLine line, Filters& filters, int64_t row,
                      int64_t columns, float* y, int64_t y_step,
                      const Epilogue& epilogue) const {
    const int64_t width = tile_.columns;
    const int64_t tiles = CeilDiv(line.pixels, tile_.pixels);
    line.panel_step = width;
    line.y_step = y_step;
    for (int64_t j = 0; j < columns; j += width) {
      line.panel = filters.panels + j / width * filters.panel_floats +
                   row * line_depth() * width;
      line.y = y + j;
      line.columns = std::min(width, columns - j);
      filters.PrefetchDuring(line, tiles);
      tile_.multiply(line);
      if (!epilogue.changes_nothing()) {
        ScaleShiftActivate(epilogue.From(j), line.y, line.pixels, line.columns,
                           y_step);
      }
    }
  }

  ConvolutionSize size_ = {};
  PixelTile tile_;
  int64_t task_lines_ = 0;  // of output, at most
  int64_t task_columns_ = 0;
  int64_t block_columns_ = 0;  // of a block of filters
  int64_t filter_rows_ = 0;
  bool pairs_ = false;
  bool has_border_ = false;
  bool copies_lines_ = false;
  int64_t first_lacks_ = 0;  // pixel_line.h
  int64_t last_lacks_ = 0;
  bool prefetch_y_ = false;
  // Where sums that are rounded begin in a workspace, after copied lines.
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
    // Lines of tiles, for all filters.
    const int64_t line = plan.columns() * kOutputs * kOutputs;
    plan.task_lines_ =
        ShareOut(size.n, {plan.lines() * line, line, task_rows / line * line},
                 {size.k, size.k, size.k}, device.threads())
            .rows /
        line;
    const int64_t tiles = plan.task_lines_ * plan.columns();
    plan.product_ = BlockedProduct(blocking, {tiles, size.k, size.c});
    plan.inputs_at_ = WholeLines(plan.product_.workspace_floats());
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
        Result sums;
        sums.data = products + e * tiles * s.k;
        sums.stride = s.k;
        product_.Multiply({tiles, s.k, s.c}, {{inputs + e * tiles * s.c, s.c}},
                          {{u + e * filters(), s.k}}, sums, lease.data());
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
  BlockedProduct product_;
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
    if (knobs.pixels == Knobs::Pixels::kInPlace && !size.is_product()) {
      typename ConvolutionInPlace<T>::Cut cut;
      cut.pixels = knobs.mr;
      cut.vectors = knobs.nr_vectors;
      cut.panels = knobs.n_tiles;
      cut.steps = knobs.kc;
      cut.task_rows = knobs.task_rows;
      cut.task_columns = knobs.task_columns;
      OPTRAIL_ASSIGN_OR_RETURN(const auto plan,
                               ConvolutionInPlace<T>::Plan(size, cut, device));
      const auto panels =
          std::make_shared<PackedOperand>(device, plan.filter_floats());
      return MakePackingInvocation(
          [=](absl::Span<void* const> operands) {
            const Operands<T> all(operands);
            plan.PackFilters(all.weights, panels->Keep(all.weights));
          },
          [=, &device](absl::Span<void* const> operands) {
            const Operands<T> all(operands);
            plan.Run(device, all.x, panels->Find(all.weights), all.y,
                     all.epilogue);
          },
          plan.workspaces());
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        Blocking blocking,
        BlockingOf(knobs, knobs.pixels == Knobs::Pixels::kWinograd
                              ? size.c
                              : size.depth()));
    blocking.pack_b = false;
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
    ProductSpec spec;
    spec.size = {size.rows(), size.k, size.depth()};
    spec.blocking = blocking;
    spec.task_rows = knobs.task_rows;
    spec.task_columns = knobs.task_columns;
    spec.may_pack_b = true;
    spec.gathers_a = !size.is_product();
    return BindProduct<T>(size, spec, device);
  }

  // Pixels gathered, or a product of what is stored.
  template <class T>
  static absl::StatusOr<std::unique_ptr<Invocation>> BindProduct(
      const ConvolutionSize& size, const ProductSpec& spec, CpuDevice& device) {
    OPTRAIL_ASSIGN_OR_RETURN(const auto product,
                             Product<T>::Plan(spec, device));
    const auto filters = std::make_shared<PackedOperand>(
        device, product.packs_b() ? product.packed_floats() : 0);
    return MakePackingInvocation(
        [=](absl::Span<void* const> operands) {
          const Operands<T> all(operands);
          if (!product.packs_b()) return;
          product.PackB(all.weights, filters->Keep(all.weights));
        },
        [=, &device](absl::Span<void* const> operands) {
          const Operands<T> all(operands);
          const PixelRows<T> pixels(size, all.x);
          typename Product<T>::Right right;
          right.data = all.weights;
          if (product.packs_b()) right.packed = filters->Find(all.weights);
          product.Run(device, {all.x, size.is_product() ? nullptr : &pixels},
                      right, all.y, all.epilogue);
        },
        product.workspaces());
  }
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CPU_H_
