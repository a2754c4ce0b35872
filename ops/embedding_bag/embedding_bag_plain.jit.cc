// The lookups as one writes them down.

OPTRAIL_JIT_KERNEL(call) {
  const auto* table = static_cast<const float*>(call.operands[0]);
  const auto* indices = static_cast<const int32_t*>(call.operands[1]);
  auto* y = static_cast<float*>(call.operands[2]);
  const int64_t cols = call.dims[1];
  const int64_t lookups = call.dims[3];
  call.ParallelFor(call.dims[2], [=](int64_t bag) {
    float* const sum = y + bag * cols;
    for (int64_t c = 0; c < cols; ++c) sum[c] = 0;
    for (int64_t i = 0; i < lookups; ++i) {
      const float* const row = table + indices[bag * lookups + i] * cols;
      for (int64_t c = 0; c < cols; ++c) sum[c] += row[c];
    }
  });
}
