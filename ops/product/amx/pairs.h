#ifndef OPTRAIL_OPS_PRODUCT_AMX_PAIRS_H_
#define OPTRAIL_OPS_PRODUCT_AMX_PAIRS_H_

// Factors of bfloat16 as AMX's tiles want them (amx.h), for the best SIMD
// target of this machine.
//
//   PackPairs(b, k, n, n, block);        // [panel][step][tile][pair][column]
//   // [step][row][32]
//   PackTileRows(a, rows, k, lda, rows * lda, kPanelStep, panel);

#include <cstdint>

namespace optrail::ops {

// A panel is of so many columns or rows, two tiles side by side.
inline constexpr int64_t kPanel = 32;
// The size of a panel for 32 steps of the sum, in elements.
inline constexpr int64_t kPanelStep = kPanel * 32;

// Elements that a block takes.
inline int64_t PackedElements(int64_t depth, int64_t lines) {
  return (depth + 31) / 32 * ((lines + kPanel - 1) / kPanel) * kPanelStep;
}

// Packs a block of B, rows `ldb` elements apart: 16 columns of steps 2 i
// and 2 i + 1 are a row of a tile. What 32 does not divide is filled up with
// zeros; a second tile that would hold no column is left as it is.
void PackPairs(const uint16_t* b, int64_t depth, int64_t columns, int64_t ldb,
               uint16_t* to);

// Packs rows of A, `lda` elements apart, filled up with zeros to whole steps,
// which come to lie `step` elements apart. Rows may overlap. Of a no
// more than `readable` elements are read, which is faster if it is 32 more than
// the rows take.
void PackTileRows(const uint16_t* a, int64_t rows, int64_t depth, int64_t lda,
                  int64_t readable, int64_t step, uint16_t* to);

// Gathers values `first` to `first` + 31 of rows of A that are `pieces` runs of
// `run`, one after the other, and zeros from there on: the runs of row
// r begin at a + r * lda and are `piece_stride` elements apart. Rows come to
// lie `depth` elements apart. 32 elements before and after all that is gathered
// are read, too, and not used.
void GatherTileRows(const uint16_t* a, int64_t rows, int64_t lda,
                    int64_t pieces, int64_t run, int64_t piece_stride,
                    int64_t first, int64_t depth, uint16_t* to);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_PAIRS_H_
