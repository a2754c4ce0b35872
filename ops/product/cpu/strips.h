#ifndef OPTRAIL_OPS_PRODUCT_CPU_STRIPS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_STRIPS_H_

// The micro-kernel of short sums. A strip of B, all of its few steps by some
// vectors of columns, stays in registers while rows of A and C stream past it:
// a row costs its multiplications and stores, no row is a remainder, and B is
// read once. A register tile (micro_kernel.h) takes some 25 cycles more, which
// is half of what a tile of four steps takes.
//
//   const StripFunctions strip = FindStrip(/*steps=*/3, /*vectors=*/4);
//   if (strip.plain != nullptr) strip.plain(call, a, b, c);
//
// Of a TileCall it reads the strides, `rows`, which may be any number,
// `columns`, `tiles` side by side and, with StripFunctions::ends, `scale`,
// `shift` and `relu`. Thread-safe.

#include <cstdint>

#include "ops/product/cpu/micro_kernel.h"

namespace optrail::ops {

struct StripFunctions {
  TileFunction plain = nullptr;  // C = A * B
  TileFunction ends = nullptr;   // and its epilogue
};

// Nothing where this machine has no masks, or too few registers for it.
StripFunctions FindStrip(int64_t steps, int64_t vectors);

// The most vectors of a strip of so many steps; 0 if there is none.
int64_t MostVectorsOfStrip(int64_t steps);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_STRIPS_H_
