// Sums as one writes them down. Chains are cut so that they keep their digits.

namespace {

float SumOf(const float* x, int64_t count) {
  float total = 0;
  for (int64_t begin = 0; begin < count; begin += 65536) {
    const int64_t end = count - begin < 65536 ? count : begin + 65536;
    float sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += x[i];
    total += sum;
  }
  return total;
}

}  // namespace

OPTRAIL_JIT_KERNEL(call) {
  const auto* x = static_cast<const float*>(call.operands[0]);
  auto* y = static_cast<float*>(call.operands[1]);
  const int64_t rows = call.dims[0];
  const int64_t cols = call.dims[1];
#if defined(OPTRAIL_ATTR_AXIS_ALL)
  *y = SumOf(x, rows * cols);
#elif defined(OPTRAIL_ATTR_AXIS_ROWS)
  constexpr int64_t kBlock = 512;
  call.ParallelFor((cols + kBlock - 1) / kBlock, [=](int64_t block) {
    const int64_t begin = block * kBlock;
    const int64_t end = cols - begin < kBlock ? cols : begin + kBlock;
    for (int64_t c = begin; c < end; ++c) y[c] = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = begin; c < end; ++c) y[c] += x[r * cols + c];
    }
  });
#else
  call.ParallelFor(rows,
                   [=](int64_t row) { y[row] = SumOf(x + row * cols, cols); });
#endif
}
