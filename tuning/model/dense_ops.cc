#include "tuning/model/dense_ops.h"

// Targets between plain C++ and AVX2 cost compile time and serve hardly anyone.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tuning/model/dense_ops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h.
#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::tuning {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using F = HWY_FULL(float);
using D = HWY_FULL(double);

void Matern52(const float* r2, size_t count, float* value, float* slope) {
  const F d;
  const auto one = hn::Set(d, 1.0f);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto t = hn::Sqrt(hn::Mul(hn::Set(d, 5.0f), hn::LoadU(d, r2 + i)));
    const auto decay = hn::Exp(d, hn::Neg(t));
    const auto linear = hn::Add(one, t);
    const auto third = hn::Mul(t, hn::Set(d, 1.0f / 3));
    hn::StoreU(hn::Mul(hn::MulAdd(t, third, linear), decay), d, value + i);
    if (slope != nullptr) {
      hn::StoreU(hn::Mul(hn::Set(d, -5.0f / 6), hn::Mul(linear, decay)), d,
                 slope + i);
    }
  }
  for (; i < count; ++i) {
    const float t = std::sqrt(5 * r2[i]), decay = std::exp(-t);
    value[i] = (1 + t + t * t / 3) * decay;
    if (slope != nullptr) slope[i] = -5.0f / 6 * (1 + t) * decay;
  }
}

void AddScaled(float factor, const float* b, size_t count, float* a) {
  const F d;
  const auto f = hn::Set(d, factor);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, b + i), hn::LoadU(d, a + i)), d,
               a + i);
  }
  for (; i < count; ++i) a[i] += factor * b[i];
}

double Dot(const float* a, const float* b, size_t count) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  double sum = 0;
  size_t i = 0;
  // In stretches, so that float sums stay accurate.
  while (i + lanes <= count) {
    const size_t end = std::min(count, i + 64 * lanes);
    auto acc = hn::Zero(d);
    for (; i + lanes <= end; i += lanes) {
      acc = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), acc);
    }
    sum += hn::GetLane(hn::SumOfLanes(d, acc));
  }
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

HWY_INLINE double DotDouble(const double* a, const double* b, int count) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  auto acc = hn::Zero(d), more = hn::Zero(d);
  int i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    acc = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), acc);
    more = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes),
                      more);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(acc, more)));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

HWY_INLINE void AddScaledDouble(double factor, const double* b, int count,
                                double* a) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, b + i), hn::LoadU(d, a + i)), d,
               a + i);
  }
  for (; i < count; ++i) a[i] += factor * b[i];
}

bool Cholesky(double* a, int n) {
  for (int i = 0; i < n; ++i) {
    double* row = a + static_cast<size_t>(i) * n;
    for (int j = 0; j < i; ++j) {
      const double* other = a + static_cast<size_t>(j) * n;
      row[j] = (row[j] - DotDouble(row, other, j)) / other[j];
    }
    const double pivot = row[i] - DotDouble(row, row, i);
    if (!(pivot > 0)) return false;
    row[i] = std::sqrt(pivot);
  }
  return true;
}

void InvertLower(const double* l, int n, double* inverse) {
  for (int i = 0; i < n; ++i) {
    double* out = inverse + static_cast<size_t>(i) * n;
    const double* row = l + static_cast<size_t>(i) * n;
    std::fill(out, out + i, 0.0);
    for (int k = 0; k < i; ++k) {
      AddScaledDouble(-row[k], inverse + static_cast<size_t>(k) * n, k + 1,
                      out);
    }
    const double scale = 1 / row[i];
    for (int c = 0; c < i; ++c) out[c] *= scale;
    out[i] = scale;
  }
}

void GramOfLower(const double* inverse, int n, double* gram) {
  std::fill(gram, gram + static_cast<size_t>(n) * n, 0.0);
  for (int r = 0; r < n; ++r) {
    const double* row = inverse + static_cast<size_t>(r) * n;
    for (int i = 0; i <= r; ++i) {
      AddScaledDouble(row[i], row, i + 1, gram + static_cast<size_t>(i) * n);
    }
  }
}

void ForwardSolveBlock(const float* l, int stride, int n, float* b) {
  const F d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  // Four rows at a time share each load of a solved row.
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    const float* l0 = l + static_cast<size_t>(i) * stride;
    const float *l1 = l0 + stride, *l2 = l1 + stride, *l3 = l2 + stride;
    float* out = b + static_cast<size_t>(i) * kBlockWidth;
    for (int c = 0; c < kBlockWidth; c += lanes) {
      auto r0 = hn::LoadU(d, out + c);
      auto r1 = hn::LoadU(d, out + kBlockWidth + c);
      auto r2 = hn::LoadU(d, out + 2 * kBlockWidth + c);
      auto r3 = hn::LoadU(d, out + 3 * kBlockWidth + c);
      const float* solved = b + c;
      for (int j = 0; j < i; ++j, solved += kBlockWidth) {
        const auto v = hn::LoadU(d, solved);
        r0 = hn::NegMulAdd(hn::Set(d, l0[j]), v, r0);
        r1 = hn::NegMulAdd(hn::Set(d, l1[j]), v, r1);
        r2 = hn::NegMulAdd(hn::Set(d, l2[j]), v, r2);
        r3 = hn::NegMulAdd(hn::Set(d, l3[j]), v, r3);
      }
      r0 = hn::Mul(r0, hn::Set(d, 1 / l0[i]));
      r1 = hn::NegMulAdd(hn::Set(d, l1[i]), r0, r1);
      r1 = hn::Mul(r1, hn::Set(d, 1 / l1[i + 1]));
      r2 = hn::NegMulAdd(hn::Set(d, l2[i]), r0, r2);
      r2 = hn::NegMulAdd(hn::Set(d, l2[i + 1]), r1, r2);
      r2 = hn::Mul(r2, hn::Set(d, 1 / l2[i + 2]));
      r3 = hn::NegMulAdd(hn::Set(d, l3[i]), r0, r3);
      r3 = hn::NegMulAdd(hn::Set(d, l3[i + 1]), r1, r3);
      r3 = hn::NegMulAdd(hn::Set(d, l3[i + 2]), r2, r3);
      r3 = hn::Mul(r3, hn::Set(d, 1 / l3[i + 3]));
      hn::StoreU(r0, d, out + c);
      hn::StoreU(r1, d, out + kBlockWidth + c);
      hn::StoreU(r2, d, out + 2 * kBlockWidth + c);
      hn::StoreU(r3, d, out + 3 * kBlockWidth + c);
    }
  }
  for (; i < n; ++i) {
    const float* row = l + static_cast<size_t>(i) * stride;
    float* out = b + static_cast<size_t>(i) * kBlockWidth;
    for (int c = 0; c < kBlockWidth; c += lanes) {
      auto r = hn::LoadU(d, out + c);
      for (int j = 0; j < i; ++j) {
        r = hn::NegMulAdd(
            hn::Set(d, row[j]),
            hn::LoadU(d, b + static_cast<size_t>(j) * kBlockWidth + c), r);
      }
      hn::StoreU(hn::Mul(r, hn::Set(d, 1 / row[i])), d, out + c);
    }
  }
}

void AddRows(const float* v, int rows, const float* factor, float* acc) {
  const F d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  // kBlockWidth is a multiple of four vectors of any width up to 2048 bits.
  for (int c = 0; c < kBlockWidth; c += 4 * lanes) {
    auto a0 = hn::LoadU(d, acc + c);
    auto a1 = hn::LoadU(d, acc + c + lanes);
    auto a2 = hn::LoadU(d, acc + c + 2 * lanes);
    auto a3 = hn::LoadU(d, acc + c + 3 * lanes);
    const float* row = v + c;
    for (int j = 0; j < rows; ++j, row += kBlockWidth) {
      const auto f = hn::Set(d, factor[j]);
      a0 = hn::MulAdd(f, hn::LoadU(d, row), a0);
      a1 = hn::MulAdd(f, hn::LoadU(d, row + lanes), a1);
      a2 = hn::MulAdd(f, hn::LoadU(d, row + 2 * lanes), a2);
      a3 = hn::MulAdd(f, hn::LoadU(d, row + 3 * lanes), a3);
    }
    hn::StoreU(a0, d, acc + c);
    hn::StoreU(a1, d, acc + c + lanes);
    hn::StoreU(a2, d, acc + c + 2 * lanes);
    hn::StoreU(a3, d, acc + c + 3 * lanes);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace optrail::tuning
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::tuning {

HWY_EXPORT(Matern52);
HWY_EXPORT(AddScaled);
HWY_EXPORT(Dot);
HWY_EXPORT(Cholesky);
HWY_EXPORT(InvertLower);
HWY_EXPORT(GramOfLower);
HWY_EXPORT(ForwardSolveBlock);
HWY_EXPORT(AddRows);

void Matern52(const float* r2, size_t count, float* value, float* slope) {
  HWY_DYNAMIC_DISPATCH(Matern52)(r2, count, value, slope);
}
void AddScaled(float factor, const float* b, size_t count, float* a) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, b, count, a);
}
double Dot(const float* a, const float* b, size_t count) {
  return HWY_DYNAMIC_DISPATCH(Dot)(a, b, count);
}
bool Cholesky(double* a, int n) { return HWY_DYNAMIC_DISPATCH(Cholesky)(a, n); }
void InvertLower(const double* l, int n, double* inverse) {
  HWY_DYNAMIC_DISPATCH(InvertLower)(l, n, inverse);
}
void GramOfLower(const double* inverse, int n, double* gram) {
  HWY_DYNAMIC_DISPATCH(GramOfLower)(inverse, n, gram);
}
void ForwardSolveBlock(const float* l, int stride, int n, float* b) {
  HWY_DYNAMIC_DISPATCH(ForwardSolveBlock)(l, stride, n, b);
}
void AddRows(const float* v, int rows, const float* factor, float* acc) {
  HWY_DYNAMIC_DISPATCH(AddRows)(v, rows, factor, acc);
}

}  // namespace optrail::tuning
#endif  // HWY_ONCE
