#include "ops/softmax/row_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax/row_softmax.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"
#include "ops/lib/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {
namespace {

V MinusInfinity() {
  return hn::BitCast(D(), hn::Set(hn::RebindToUnsigned<D>(), 0xff800000u));
}

// Exponentials go to `exponentials`, which may be y. Where it is not, y is
// written past the caches. While they are computed, as many columns of `ahead`
// are prefetched, unless it is nullptr: the other passes take no time to speak
// of, and memory would stand still in this one.
template <int kUnroll>
HWY_INLINE void ThreePassRow(const float* x, int64_t cols, const float* ahead,
                             float* exponentials, float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const V filler = MinusInfinity();

  V max[kUnroll];
  OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) max[u] = filler;
  ForEachVector<kUnroll>(
      x, cols, filler,
      [&](int u, V v) OPTRAIL_INLINE_LAMBDA { max[u] = hn::Max(max[u], v); });
  OPTRAIL_UNROLL for (int u = 1; u < kUnroll; ++u) {
    max[0] = hn::Max(max[0], max[u]);
  }
  const V row_max = hn::MaxOfLanes(d, max[0]);

  V sum[kUnroll];
  OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) sum[u] = hn::Zero(d);
  int64_t j = 0;
  for (; j + kUnroll * lanes <= cols; j += kUnroll * lanes) {
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      if (ahead != nullptr) hwy::Prefetch(ahead + j + u * lanes);
      const V e = ExpOfNonPositive(
          d, hn::Sub(hn::LoadU(d, x + j + u * lanes), row_max));
      hn::StoreU(e, d, exponentials + j + u * lanes);
      sum[u] = hn::Add(sum[u], e);
    }
  }
  for (; j + lanes <= cols; j += lanes) {
    const V e = ExpOfNonPositive(d, hn::Sub(hn::LoadU(d, x + j), row_max));
    hn::StoreU(e, d, exponentials + j);
    sum[0] = hn::Add(sum[0], e);
  }
  if (j < cols) {
    const V e = ExpOfNonPositive(
        d, hn::Sub(LoadFirst(x + j, cols - j, filler), row_max));
    StoreFirst(e, cols - j, exponentials + j);
    sum[0] = hn::Add(sum[0], e);
  }
  OPTRAIL_UNROLL for (int u = 1; u < kUnroll; ++u) {
    sum[0] = hn::Add(sum[0], sum[u]);
  }

  const V scale = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, sum[0]));
  MapRow<kUnroll>(exponentials, cols, /*stream=*/exponentials != y, y,
                  [&](V v) OPTRAIL_INLINE_LAMBDA { return hn::Mul(v, scale); });
}

// A maximum and the sum of e^(x - maximum), per lane. The maximum starts at a
// finite number, since -infinity minus itself is NaN.
struct OnlineSum {
  V max;
  V sum;
};

HWY_INLINE OnlineSum EmptySum() {
  const D d;
  return {hn::Set(d, hwy::LowestValue<float>()), hn::Zero(d)};
}

HWY_INLINE OnlineSum Merge(const OnlineSum& a, const OnlineSum& b) {
  const D d;
  const V max = hn::Max(a.max, b.max);
  const V a_sum = hn::Mul(a.sum, ExpOfNonPositive(d, hn::Sub(a.max, max)));
  return {max,
          hn::MulAdd(b.sum, ExpOfNonPositive(d, hn::Sub(b.max, max)), a_sum)};
}

HWY_INLINE OnlineSum Include(const OnlineSum& a, V x) {
  const D d;
  const V max = hn::Max(a.max, x);
  const V old = ExpOfNonPositive(d, hn::Sub(a.max, max));
  return {max, hn::MulAdd(a.sum, old, ExpOfNonPositive(d, hn::Sub(x, max)))};
}

template <int kUnroll>
HWY_INLINE void OnlineRow(const float* x, int64_t cols, bool stream, float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OnlineSum total = EmptySum();
  int64_t j = 0;
  // One rescaling for kUnroll vectors.
  for (; j + kUnroll * lanes <= cols; j += kUnroll * lanes) {
    V v[kUnroll];
    V max = total.max;
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      v[u] = hn::LoadU(d, x + j + u * lanes);
      max = hn::Max(max, v[u]);
    }
    total.sum =
        hn::Mul(total.sum, ExpOfNonPositive(d, hn::Sub(total.max, max)));
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      total.sum = hn::Add(total.sum, ExpOfNonPositive(d, hn::Sub(v[u], max)));
    }
    total.max = max;
  }
  for (; j + lanes <= cols; j += lanes) {
    total = Include(total, hn::LoadU(d, x + j));
  }
  if (j < cols) {
    total = Include(total, LoadFirst(x + j, cols - j, MinusInfinity()));
  }

  const V row_max = hn::MaxOfLanes(d, total.max);
  const V row_sum = hn::SumOfLanes(
      d, hn::Mul(total.sum, ExpOfNonPositive(d, hn::Sub(total.max, row_max))));
  const V scale = hn::Div(hn::Set(d, 1.0f), row_sum);
  MapRow<kUnroll>(x, cols, stream, y, [&](V v) OPTRAIL_INLINE_LAMBDA {
    return hn::Mul(ExpOfNonPositive(d, hn::Sub(v, row_max)), scale);
  });
}

// Beyond this, e^x leaves what ExpParts resolves; real logits stay far below.
constexpr float kTwoPassLimit = 512.0f;

template <int kUnroll>
HWY_INLINE void TwoPassRow(const float* x, int64_t cols, bool stream,
                           float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V mantissa[kUnroll], exponent[kUnroll], largest[kUnroll];
  OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
    mantissa[u] = hn::Zero(d);
    exponent[u] = hn::Set(d, -2 * kTwoPassLimit);
    largest[u] = hn::Zero(d);
  }
  auto include = [&](int u, ScaledExp<V> e) OPTRAIL_INLINE_LAMBDA {
    const V max = hn::Max(exponent[u], e.exponent);
    const V old =
        hn::Mul(mantissa[u], PowerOfTwo(d, hn::Sub(exponent[u], max)));
    mantissa[u] =
        hn::MulAdd(e.mantissa, PowerOfTwo(d, hn::Sub(e.exponent, max)), old);
    exponent[u] = max;
  };
  int64_t j = 0;
  auto step = [&](int u, V v) OPTRAIL_INLINE_LAMBDA {
    largest[u] = hn::Max(largest[u], hn::Abs(v));
    include(u, ExpParts(d, v));
  };
  for (; j + kUnroll * lanes <= cols; j += kUnroll * lanes) {
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      step(u, hn::LoadU(d, x + j + u * lanes));
    }
  }
  for (; j + lanes <= cols; j += lanes) step(0, hn::LoadU(d, x + j));
  if (j < cols) {
    const V v = LoadFirst(x + j, cols - j, hn::Zero(d));
    const M mask = hn::FirstN(d, static_cast<size_t>(cols - j));
    largest[0] = hn::Max(largest[0], hn::Abs(v));
    ScaledExp<V> e = ExpParts(d, v);
    e.mantissa = hn::IfThenElseZero(mask, e.mantissa);
    e.exponent =
        hn::IfThenElse(mask, e.exponent, hn::Set(d, -2 * kTwoPassLimit));
    include(0, e);
  }
  OPTRAIL_UNROLL for (int u = 1; u < kUnroll; ++u) {
    include(0, {mantissa[u], exponent[u]});
    largest[0] = hn::Max(largest[0], largest[u]);
  }
  if (!(hn::GetLane(hn::MaxOfLanes(d, largest[0])) <= kTwoPassLimit)) {
    ThreePassRow<kUnroll>(x, cols, /*ahead=*/nullptr, y, y);
    return;
  }

  const V row_exponent = hn::MaxOfLanes(d, exponent[0]);
  const V row_mantissa = hn::SumOfLanes(
      d,
      hn::Mul(mantissa[0], PowerOfTwo(d, hn::Sub(exponent[0], row_exponent))));
  const V scale = hn::Div(hn::Set(d, 1.0f), row_mantissa);
  MapRow<kUnroll>(x, cols, stream, y, [&](V v) OPTRAIL_INLINE_LAMBDA {
    const ScaledExp<V> e = ExpParts(d, v);
    return hn::Mul(hn::Mul(e.mantissa, scale),
                   PowerOfTwo(d, hn::Sub(e.exponent, row_exponent)));
  });
}

template <SoftmaxAlgorithm kAlgorithm, int kUnroll>
void SoftmaxOfRows(const SoftmaxRows& work) {
  for (int64_t i = 0; i < work.rows; ++i) {
    const float* x = work.x + i * work.cols;
    float* y = work.y + i * work.cols;
    if constexpr (kAlgorithm == SoftmaxAlgorithm::kThreePass) {
      HWY_ALIGN float row[kMostStreamedCols];
      ThreePassRow<kUnroll>(x, work.cols,
                            i + 1 < work.rows_left ? x + work.cols : nullptr,
                            work.stream ? row : y, y);
    } else if constexpr (kAlgorithm == SoftmaxAlgorithm::kOnline) {
      OnlineRow<kUnroll>(x, work.cols, work.stream, y);
    } else {
      TwoPassRow<kUnroll>(x, work.cols, work.stream, y);
    }
  }
  if (work.stream) hwy::FlushStream();
}

RowSoftmax FindForTarget(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, algorithm, unroll) \
  case index:                                  \
    return &SoftmaxOfRows<algorithm, unroll>;
    OPTRAIL_SOFTMAX_INSTANTIATIONS(OPTRAIL_CASE)
#undef OPTRAIL_CASE
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {

HWY_EXPORT(FindForTarget);

RowSoftmax FindRowSoftmax(SoftmaxAlgorithm algorithm, int unroll) {
  SoftmaxKnobs knobs;
  knobs.algorithm = algorithm;
  knobs.unroll = unroll;
  return HWY_DYNAMIC_DISPATCH(FindForTarget)(knobs.InstantiationIndex());
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
