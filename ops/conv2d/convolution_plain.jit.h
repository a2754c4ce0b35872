// The convolution as one writes it down, for conv2d and its fused forms.
// finish(output pixel of k values, k) ends a pixel.

#ifndef OPTRAIL_ATTR_STRIDE
#define OPTRAIL_ATTR_STRIDE 1
#endif
#ifndef OPTRAIL_ATTR_PADDING
#define OPTRAIL_ATTR_PADDING 0
#endif

template <class Finish>
void ConvolvePlainly(const OptrailJitCall& call, float* y,
                     const Finish& finish) {
  const auto* x = static_cast<const float*>(call.operands[0]);
  const auto* weights = static_cast<const float*>(call.operands[1]);
  constexpr int64_t kStride = OPTRAIL_ATTR_STRIDE;
  constexpr int64_t kPadding = OPTRAIL_ATTR_PADDING;
  const int64_t h = call.dims[1], w = call.dims[2], c = call.dims[3];
  const int64_t k = call.dims[4], r = call.dims[5], s = call.dims[6];
  const int64_t rows = (h + 2 * kPadding - r) / kStride + 1;
  const int64_t cols = (w + 2 * kPadding - s) / kStride + 1;
  call.ParallelFor(call.dims[0] * rows, [=](int64_t task) {
    const int64_t image = task / rows;
    for (int64_t q = 0; q < cols; ++q) {
      float* const out = y + (task * cols + q) * k;
      for (int64_t f = 0; f < k; ++f) out[f] = 0;
      for (int64_t i = 0; i < r; ++i) {
        const int64_t row = task % rows * kStride + i - kPadding;
        if (row < 0 || row >= h) continue;
        for (int64_t j = 0; j < s; ++j) {
          const int64_t col = q * kStride + j - kPadding;
          if (col < 0 || col >= w) continue;
          const float* const in = x + ((image * h + row) * w + col) * c;
          const float* const filter = weights + (i * s + j) * c * k;
          for (int64_t p = 0; p < c; ++p) {
            for (int64_t f = 0; f < k; ++f) out[f] += in[p] * filter[p * k + f];
          }
        }
      }
      finish(out, k);
    }
  });
}
