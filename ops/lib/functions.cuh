#ifndef OPTRAIL_OPS_LIB_FUNCTIONS_CUH_
#define OPTRAIL_OPS_LIB_FUNCTIONS_CUH_

// Functions of floats that CUDA kernels share, on the special unit where it is
// exact enough.

// 2^x to 2^-22; 0 below 2^-126.
__device__ __forceinline__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float Reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// x P(N <= x). P(N <= -|x|) = e^(-x^2 / 2) p(t), t = 1 / (1 + q |x|): formula
// 7.1.26 of Abramowitz and Stegun, "Handbook of mathematical functions", 1964,
// whose error is 1.5e-7 of 1, halved. It costs two functions of the special
// unit.
__device__ __forceinline__ float Gelu(float x) {
  const float t = Reciprocal(fmaf(fabsf(x), 0.23164189f, 1.0f));
  float p = fmaf(t, 0.5307027f, -0.72657603f);
  p = fmaf(t, p, 0.71070687f);
  p = fmaf(t, p, -0.14224836f);
  p = fmaf(t, p, 0.12741479f);
  const float tail = p * t * Exp2(x * x * -0.72134752f);
  return x * (x > 0 ? 1.0f - tail : tail);
}

// The formula with tanh: x / (1 + e^-u), u = sqrt(8 / pi) x (1 + .044715 x^2).
__device__ __forceinline__ float GeluTanh(float x) {
  return x * Reciprocal(
                 1.0f + Exp2(x * fmaf(x * x, -0.10294324f, -2.3022082f)));
}

__device__ __forceinline__ float Relu(float x) { return x < 0 ? 0 : x; }

// What follows a product: 0 nothing, 1 relu, 2 gelu.
template <int activation>
__device__ __forceinline__ float Activate(float x) {
  return activation == 0 ? x : activation == 1 ? Relu(x) : Gelu(x);
}

#endif  // OPTRAIL_OPS_LIB_FUNCTIONS_CUH_
