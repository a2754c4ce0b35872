#include "convolution_plain.jit.h"

OPTRAIL_JIT_KERNEL(call) {
  const auto* scale = static_cast<const float*>(call.operands[2]);
  const auto* shift = static_cast<const float*>(call.operands[3]);
  ConvolvePlainly(call, static_cast<float*>(call.operands[4]),
                  [=](float* out, int64_t k) {
                    for (int64_t f = 0; f < k; ++f) {
                      const float v = out[f] * scale[f] + shift[f];
                      out[f] = v < 0 ? 0 : v;
                    }
                  });
}
