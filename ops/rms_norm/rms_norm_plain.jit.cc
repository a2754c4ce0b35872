#include "norm_plain.jit.h"

OPTRAIL_JIT_KERNEL(call) { NormalisePlainly</*kCentred=*/false>(call); }
