#include "norm_plain.jit.h"

OPTRAIL_JIT_KERNEL(call) { DeriveNormPlainly</*kCentred=*/true>(call); }
