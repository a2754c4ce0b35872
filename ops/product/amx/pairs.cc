#include "ops/product/amx/pairs.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/amx/pairs.cc"
#include "ops/lib/simd_targets.h"
//

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kColumns = 16;  // of a tile
constexpr int64_t kSteps = 32;

// A row of a tile of whole columns.
HWY_INLINE void PackRow(const uint16_t* first, const uint16_t* second,
                        uint16_t* to) {
  const HWY_CAPPED(uint32_t, kColumns) d32;
  const hn::Rebind<uint16_t, decltype(d32)> d16;
  const int64_t lanes = hn::Lanes(d32);
  auto* const pairs = reinterpret_cast<uint32_t*>(to);
  for (int64_t c = 0; c < kColumns; c += lanes) {
    const auto low = hn::PromoteTo(d32, hn::LoadU(d16, first + c));
    const auto high = hn::PromoteTo(d32, hn::LoadU(d16, second + c));
    hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), d32, pairs + c);
  }
}

// The same of what is there.
void PackPartOfRow(const uint16_t* first, const uint16_t* second,
                   int64_t columns, uint16_t* to) {
  for (int64_t c = 0; c < kColumns; ++c) {
    to[2 * c] = first != nullptr && c < columns ? first[c] : 0;
    to[2 * c + 1] = second != nullptr && c < columns ? second[c] : 0;
  }
}

// Steps outermost: a few rows are read side by side as far as they go, which is
// what prefetchers of hardware follow.
void PackPairsForTarget(const uint16_t* b, int64_t depth, int64_t columns,
                        int64_t ldb, uint16_t* to) {
  const int64_t steps = (depth + kSteps - 1) / kSteps;
  for (int64_t step = 0; step < steps; ++step) {
    const uint16_t* const rows = b + step * kSteps * ldb;
    const int64_t left = std::min(kSteps, depth - step * kSteps);
    for (int64_t column = 0; column < columns; column += kColumns) {
      uint16_t* const tile = to +
                             (column / kPanel * steps + step) * kPanelStep +
                             column % kPanel * kSteps;
      const int64_t count = std::min(kColumns, columns - column);
      for (int64_t row = 0; row < kSteps; row += 2) {
        const uint16_t* const first = rows + row * ldb + column;
        uint16_t* const pairs = tile + row * kColumns;
        if (count == kColumns && row + 1 < left) {
          PackRow(first, first + ldb, pairs);
        } else {
          PackPartOfRow(row < left ? first : nullptr,
                        row + 1 < left ? first + ldb : nullptr, count, pairs);
        }
      }
    }
  }
}

void PackTileRowsForTarget(const uint16_t* a, int64_t rows, int64_t depth,
                           int64_t lda, int64_t readable, int64_t step,
                           uint16_t* to) {
  const HWY_CAPPED(uint16_t, kSteps) d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t whole = depth / kSteps * kSteps;
  const int64_t left = depth - whole;
  for (int64_t row = 0; row < rows; ++row) {
    const uint16_t* const from = a + row * lda;
    uint16_t* line = to + row * kSteps;
    for (int64_t p = 0; p < whole; p += kSteps, line += step) {
      for (int64_t i = 0; i < kSteps; i += lanes) {
        hn::StoreU(hn::LoadU(d, from + p + i), d, line + i);
      }
    }
  }
  if (left == 0) return;
  const uint16_t* const from = a + whole;
  uint16_t* const tail = to + whole / kSteps * step;
  // Rows beyond whose ends a whole step may be read.
  const int64_t room = readable - whole - kSteps;
  const int64_t vectors = room < 0 ? 0 : std::min(rows, room / lda + 1);
  for (int64_t i = 0; i < kSteps; i += lanes) {
    const auto mask =
        hn::FirstN(d, static_cast<size_t>(std::max(left - i, int64_t{0})));
    for (int64_t row = 0; row < vectors; ++row) {
      hn::StoreU(hn::IfThenElseZero(mask, hn::LoadU(d, from + row * lda + i)),
                 d, tail + row * kSteps + i);
    }
  }
  for (int64_t row = vectors; row < rows; ++row) {
    uint16_t* const line = tail + row * kSteps;
    std::memcpy(line, from + row * lda, left * sizeof(uint16_t));
    std::fill(line + left, line + kSteps, uint16_t{0});
  }
}

// The part of a piece that a vector holds.
struct Part {
  const uint16_t* from = nullptr;  // of the first row, where the vector begins
  size_t begin = 0;
  size_t end = 0;
};

// A vector of every row, of one to three parts, over what it is already if
// there were some before.
template <int kParts, bool kOver>
HWY_INLINE void MergeParts(const Part* parts, int64_t rows, int64_t lda,
                           int64_t depth, uint16_t* to) {
  const HWY_CAPPED(uint16_t, kSteps) d;
  const auto mask_of = [&](const Part& part) HWY_ATTR {
    return hn::AndNot(hn::FirstN(d, part.begin), hn::FirstN(d, part.end));
  };
  const Part& second = parts[kParts > 1 ? 1 : 0];
  const Part& third = parts[kParts > 2 ? 2 : 0];
  const uint16_t* in_first = parts[0].from;
  const uint16_t* in_second = second.from;
  const uint16_t* in_third = third.from;
  const auto first = mask_of(parts[0]);
  const auto of_second = mask_of(second);
  const auto of_third = mask_of(third);
  for (int64_t row = 0; row < rows; ++row) {
    auto merged =
        kOver ? hn::IfThenElse(first, hn::LoadU(d, in_first), hn::LoadU(d, to))
              : hn::IfThenElseZero(first, hn::LoadU(d, in_first));
    if (kParts > 1) {
      merged = hn::IfThenElse(of_second, hn::LoadU(d, in_second), merged);
    }
    if (kParts > 2) {
      merged = hn::IfThenElse(of_third, hn::LoadU(d, in_third), merged);
    }
    hn::StoreU(merged, d, to);
    in_first += lda;
    in_second += lda;
    in_third += lda;
    to += depth;
  }
}

template <bool kOver>
HWY_INLINE void MergeAllParts(const Part* parts, int64_t count, int64_t rows,
                              int64_t lda, int64_t depth, uint16_t* to) {
  if (count == 3) {
    MergeParts<3, kOver>(parts, rows, lda, depth, to);
  } else if (count == 2) {
    MergeParts<2, kOver>(parts, rows, lda, depth, to);
  } else {
    MergeParts<1, kOver>(parts, rows, lda, depth, to);
  }
}

// Vector by vector: which pieces meet in one is the same for all rows, and
// every store is of a whole line of cache.
void GatherTileRowsForTarget(const uint16_t* a, int64_t rows, int64_t lda,
                             int64_t pieces, int64_t run, int64_t piece_stride,
                             int64_t first, int64_t depth, uint16_t* to) {
  constexpr int64_t kMostParts = 3;
  const HWY_CAPPED(uint16_t, kSteps) d;
  const int64_t lanes = hn::Lanes(d);
  int64_t piece = std::min(first / run, pieces);
  int64_t begin = piece * run - first;  // seen from the vector
  for (int64_t at = 0; at < kSteps; at += lanes) {
    bool over = false;
    do {
      Part parts[kMostParts] = {{a, 0, 0}};  // none: zeros
      int64_t count = 0;
      for (; piece < pieces && begin < lanes && count < kMostParts; ++count) {
        parts[count] = {a + piece * piece_stride - begin,
                        static_cast<size_t>(std::max(begin, int64_t{0})),
                        static_cast<size_t>(std::min(begin + run, lanes))};
        ++piece;
        begin += run;
      }
      if (over) {
        MergeAllParts<true>(parts, count, rows, lda, depth, to + at);
      } else {
        MergeAllParts<false>(parts, count, rows, lda, depth, to + at);
      }
      over = true;
    } while (piece < pieces && begin < lanes);
    if (begin > lanes) {  // the last one goes on
      --piece;
      begin -= run;
    }
    begin -= lanes;
  }
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {
namespace {
HWY_EXPORT(PackPairsForTarget);
HWY_EXPORT(PackTileRowsForTarget);
HWY_EXPORT(GatherTileRowsForTarget);
}  // namespace

void PackPairs(const uint16_t* b, int64_t depth, int64_t columns, int64_t ldb,
               uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(PackPairsForTarget)(b, depth, columns, ldb, to);
}

void PackTileRows(const uint16_t* a, int64_t rows, int64_t depth, int64_t lda,
                  int64_t readable, int64_t step, uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(PackTileRowsForTarget)
  (a, rows, depth, lda, readable, step, to);
}

void GatherTileRows(const uint16_t* a, int64_t rows, int64_t lda,
                    int64_t pieces, int64_t run, int64_t piece_stride,
                    int64_t first, int64_t depth, uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(GatherTileRowsForTarget)
  (a, rows, lda, pieces, run, piece_stride, first, depth, to);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
