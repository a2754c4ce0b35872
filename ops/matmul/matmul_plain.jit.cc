// The matrix product as one writes it down, in the order of loops that
// compilers turn into vectors: what the system's compiler makes of it, with
// everything that it knows of this machine.

OPTRAIL_JIT_KERNEL(call) {
  const auto* a = static_cast<const float*>(call.operands[0]);
  const auto* b = static_cast<const float*>(call.operands[1]);
  auto* c = static_cast<float*>(call.operands[2]);
  const int64_t n = call.dims[1];
  const int64_t k = call.dims[2];
  call.ParallelFor(call.dims[0], [=](int64_t i) {
    float* __restrict__ row = c + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      const float value = a[i * k + p];
      const float* __restrict__ from = b + p * n;
      for (int64_t j = 0; j < n; ++j) row[j] += value * from[j];
    }
  });
}
