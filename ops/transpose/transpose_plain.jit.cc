// The transpose as one writes it down, in blocks that stay in the L1 cache.

OPTRAIL_JIT_KERNEL(call) {
  const auto* x = static_cast<const float*>(call.operands[0]);
  auto* y = static_cast<float*>(call.operands[1]);
  const int64_t rows = call.dims[0];
  const int64_t cols = call.dims[1];
  constexpr int64_t kBlock = 32;
  call.ParallelFor((cols + kBlock - 1) / kBlock, [=](int64_t block) {
    const int64_t end =
        cols < (block + 1) * kBlock ? cols : (block + 1) * kBlock;
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
      const int64_t r1 = rows < r0 + kBlock ? rows : r0 + kBlock;
      for (int64_t c = block * kBlock; c < end; ++c) {
        for (int64_t r = r0; r < r1; ++r) y[c * rows + r] = x[r * cols + c];
      }
    }
  });
}
