#include "convolution_plain.jit.h"

OPTRAIL_JIT_KERNEL(call) {
  ConvolvePlainly(call, static_cast<float*>(call.operands[2]),
                  [](float*, int64_t) {});
}
