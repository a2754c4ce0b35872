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

// As many keys at a time as a vector has lanes: their sums are made across
// lanes by one transposition.
void ScoreForTarget(const float* q, const float* keys, int64_t count, int64_t d,
                    float* scores) {
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  const int64_t whole = d / lanes * lanes;
  for (int64_t j = 0; j < count; j += kSquare) {
    const int64_t left = std::min<int64_t>(kSquare, count - j);
    V acc[kSquare];
    OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) acc[i] = hn::Zero(tag);
    // Beyond the last key its own is read again.
    const float* row[kSquare];
    for (int i = 0; i < kSquare; ++i) {
      row[i] = keys + (j + std::min<int64_t>(i, left - 1)) * d;
    }
    for (int64_t c = 0; c < whole; c += lanes) {
      const V v = hn::LoadU(tag, q + c);
      OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) {
        acc[i] = hn::MulAdd(v, hn::LoadU(tag, row[i] + c), acc[i]);
      }
    }
    if (whole < d) {
      const V v = LoadFirst(q + whole, d - whole, hn::Zero(tag));
      OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) {
        acc[i] = hn::MulAdd(
            v, LoadFirst(row[i] + whole, d - whole, hn::Zero(tag)), acc[i]);
      }
    }
    TransposeSquare(acc);
    V sum = acc[0];
    OPTRAIL_UNROLL for (int i = 1; i < kSquare; ++i) sum = hn::Add(sum, acc[i]);
    if (left == kSquare) {
      hn::StoreU(sum, tag, scores + j);
    } else {
      StoreFirst(sum, left, scores + j);
    }
  }
}

template <int kVectors>
HWY_INLINE void SumPart(const float* weights, const float* values,
                        int64_t count, int64_t d, float* y) {
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  V sum[kVectors];
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
    sum[v] = hn::LoadU(tag, y + v * lanes);
  }
  for (int64_t j = 0; j < count; ++j) {
    const V weight = hn::Set(tag, weights[j]);
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(weight, hn::LoadU(tag, values + j * d + v * lanes),
                          sum[v]);
    }
  }
  OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(sum[v], tag, y + v * lanes);
  }
}

void SumForTarget(const float* weights, const float* values, int64_t count,
                  int64_t d, float* y) {
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  int64_t c = 0;
  for (; c + 8 * lanes <= d; c += 8 * lanes) {
    SumPart<8>(weights, values + c, count, d, y + c);
  }
  for (; c + lanes <= d; c += lanes) {
    SumPart<1>(weights, values + c, count, d, y + c);
  }
  for (; c < d; ++c) {
    float sum = y[c];
    for (int64_t j = 0; j < count; ++j) sum += weights[j] * values[j * d + c];
    y[c] = sum;
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

void ScoreKeys(const float* q, const float* keys, int64_t count, int64_t d,
               float* scores) {
  HWY_DYNAMIC_DISPATCH(ScoreForTarget)(q, keys, count, d, scores);
}

void SumValues(const float* weights, const float* values, int64_t count,
               int64_t d, float* y) {
  HWY_DYNAMIC_DISPATCH(SumForTarget)(weights, values, count, d, y);
}

void MergeSoftmax(const SoftmaxState& b, const float* b_y, int64_t d,
                  SoftmaxState* a, float* a_y) {
  HWY_DYNAMIC_DISPATCH(MergeForTarget)(b, b_y, d, a, a_y);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
