// The depthwise convolution as one writes it down.

#ifndef OPTRAIL_ATTR_STRIDE
#define OPTRAIL_ATTR_STRIDE 1
#endif
#ifndef OPTRAIL_ATTR_PADDING
#define OPTRAIL_ATTR_PADDING 0
#endif

OPTRAIL_JIT_KERNEL(call) {
  const auto* x = static_cast<const float*>(call.operands[0]);
  const auto* weights = static_cast<const float*>(call.operands[1]);
  auto* y = static_cast<float*>(call.operands[2]);
  constexpr int64_t kStride = OPTRAIL_ATTR_STRIDE;
  constexpr int64_t kPadding = OPTRAIL_ATTR_PADDING;
  const int64_t h = call.dims[1], w = call.dims[2], channels = call.dims[3];
  const int64_t r = call.dims[4], s = call.dims[5];
  const int64_t rows = (h + 2 * kPadding - r) / kStride + 1;
  const int64_t cols = (w + 2 * kPadding - s) / kStride + 1;
  call.ParallelFor(call.dims[0] * rows, [=](int64_t task) {
    const int64_t image = task / rows;
    for (int64_t q = 0; q < cols; ++q) {
      float* const out = y + (task * cols + q) * channels;
      for (int64_t c = 0; c < channels; ++c) out[c] = 0;
      for (int64_t i = 0; i < r; ++i) {
        const int64_t row = task % rows * kStride + i - kPadding;
        if (row < 0 || row >= h) continue;
        for (int64_t j = 0; j < s; ++j) {
          const int64_t col = q * kStride + j - kPadding;
          if (col < 0 || col >= w) continue;
          const float* const in = x + ((image * h + row) * w + col) * channels;
          const float* const filter = weights + (i * s + j) * channels;
          for (int64_t c = 0; c < channels; ++c) out[c] += in[c] * filter[c];
        }
      }
    }
  });
}
