#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_AMX_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_AMX_H_

// Convolutions of bfloat16 by AMX's tiles: an implicit product by panels of 32
// rows and columns (tile_panels.h), whose rows are pixels where they lie.
//
// A task copies the lines of the image that it needs, with zeros around them,
// one after the other and just before they are read. A position of a copy has
// 32 channels, of which there are as many planes as it takes. Lines and columns
// that a stride keeps apart are copied apart, so that what a place of the
// filter reads for neighbouring outputs are neighbours always, also at the end
// of a line: the sums between two lines are nobody's and are left out. "In
// place" a position has the channels of a pixel; "unrolled" it has those of all
// pixels under a row of the filter, which wastes less where channels are few.
// Images are read where they are if nothing is to be added. "Patches" have all
// pixels under the filter: they waste least, and are copied most.
//
//   WorkspaceLayout layout;
//   const auto plan =
//       ConvolutionAmx<AmxTiles>::Plan(knobs, size, device, layout);
//   plan.PackFilters(weights, filters);  // filter_elements()
//   plan.Run(call, x, filters, y, epilogue);
//
// Every size works with all knobs.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "ops/conv2d/convolution.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/amx/amx.h"
#include "ops/product/amx/amx_backend.h"
#include "ops/product/amx/pairs.h"
#include "ops/product/amx/tile_panels.h"
#include "ops/product/cpu/tasks.h"

namespace optrail::ops {

// The contents of a position of the copied image.
enum class AmxPixels { kInPlace, kUnrolled, kPatches };

// convolution_amx.space.textproto says what they mean.
struct ConvolutionAmxKnobs {
  AmxPixels pixels = AmxPixels::kInPlace;
  int64_t n_panels = 1;
  bool prefetch_filters = false;
  bool round_between = true;
  bool stream_filters = false;
  int64_t task_rows = 1 << 20;
  int64_t task_columns = 1 << 20;
};

template <class Tiles>
class ConvolutionAmx {
 public:
  // For calls whose workspace has the layout.
  static ConvolutionAmx Plan(const ConvolutionAmxKnobs& knobs,
                             const ConvolutionSize& size, CpuDevice& device,
                             WorkspaceLayout& layout) {
    // As AmxProduct's; but for patches, a pixel is read once for all places of
    // the filter.
    constexpr double kReadingRow = 16, kReadingColumn = 80;
    ConvolutionAmx plan;
    plan.knobs_ = knobs;
    plan.size_ = size;
    ConvolutionSize& s = plan.size_;
    plan.direct_ = knobs.pixels == AmxPixels::kInPlace && s.padding == 0 &&
                   s.stride == 1 && s.c % kTileSteps == 0;
    if (plan.direct_ && s.is_product()) {  // one image of one column
      s.h = s.p = s.rows();
      s.n = s.w = s.q = 1;
    }
    plan.planes_ = CeilDiv(plan.run(), kTileSteps);
    plan.pitch_ = plan.places() == 1 ? s.q : s.q + (s.s - 1) / s.stride;
    const TaskSize task = ShareOut(
        s.n,
        {s.p * s.q, s.q, std::max(knobs.task_rows / s.q, int64_t{1}) * s.q,
         kReadingRow / static_cast<double>(plan.patches() ? 1 : s.r * s.s)},
        {s.k, kPanel, knobs.task_columns, kReadingColumn}, s.r * s.s * s.c,
        device.threads());
    plan.task_lines_ = std::min(task.rows / s.q, s.p);
    plan.task_columns_ = std::min(task.columns, s.k);
    plan.columns_ = std::min(knobs.n_panels * kPanel,
                             CeilDiv(plan.task_columns_, kPanel) * kPanel);
    plan.plane_ = kTileSteps;
    if (!plan.patches()) {
      plan.plane_ *= (plan.task_lines_ + (s.r - 1) / s.stride) * plan.pitch_;
    }
    for (int64_t i = 0; i < plan.filter_rows(); ++i) {
      for (int64_t j = 0; j < plan.places(); ++j) {
        for (int64_t plane = 0; plane < plan.planes_; ++plane) {
          plan.steps_.push_back(
              plan.direct_ ? (i * s.w + j) * s.c + plane * kTileSteps
                           : plan.PhaseAt(i % s.stride, j % s.stride) +
                                 plane * plan.plane_ +
                                 (i / s.stride * plan.pitch_ + j / s.stride) *
                                     kTileSteps);
        }
      }
    }
    // A panel of patches and the next one are kept, or, if other filters read
    // them again, all.
    plan.kept_patches_ = plan.columns_ >= plan.task_columns_
                             ? 2 * kPanel
                             : plan.task_lines_ * s.q;
    const int64_t copied = plan.patches() ? plan.kept_patches_ * plan.depth()
                                          : plan.PhaseAt(plan.row_phases(), 0);
    // Sums, the copy, and lines with their padding.
    const auto lines = [](int64_t elements) {
      return CeilDiv(elements, kTileSteps) * kTileSteps / 2;
    };
    plan.copy_at_ = kPanel * kPanel;
    plan.padded_at_ =
        plan.copy_at_ + (plan.direct_ ? 0 : lines(copied)) + lines(kTileSteps);
    plan.workspaces_ = Workspaces(
        layout, std::min<int64_t>(device.threads(), plan.count()),
        plan.padded_at_ + lines(plan.padded_lines() * plan.padded_line()));
    return plan;
  }

  int64_t filter_elements() const { return PackedElements(depth(), size_.k); }

  // Filters [r, s, c, k] as pairs, filled up to whole steps as positions are.
  void PackFilters(const uint16_t* weights, uint16_t* to) const {
    const int64_t k = size_.k;
    const int64_t rows = planes_ * kTileSteps;
    std::vector<uint16_t> filled(depth() * k);
    for (int64_t place = 0; place < filter_rows() * places(); ++place) {
      std::copy_n(weights + place * run() * k, run() * k,
                  filled.data() + place * rows * k);
    }
    PackPairs(filled.data(), depth(), k, k, to);
  }

  // `epilogue` ends what is not rounded yet.
  void Run(const Call& call, const uint16_t* x, const uint16_t* filters,
           uint16_t* y, const Epilogue& epilogue) const {
    Workspaces::Shared shared(workspaces_, call);
    call.ParallelFor(count(), [&](int64_t task) {
      const ConvolutionSize& s = size_;
      const int64_t column = task % column_parts() * task_columns_;
      const int64_t line = task / column_parts() % line_parts() * task_lines_;
      const int64_t image = task / column_parts() / line_parts();
      const Workspaces::Lease lease(shared);
      Task(*this, line, std::min(task_lines_, s.p - line),
           std::min(task_columns_, s.k - column), x + image * s.h * s.w * s.c,
           filters + PackedElements(depth(), column),
           y + (image * s.p + line) * s.q * s.k + column, epilogue.From(column),
           lease.data())
          .Run();
    });
  }

 private:
  // Some lines of outputs of an image, for some filters.
  class Task {
   public:
    Task(const ConvolutionAmx& plan, int64_t line, int64_t lines,
         int64_t columns, const uint16_t* image, const uint16_t* filters,
         uint16_t* y, const Epilogue& epilogue, float* space)
        : plan_(plan),
          s_(plan.size_),
          line_(line),
          columns_(columns),
          // The last line ends with its last output.
          rows_(lines * plan.pitch_ - (plan.pitch_ - plan.size_.q)),
          image_(image),
          filters_(filters),
          y_(y),
          epilogue_(epilogue),
          panels_(plan.knobs_.round_between, plan.knobs_.stream_filters,
                  plan.kept_rows()),
          sums_(space),
          copy_(reinterpret_cast<uint16_t*>(space + plan.copy_at_)),
          padded_(reinterpret_cast<uint16_t*>(space + plan.padded_at_)) {}

    void Run() {
      for (int64_t j = 0; j < columns_; j += plan_.columns_) {
        Block(j, std::min(plan_.columns_, columns_ - j));
      }
      panels_.End();
    }

   private:
    // What is done between the steps of a panel for what comes next.
    struct Ahead {
      LinesAhead filters;
      Task* task = nullptr;  // gathers patches, if any
      int64_t row = 0;       // of these
      int64_t step = 0;
      int64_t pause = 0;  // steps from one to the next
      int64_t left = 0;

      void operator()() {
        filters();
        if (task != nullptr && --left == 0) {
          task->CopyPatches(row, step++);
          left = pause;
        }
      }
    };

    // All rows of some columns.
    void Block(int64_t j, int64_t columns) {
      const int64_t panel_step = PackedElements(plan_.depth(), kPanel);
      const int64_t panels = CeilDiv(columns, kPanel);
      const int64_t step_count = static_cast<int64_t>(plan_.steps_.size());
      LeftPanel left;
      left.steps = plan_.steps_.data();
      left.step_count = step_count;
      left.stride = plan_.direct_     ? s_.c
                    : plan_.patches() ? plan_.depth()
                                      : kTileSteps;
      const uint16_t* const from =
          plan_.direct_ ? image_ + line_ * s_.w * s_.c : copy_;
      const uint16_t* const block = filters_ + j / kPanel * panel_step;
      Ahead ahead;
      if (plan_.knobs_.prefetch_filters && j + columns < columns_) {
        const int64_t next = std::min(plan_.columns_, columns_ - j - columns);
        ahead.filters = {block + panels * panel_step, 1,
                         CeilDiv(next, kPanel) * panel_step, 0,
                         CeilDiv(rows_, kPanel) * panels * step_count};
      }
      const bool gathers = j == 0 && plan_.patches();
      if (gathers) {
        for (int64_t s = 0; s < step_count; ++s) CopyPatches(0, s);
      }
      for (int64_t row = 0; row < rows_; row += kPanel) {
        const int64_t rows = std::min(kPanel, rows_ - row);
        const int64_t at = plan_.patches() ? row % plan_.kept_patches_ : row;
        if (gathers) {
          ahead.task = row + kPanel < rows_ ? this : nullptr;
          ahead.row = row + kPanel;
          ahead.step = 0;
          ahead.pause = ahead.left = panels;
        } else if (j == 0 && !plan_.direct_) {
          Copy((row + rows - 1) / plan_.pitch_ + (s_.r - 1) / s_.stride + 1);
        }
        left.data = from + at * left.stride;
        const int64_t phase = row % plan_.pitch_;
        const int64_t output =
            row / plan_.pitch_ * s_.q + std::min(phase, s_.q);
        for (int64_t q = 0; q < panels; ++q) {
          const int64_t width = std::min(kPanel, columns - q * kPanel);
          panels_.Multiply(left, rows, block + q * panel_step, width,
                           /*accumulate=*/false, ahead, sums_);
          const int64_t column = j + q * kPanel;
          panels_.Finish(sums_, rows, width, epilogue_.From(column),
                         y_ + output * s_.k + column, s_.k, phase);
        }
      }
    }

    // Lines of the copy up to `end` that are not there yet.
    void Copy(int64_t end) {
      for (; copied_ < end; ++copied_) {
        for (int64_t a = 0; a < plan_.row_phases(); ++a) {
          const int64_t line = (line_ + copied_) * s_.stride + a - s_.padding;
          for (int64_t b = 0; b < plan_.column_phases(); ++b) {
            CopyLine(line, b - s_.padding,
                     copy_ + plan_.PhaseAt(a, b) +
                         copied_ * plan_.pitch_ * kTileSteps);
          }
        }
      }
    }

    // Values of a step, of the panel of patches that begins with output `row`.
    void CopyPatches(int64_t row, int64_t step) {
      const int64_t pitch = plan_.padded_line();
      const int64_t until = std::min(row + kPanel, rows_);
      const int64_t end = (until - 1) / s_.q * s_.stride + s_.r;
      for (; copied_ < end; ++copied_) {
        PadLine(line_ * s_.stride + copied_ - s_.padding,
                padded_ + copied_ * pitch);
      }
      const int64_t first = step * kTileSteps;
      uint16_t* to = copy_ + row % plan_.kept_patches_ * plan_.depth() + first;
      while (row < until) {
        const int64_t line = row / s_.q, column = row % s_.q;
        const int64_t count = std::min(until - row, s_.q - column);
        GatherTileRows(padded_ + (line * pitch + column * s_.c) * s_.stride,
                       count, s_.stride * s_.c, s_.r, s_.s * s_.c, pitch, first,
                       plan_.depth(), to);
        row += count;
        to += count * plan_.depth();
      }
    }

    // A line of the image with zeros on both sides.
    void PadLine(int64_t line, uint16_t* to) const {
      const int64_t edge = s_.padding * s_.c, width = s_.w * s_.c;
      if (line < 0 || line >= s_.h) {
        std::fill_n(to, edge + width + edge, uint16_t{0});
        return;
      }
      std::fill_n(to, edge, uint16_t{0});
      std::copy_n(image_ + line * width, width, to + edge);
      std::fill_n(to + edge + width, edge, uint16_t{0});
    }

    // Positions of a line of the image, which begin with the column `column`
    // and are a stride apart.
    void CopyLine(int64_t line, int64_t column, uint16_t* to) {
      const int64_t pitch = plan_.pitch_;
      if (line < 0 || line >= s_.h) {
        FillWithZeros(to, pitch);
        return;
      }
      const int64_t step = s_.stride * s_.c;
      if (plan_.knobs_.pixels == AmxPixels::kUnrolled) {
        PadLine(line, padded_);
        PackTileRows(padded_, pitch, plan_.run(), step, plan_.padded_line(),
                     plan_.plane_, to);
        return;
      }
      const int64_t begin =
          std::min(CeilDiv(std::max<int64_t>(-column, 0), s_.stride), pitch);
      const int64_t end =
          std::clamp(CeilDiv(s_.w - column, s_.stride), begin, pitch);
      FillWithZeros(to, begin);
      const uint16_t* const from = image_ + line * s_.w * s_.c;
      const int64_t at = (begin * s_.stride + column) * s_.c;
      PackTileRows(from + at, end - begin, s_.c, step,
                   (s_.h - line) * s_.w * s_.c - at, plan_.plane_,
                   to + begin * kTileSteps);
      FillWithZeros(to + end * kTileSteps, pitch - end);
    }

    void FillWithZeros(uint16_t* to, int64_t positions) {
      for (int64_t plane = 0; plane < plan_.planes_; ++plane) {
        std::fill_n(to + plane * plan_.plane_, positions * kTileSteps,
                    uint16_t{0});
      }
    }

    const ConvolutionAmx& plan_;
    const ConvolutionSize& s_;
    const int64_t line_;  // of outputs, the first
    const int64_t columns_;
    const int64_t rows_;  // positions, with those between lines
    const uint16_t* const image_;
    const uint16_t* const filters_;
    uint16_t* const y_;
    const Epilogue epilogue_;
    TilePanels<Tiles> panels_;
    float* const sums_;
    uint16_t* const copy_;
    uint16_t* const padded_;
    int64_t copied_ = 0;  // lines of the copy, or with their padding
  };

  bool patches() const { return knobs_.pixels == AmxPixels::kPatches; }
  // Rows of the filter, and places of one, that are apart.
  int64_t filter_rows() const { return patches() ? 1 : size_.r; }
  int64_t places() const {
    return knobs_.pixels == AmxPixels::kInPlace ? size_.s : 1;
  }
  // Values of a position.
  int64_t run() const {
    return size_.r / filter_rows() * (size_.s / places()) * size_.c;
  }
  // Values of a line with its padding, and of a step beyond.
  int64_t padded_line() const {
    return (size_.w + 2 * size_.padding) * size_.c + kTileSteps;
  }
  // How many of them a task has at a time.
  int64_t padded_lines() const {
    if (patches()) return (task_lines_ - 1) * size_.stride + size_.r;
    return knobs_.pixels == AmxPixels::kUnrolled ? 1 : 0;
  }
  // Of the sum, with what it is filled up by.
  int64_t depth() const {
    return filter_rows() * places() * planes_ * kTileSteps;
  }
  // Lines and columns that are copied apart.
  int64_t row_phases() const { return std::min(size_.stride, filter_rows()); }
  int64_t column_phases() const { return std::min(size_.stride, places()); }
  // Of the sums, those that are an output's.
  KeptRows kept_rows() const {
    return pitch_ > size_.q ? KeptRows{size_.q, pitch_} : KeptRows();
  }
  // Returns their offset in the copy.
  int64_t PhaseAt(int64_t a, int64_t b) const {
    return (a * column_phases() + b) * planes_ * plane_;
  }

  int64_t line_parts() const { return CeilDiv(size_.p, task_lines_); }
  int64_t column_parts() const { return CeilDiv(size_.k, task_columns_); }
  int64_t count() const { return size_.n * line_parts() * column_parts(); }

  ConvolutionAmxKnobs knobs_;
  ConvolutionSize size_ = {};
  bool direct_ = false;     // no copy
  int64_t planes_ = 0;      // of a position
  int64_t pitch_ = 0;       // positions from one line to the next
  int64_t plane_ = 0;       // elements of a plane of a phase
  int64_t columns_ = 0;     // of a block of filters
  int64_t task_lines_ = 0;  // of output, at most
  int64_t task_columns_ = 0;
  int64_t kept_patches_ = 0;
  std::vector<int64_t> steps_;
  // Where the copy and padded lines begin in a workspace, in floats: a step is
  // between them, which may be read.
  int64_t copy_at_ = 0;
  int64_t padded_at_ = 0;
  Workspaces workspaces_;
};

// operands: x, weights, with `fused` scale and shift, y. Filters are packed
// before calls.
template <class Tiles>
absl::StatusOr<std::unique_ptr<Invocation>> BindConvolutionAmx(
    const proto::Shape& shape, const ConvolutionAmxKnobs& knobs, bool fused,
    CpuDevice& device) {
  OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize size,
                           ConvolutionSizeOf(shape));
  WorkspaceLayout layout;
  const auto plan = ConvolutionAmx<Tiles>::Plan(knobs, size, device, layout);
  return MakePackingInvocation(
      layout, plan.filter_elements() / 2,
      [=](const Call& call, float* to) {
        plan.PackFilters(static_cast<const uint16_t*>(call.operands[1]),
                         reinterpret_cast<uint16_t*>(to));
      },
      [=](const Call& call, const float* filters) {
        Epilogue epilogue;
        if (fused) {
          epilogue = {static_cast<const float*>(call.operands[2]),
                      static_cast<const float*>(call.operands[3]),
                      Activation::kRelu};
        }
        plan.Run(call, static_cast<const uint16_t*>(call.operands[0]),
                 reinterpret_cast<const uint16_t*>(filters),
                 static_cast<uint16_t*>(call.operands.back()), epilogue);
      });
}

// InvalidArgument where a knob of convolution_amx.space.textproto is missing.
inline absl::StatusOr<ConvolutionAmxKnobs> ConvolutionAmxKnobsFrom(
    const proto::Config& config) {
  KnobReader reader(config);
  ConvolutionAmxKnobs knobs;
  const std::string pixels = reader.Variant("pixels");
  knobs.pixels = pixels == "patches"    ? AmxPixels::kPatches
                 : pixels == "unrolled" ? AmxPixels::kUnrolled
                                        : AmxPixels::kInPlace;
  knobs.n_panels = reader.Int("n_panels");
  knobs.prefetch_filters = reader.Bool("prefetch_filters");
  knobs.round_between = reader.Bool("round_between");
  knobs.stream_filters = reader.Bool("stream_filters");
  knobs.task_rows = reader.Int("task_rows");
  knobs.task_columns = reader.Int("task_columns");
  OPTRAIL_RETURN_IF_ERROR(reader.status());
  return knobs;
}

// The backend of conv2d and its fused form.
class ConvolutionAmxBackend : public AmxBackend {
 public:
  // `fused`: as ConvolutionOperator.
  explicit ConvolutionAmxBackend(bool fused) : fused_(fused) {}

  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const override {
    const auto knobs = ConvolutionAmxKnobsFrom(config);
    if (!knobs.ok()) return {};
    return {{"w", kTileRows},
            {"w", kPanel},
            {"w", knobs->task_rows},
            {"k", kTileColumns},
            {"k", kPanel},
            {"k", knobs->n_panels * kPanel},
            {"k", knobs->task_columns},
            {"c", kTileSteps}};
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionAmxKnobs knobs,
                             ConvolutionAmxKnobsFrom(config));
    return BindConvolutionAmx<AmxTiles>(shape, knobs, fused_, device);
  }

 private:
  const bool fused_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_AMX_H_
