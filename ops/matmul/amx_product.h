#ifndef OPTRAIL_OPS_MATMUL_AMX_PRODUCT_H_
#define OPTRAIL_OPS_MATMUL_AMX_PRODUCT_H_

// C = A * B of bfloat16 by AMX's tiles, sums in float, rounded once. Panels of
// 32 rows of A meet panels of 32 columns of B in four tiles of sums, so that
// every tile that is loaded is used twice. A block of B is copied as pairs into
// L2, past which panels of A stream.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto product,
//                            AmxProduct<AmxTiles>::Plan(knobs, size, device));
//   product.Run(device, a, b, c, epilogue);
//
// Every m, n, k >= 1 works with all knobs.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "ops/core/cpu_device.h"
#include "ops/lib/amx.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/lib/pairs.h"
#include "ops/matmul/product_tasks.h"

namespace optrail::ops {

// amx.space.textproto says what they mean.
struct AmxKnobs {
  int64_t n_panels = 8;
  int64_t kc = 1024;
  bool pack_a = false;
  bool prefetch_a = false;
  int64_t prefetch_b = 0;
  int64_t task_rows = 0;
  int64_t task_columns = 0;

  int64_t nc() const { return n_panels * kPanel; }
};

template <class Tiles>
class AmxProduct {
 public:
  // ResourceExhausted if there is not enough memory for the workspaces.
  static absl::StatusOr<AmxProduct> Plan(const AmxKnobs& knobs,
                                         const MatmulSize& size,
                                         CpuDevice& device) {
    // What is read once for each step of the sum costs as much as so many
    // multiplications by the tiles.
    constexpr double kReadingRow = 16, kReadingColumn = 80;
    AmxProduct product;
    product.knobs_ = knobs;
    product.size_ = size;
    const TaskSize task = ShareOut(
        1, {size.m, kPanel, knobs.task_rows, kReadingRow},
        {size.n, kPanel, knobs.task_columns, kReadingColumn}, device.threads());
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
    // Where several blocks of rows meet a block of columns it stays packed.
    product.keeps_b_ = product.mc_ < product.task_rows_;
    const auto floats = [](int64_t elements) { return elements / 2; };
    product.panel_at_ = sums;
    product.b_at_ =
        product.panel_at_ +
        floats(PackedElements(knobs.pack_a ? product.kc_ : kTileSteps, kPanel));
    const int64_t depth = product.keeps_b_ ? size.k : product.kc_;
    OPTRAIL_ASSIGN_OR_RETURN(
        product.workspaces_,
        Workspaces::Create(
            device, std::min<int64_t>(device.threads(), product.count()),
            product.b_at_ + floats(PackedElements(depth, product.nc_))));
    return product;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  // `epilogue` ends what is not rounded yet.
  void Run(CpuDevice& device, const uint16_t* a, const uint16_t* b, uint16_t* c,
           const Epilogue& epilogue) const {
    device.ParallelFor(count(), [&](int64_t task) {
      const int64_t column = task % column_parts() * task_columns_;
      const int64_t row = task / column_parts() * task_rows_;
      const Workspaces::Lease lease(*workspaces_);
      Task(*this,
           {std::min(task_rows_, size_.m - row),
            std::min(task_columns_, size_.n - column)},
           a + row * size_.k, b + column, c + row * size_.n + column,
           epilogue.From(column), lease.data())
          .Run();
    });
  }

 private:
  static constexpr int64_t kRowBytes = kPanel * sizeof(float);  // of sums

  static int64_t RoundUp(int64_t length, int64_t unit) {
    return CeilDiv(length, unit) * unit;
  }

  // A panel of A, in elements: `second` from its first tile to its second,
  // `step` from 32 steps of the sum to the next.
  struct Panel {
    const uint16_t* data = nullptr;
    int64_t stride = 0;  // from one row to the next
    int64_t second = 0;
    int64_t step = 0;
    int64_t steps = 0;
    // The last steps of the sum, where rows have no more than a part of them,
    // as PackTileRows leaves them; nullptr: none.
    const uint16_t* tail = nullptr;
  };

  // What is fetched meanwhile: `rows` lines of the next panel for each step.
  struct Ahead {
    const uint16_t* rows_of_a = nullptr;
    int64_t stride = 0;
    int64_t rows = 0;
    int64_t steps_of_b = 0;
  };

  // What one thread computes: [rows, columns] of C.
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
          sums_(space),
          panel_(reinterpret_cast<uint16_t*>(space + product.panel_at_)),
          packed_(reinterpret_cast<uint16_t*>(space + product.b_at_)) {}

    void Run() {
      for (int64_t j = 0; j < size_.columns; j += product_.nc_) {
        const int64_t columns = std::min(product_.nc_, size_.columns - j);
        for (int64_t i = 0; i < size_.rows; i += product_.mc_) {
          const int64_t rows = std::min(product_.mc_, size_.rows - i);
          for (int64_t p = 0; p < k_; p += product_.kc_) {
            const int64_t depth = std::min(product_.kc_, k_ - p);
            uint16_t* const block =
                packed_ + (product_.keeps_b_ ? PackedElements(p, columns) : 0);
            if (i == 0 || !product_.keeps_b_) {
              PackPairs(b_ + p * n_ + j, depth, columns, n_, block);
            }
            Block(i, rows, j, columns, p, depth, block);
          }
        }
      }
      tiles_.Release();
    }

   private:
    void Block(int64_t i, int64_t rows, int64_t j, int64_t columns, int64_t p,
               int64_t depth, const uint16_t* block) {
      const bool first = p == 0;
      const bool last = p + depth == k_;
      const int64_t steps = CeilDiv(depth, kTileSteps);
      const int64_t panels = CeilDiv(columns, kPanel);
      for (int64_t r = 0; r < rows; r += kPanel) {
        const int64_t count = std::min(kPanel, rows - r);
        Configure(count);
        const uint16_t* const from = a_ + (i + r) * k_ + p;
        const Panel panel = PanelOf(from, count, depth);
        const int64_t next = std::min(kPanel, rows - r - count);
        for (int64_t q = 0; q < panels; ++q) {
          const int64_t width = std::min(kPanel, columns - q * kPanel);
          float* const sums =
              first && last
                  ? sums_
                  : sums_ + (r / kPanel * panels + q) * kPanel * kPanel;
          Ahead ahead;
          if (product_.knobs_.prefetch_a && next > 0) {
            const int64_t begin = next * q / panels;
            ahead.rows_of_a = from + (kPanel + begin) * k_;
            ahead.stride = k_;
            ahead.rows = next * (q + 1) / panels - begin;
          }
          ahead.steps_of_b = product_.knobs_.prefetch_b;
          Multiply(panel, count, block + q * steps * kPanelStep, width, !first,
                   ahead, sums);
          if (!last) continue;
          const int64_t column = j + q * kPanel;
          const Epilogue epilogue = epilogue_.From(column);
          if (!epilogue.changes_nothing()) {
            ScaleShiftActivate(epilogue, sums, count, width, kPanel);
          }
          Tiles::Round(sums, count, width, kPanel, c_ + (i + r) * n_ + column,
                       n_);
        }
      }
    }

    // Tiles 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B.
    void Configure(int64_t rows) {
      if (rows == configured_) return;
      configured_ = rows;
      const auto top = static_cast<uint8_t>(std::min(rows, kTileRows));
      const auto bottom = static_cast<uint8_t>(rows - top);
      const auto b = static_cast<uint8_t>(kTileRows);
      tiles_.Configure({top, top, bottom, bottom, top, bottom, b, b});
    }

    Panel PanelOf(const uint16_t* from, int64_t rows, int64_t depth) {
      Panel panel;
      panel.steps = depth / kTileSteps;
      const int64_t left = depth % kTileSteps;
      if (product_.knobs_.pack_a) {
        PackTileRows(from, rows, depth, k_, panel_);
        panel.data = panel_;
        panel.stride = kTileSteps;
        panel.second = kTileRows * kTileSteps;
        panel.step = kPanelStep;
        panel.steps += left > 0;
        return panel;
      }
      panel.data = from;
      panel.stride = k_;
      panel.second = kTileRows * k_;
      panel.step = kTileSteps;
      if (left > 0) {
        PackTileRows(from + depth - left, rows, left, k_, panel_);
        panel.tail = panel_;
      }
      return panel;
    }

    void Multiply(const Panel& a, int64_t rows, const uint16_t* b,
                  int64_t columns, bool accumulate, const Ahead& ahead,
                  float* sums) {
      if (rows > kTileRows) {
        if (columns > kTileColumns) {
          MultiplyPanels<true, true>(a, b, accumulate, ahead, sums);
        } else {
          MultiplyPanels<true, false>(a, b, accumulate, ahead, sums);
        }
      } else {
        if (columns > kTileColumns) {
          MultiplyPanels<false, true>(a, b, accumulate, ahead, sums);
        } else {
          MultiplyPanels<false, false>(a, b, accumulate, ahead, sums);
        }
      }
    }

    // `sums`: rows of kPanel floats.
    template <bool kBottom, bool kRight>
    void MultiplyPanels(const Panel& a, const uint16_t* b, bool accumulate,
                        const Ahead& ahead, float* sums) {
      Tiles& tiles = tiles_;
      float* const right = sums + kTileColumns;
      float* const below = sums + kTileRows * kPanel;
      if (accumulate) {
        tiles.template Load<0>(sums, kRowBytes);
        if (kRight) tiles.template Load<1>(right, kRowBytes);
        if (kBottom) tiles.template Load<2>(below, kRowBytes);
        if (kBottom && kRight) {
          tiles.template Load<3>(below + kTileColumns, kRowBytes);
        }
      } else {
        tiles.template Zero<0>();
        if (kRight) tiles.template Zero<1>();
        if (kBottom) tiles.template Zero<2>();
        if (kBottom && kRight) tiles.template Zero<3>();
      }
      // In variables of their own, which no store can change.
      const auto [from, row, second, step, steps, tail] = a;
      const auto [rows_ahead, row_ahead, count_ahead, steps_ahead] = ahead;
      const int64_t stride = row * static_cast<int64_t>(sizeof(uint16_t));
      for (int64_t s = 0; s < steps; ++s, b += kPanelStep) {
        const uint16_t* const top = from + s * step;
        Step<kBottom, kRight>(tiles, top, stride, top + second, b);
        for (int64_t r = 0; r < count_ahead; ++r) {
          __builtin_prefetch(rows_ahead + r * row_ahead + s * kTileSteps, 0,
                             /*L2*/ 2);
        }
        if (steps_ahead > 0) {
          const uint16_t* const later = b + steps_ahead * kPanelStep;
          for (int64_t i = 0; i < kPanelStep; i += kTileSteps) {
            __builtin_prefetch(later + i);
          }
        }
      }
      if (tail != nullptr) {
        Step<kBottom, kRight>(tiles, tail, kTileBytes,
                              tail + kTileRows * kTileSteps, b);
      }
      tiles.template Store<0>(sums, kRowBytes);
      if (kRight) tiles.template Store<1>(right, kRowBytes);
      if (kBottom) tiles.template Store<2>(below, kRowBytes);
      if (kBottom && kRight) {
        tiles.template Store<3>(below + kTileColumns, kRowBytes);
      }
    }

    template <bool kBottom, bool kRight>
    static void Step(Tiles& tiles, const uint16_t* top, int64_t stride,
                     const uint16_t* bottom, const uint16_t* b) {
      tiles.template Load<6>(b, kTileBytes);
      tiles.template Load<4>(top, stride);
      tiles.template MultiplyAdd<0, 4, 6>();
      if (kRight) {
        tiles.template Load<7>(b + kTileRows * kTileSteps, kTileBytes);
        tiles.template MultiplyAdd<1, 4, 7>();
      }
      if (kBottom) {
        tiles.template Load<5>(bottom, stride);
        tiles.template MultiplyAdd<2, 5, 6>();
        if (kRight) tiles.template MultiplyAdd<3, 5, 7>();
      }
    }

    const AmxProduct& product_;
    const TaskSize size_;
    const int64_t k_;
    const int64_t n_;
    const uint16_t* const a_;
    const uint16_t* const b_;
    uint16_t* const c_;
    const Epilogue epilogue_;
    float* const sums_;
    uint16_t* const panel_;   // of A, or its last steps
    uint16_t* const packed_;  // of B
    int64_t configured_ = 0;
    Tiles tiles_;
  };

  int64_t column_parts() const { return CeilDiv(size_.n, task_columns_); }
  int64_t count() const {
    return CeilDiv(size_.m, task_rows_) * column_parts();
  }

  AmxKnobs knobs_;
  MatmulSize size_;
  int64_t task_rows_ = 0;
  int64_t task_columns_ = 0;
  // The block for the caches: rows whose sums wait, columns, steps.
  int64_t mc_ = 0;
  int64_t nc_ = 0;
  int64_t kc_ = 0;
  bool keeps_b_ = false;
  // Where a panel of A and packed blocks begin in a workspace, in floats.
  int64_t panel_at_ = 0;
  int64_t b_at_ = 0;
  std::shared_ptr<Workspaces> workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_AMX_PRODUCT_H_
