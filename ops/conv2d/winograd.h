#ifndef OPTRAIL_OPS_CONV2D_WINOGRAD_H_
#define OPTRAIL_OPS_CONV2D_WINOGRAD_H_

// Winograd's minimal filtering for filters of 3 x 3 with stride 1, as Lavin and
// Gray have it ("Fast algorithms for convolutional neural networks", 2016): a
// tile of 2 x 2 outputs needs 16 products for each channel in place of 36.
// Input tiles, filters and outputs are transformed by additions; between them
// stand 16 matrix products.
//
//   const WinogradTransforms& winograd = FindWinograd();
//   winograd.filters(weights, c * k, 0, c * k, u);
//   winograd.input(pixels, c, tiles * c, v);         // for every tile
//   ... m[e] = v[e] * u[e] for every e < 16 ...
//   winograd.output(m, tiles * k, k, outputs);       // for every tile
//
// It rounds about twice as much as the sum as it is written, and a NaN or an
// infinity reaches all four outputs of the tiles that it lies under. Larger
// tiles need fewer products and round ten times as much.

#include <cstdint>

namespace optrail::ops {

struct WinogradTransforms {
  static constexpr int64_t kOutputs = 2;  // to a side of a tile
  static constexpr int64_t kSide = 4;     // pixels under it
  static constexpr int64_t kPoints = 16;

  // weights[9][count] to u[kPoints][count], columns [begin, end).
  void (*filters)(const float* weights, int64_t count, int64_t begin,
                  int64_t end, float* u) = nullptr;
  // `c` channels of each of kPoints pixels, row by row, to v[e * step +
  // channel].
  void (*input)(const float* const* pixels, int64_t c, int64_t step,
                float* v) = nullptr;
  // products[e * step + filter] to `k` filters of each of the four outputs.
  void (*output)(const float* products, int64_t step, int64_t k,
                 float* const* outputs) = nullptr;
};

// For the best SIMD target of this machine.
const WinogradTransforms& FindWinograd();

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_WINOGRAD_H_
