// Products as one writes them down.

OPTRAIL_JIT_KERNEL(call) {
  const auto* a = static_cast<const float*>(call.operands[0]);
  const auto* b = static_cast<const float*>(call.operands[1]);
  auto* c = static_cast<float*>(call.operands[2]);
  const int64_t m = call.dims[1];
  const int64_t n = call.dims[2];
  const int64_t k = call.dims[3];
  call.ParallelFor(call.dims[0] * m, [=](int64_t i) {
    float* const row = c + i * n;
    const float* const from = b + i / m * k * n;
#if defined(OPTRAIL_ATTR_TRANSPOSED_B)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * from[j * k + p];
      row[j] = sum;
    }
#else
    for (int64_t j = 0; j < n; ++j) row[j] = 0;
    for (int64_t p = 0; p < k; ++p) {
#if defined(OPTRAIL_ATTR_TRANSPOSED_A)
      const float value = a[(i / m * k + p) * m + i % m];
#else
      const float value = a[i * k + p];
#endif
      for (int64_t j = 0; j < n; ++j) row[j] += value * from[p * n + j];
    }
#endif
  });
}
