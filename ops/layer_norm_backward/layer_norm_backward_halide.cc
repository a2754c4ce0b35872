// The gradients of layer_norm: lib/norm.h has the formulas.

#include "ops/norm/norm_backward_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  return optrail::ops::NormBackward(call, /*centred=*/true);
}
