#include "ops/attention/online_softmax.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/online_softmax.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"
#include "ops/lib/transpose-inl.h"
#include "ops/lib/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

void Scale(float* y, int64_t d, float by) {
  const V factor = hn::Set(D(), by);
  MapRow<4>(y, d, /*stream=*/false, y,
            [&](V v) OPTRAIL_INLINE_LAMBDA { return hn::Mul(v, factor); });
}

// e^x for x <= 0.
float Exp(float x) {
  return hn::GetLane(ExpOfNonPositive(D(), hn::Set(D(), x)));
}

// row[j] = e^(row[j] * factor - shift); returns their sum.
HWY_INLINE float ExpRow(float* row, int64_t count, V factor, V shift) {
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  const auto exp = [&](V v) OPTRAIL_INLINE_LAMBDA {
    return ExpOfNonPositive(tag, hn::MulSub(v, factor, shift));
  };
  V sum[4];
  OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) sum[u] = hn::Zero(tag);
  int64_t j = 0;
  for (; j + 4 * lanes <= count; j += 4 * lanes) {
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      const V e = exp(hn::LoadU(tag, row + j + u * lanes));
      hn::StoreU(e, tag, row + j + u * lanes);
      sum[u] = hn::Add(sum[u], e);
    }
  }
  for (; j < count; j += lanes) {
    const int64_t left = std::min(lanes, count - j);
    const M mask = hn::FirstN(tag, static_cast<size_t>(left));
    const V e =
        hn::IfThenElseZero(mask, exp(hn::MaskedLoad(mask, tag, row + j)));
    hn::BlendedStore(e, mask, tag, row + j);
    sum[0] = hn::Add(sum[0], e);
  }
  return hn::GetLane(hn::SumOfLanes(
      tag, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

void BlockForTarget(float* scores, int64_t rows, int64_t cols, int64_t stride,
                    const int64_t* seen, float scale, SoftmaxState* states,
                    float* y, int64_t d) {
  const D tag;
  const V factor = hn::Set(tag, scale);
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = scores + r * stride;
    const int64_t count = std::min(seen[r], cols);
    std::fill(row + std::max<int64_t>(count, 0), row + cols, 0.0f);
    if (count <= 0) continue;
    V max[4];
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      max[u] = hn::Set(tag, states[r].max);
    }
    ForEachVector<4>(row, count, hn::Set(tag, hwy::LowestValue<float>()),
                     [&](int u, V v) OPTRAIL_INLINE_LAMBDA {
                       max[u] = hn::Max(max[u], hn::Mul(v, factor));
                     });
    const float largest = hn::GetLane(hn::MaxOfLanes(
        tag, hn::Max(hn::Max(max[0], max[1]), hn::Max(max[2], max[3]))));
    const float sum = ExpRow(row, count, factor, hn::Set(tag, largest));
    if (largest != states[r].max) {
      if (states[r].sum != 0) {
        const float before = Exp(states[r].max - largest);
        states[r].sum *= before;
        Scale(y + r * d, d, before);
      }
      states[r].max = largest;
    }
    states[r].sum += sum;
  }
}

void FinishForTarget(const SoftmaxState* states, int64_t rows, int64_t d,
                     float* y) {
  for (int64_t r = 0; r < rows; ++r) Scale(y + r * d, d, 1 / states[r].sum);
}

// A few queries and keys whose products together have a vector's lanes, so that
// one transposition makes all their sums across lanes, and every key is loaded
// once for these queries.
constexpr int kKeysTogether = kSquare < 4 ? kSquare : 4;
constexpr int kQueriesTogether = kSquare / kKeysTogether;

// kQueries queries and kSquare / kQueries keys, of which `left` exist.
template <int kQueries>
HWY_INLINE void ScorePart(const float* q, const float* keys, int64_t left,
                          int64_t d, float* scores, int64_t stride) {
  constexpr int kKeys = kSquare / kQueries;
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  V acc[kSquare];
  OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) acc[i] = hn::Zero(tag);
  // Beyond the last key its own is read again.
  const float* row[kKeys];
  for (int k = 0; k < kKeys; ++k) {
    row[k] = keys + std::min<int64_t>(k, left - 1) * d;
  }
  int64_t c = 0;
  const auto add = [&](const auto& load) OPTRAIL_INLINE_LAMBDA {
    V key[kKeys];
    OPTRAIL_UNROLL for (int k = 0; k < kKeys; ++k) key[k] = load(row[k] + c);
    OPTRAIL_UNROLL for (int r = 0; r < kQueries; ++r) {
      const V v = load(q + r * d + c);
      OPTRAIL_UNROLL for (int k = 0; k < kKeys; ++k) {
        acc[r * kKeys + k] = hn::MulAdd(v, key[k], acc[r * kKeys + k]);
      }
    }
  };
  for (; c + lanes <= d; c += lanes) {
    add([&](const float* from)
            OPTRAIL_INLINE_LAMBDA { return hn::LoadU(tag, from); });
  }
  if (c < d) {
    add([&](const float* from) OPTRAIL_INLINE_LAMBDA {
      return LoadFirst(from, d - c, hn::Zero(tag));
    });
  }
  TransposeSquare(acc);
  V sum = acc[0];
  OPTRAIL_UNROLL for (int i = 1; i < kSquare; ++i) sum = hn::Add(sum, acc[i]);
  HWY_ALIGN float sums[kSquare];
  hn::Store(sum, tag, sums);
  for (int r = 0; r < kQueries; ++r) {
    std::copy_n(sums + r * kKeys, left, scores + r * stride);
  }
}

template <int kQueries>
HWY_INLINE void ScoreRows(const float* q, const float* keys, int64_t count,
                          int64_t d, float* scores, int64_t stride) {
  constexpr int kKeys = kSquare / kQueries;
  for (int64_t j = 0; j < count; j += kKeys) {
    ScorePart<kQueries>(q, keys + j * d, std::min<int64_t>(kKeys, count - j), d,
                        scores + j, stride);
  }
}

void ScoreForTarget(const float* q, int64_t rows, const float* keys,
                    int64_t count, int64_t d, float* scores, int64_t stride) {
  int64_t r = 0;
  for (; r + kQueriesTogether <= rows; r += kQueriesTogether) {
    ScoreRows<kQueriesTogether>(q + r * d, keys, count, d, scores + r * stride,
                                stride);
  }
  for (; r < rows; ++r) {
    ScoreRows<1>(q + r * d, keys, count, d, scores + r * stride, stride);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void SumPart(const float* weights, int64_t stride,
                        const float* values, int64_t count, int64_t d,
                        float* y) {
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  V sum[kRows][kVectors];
  OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = hn::LoadU(tag, y + r * d + v * lanes);
    }
  }
  for (int64_t j = 0; j < count; ++j) {
    V value[kVectors];
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      value[v] = hn::LoadU(tag, values + j * d + v * lanes);
    }
    OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
      const V weight = hn::Set(tag, weights[r * stride + j]);
      OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
      }
    }
  }
  OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[r][v], tag, y + r * d + v * lanes);
    }
  }
}

template <int kRows, int kVectors>
HWY_INLINE void SumRows(const float* weights, int64_t stride,
                        const float* values, int64_t count, int64_t d,
                        float* y) {
  const int64_t lanes = hn::Lanes(D());
  int64_t c = 0;
  for (; c + kVectors * lanes <= d; c += kVectors * lanes) {
    SumPart<kRows, kVectors>(weights, stride, values + c, count, d, y + c);
  }
  for (; c + lanes <= d; c += lanes) {
    SumPart<kRows, 1>(weights, stride, values + c, count, d, y + c);
  }
  for (; c < d; ++c) {
    for (int r = 0; r < kRows; ++r) {
      float sum = y[r * d + c];
      for (int64_t j = 0; j < count; ++j) {
        sum += weights[r * stride + j] * values[j * d + c];
      }
      y[r * d + c] = sum;
    }
  }
}

void SumForTarget(const float* weights, int64_t rows, int64_t stride,
                  const float* values, int64_t count, int64_t d, float* y) {
  int64_t r = 0;
  for (; r + kQueriesTogether <= rows; r += kQueriesTogether) {
    SumRows<kQueriesTogether, 4>(weights + r * stride, stride, values, count, d,
                                 y + r * d);
  }
  for (; r < rows; ++r) {
    SumRows<1, 8>(weights + r * stride, stride, values, count, d, y + r * d);
  }
}

void MergeForTarget(const SoftmaxState& b, const float* b_y, int64_t d,
                    SoftmaxState* a, float* a_y) {
  const float max = std::max(a->max, b.max);
  const float a_factor = Exp(a->max - max);
  const float b_factor = Exp(b.max - max);
  *a = {max, a->sum * a_factor + b.sum * b_factor};
  for (int64_t c = 0; c < d; ++c) {
    a_y[c] = a_y[c] * a_factor + b_y[c] * b_factor;
  }
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {
namespace {
HWY_EXPORT(BlockForTarget);
HWY_EXPORT(FinishForTarget);
HWY_EXPORT(ScoreForTarget);
HWY_EXPORT(SumForTarget);
HWY_EXPORT(MergeForTarget);
}  // namespace

SoftmaxState EmptySoftmax() { return {hwy::LowestValue<float>(), 0.0f}; }

void SoftmaxBlock(float* scores, int64_t rows, int64_t cols, int64_t stride,
                  const int64_t* seen, float scale, SoftmaxState* states,
                  float* y, int64_t d) {
  HWY_DYNAMIC_DISPATCH(BlockForTarget)
  (scores, rows, cols, stride, seen, scale, states, y, d);
}

void FinishRows(const SoftmaxState* states, int64_t rows, int64_t d, float* y) {
  HWY_DYNAMIC_DISPATCH(FinishForTarget)(states, rows, d, y);
}

void ScoreKeys(const float* q, int64_t rows, const float* keys, int64_t count,
               int64_t d, float* scores, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(ScoreForTarget)(q, rows, keys, count, d, scores, stride);
}

void SumValues(const float* weights, int64_t rows, int64_t stride,
               const float* values, int64_t count, int64_t d, float* y) {
  HWY_DYNAMIC_DISPATCH(SumForTarget)
  (weights, rows, stride, values, count, d, y);
}

void MergeSoftmax(const SoftmaxState& b, const float* b_y, int64_t d,
                  SoftmaxState* a, float* a_y) {
  HWY_DYNAMIC_DISPATCH(MergeForTarget)(b, b_y, d, a, a_y);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
