#ifndef OPTRAIL_OPS_PRODUCT_AMX_TILE_PANELS_H_
#define OPTRAIL_OPS_PRODUCT_AMX_TILE_PANELS_H_

// The loop that products by AMX's tiles (amx.h) have at heart: a panel of 32
// rows of A meets one of 32 columns of B in four tiles of sums, so that every
// tile that is loaded is used twice. Whole sums get their epilogue and are
// rounded to bfloat16, at once or between the steps of the next ones, so that
// the tiles need not wait for it.
//
//   TilePanels<AmxTiles> panels(round_between, stream_right);
//   LinesAhead ahead;  // or what is wanted next
//   panels.Multiply(left, rows, right, columns, false, ahead, sums);
//   panels.Finish(sums, rows, columns, epilogue, result, stride);
//   ...
//   panels.End();

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ops/lib/blocks.h"
#include "ops/product/amx/amx.h"
#include "ops/product/amx/pairs.h"

namespace optrail::ops {

// Rows of A, `stride` elements apart; their steps of the sum are stored 32 by
// 32 at steps[0], steps[1] and so on.
struct LeftPanel {
  const uint16_t* data = nullptr;
  int64_t stride = 0;
  const int64_t* steps = nullptr;
  int64_t step_count = 0;
  // The last steps, where rows have no more than a part of them, as
  // PackTileRows leaves them; nullptr: none.
  const uint16_t* tail = nullptr;
};

// What is fetched into L2 meanwhile, some lines with each step, in the order in
// which they lie in memory: prefetchers of hardware then run ahead of it.
class LinesAhead {
 public:
  LinesAhead() = default;
  // Rows of `count` elements, `stride` apart, for so many steps to share.
  LinesAhead(const uint16_t* data, int64_t rows, int64_t count, int64_t stride,
             int64_t steps)
      : next_(data),
        row_lines_((count + kLine - 1) / kLine),
        gap_(stride - row_lines_ * kLine),
        in_row_(row_lines_),
        left_(rows * row_lines_),
        for_step_((left_ + steps - 1) / steps) {}

  // For a step.
  void operator()() {
    for (int64_t i = std::min(for_step_, left_); i > 0; --i) {
      __builtin_prefetch(next_, 0, /*L2*/ 2);
      next_ += kLine;
      if (--in_row_ == 0) {
        next_ += gap_;
        in_row_ = row_lines_;
      }
    }
    left_ -= std::min(for_step_, left_);
  }

 private:
  static constexpr int64_t kLine = 32;  // elements

  const uint16_t* next_ = nullptr;
  int64_t row_lines_ = 0;
  int64_t gap_ = 0;
  int64_t in_row_ = 0;
  int64_t left_ = 0;
  int64_t for_step_ = 0;
};

// Which rows of sums are rows of the result: the first `kept` of every
// `period`.
struct KeptRows {
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  int64_t kept = kAll;
  int64_t period = kAll;
};

template <class Tiles>
class TilePanels {
 public:
  // `stream_right`: B is read past L1, which keeps A.
  TilePanels(bool round_between, bool stream_right, const KeptRows& rows = {})
      : round_between_(round_between),
        stream_right_(stream_right),
        lines_(rows) {}

  // `b`: a panel as PackPairs leaves it. `sums`, rows of kPanel floats, may be
  // those of Finish() before; with `accumulate` there are some already. Once a
  // step `ahead()` is called, for what is wanted next.
  template <class Ahead>
  void Multiply(const LeftPanel& a, int64_t rows, const uint16_t* b,
                int64_t columns, bool accumulate, Ahead& ahead, float* sums) {
    Configure(rows);
    if (a.step_count != step_count_) Spread(a.step_count);
    if (rows > kTileRows) {
      if (columns > kTileColumns) {
        MultiplyTiles<true, true>(a, b, accumulate, ahead, sums);
      } else {
        MultiplyTiles<true, false>(a, b, accumulate, ahead, sums);
      }
    } else {
      if (columns > kTileColumns) {
        MultiplyTiles<false, true>(a, b, accumulate, ahead, sums);
      } else {
        MultiplyTiles<false, false>(a, b, accumulate, ahead, sums);
      }
    }
  }

  // Sums that are whole, and where they go when they are rounded: rows `stride`
  // elements apart. `epilogue` begins with the first of the columns. The first
  // row is `phase` of a period.
  void Finish(float* sums, int64_t rows, int64_t columns,
              const Epilogue& epilogue, uint16_t* to, int64_t stride,
              int64_t phase = 0) {
    // One by one: a struct is copied by wider loads than what stored it, which
    // have to wait for that.
    whole_.sums = sums;
    whole_.rows = rows;
    whole_.columns = columns;
    whole_.epilogue.scale = epilogue.scale;
    whole_.epilogue.shift = epilogue.shift;
    whole_.epilogue.activation = epilogue.activation;
    whole_.to = to;
    whole_.stride = stride;
    whole_.phase = phase;
    if (!round_between_) FinishRows(kPanel);
  }

  // When all sums have been given to Finish().
  void End() {
    FinishRows(kPanel);
    configured_ = 0;
    tiles_.Release();
  }

 private:
  static constexpr int64_t kRowBytes = kPanel * sizeof(float);  // of sums

  struct WholeSums {
    float* sums = nullptr;  // rows of kPanel
    int64_t rows = 0;       // that are not rounded yet
    int64_t columns = 0;
    Epilogue epilogue;
    uint16_t* to = nullptr;
    int64_t stride = 0;
    int64_t phase = 0;
  };

  // Tiles 0 to 3 are sums, 4 and 5 hold A, 6 and 7 hold B.
  void Configure(int64_t rows) {
    if (rows == configured_) return;
    configured_ = rows;
    const auto top = static_cast<uint8_t>(std::min(rows, kTileRows));
    const auto bottom = static_cast<uint8_t>(rows - top);
    const auto b = static_cast<uint8_t>(kTileRows);
    tiles_.Configure({top, top, bottom, bottom, top, bottom, b, b});
  }

  // Rounding, a few rows at a time, over so many steps.
  void Spread(int64_t step_count) {
    constexpr int64_t kFewRows = 8;
    step_count_ = step_count;
    at_once_ = std::max(
        kFewRows, (kPanel + step_count - 1) / std::max<int64_t>(step_count, 1));
    pause_ = std::max<int64_t>(step_count * at_once_ / kPanel, 1);
  }

  // Finishes rows of those that are waiting.
  void FinishRows(int64_t rows) {
    WholeSums& of = whole_;
    rows = std::min(rows, of.rows);
    of.rows -= rows;
    while (rows > 0) {
      const bool kept = of.phase < lines_.kept;
      const int64_t count =
          std::min(rows, (kept ? lines_.kept : lines_.period) - of.phase);
      if (kept) {
        if (of.epilogue.activation == Activation::kGelu) {
          ScaleShiftActivate(of.epilogue, of.sums, count, of.columns, kPanel);
          Tiles::Round(Epilogue(), of.sums, count, of.columns, kPanel, of.to,
                       of.stride);
        } else {
          Tiles::Round(of.epilogue, of.sums, count, of.columns, kPanel, of.to,
                       of.stride);
        }
        of.to += count * of.stride;
      }
      of.sums += count * kPanel;
      of.phase += count;
      if (of.phase == lines_.period) of.phase = 0;
      rows -= count;
    }
  }

  template <bool kBottom, bool kRight, class Ahead>
  void MultiplyTiles(const LeftPanel& a, const uint16_t* b, bool accumulate,
                     Ahead& ahead, float* sums) {
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
    const auto [from, row, steps, step_count, tail] = a;
    const int64_t stride = row * static_cast<int64_t>(sizeof(uint16_t));
    const int64_t second = kTileRows * row;
    int64_t until_rounding = round_between_ ? pause_ : step_count + 1;
    for (int64_t s = 0; s < step_count; ++s, b += kPanelStep) {
      const uint16_t* const top = from + steps[s];
      Step<kBottom, kRight>(tiles, top, stride, top + second, b);
      ahead();
      if (--until_rounding == 0) {
        FinishRows(at_once_);
        until_rounding = pause_;
      }
    }
    if (tail != nullptr) {
      Step<kBottom, kRight>(tiles, tail, kTileBytes,
                            tail + kTileRows * kTileSteps, b);
    }
    FinishRows(kPanel);  // it may lie where the next sums go
    tiles.template Store<0>(sums, kRowBytes);
    if (kRight) tiles.template Store<1>(right, kRowBytes);
    if (kBottom) tiles.template Store<2>(below, kRowBytes);
    if (kBottom && kRight) {
      tiles.template Store<3>(below + kTileColumns, kRowBytes);
    }
  }

  template <bool kBottom, bool kRight>
  void Step(Tiles& tiles, const uint16_t* top, int64_t stride,
            const uint16_t* bottom, const uint16_t* b) const {
    LoadRight<6>(tiles, b);
    tiles.template Load<4>(top, stride);
    tiles.template MultiplyAdd<0, 4, 6>();
    if (kRight) {
      LoadRight<7>(tiles, b + kTileRows * kTileSteps);
      tiles.template MultiplyAdd<1, 4, 7>();
    }
    if (kBottom) {
      tiles.template Load<5>(bottom, stride);
      tiles.template MultiplyAdd<2, 5, 6>();
      if (kRight) tiles.template MultiplyAdd<3, 5, 7>();
    }
  }

  template <int kTile>
  void LoadRight(Tiles& tiles, const uint16_t* b) const {
    if (stream_right_) {
      tiles.template LoadOnce<kTile>(b, kTileBytes);
    } else {
      tiles.template Load<kTile>(b, kTileBytes);
    }
  }

  const bool round_between_;
  const bool stream_right_;
  const KeptRows lines_;
  int64_t configured_ = 0;  // rows
  int64_t step_count_ = 0;
  int64_t at_once_ = 0;  // rows that are rounded, and steps from then on
  int64_t pause_ = 0;
  WholeSums whole_;
  Tiles tiles_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_TILE_PANELS_H_
