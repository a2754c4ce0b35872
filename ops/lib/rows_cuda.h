#ifndef OPTRAIL_OPS_LIB_ROWS_CUDA_H_
#define OPTRAIL_OPS_LIB_ROWS_CUDA_H_

// How kernels that include rows.cuh see rows, on the host, and how many threads
// share one where a config leaves that to a formula.
//
//   const RowLayout layout = RowLayoutOf(columns, element_bytes);
//   plan.defines = {layout.VectorDefine(), layout.OddDefine()};

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"

namespace optrail::ops {

struct RowLayout {
  int64_t vector;  // elements of an access
  bool odd;        // rows start in the middle of words
  int64_t words;   // most words that hold elements of one row

  std::string VectorDefine() const { return absl::StrCat("VECTOR=", vector); }
  std::string OddDefine() const { return absl::StrCat("ODD=", odd ? 1 : 0); }
};

inline RowLayout RowLayoutOf(int64_t columns, int64_t element_bytes) {
  // Shorter rows are read in what divides them: nearly all of their words would
  // be shared with other rows.
  constexpr int64_t kShortRowBytes = 64;
  int64_t vector = 16 / element_bytes;
  if (columns * element_bytes <= kShortRowBytes) {
    while (columns % vector != 0) vector /= 2;
  }
  if (columns % vector == 0) return {vector, false, columns / vector};
  // Rows start at all multiples of this within a word.
  const int64_t step = std::gcd(columns, vector);
  return {vector, true, (columns + vector - step + vector - 1) / vector};
}

// Threads that share each row of `words` accesses: a power of two, at most
// `most`. Each has one access where a quarter of the threads that the GPU holds
// then has all of them in flight, since nothing else hides what memory takes to
// answer, and up to `most_accesses` where there are many more. On an H200 this
// is within 5% of the best of some thirty configs, in the geometric mean over
// random shapes of softmax and sum.
inline int64_t ThreadsOfRow(int64_t words, int64_t rows,
                            int64_t multiprocessors, int64_t most,
                            int64_t most_accesses) {
  constexpr int64_t kThreadsOfMultiprocessor = 512;
  const int64_t in_flight = multiprocessors * kThreadsOfMultiprocessor;
  const int64_t all = rows * words;
  const int64_t accesses =
      std::min<int64_t>(most_accesses, all <= in_flight        ? 1
                                       : all <= 8 * in_flight  ? 2
                                       : all <= 32 * in_flight ? 4
                                                               : 8);
  int64_t threads = 1;
  while (threads < most && threads * accesses < words) threads *= 2;
  return threads;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_ROWS_CUDA_H_
