#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_CUH_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_CUH_

// What the kernels of conv2d and its fused form share: where they begin in x,
// and what follows the sums.
//
// Compiled at run time with H, W, C, K (of x and y), R, S, P, Q, STRIDE,
// PADDING and FUSED as macros (convolution.h), FUSED 1: a scale and a shift per
// channel, then relu.

// Where in x the filter begins for a row of the product, an output pixel; it
// may begin in the padding.
struct Pixel {
  int image, h, w;
  __device__ explicit Pixel(int row)
      : image(row / (P * Q)),
        h(row / Q % P * STRIDE - PADDING),
        w(row % Q * STRIDE - PADDING) {}
};

__device__ __forceinline__ float Finish(float sum, float scale, float shift) {
  float y;
  asm("max.NaN.f32 %0, %1, 0f00000000;"
      : "=f"(y)
      : "f"(fmaf(sum, scale, shift)));
  return y;
}
__device__ __forceinline__ float Finish(float sum,
                                        [[maybe_unused]] const float* scale,
                                        [[maybe_unused]] const float* shift,
                                        [[maybe_unused]] int k) {
#if FUSED
  return Finish(sum, __ldg(scale + k), __ldg(shift + k));
#else
  return sum;
#endif
}

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CUH_
