#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_IN_PLACE_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_IN_PLACE_H_

// Convolutions that read pixels where they are stored, line by line: those
// under a row of the filter are neighbours, a K segment of the micro-kernel,
// and those of an output line are a constant step apart. Rows of the filter
// above or below the image are left out, and so are its columns left and right
// of it: steps that the first or the last pixel of a line lacks. (With 14
// pixels to a line and filters of 3 x 3 that is a twentieth of all.) Only where
// padding is wider than a step, or channels are few, lines are copied with a
// border of zeros first. Where filters are few and their rows long, vectors
// hold steps of a sum and not filters (few_columns.h), and lines have the
// border, too.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const auto plan,
//       ConvolutionInPlace<float>::Plan(size, cut, device, layout));
//   plan.PackFilters(weights, panels);  // filter_floats()
//   plan.Run(call, x, panels, y, epilogue);
//
// Distances are counted in elements: floats, or pairs of channels.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/conv2d/convolution.h"
#include "ops/conv2d/line_tiles.h"
#include "ops/conv2d/pixels.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/few_columns.h"
#include "ops/product/cpu/micro_kernel.h"
#include "ops/product/cpu/packing.h"
#include "ops/product/cpu/pairs.h"
#include "ops/product/cpu/prefetch.h"
#include "ops/product/cpu/tasks.h"

namespace optrail::ops {

template <class T>
class ConvolutionInPlace {
 public:
  // The knobs: tiles of at most `pixels` by `vectors` (where the filters fill
  // fewer vectors, of as many more pixels, at most 14), `panels` and roughly
  // `steps` of the filters that all lines meet while they are in cache, and
  // tasks.
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
                                                 CpuDevice& device,
                                                 WorkspaceLayout& layout) {
    ConvolutionInPlace plan;
    plan.size_ = size;
    OPTRAIL_RETURN_IF_ERROR(plan.PlanTile(cut));
    const int64_t width = plan.tile_.columns;
    // A pixel is read once for all places of the filter.
    const TaskSize task = ShareOut(
        size.n,
        {size.p * size.q, size.q,
         std::max(cut.task_rows / size.q, int64_t{1}) * size.q,
         12.0 / static_cast<double>(size.r * size.s)},
        {size.k, width, cut.task_columns}, size.depth(), device.threads());
    plan.task_lines_ = task.rows / size.q;
    plan.task_columns_ = std::min(task.columns, size.k);
    plan.block_columns_ = std::min(cut.panels * width, plan.task_columns_);
    plan.filter_rows_ =
        std::clamp<int64_t>(cut.steps / plan.line_depth(), int64_t{1}, size.r);
    plan.panels_ = {width, size.r * plan.line_depth()};
    plan.PlanLines();
    plan.prefetch_y_ =
        !kRounds && PrefetchPays(size.rows() * size.k,
                                 plan.filter_rows_ * plan.line_depth(),
                                 device.hardware().l2_bytes());
    // Filters that are near leave the buffers to pixels that are not.
    plan.prefetch_x_ = !plan.copies_lines_ && plan.filter_rows_ >= size.r &&
                       plan.block_columns_ >= plan.task_columns_ &&
                       size.n * size.h * plan.width() * int64_t{sizeof(float)} >
                           device.hardware().l2_bytes();
    const int64_t lines = (plan.task_lines_ - 1) * size.stride + size.r;
    plan.sums_at_ = WholeLines(plan.copies_lines_ ? lines * plan.width() : 0);
    plan.workspaces_ = Workspaces(
        layout, std::min<int64_t>(device.threads(), plan.count()),
        plan.sums_at_ +
            (kRounds ? plan.task_lines_ * size.q * plan.block_columns_ : 0));
    return plan;
  }

  int64_t filter_floats() const {
    return along_sums_ ? size_.k * size_.depth() : panels_.floats(size_.k);
  }

  void PackFilters(const T* weights, float* panels) const {
    if (along_sums_) {
      return pairs_ ? Transpose(weights, reinterpret_cast<T*>(panels))
                    : Transpose(weights, panels);
    }
    const int64_t width = tile_.columns;
    if constexpr (!kRounds) {
      panels_.Pack(size_.k, weights, size_.k, panels);
    } else if (pairs_) {
      const int64_t steps = size_.s * size_.c;
      for (int64_t r = 0; r < size_.r; ++r) {
        PackPairPanels(width, size_.k, steps, weights + r * steps * size_.k,
                       size_.k, panels_.panel_floats(),
                       panels + r * line_depth() * width);
      }
    } else {
      for (int64_t j = 0; j < size_.k;
           j += width, panels += panels_.panel_floats()) {
        const int64_t count = std::min(width, size_.k - j);
        if (count < width) std::fill_n(panels, panels_.panel_floats(), 0.0f);
        Widen(weights + j, size_.depth(), count, size_.k, panels, width);
      }
    }
  }

  // `panels`: filters, packed.
  void Run(const Call& call, const T* x, const float* panels, T* y,
           const Epilogue& epilogue) const {
    Workspaces::Shared shared(workspaces_, call);
    call.ParallelFor(count(), [&](int64_t index) {
      const ConvolutionSize& s = size_;
      const int64_t column = index % column_parts() * task_columns_;
      const int64_t line = index / column_parts() % line_parts() * task_lines_;
      const int64_t image = index / column_parts() / line_parts();
      const Workspaces::Lease lease(shared);
      Task(*this, line, std::min(task_lines_, s.p - line), column,
           std::min(column + task_columns_, s.k), x + image * s.h * s.w * s.c,
           panels, y + (image * s.p + line) * s.q * s.k, epilogue, lease.data())
          .Run();
    });
  }

 private:
  static constexpr bool kRounds = !std::is_same_v<T, float>;
  // Sums over few are not taken apart for the columns of a filter.
  static constexpr int64_t kFewChannels = 16;

  // Some lines of outputs of an image, for some filters.
  class Task {
   public:
    Task(const ConvolutionInPlace& plan, int64_t line, int64_t lines,
         int64_t column, int64_t end, const T* image, const float* panels, T* y,
         const Epilogue& epilogue, float* space)
        : plan_(plan),
          s_(plan.size_),
          line_(line),
          lines_(lines),
          column_(column),
          end_(end),
          image_(image),
          panels_(panels),
          y_(y),
          epilogue_(epilogue),
          copy_(space),
          sums_(space + plan.sums_at_) {
      // Line 0 of the image, or the first one that is copied.
      if (plan.copies_lines_) {
        first_line_ = copied_ =
            std::max(line * s_.stride - s_.padding, int64_t{0});
      }
      call_.k = plan.Elements(s_.s * s_.c);
      call_.lda = plan.Elements(s_.stride * s_.c);
      call_.ldb = plan.tile_.columns;
      call_.segment_step = plan.width();
      call_.ends_in_half = plan.line_depth() > call_.k;
      call_.prefetch_c = plan.prefetch_y_;
      call_.ld_rounded = s_.k;
    }

    void Run() {
      if (plan_.along_sums_) return AlongSums();
      // All lines meet a block of filters while it is in cache.
      for (int64_t j = column_; j < end_; j += plan_.block_columns_) {
        const int64_t columns = std::min(plan_.block_columns_, end_ - j);
        for (int64_t r = 0; r < s_.r; r += plan_.filter_rows_) {
          NextBlock next = NextFilters(r, j, columns);
          for (int64_t i = 0; i < lines_; ++i) {
            if (plan_.prefetch_x_) next = NextPixels(i, columns);
            Line(i, r, j, columns, next);
          }
        }
        if constexpr (kRounds) {
          if (plan_.pairs_) continue;
          RoundToBf16(sums_, lines_ * s_.q, columns, columns, y_ + j, s_.k);
        }
      }
    }

   private:
    // Few filters: vectors hold steps of the sum, not filters.
    void AlongSums() {
      for (int64_t i = 0; i < lines_; ++i) {
        float* c = nullptr;
        if constexpr (kRounds) {
          c = sums_ + i * s_.q * s_.k;
        } else {
          c = y_ + i * s_.q * s_.k;
        }
        if constexpr (kRounds) {
          if (plan_.pairs_) {
            LineAlongSums<uint16_t>(i, c);
            continue;
          }
        }
        LineAlongSums<float>(i, c);
      }
      const int64_t rows = lines_ * s_.q;
      if constexpr (kRounds) {
        ScaleShiftActivate(epilogue_, sums_, rows, s_.k, s_.k);
        (plan_.pairs_ ? RoundPairSums : RoundToBf16)(sums_, rows, s_.k, s_.k,
                                                     y_, s_.k);
      } else {
        ScaleShiftActivate(epilogue_, y_, rows, s_.k, s_.k);
      }
    }

    // Sums of output line i, of pixels and filters that are `Value`s.
    template <class Value>
    void LineAlongSums(int64_t i, float* c) {
      constexpr auto kOfFloat =
          static_cast<int64_t>(sizeof(float) / sizeof(Value));
      const int64_t top = (line_ + i) * s_.stride - s_.padding;
      const int64_t begin = std::clamp<int64_t>(-top, 0, s_.r);
      const int64_t end = std::clamp(s_.h - top, begin, s_.r);
      if (plan_.copies_lines_) CopyLines(std::min(top + s_.r, s_.h));
      const auto* const from = reinterpret_cast<const Value*>(
          plan_.copies_lines_ ? static_cast<const void*>(copy_) : image_);
      const int64_t width = plan_.width() * kOfFloat;
      MultiplyFewColumns(
          {s_.q, s_.k, s_.s * s_.c}, from + (top + begin - first_line_) * width,
          s_.stride * s_.c,
          reinterpret_cast<const Value*>(panels_) + begin * s_.s * s_.c,
          s_.depth(), c, s_.k, {end - begin, width});
    }

    // Output line i of the task: of the filter's rows that are inside the image
    // those from r on that are in the block, all filters of the block.
    void Line(int64_t i, int64_t r, int64_t j, int64_t columns,
              NextBlock& next) {
      const int64_t top = (line_ + i) * s_.stride - s_.padding;
      const int64_t inside = std::clamp<int64_t>(-top, 0, s_.r);
      const int64_t outside = std::clamp(s_.h - top, inside, s_.r);
      const int64_t begin = std::max(inside, r);
      const int64_t after = std::min(outside, r + plan_.filter_rows_);
      if (begin >= after && (inside < outside || r > 0)) return;
      if (plan_.copies_lines_) CopyLines(std::min(top + s_.r, s_.h));
      const auto* const from =
          plan_.copies_lines_ ? copy_ : reinterpret_cast<const float*>(image_);
      const float* const a =
          from + (top + begin - first_line_) * plan_.width() -
          (plan_.has_border_ ? 0 : plan_.Elements(s_.padding * s_.c));
      call_.segments = std::max(after - begin, int64_t{0});
      call_.accumulate = begin > inside;
      const bool whole = after >= outside || inside == outside;
      const int64_t width = plan_.tile_.columns;
      float* c = nullptr;
      if constexpr (kRounds) {
        c = sums_ + i * s_.q * columns;
        call_.ldc = columns;
      } else {
        c = y_ + i * s_.q * s_.k + j;
        call_.ldc = s_.k;
      }
      call_.relu = whole && epilogue_.activation == Activation::kRelu;
      for (int64_t p = 0; p < columns; p += width) {
        const Epilogue ending = epilogue_.From(j + p);
        call_.scale = whole ? ending.scale : nullptr;
        call_.shift = whole ? ending.shift : nullptr;
        const float* const b = plan_.Filters(panels_, begin, j + p);
        call_.columns = std::min(width, columns - p);
        if constexpr (kRounds) {
          const bool rounds = whole && plan_.pairs_;
          call_.rounded = rounds ? y_ + i * s_.q * s_.k + j + p : nullptr;
        }
        next.PrefetchDuring(call_, plan_.prefetching_tiles());
        Pixels(a, b, c + p);
      }
    }

    // A line of some filters: whole tiles of pixels, then the others.
    void Pixels(const float* a, const float* b, float* c) {
      const bool last = call_.columns < plan_.tile_.columns;
      const int64_t rest = s_.q - plan_.whole_pixels_;
      call_.rows = plan_.whole_pixels_;
      call_.first_lacks = plan_.first_lacks_;
      call_.last_lacks = rest > 0 ? 0 : plan_.last_lacks_;
      (last ? plan_.last_tile_ : plan_.tile_).segments(call_, a, b, c);
      if (rest == 0) return;
      a += call_.rows * call_.lda;
      c += call_.rows * call_.ldc;
      if (call_.rounded != nullptr) {
        call_.rounded += call_.rows * call_.ld_rounded;
      }
      call_.rows = rest;
      call_.first_lacks = 0;
      call_.last_lacks = plan_.last_lacks_;
      call_.next_rows = 0;
      (last ? plan_.last_rest_ : plan_.rest_).segments(call_, a, b, c);
    }

    // The next rows of the filters, the next filters, or the first of the task.
    NextBlock NextFilters(int64_t r, int64_t j, int64_t columns) const {
      const int64_t width = plan_.tile_.columns;
      const int64_t tiles =
          lines_ * plan_.prefetching_tiles() * CeilDiv(columns, width);
      r += plan_.filter_rows_;
      if (r >= s_.r) {
        r = 0;
        j += plan_.block_columns_;
        if (j >= end_) j = column_;
      }
      return NextBlock(
          plan_.Filters(panels_, r, j), width,
          std::min(plan_.filter_rows_, s_.r - r) * plan_.line_depth(),
          std::min(plan_.block_columns_, end_ - j), width,
          plan_.panels_.panel_floats(), tiles);
    }

    // Output line i + 1 reads these and line i does not.
    NextBlock NextPixels(int64_t i, int64_t columns) const {
      const int64_t width = plan_.tile_.columns;
      const int64_t end = (line_ + i + 1) * s_.stride - s_.padding + s_.r;
      const int64_t begin = end - std::min(s_.stride, s_.r);
      if (begin < 0 || end > s_.h) return NextBlock();
      const float* const data =
          reinterpret_cast<const float*>(image_) + begin * plan_.width();
      const int64_t tiles = plan_.prefetching_tiles() * CeilDiv(columns, width);
      const bool all = s_.s >= s_.stride;  // pixels of a line
      const int64_t floats =
          all ? (end - begin) * plan_.width() : plan_.Elements(s_.s * s_.c);
      return all ? NextBlock(data, width, CeilDiv(floats, width), width, width,
                             width, tiles)
                 : NextBlock(data, plan_.Elements(s_.stride * s_.c), s_.q,
                             floats, width, width, tiles);
    }

    // Lines of the image before `end`, right before they are read first, in L1.
    void CopyLines(int64_t end) {
      if (end <= copied_) return;
      float* const to = copy_ + (copied_ - first_line_) * plan_.width();
      if constexpr (kRounds) {
        if (plan_.pairs_) {
          plan_.CopyLines(image_, copied_, end, 2 * plan_.width(),
                          reinterpret_cast<uint16_t*>(to));
          copied_ = end;
          return;
        }
      }
      plan_.CopyLines(image_, copied_, end, plan_.width(), to);
      copied_ = end;
    }

    const ConvolutionInPlace& plan_;
    const ConvolutionSize& s_;
    const int64_t line_;  // of outputs, the first
    const int64_t lines_;
    const int64_t column_;
    const int64_t end_;
    const T* const image_;
    const float* const panels_;
    T* const y_;  // of the first line
    const Epilogue epilogue_;
    float* const copy_;
    float* const sums_;
    int64_t first_line_ = 0;  // of the copy
    int64_t copied_ = 0;      // lines before this one
    TileCall call_;
  };

  absl::Status PlanTile(const Cut& cut) {
    const auto fits = [&](bool of_pairs) {
      return FindLineTile(cut.pixels, cut.vectors, of_pairs).segments !=
             nullptr;
    };
    // Pixels below the filter begin with whole pairs.
    pairs_ = kRounds && size_.stride * size_.c % 2 == 0 && PairsPay() &&
             fits(/*of_pairs=*/true);
    if (!pairs_ && !fits(/*of_pairs=*/false)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a tile of mr=", cut.pixels, " pixels by nr_vectors=", cut.vectors,
          " does not fit into the vector registers of this machine"));
    }
    const int64_t steps = size_.r * line_depth();
    const LineTiles tiles =
        FindTilesForFilters(cut.pixels, cut.vectors, pairs_, size_.q,
                            CeilDiv(size_.k, TileLanes()), steps);
    tile_ = tiles.tile;
    rest_ = tiles.rest;
    whole_pixels_ = tiles.whole;
    const int64_t last_columns = size_.k % tile_.columns;
    const auto last_vectors =
        static_cast<int>(CeilDiv(last_columns, int64_t{TileLanes()}));
    last_tile_ = FindTileLike(tile_, tile_.rows, last_vectors);
    last_rest_ = FindTileLike(tile_, rest_.rows, last_vectors);
    along_sums_ = LongSumsOfSegmentsPay({size_.q, size_.k, line_depth()},
                                        /*segments=*/size_.r);
    return absl::OkStatus();
  }

  // Whether lines are copied, and what their ends lack if they are not.
  void PlanLines() {
    // The number of the filter's columns that the last pixel of a line lacks.
    const int64_t beyond = std::max<int64_t>(
        (size_.q - 1) * size_.stride - size_.padding + size_.s - size_.w, 0);
    has_border_ = (along_sums_ && size_.padding > 0) ||
                  size_.padding > size_.stride ||
                  size_.padding + beyond > size_.s ||
                  (size_.padding > 0 &&
                   (size_.c < kFewChannels || (pairs_ && size_.c % 2 != 0)));
    copies_lines_ = has_border_ || (pairs_ ? size_.c % 2 != 0 : kRounds);
    if (has_border_) return;
    first_lacks_ = Elements(size_.padding * size_.c);
    last_lacks_ = Elements(beyond * size_.c);
  }

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
  // Tiles of a line that prefetch filters: all but that of the rest.
  int64_t prefetching_tiles() const {
    return CeilDiv(whole_pixels_, tile_.rows);
  }
  int64_t line_parts() const { return CeilDiv(size_.p, task_lines_); }
  int64_t column_parts() const { return CeilDiv(size_.k, task_columns_); }
  int64_t count() const { return size_.n * line_parts() * column_parts(); }

  // Packed filters from row `r` and column j, which begins a panel, on.
  const float* Filters(const float* panels, int64_t r, int64_t j) const {
    return panels_.From(panels, j).data + r * line_depth() * tile_.columns;
  }

  // Every filter in one piece.
  template <class To>
  void Transpose(const T* weights, To* to) const {
    for (int64_t j = 0; j < size_.k; ++j) {
      for (int64_t p = 0; p < size_.depth(); ++p) {
        const T value = weights[p * size_.k + j];
        if constexpr (std::is_same_v<T, To>) {
          *to++ = value;
        } else {
          Widen(&value, 1, 1, 1, to++, 1);
        }
      }
    }
  }

  // Lines [begin, end) of an image, with borders where there are any.
  template <class To>
  void CopyLines(const T* image, int64_t begin, int64_t end, int64_t step,
                 To* to) const {
    const int64_t border = has_border_ ? size_.padding * size_.c : 0;
    const int64_t inside = size_.w * size_.c;
    for (int64_t i = begin; i < end; ++i, to += step) {
      std::fill_n(to, border, To{});
      CopyValues(image + i * inside, inside, to + border);
      std::fill_n(to + border + inside, step - border - inside, To{});
    }
  }

  ConvolutionSize size_ = {};
  RegisterTile tile_;
  RegisterTile rest_;  // of the pixels after the first whole_pixels_ of a line
  // The last columns have as few vectors as hold them.
  RegisterTile last_tile_;
  RegisterTile last_rest_;
  int64_t whole_pixels_ = 0;
  PackedB panels_;          // of filters
  int64_t task_lines_ = 0;  // of output, at most
  int64_t task_columns_ = 0;
  int64_t block_columns_ = 0;  // of a block of filters
  int64_t filter_rows_ = 0;
  bool pairs_ = false;
  bool along_sums_ = false;  // few_columns.h
  bool has_border_ = false;
  bool copies_lines_ = false;
  int64_t first_lacks_ = 0;  // micro_kernel.h
  int64_t last_lacks_ = 0;
  bool prefetch_y_ = false;
  bool prefetch_x_ = false;
  // The offset of sums that are rounded in a workspace, after copied lines.
  int64_t sums_at_ = 0;
  Workspaces workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_IN_PLACE_H_
