#ifndef OPTRAIL_OPS_SOFTMAX_ROW_SOFTMAX_H_
#define OPTRAIL_OPS_SOFTMAX_ROW_SOFTMAX_H_

// Softmax of rows on one thread: y[j] = e^(x[j] - max x) / sum of them.
//
//   RowSoftmax softmax = FindRowSoftmax(SoftmaxAlgorithm::kOnline, 4);
//   softmax({x, y, rows, cols, /*stream=*/false});
//
// A row that holds NaN or +infinity, or only -infinity, becomes NaN throughout,
// as the formula says. x and y must not overlap.

#include <cstdint>

#include "ops/softmax/softmax_knobs.h"

namespace optrail::ops {

// kThreePass: maximum; exponentials and their sum; scaling. Reads y back, or
//   what it keeps in place of it where stores go past the caches.
// kOnline: maximum and sum together, the sum being rescaled whenever a new
//   maximum turns up; then the exponentials again. (Milakov and Gimelshein,
//   "Online normalizer calculation for softmax", 2018.)
// kTwoPass: no maximum at all: exponentials are summed as mantissa and
//   exponent, which can't overflow; then the exponentials again. (Dukhan and
//   Ablavatski, "Two-pass softmax algorithm", 2020.) Rows with |x| > 512 go to
//   kThreePass.
using SoftmaxAlgorithm = SoftmaxKnobs::Algorithm;

// Rows of as many floats stay in L1, twice.
inline constexpr int64_t kMostStreamedCols = 4096;

struct SoftmaxRows {
  const float* x = nullptr;
  float* y = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  // Writes past the caches. Needs every row of y aligned to 64 bytes, and for
  // kThreePass at most kMostStreamedCols columns.
  bool stream = false;
  // Counts the matrix' rows from the first of these on: kThreePass prefetches
  // the next.
  int64_t rows_left = 0;
};

using RowSoftmax = void (*)(const SoftmaxRows&);

// For the best SIMD target of this machine; `unroll`: vectors per step. nullptr
// for what is not among the space's compile_time values.
RowSoftmax FindRowSoftmax(SoftmaxAlgorithm algorithm, int unroll);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_SOFTMAX_ROW_SOFTMAX_H_
