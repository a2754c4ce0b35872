#ifndef OPTRAIL_OPS_PRODUCT_CPU_BLOCKED_PRODUCT_H_
#define OPTRAIL_OPS_PRODUCT_CPU_BLOCKED_PRODUCT_H_

// Blocking: C = A * B on one thread, by the scheme of Goto and van de Geijn
// ("Anatomy of high-performance matrix multiplication", 2008) as BLIS has it
// (Van Zee and van de Geijn, "BLIS: a framework for rapidly instantiating BLAS
// functionality", 2015): three loops cut the matrices into blocks for the
// caches, two walk over the register tiles inside a block, and one micro-kernel
// (micro_kernel.h) computes a tile.
//
//   const BlockedProduct product(blocking, {m, n, k});
//   std::vector<float> workspace(product.workspace_floats());
//   Result result;
//   result.data = c;
//   result.stride = n;
//   product.Multiply({m, n, k}, {{a, k}}, {{b, n}}, result, workspace.data());
//
// It is not a BLAS: no alpha and beta. Thread-safe: each call has its own
// workspace, whose address is a multiple of 64 bytes.

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "ops/lib/blocks.h"
#include "ops/product/cpu/blocking.h"
#include "ops/product/cpu/packing.h"
#include "ops/product/cpu/tiles.h"

namespace optrail::ops {

// A or B: as it is stored, which Blocking describes, or computed block by
// block, when `block` is asked for `lines` (rows of A, columns of B) and
// `steps` of k. A block stays valid until the next one of the same factor.
struct Factor {
  using Block = absl::FunctionRef<MatrixView(int64_t line, int64_t lines,
                                             int64_t step, int64_t steps)>;
  MatrixView stored;
  const Block* block = nullptr;
};

// C, and what becomes of sums. With `rounded` whole sums go there as bfloat16
// and `data` only holds them before that; nothing is written to it if there is
// one block of k and tiles round (RoundsInRegisters).
struct Result {
  float* data = nullptr;
  int64_t stride = 0;
  bool accumulate = false;  // C += A * B
  Epilogue epilogue;        // begins with the first column
  uint16_t* rounded = nullptr;
  int64_t rounded_stride = 0;
};

// Whether tiles apply the epilogue while sums are in registers; gelu is a pass
// over sums in C.
inline bool EndsInRegisters(const Epilogue& epilogue) {
  return epilogue.activation != Activation::kGelu;
}
// Returns whether they round them, too.
inline bool RoundsInRegisters(const RegisterTile& tile,
                              const Epilogue& epilogue) {
  return tile.of_pairs && EndsInRegisters(epilogue);
}

class BlockedProduct {
 public:
  BlockedProduct() = default;
  // For products that are at most as large. Those that have the remainder of
  // `size`, or none, find their tiles chosen.
  BlockedProduct(const Blocking& blocking, const ProductSize& size)
      : blocking_(blocking),
        tiles_(blocking.tile, size),
        workspace_floats_(PackingSpace(blocking, size).size) {}

  const Blocking& blocking() const { return blocking_; }
  const Tiles& tiles() const { return tiles_; }
  int64_t workspace_floats() const { return workspace_floats_; }

  void Multiply(const ProductSize& size, const Factor& a, const Factor& b,
                const Result& c, float* workspace) const;

 private:
  Blocking blocking_;
  Tiles tiles_;
  int64_t workspace_floats_ = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_BLOCKED_PRODUCT_H_
