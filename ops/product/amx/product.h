#ifndef OPTRAIL_OPS_PRODUCT_AMX_PRODUCT_H_
#define OPTRAIL_OPS_PRODUCT_AMX_PRODUCT_H_

// C = A * B of bfloat16 by AMX's tiles, sums in float, rounded once: by panels
// of 32 rows and columns (tile_panels.h). A block of B is copied as pairs into
// L2, past which panels of A stream.
//
//   WorkspaceLayout layout;
//   const auto product = AmxProduct<AmxTiles>::Plan(
//       knobs, size, /*packed_b=*/false, device, layout);
//   product.Run(call, a, b, c, epilogue);
//
// B may also be given as PackPairs leaves all of it.
// Every m, n, k >= 1 works with all knobs.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/core/cpu_device.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/amx/amx.h"
#include "ops/product/amx/pairs.h"
#include "ops/product/amx/tile_panels.h"
#include "ops/product/cpu/blocking.h"
#include "ops/product/cpu/tasks.h"

namespace optrail::ops {

// amx.space.textproto says what they mean.
struct AmxKnobs {
  int64_t n_panels = 8;
  int64_t kc = 1024;
  bool pack_a = false;
  bool prefetch_a = false;
  bool round_between = false;
  bool stream_b = false;
  int64_t task_rows = 0;
  int64_t task_columns = 0;

  int64_t nc() const { return n_panels * kPanel; }
};

template <class Tiles>
class AmxProduct {
 public:
  // For calls whose workspace has the layout.
  static AmxProduct Plan(const AmxKnobs& knobs, const ProductSize& size,
                         bool packed_b, CpuDevice& device,
                         WorkspaceLayout& layout) {
    // What is read once for each step of the sum costs as much as so many
    // multiplications by the tiles.
    constexpr double kReadingRow = 16, kReadingColumn = 80;
    AmxProduct product;
    product.knobs_ = knobs;
    product.size_ = size;
    const TaskSize task =
        ShareOut(1, {size.m, kPanel, knobs.task_rows, kReadingRow},
                 {size.n, kPanel, knobs.task_columns, kReadingColumn}, size.k,
                 device.threads());
    product.task_rows_ = std::min(task.rows, size.m);
    product.task_columns_ = std::min(task.columns, size.n);
    product.nc_ = std::min(knobs.nc(), RoundUp(product.task_columns_, kPanel));
    product.kc_ = std::min(knobs.kc, RoundUp(size.k, kTileSteps));
    product.mc_ = product.task_rows_;
    int64_t sums = kPanel * kPanel;
    if (product.kc_ < size.k) {
      // Sums of a block wait for the next steps near L2.
      constexpr int64_t kMostSums = (512 << 10) / sizeof(float);
      product.mc_ =
          std::min(RoundUp(product.task_rows_, kPanel),
                   std::max(kPanel, kMostSums / product.nc_ / kPanel * kPanel));
      sums = RoundUp(product.mc_, kPanel) * product.nc_;
    }
    // A block of columns that several blocks of rows meet stays packed, and the
    // other way round.
    product.keeps_a_ = knobs.pack_a && product.nc_ < product.task_columns_;
    product.packed_b_ = packed_b;
    product.keeps_b_ = product.mc_ < product.task_rows_;
    for (int64_t p = 0; p < product.kc_; p += kTileSteps) {
      product.steps_.push_back(knobs.pack_a ? p / kTileSteps * kPanelStep : p);
    }
    int64_t of_a = PackedElements(kTileSteps, kPanel);
    if (knobs.pack_a) {
      of_a = product.keeps_a_ ? PackedElements(size.k, product.task_rows_)
                              : PackedElements(product.kc_, kPanel);
    }
    const auto floats = [](int64_t elements) { return elements / 2; };
    product.a_at_ = sums;
    product.b_at_ = product.a_at_ + floats(of_a);
    const int64_t depth = product.keeps_b_ ? size.k : product.kc_;
    const int64_t of_b = packed_b ? 0 : PackedElements(depth, product.nc_);
    product.workspaces_ =
        Workspaces(layout, std::min<int64_t>(device.threads(), product.count()),
                   product.b_at_ + floats(of_b));
    return product;
  }

  // `epilogue` ends what is not rounded yet.
  void Run(const Call& call, const uint16_t* a, const uint16_t* b, uint16_t* c,
           const Epilogue& epilogue) const {
    Workspaces::Shared shared(workspaces_, call);
    call.ParallelFor(count(), [&](int64_t task) {
      const int64_t column = task % column_parts() * task_columns_;
      const int64_t row = task / column_parts() * task_rows_;
      const Workspaces::Lease lease(shared);
      Task(*this,
           {std::min(task_rows_, size_.m - row),
            std::min(task_columns_, size_.n - column)},
           a + row * size_.k,
           b + (packed_b_ ? PackedElements(size_.k, column) : column),
           c + row * size_.n + column, epilogue.From(column), lease.data())
          .Run();
    });
  }

 private:
  static int64_t RoundUp(int64_t length, int64_t unit) {
    return CeilDiv(length, unit) * unit;
  }

  // The part of C that one thread computes: [rows, columns].
  class Task {
   public:
    Task(const AmxProduct& product, const TaskSize& size, const uint16_t* a,
         const uint16_t* b, uint16_t* c, const Epilogue& epilogue, float* space)
        : product_(product),
          size_(size),
          k_(product.size_.k),
          n_(product.size_.n),
          a_(a),
          b_(b),
          c_(c),
          epilogue_(epilogue),
          panels_(product.knobs_.round_between, product.knobs_.stream_b),
          sums_(space),
          packed_a_(reinterpret_cast<uint16_t*>(space + product.a_at_)),
          packed_b_(reinterpret_cast<uint16_t*>(space + product.b_at_)) {}

    void Run() {
      for (int64_t j = 0; j < size_.columns; j += product_.nc_) {
        const int64_t columns = std::min(product_.nc_, size_.columns - j);
        for (int64_t i = 0; i < size_.rows; i += product_.mc_) {
          const int64_t rows = std::min(product_.mc_, size_.rows - i);
          for (int64_t p = 0; p < k_; p += product_.kc_) {
            const int64_t depth = std::min(product_.kc_, k_ - p);
            Block(i, rows, j, columns, p, depth,
                  PackedBlock(i, j, columns, p, depth));
          }
        }
      }
      panels_.End();
    }

   private:
    // Panels of columns of B, `step` elements apart.
    struct Panels {
      const uint16_t* data = nullptr;
      int64_t step = 0;
    };

    Panels PackedBlock(int64_t i, int64_t j, int64_t columns, int64_t p,
                       int64_t depth) {
      if (product_.packed_b_) {
        return {b_ + PackedElements(k_, j) + p / kTileSteps * kPanelStep,
                PackedElements(k_, kPanel)};
      }
      uint16_t* const block =
          packed_b_ + (product_.keeps_b_ ? PackedElements(p, columns) : 0);
      if (i == 0) PackPairs(b_ + p * n_ + j, depth, columns, n_, block);
      return {block, PackedElements(depth, kPanel)};
    }

    void Block(int64_t i, int64_t rows, int64_t j, int64_t columns, int64_t p,
               int64_t depth, const Panels& b) {
      const bool first = p == 0;
      const bool last = p + depth == k_;
      const int64_t panels = CeilDiv(columns, kPanel);
      for (int64_t r = 0; r < rows; r += kPanel) {
        const int64_t count = std::min(kPanel, rows - r);
        const LeftPanel panel =
            PanelOf(i + r, count, p, depth, /*pack=*/j == 0);
        LinesAhead ahead;
        const int64_t next = std::min(kPanel, rows - r - count);
        if (product_.knobs_.prefetch_a && next > 0) {
          ahead = AheadOf(i + r + kPanel, next, p, depth, /*packed=*/j > 0,
                          panels * panel.step_count);
        }
        for (int64_t q = 0; q < panels; ++q) {
          float* const sums =
              first && last
                  ? sums_
                  : sums_ + (r / kPanel * panels + q) * kPanel * kPanel;
          const int64_t width = std::min(kPanel, columns - q * kPanel);
          panels_.Multiply(panel, count, b.data + q * b.step, width, !first,
                           ahead, sums);
          if (!last) continue;
          const int64_t column = j + q * kPanel;
          panels_.Finish(sums, count, width, epilogue_.From(column),
                         c_ + (i + r) * n_ + column, n_);
        }
      }
    }

    uint16_t* PackedPanel(int64_t row, int64_t p) {
      if (!product_.keeps_a_) return packed_a_;
      return packed_a_ + PackedElements(k_, row) + p / kTileSteps * kPanelStep;
    }

    LeftPanel PanelOf(int64_t row, int64_t rows, int64_t p, int64_t depth,
                      bool pack) {
      const uint16_t* const from = a_ + row * k_ + p;
      const int64_t readable = (size_.rows - row) * k_ - p;
      LeftPanel panel;
      panel.steps = product_.steps_.data();
      panel.step_count = depth / kTileSteps;
      const int64_t left = depth % kTileSteps;
      if (product_.knobs_.pack_a) {
        uint16_t* const to = PackedPanel(row, p);
        if (pack) PackTileRows(from, rows, depth, k_, readable, kPanelStep, to);
        panel.data = to;
        panel.stride = kTileSteps;
        panel.step_count += left > 0;
        return panel;
      }
      panel.data = from;
      panel.stride = k_;
      if (left > 0) {
        PackTileRows(from + depth - left, rows, left, k_,
                     readable - (depth - left), kPanelStep, packed_a_);
        panel.tail = packed_a_;
      }
      return panel;
    }

    LinesAhead AheadOf(int64_t row, int64_t rows, int64_t p, int64_t depth,
                       bool packed, int64_t steps) {
      steps = std::max<int64_t>(steps, 1);
      if (packed && product_.keeps_a_) {
        return {PackedPanel(row, p), 1, PackedElements(depth, kPanel), 0,
                steps};
      }
      return {a_ + row * k_ + p, rows, depth, k_, steps};
    }

    const AmxProduct& product_;
    const TaskSize size_;
    const int64_t k_;
    const int64_t n_;
    const uint16_t* const a_;
    const uint16_t* const b_;
    uint16_t* const c_;
    const Epilogue epilogue_;
    TilePanels<Tiles> panels_;
    float* const sums_;
    uint16_t* const packed_a_;  // panels, or last steps of one
    uint16_t* const packed_b_;
  };

  int64_t column_parts() const { return CeilDiv(size_.n, task_columns_); }
  int64_t count() const {
    return CeilDiv(size_.m, task_rows_) * column_parts();
  }

  AmxKnobs knobs_;
  ProductSize size_;
  int64_t task_rows_ = 0;
  int64_t task_columns_ = 0;
  // The block for the caches: rows whose sums wait, columns, steps.
  int64_t mc_ = 0;
  int64_t nc_ = 0;
  int64_t kc_ = 0;
  bool keeps_a_ = false;
  bool keeps_b_ = false;
  bool packed_b_ = false;
  std::vector<int64_t> steps_;  // of a panel of A
  // Offsets of panels of A and packed blocks of B in a workspace, in floats.
  int64_t a_at_ = 0;
  int64_t b_at_ = 0;
  Workspaces workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_PRODUCT_H_
