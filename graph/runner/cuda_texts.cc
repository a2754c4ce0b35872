// The CUDA that every file of generated kernels begins with. NVRTC has no
// headers of the host, so that it stands here whole.

#include "graph/runner/cuda_codegen.h"

namespace optrail::graph {

const char kCudaPredecessors[] =
#include "ops/lib/predecessors.inc"
    ;

const char kCudaHead[] = R"code(
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

namespace std {
template <class T, class U> constexpr bool is_same_v = false;
template <class T> constexpr bool is_same_v<T, T> = true;
template <class T>
constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, int8_t> || is_same_v<T, uint8_t> ||
    is_same_v<T, int16_t> || is_same_v<T, uint16_t> || is_same_v<T, int32_t> ||
    is_same_v<T, uint32_t> || is_same_v<T, int64_t> || is_same_v<T, uint64_t>;
template <class T> constexpr bool is_signed_v = T(-1) < T(0);
template <class T> struct numeric_limits {
  static T max() {
    return is_signed_v<T> ? T((uint64_t(1) << (8 * sizeof(T) - 1)) - 1)
                          : T(~uint64_t(0));
  }
  static T lowest() { return is_signed_v<T> ? T(-max() - 1) : T(0); }
  static T infinity() { return T(); }  // as the standard library has it
};
template <> struct numeric_limits<float> {
  static float infinity() { return __int_as_float(0x7f800000); }
  static float max() { return 3.402823466e38f; }
  static float lowest() { return -max(); }
};
template <> struct numeric_limits<double> {
  static double infinity() {
    return __longlong_as_double(0x7ff0000000000000ll);
  }
  static double max() { return 1.7976931348623157e308; }
  static double lowest() { return -max(); }
};
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000ll)
#define OPTRAIL_MATH(name)                                \
  inline float name(float a) { return ::name##f(a); }     \
  inline double name(double a) { return ::name(a); }
OPTRAIL_MATH(exp) OPTRAIL_MATH(log) OPTRAIL_MATH(sqrt) OPTRAIL_MATH(erf)
OPTRAIL_MATH(tanh) OPTRAIL_MATH(log1p) OPTRAIL_MATH(floor) OPTRAIL_MATH(ceil)
OPTRAIL_MATH(nearbyint) OPTRAIL_MATH(sin) OPTRAIL_MATH(cos) OPTRAIL_MATH(tan)
OPTRAIL_MATH(asin) OPTRAIL_MATH(acos) OPTRAIL_MATH(atan) OPTRAIL_MATH(sinh)
OPTRAIL_MATH(cosh) OPTRAIL_MATH(asinh) OPTRAIL_MATH(acosh) OPTRAIL_MATH(atanh)
#undef OPTRAIL_MATH
inline float pow(float a, float b) { return ::powf(a, b); }
inline double pow(double a, double b) { return ::pow(a, b); }
inline float fmod(float a, float b) { return ::fmodf(a, b); }
inline double fmod(double a, double b) { return ::fmod(a, b); }
inline bool isinf(double a) {
  return a == numeric_limits<double>::infinity() ||
         a == -numeric_limits<double>::infinity();
}
}  // namespace std

// Rounds to nearest even.
struct bf16 {
  uint16_t bits;
  bf16() = default;
  inline bf16(float value) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  inline operator float() const {
    return __uint_as_float(uint32_t(bits) << 16);
  }
};

template <class T> inline T Exp(T a) { return std::exp(a); }
template <class T> inline T Erf(T a) { return std::erf(a); }
template <class T> inline T Tanh(T a) { return std::tanh(a); }

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T at[kCount];
};
template <int kCount, class T>
inline Vector<T, kCount> LoadVector(const T* from) {
  return *reinterpret_cast<const Vector<T, kCount>*>(from);
}

template <class T, class Step> inline T OfWarp(T value, Step step) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value = step(value, T(__shfl_xor_sync(~0u, value, lanes)));
  }
  return value;
}
// All threads get the result.
template <int kThreads, class T, class Step>
inline T OfBlock(T value, Step step) {
  value = OfWarp(value, step);
  if constexpr (kThreads > 32) {
    __shared__ T warps[kThreads / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[0];
#pragma unroll
    for (int w = 1; w < kThreads / 32; ++w) value = step(value, warps[w]);
  }
  return value;
}
)code";

// Kernels of more than a loop.
const char kCudaBlocks[] = R"code(
// y = norm(x + r) * scale + bias of the block's row, which its threads hold.
template <int kColumns, int kVector, int kItems, int kThreads, bool kCentred,
          class T>
inline void NormRow(unsigned block, const T* x, const T* r, const T* scale, const T* bias, T* y,
                    T* sum, float epsilon) {
  const int64_t row = int64_t(block) * kColumns;
  float value[kItems][kVector];
  float total = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int c = (i * kThreads + threadIdx.x) * kVector;
    if (c >= kColumns) continue;
    const auto a = LoadVector<kVector>(x + row + c);
#pragma unroll
    for (int l = 0; l < kVector; ++l) value[i][l] = a.at[l];
    if (r != nullptr) {
      const auto b = LoadVector<kVector>(r + row + c);
#pragma unroll
      for (int l = 0; l < kVector; ++l) value[i][l] += float(b.at[l]);
    }
    if (sum != nullptr) {
      Vector<T, kVector> s;
#pragma unroll
      for (int l = 0; l < kVector; ++l) s.at[l] = value[i][l];
      *reinterpret_cast<Vector<T, kVector>*>(sum + row + c) = s;
    }
#pragma unroll
    for (int l = 0; l < kVector; ++l) total += value[i][l];
  }
  const auto add = [](float a, float b) { return a + b; };
  const float mean =
      kCentred ? OfBlock<kThreads>(total, add) / kColumns : 0.0f;
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if ((i * kThreads + threadIdx.x) * kVector >= kColumns) continue;
#pragma unroll
    for (int l = 0; l < kVector; ++l) {
      squares += (value[i][l] - mean) * (value[i][l] - mean);
    }
  }
  const float factor =
      1 / std::sqrt(OfBlock<kThreads>(squares, add) / kColumns + epsilon);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int c = (i * kThreads + threadIdx.x) * kVector;
    if (c >= kColumns) continue;
    const auto w = LoadVector<kVector>(scale + c);
    Vector<T, kVector> to;
#pragma unroll
    for (int l = 0; l < kVector; ++l) {
      float v = (value[i][l] - mean) * factor * float(w.at[l]);
      if (bias != nullptr) v += float(bias[c + l]);
      to.at[l] = v;
    }
    *reinterpret_cast<Vector<T, kVector>*>(y + row + c) = to;
  }
}

// A tile of kTile x kTile of f(a b + bias) by 256 threads, in f32: what no
// operator has a kernel for. A thread has quads of rows and columns, so that it
// reads four factors at a time.
template <int kTile, int64_t kM, int64_t kN, int64_t kK, int64_t kAM,
          int64_t kAK, int64_t kBK, int64_t kBN, int64_t kYM, int64_t kYN,
          class T, class F>
inline void Product(const T* a, const T* b, const T* bias, T* y, int64_t row,
                    int64_t column, F f) {
  constexpr int kDepth = 16, kQuads = kTile / 64, kEach = kTile / 16;
  __shared__ alignas(16) float left[kDepth][kTile + 4];
  __shared__ alignas(16) float right[kDepth][kTile + 4];
  float sums[kEach][kEach] = {};
  const int down = threadIdx.x / 16 * 4, across = threadIdx.x % 16 * 4;
  for (int64_t k = 0; k < kK; k += kDepth) {
#pragma unroll
    for (int i = 0; i < kTile / 16; ++i) {
      const int e = i * 256 + threadIdx.x;
      // Neighbouring threads read neighbours in memory.
      const int am = kAK == 1 ? e / kDepth : e % kTile;
      const int ak = kAK == 1 ? e % kDepth : e / kTile;
      left[ak][am] = row + am < kM && k + ak < kK
                         ? float(a[(row + am) * kAM + (k + ak) * kAK])
                         : 0.0f;
      const int bn = kBN == 1 ? e % kTile : e / kDepth;
      const int bk = kBN == 1 ? e / kTile : e % kDepth;
      right[bk][bn] = column + bn < kN && k + bk < kK
                          ? float(b[(k + bk) * kBK + (column + bn) * kBN])
                          : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      float u[kEach], v[kEach];
#pragma unroll
      for (int q = 0; q < kQuads; ++q) {
        const auto us = LoadVector<4>(&left[d][down + 64 * q]);
        const auto vs = LoadVector<4>(&right[d][across + 64 * q]);
#pragma unroll
        for (int l = 0; l < 4; ++l) {
          u[4 * q + l] = us.at[l];
          v[4 * q + l] = vs.at[l];
        }
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] += u[i] * v[j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t m = row + down + i / 4 * 64 + i % 4;
      const int64_t n = column + across + j / 4 * 64 + j % 4;
      if (m >= kM || n >= kN) continue;
      const float sum = sums[i][j] + (bias == nullptr ? 0.0f : float(bias[n]));
      y[m * kYM + n * kYN] = f(sum);
    }
  }
}
)code";

}  // namespace optrail::graph
