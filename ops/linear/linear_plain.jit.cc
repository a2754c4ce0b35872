// A layer as one writes it down.

#include <cmath>

OPTRAIL_JIT_KERNEL(call) {
  const auto* x = static_cast<const float*>(call.operands[0]);
  const auto* w = static_cast<const float*>(call.operands[1]);
  const auto* bias = static_cast<const float*>(call.operands[2]);
  auto* y = static_cast<float*>(call.operands[3]);
  const int64_t n = call.dims[1];
  const int64_t k = call.dims[2];
  call.ParallelFor(call.dims[0], [=](int64_t i) {
    float* row = y + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = bias[j];
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) row[j] += x[i * k + p] * w[p * n + j];
    }
#if defined(OPTRAIL_ATTR_ACTIVATION_RELU)
    for (int64_t j = 0; j < n; ++j) row[j] = row[j] < 0 ? 0 : row[j];
#elif defined(OPTRAIL_ATTR_ACTIVATION_GELU)
    for (int64_t j = 0; j < n; ++j) {
      row[j] *= 0.5f * std::erfc(-row[j] * 0.70710678f);
    }
#endif
  });
}
