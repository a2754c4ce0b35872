#ifndef OPTRAIL_OPS_CORE_PIECES_H_
#define OPTRAIL_OPS_CORE_PIECES_H_

// Work on the elements of an operand, in pieces: on all cores for large ones,
// on this thread alone for small ones.
//
//   InPieces(values.size(), [&](int64_t begin, int64_t size) { ... });

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/process/parallel_for.h"

namespace optrail::ops {

inline void InPieces(int64_t count,
                     absl::FunctionRef<void(int64_t, int64_t)> work,
                     int64_t piece = int64_t{1} << 18) {
  const int64_t pieces = (count + piece - 1) / piece;
  ParallelFor(pieces, /*threads=*/pieces > 1 ? 0 : 1, [&](int64_t index) {
    work(index * piece, std::min(piece, count - index * piece));
  });
}

// Returns what `of` says of each MiB of some bytes, such as its hash.
template <typename T>
std::vector<T> OfPieces(absl::string_view bytes,
                        absl::FunctionRef<T(absl::string_view)> of) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<T> results((bytes.size() + kPiece - 1) / kPiece);
  ParallelFor(static_cast<int64_t>(results.size()),
              /*threads=*/results.size() > 1 ? 0 : 1, [&](int64_t i) {
                results[i] = of(bytes.substr(i * kPiece, kPiece));
              });
  return results;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_PIECES_H_
