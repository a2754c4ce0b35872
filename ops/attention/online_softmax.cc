#include "ops/attention/online_softmax.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "ops/lib/blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/online_softmax.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"
#include "ops/lib/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

void Scale(float* y, int64_t d, float by) {
  const V factor = hn::Set(D(), by);
  MapRow<4>(y, d, /*stream=*/false, y,
            [&](V v) OPTRAIL_INLINE_LAMBDA { return hn::Mul(v, factor); });
}

// 2^x for x up to a little above 0, or NaN, which stays: 2^n * 2^t with n =
// round(x), and 2^t = 1 + t q(t) on [-.5, .5] with q of degree 4, fitted by
// Lawson's iteration to the smallest relative error, 1.5 units of 2^-24; with
// kRough of degree 3, 48 units, a hundredth of what rounding to bfloat16 adds.
// Results below 2^-126 are 0.
template <bool kRough = false>
HWY_INLINE V Exp2(V x) {
  const D d;
  const V n = hn::Round(x);
  const V t = hn::Sub(x, n);
  V q;
  if (kRough) {
    q = hn::MulAdd(t, hn::Set(d, 0.00958285481f), hn::Set(d, 0.0559064336f));
    q = hn::MulAdd(t, q, hn::Set(d, 0.240240991f));
    q = hn::MulAdd(t, q, hn::Set(d, 0.693124175f));
  } else {
    q = hn::MulAdd(t, hn::Set(d, 0.00132647285f), hn::Set(d, 0.00967151392f));
    q = hn::MulAdd(t, q, hn::Set(d, 0.0555073358f));
    q = hn::MulAdd(t, q, hn::Set(d, 0.240222424f));
    q = hn::MulAdd(t, q, hn::Set(d, 0.693147004f));
  }
  const V y = hn::MulAdd(t, q, hn::Set(d, 1.0f));
  const V least = hn::Set(d, -126.0f);
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_maskz_scalef_ps(
      _mm512_cmp_ps_mask(x.raw, least.raw, _CMP_NLT_UQ), y.raw, n.raw)};
#else
  const hn::RebindToSigned<D> di;
  const auto biased = hn::ConvertTo(di, hn::Add(n, hn::Set(d, 127.0f)));
  return hn::IfThenZeroElse(
      hn::Lt(x, least), hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(biased))));
#endif
}

float Exp2(float x) { return hn::GetLane(Exp2(hn::Set(D(), x))); }

// Writes the first `left` lanes as bfloat16.
HWY_INLINE void StoreWeights(V v, int64_t left, uint16_t* to) {
#if HWY_TARGET == HWY_AVX3
  const hn::Rebind<uint16_t, D> d16;
  hn::Vec<decltype(d16)> narrow;
  asm("vcvtneps2bf16 %1, %0" : "=v"(narrow.raw) : "v"(v.raw));
  if (left >= kSquare) return hn::StoreU(narrow, d16, to);
  hn::BlendedStore(narrow, hn::FirstN(d16, static_cast<size_t>(left)), d16, to);
#else
  HWY_ALIGN float values[kSquare];
  hn::Store(v, D(), values);
  RoundToBf16(values, 1, std::min<int64_t>(left, kSquare), kSquare, to,
              kSquare);
#endif
}
HWY_INLINE void StoreWeights(V v, int64_t left, float* to) {
  if (left >= kSquare) return hn::StoreU(v, D(), to);
  StoreFirst(v, left, to);
}

// to[j] = 2^(row[j] * factor - shift); returns their sum. `to` may be where the
// row begins: it is written behind what is read.
template <class T>
HWY_INLINE float ExpRow(const float* row, int64_t count, V factor, V shift,
                        T* to) {
  constexpr bool kRough = sizeof(T) == sizeof(uint16_t);
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  const auto exp = [&](V v) OPTRAIL_INLINE_LAMBDA {
    return Exp2<kRough>(hn::MulSub(v, factor, shift));
  };
  V sum[4];
  OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) sum[u] = hn::Zero(tag);
  int64_t j = 0;
  for (; j + 4 * lanes <= count; j += 4 * lanes) {
    V e[4];
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      e[u] = exp(hn::LoadU(tag, row + j + u * lanes));
      sum[u] = hn::Add(sum[u], e[u]);
    }
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      StoreWeights(e[u], lanes, to + j + u * lanes);
    }
  }
  for (; j < count; j += lanes) {
    const int64_t left = std::min(lanes, count - j);
    const M mask = hn::FirstN(tag, static_cast<size_t>(left));
    const V e =
        hn::IfThenElseZero(mask, exp(hn::MaskedLoad(mask, tag, row + j)));
    StoreWeights(e, left, to + j);
    sum[0] = hn::Add(sum[0], e);
  }
  return hn::GetLane(hn::SumOfLanes(
      tag, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

template <class T>
HWY_INLINE void Block(float* scores, int64_t rows, int64_t cols, int64_t stride,
                      const int64_t* seen, float scale, SoftmaxState* states,
                      float* y, int64_t d) {
  const D tag;
  // Exponents are those of 2: what is read is scaled for it, too.
  const float in_bits = scale * 1.44269504f;
  const V factor = hn::Set(tag, in_bits);
  // The last pair is whole.
  const int64_t width = sizeof(T) == sizeof(float) ? cols : cols + cols % 2;
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = scores + r * stride;
    auto* const weights = reinterpret_cast<T*>(scores + r * stride);
    const int64_t count = std::max<int64_t>(std::min(seen[r], cols), 0);
    if (count > 0) {
      const V lowest = hn::Set(tag, hwy::LowestValue<float>());
      V max[4];
      OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) max[u] = lowest;
      ForEachVector<4>(row, count, lowest,
                       [&](int u, V v) OPTRAIL_INLINE_LAMBDA {
                         max[u] = hn::Max(max[u], v);
                       });
      const float raw = hn::GetLane(hn::MaxOfLanes(
          tag, hn::Max(hn::Max(max[0], max[1]), hn::Max(max[2], max[3]))));
      // NaN is not larger: as before, it shows in the sum.
      const float largest = std::max(states[r].max, raw * in_bits);
      const float sum =
          ExpRow(row, count, factor, hn::Set(tag, largest), weights);
      if (largest != states[r].max) {
        if (states[r].sum != 0) {
          const float before = Exp2(states[r].max - largest);
          states[r].sum *= before;
          Scale(y + r * d, d, before);
        }
        states[r].max = largest;
      }
      states[r].sum += sum;
    }
    std::fill(weights + count, weights + width, T());
  }
}

void BlockForTarget(float* scores, int64_t rows, int64_t cols, int64_t stride,
                    const int64_t* seen, float scale, SoftmaxState* states,
                    float* y, int64_t d) {
  Block<float>(scores, rows, cols, stride, seen, scale, states, y, d);
}

void PairBlockForTarget(float* scores, int64_t rows, int64_t cols,
                        int64_t stride, const int64_t* seen, float scale,
                        SoftmaxState* states, float* y, int64_t d) {
  Block<uint16_t>(scores, rows, cols, stride, seen, scale, states, y, d);
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
constexpr int64_t kBytesAhead = 4096;  // a page

HWY_INLINE V LoadWidened(const float* from) { return hn::LoadU(D(), from); }
HWY_INLINE V LoadWidened(const uint16_t* from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, from));
  return hn::BitCast(D(), hn::ShiftLeft<16>(bits));
}

// The first `count` values, less than a vector, and zeros.
HWY_INLINE V LoadFirstWidened(const float* from, int64_t count) {
  return LoadFirst(from, count, hn::Zero(D()));
}
HWY_INLINE V LoadFirstWidened(const uint16_t* from, int64_t count) {
#if HWY_TARGET == HWY_AVX3
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto first = hn::FirstN(d16, static_cast<size_t>(count));
  const auto bits = hn::PromoteTo(d32, hn::MaskedLoad(first, d16, from));
  return hn::BitCast(D(), hn::ShiftLeft<16>(bits));
#else
  HWY_ALIGN uint16_t values[kSquare] = {};
  std::memcpy(values, from, count * sizeof(uint16_t));
  return LoadWidened(values);
#endif
}

// What is multiplied: floats, or what becomes some.
struct ByFloats {
  static constexpr int kSteps = 1;  // that a lane multiplies
  using Left = float;
  template <class T>
  static HWY_INLINE V Load(const T* from) {
    return LoadWidened(from);
  }
  // A weight of each lane, and values of as many keys, of which `left` exist.
  static HWY_INLINE V Weight(const float* from) { return hn::Set(D(), *from); }
  template <class T>
  static HWY_INLINE V Value(const T* from, int64_t, int64_t) {
    return LoadWidened(from);
  }
  static HWY_INLINE V MulAdd(V a, V b, V sum) { return hn::MulAdd(a, b, sum); }
};

// Or pairs of bfloat16 (ops/product/cpu/micro_kernel.h).
struct ByPairs {
  static constexpr int kSteps = 2;
  using Left = uint16_t;
  static HWY_INLINE V Load(const uint16_t* from) {
    return hn::LoadU(D(), reinterpret_cast<const float*>(from));
  }
  static HWY_INLINE V Weight(const uint16_t* from) {
    float pair;
    std::memcpy(&pair, from, sizeof(pair));
    return hn::Set(D(), pair);
  }
  static HWY_INLINE V Value(const uint16_t* from, int64_t d, int64_t left) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto low = hn::PromoteTo(d32, hn::LoadU(d16, from));
    if (left < 2) return hn::BitCast(D(), low);
    const auto high = hn::PromoteTo(d32, hn::LoadU(d16, from + d));
    return hn::BitCast(D(), hn::Or(low, hn::ShiftLeft<16>(high)));
  }
  static HWY_INLINE V MulAdd(V a, V b, V sum) {
#if HWY_TARGET == HWY_AVX3
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(b.raw), "v"(a.raw));
#endif
    return sum;  // no other target has pairs
  }
};

// Lane i is the sum of the lanes of v[i]. Every step adds halves of two vectors
// to those of one, in half the shuffles that to transpose them would take.
HWY_INLINE V SumsOfLanes(V (&v)[kSquare]) {
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const hn::Repartition<double, D> pairs;
  OPTRAIL_UNROLL for (int i = 0; i < kSquare / 2; ++i) {
    v[i] = hn::Add(hn::InterleaveLower(d, v[2 * i], v[2 * i + 1]),
                   hn::InterleaveUpper(d, v[2 * i], v[2 * i + 1]));
  }
  OPTRAIL_UNROLL for (int i = 0; i < kSquare / 4; ++i) {
    const auto even = hn::BitCast(pairs, v[2 * i]);
    const auto odd = hn::BitCast(pairs, v[2 * i + 1]);
    v[i] = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, even, odd)),
                   hn::BitCast(d, hn::InterleaveUpper(pairs, even, odd)));
  }
#if HWY_MAX_BYTES >= 64
  OPTRAIL_UNROLL for (int i = 0; i < kSquare / 8; ++i) {
    const V even = v[2 * i];
    const V odd = v[2 * i + 1];
    v[i] = hn::Add(hn::OddEvenBlocks(odd, even),
                   hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd)));
  }
#endif
#if HWY_MAX_BYTES >= 32
  v[0] = hn::Add(hn::ConcatLowerLower(d, v[1], v[0]),
                 hn::ConcatUpperUpper(d, v[1], v[0]));
#endif
#endif  // HWY_TARGET != HWY_SCALAR
  return v[0];
}

constexpr int KeysOf(int queries) {
  int keys = 1;
  while (2 * keys * queries <= kSquare) keys *= 2;
  return keys;
}

// Calls body with the number of rows, fewer than kQueriesTogether, as a type.
template <class Body>
HWY_INLINE void OfRows(int64_t rows, const Body& body) {
  static_assert(kQueriesTogether <= 4);
  if (rows == 1) body(std::integral_constant<int, 1>());
  if (rows == 2) body(std::integral_constant<int, 2>());
  if (rows == 3) body(std::integral_constant<int, 3>());
}

// kQueries queries and as many keys, a power of two, as there are sums for; of
// the keys `left` exist.
template <int kQueries, class By, class T>
HWY_INLINE void ScorePart(const typename By::Left* q, const T* keys,
                          int64_t left, int64_t d, float* scores,
                          int64_t stride) {
  constexpr int kKeys = KeysOf(kQueries);
  const D tag;
  const int64_t steps = By::kSteps * hn::Lanes(tag);
  V acc[kSquare];
  OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) acc[i] = hn::Zero(tag);
  // Beyond the last key its own is read again.
  const T* row[kKeys];
  for (int k = 0; k < kKeys; ++k) {
    row[k] = keys + std::min<int64_t>(k, left - 1) * d;
  }
  int64_t c = 0;
  const auto add = [&](const auto& load) OPTRAIL_INLINE_LAMBDA {
    V key[kKeys];
    OPTRAIL_UNROLL for (int k = 0; k < kKeys; ++k) {
      key[k] = load(row[k] + c);
      // Hardware ends at every page: 430 us to 307 for 8 MB of keys.
      __builtin_prefetch(reinterpret_cast<const char*>(row[k] + c) +
                         kBytesAhead);
    }
    OPTRAIL_UNROLL for (int r = 0; r < kQueries; ++r) {
      const V v = load(q + r * d + c);
      OPTRAIL_UNROLL for (int k = 0; k < kKeys; ++k) {
        acc[r * kKeys + k] = By::MulAdd(v, key[k], acc[r * kKeys + k]);
      }
    }
  };
  for (; c + steps <= d; c += steps) {
    add([&](const auto* from) OPTRAIL_INLINE_LAMBDA { return By::Load(from); });
  }
  // Pairs are whole vectors of them.
  if (By::kSteps == 1 && c < d) {
    add([&](const auto* from)
            OPTRAIL_INLINE_LAMBDA { return LoadFirstWidened(from, d - c); });
  }
  HWY_ALIGN float sums[kSquare];
  hn::Store(SumsOfLanes(acc), tag, sums);
  for (int r = 0; r < kQueries; ++r) {
    std::copy_n(sums + r * kKeys, left, scores + r * stride);
  }
}

template <int kQueries, class By, class T>
HWY_INLINE void ScoreRows(const typename By::Left* q, const T* keys,
                          int64_t count, int64_t d, float* scores,
                          int64_t stride) {
  constexpr int kKeys = KeysOf(kQueries);
  for (int64_t j = 0; j < count; j += kKeys) {
    ScorePart<kQueries, By>(q, keys + j * d,
                            std::min<int64_t>(kKeys, count - j), d, scores + j,
                            stride);
  }
}

template <class By, class T>
HWY_INLINE void ScoreAll(const typename By::Left* q, int64_t rows,
                         const T* keys, int64_t count, int64_t d, float* scores,
                         int64_t stride) {
  int64_t r = 0;
  for (; r + kQueriesTogether <= rows; r += kQueriesTogether) {
    ScoreRows<kQueriesTogether, By>(q + r * d, keys, count, d,
                                    scores + r * stride, stride);
  }
  const auto rest = [&](auto queries) {
    ScoreRows<decltype(queries)::value, By>(q + r * d, keys, count, d,
                                            scores + r * stride, stride);
  };
  OfRows(rows - r, rest);
}

void ScoreForTarget(const float* q, int64_t rows, const float* keys,
                    int64_t count, int64_t d, float* scores, int64_t stride) {
  ScoreAll<ByFloats>(q, rows, keys, count, d, scores, stride);
}

void ScoreBf16ForTarget(const float* q, int64_t rows, const uint16_t* keys,
                        int64_t count, int64_t d, float* scores,
                        int64_t stride) {
  ScoreAll<ByFloats>(q, rows, keys, count, d, scores, stride);
}

void ScorePairsForTarget(const uint16_t* q, int64_t rows, const uint16_t* keys,
                         int64_t count, int64_t d, float* scores,
                         int64_t stride) {
  ScoreAll<ByPairs>(q, rows, keys, count, d, scores, stride);
}

// Columns of kVectors vectors; kPartial: of one vector, `columns` of it.
template <int kRows, int kVectors, bool kPartial, class By, class T>
HWY_INLINE void SumPart(const typename By::Left* weights, int64_t stride,
                        const T* values, int64_t count, int64_t d,
                        int64_t columns, float* y) {
  const D tag;
  const int64_t lanes = hn::Lanes(tag);
  V sum[kRows][kVectors];
  OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      const float* const from = y + r * d + v * lanes;
      sum[r][v] =
          kPartial ? LoadFirstWidened(from, columns) : hn::LoadU(tag, from);
    }
  }
  const auto add = [&](int64_t j, int64_t left) OPTRAIL_INLINE_LAMBDA {
    V value[kVectors];
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      const T* const from = values + j * d + v * lanes;
      value[v] =
          kPartial ? LoadFirstWidened(from, columns) : By::Value(from, d, left);
      OPTRAIL_UNROLL for (int i = 0; i < By::kSteps; ++i) {
        __builtin_prefetch(reinterpret_cast<const char*>(from + i * d) +
                           kBytesAhead);
      }
    }
    OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
      const V weight = By::Weight(weights + r * stride + j);
      OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = By::MulAdd(weight, value[v], sum[r][v]);
      }
    }
  };
  int64_t j = 0;
  for (; j + By::kSteps <= count; j += By::kSteps) add(j, By::kSteps);
  if (By::kSteps > 1 && j < count) add(j, 1);
  OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      float* const to = y + r * d + v * lanes;
      if constexpr (kPartial) {
        hn::BlendedStore(
            sum[r][v], hn::FirstN(tag, static_cast<size_t>(columns)), tag, to);
      } else {
        hn::StoreU(sum[r][v], tag, to);
      }
    }
  }
}

// The first `columns` of the d columns.
template <int kRows, int kVectors, class By, class T>
HWY_INLINE void SumRows(const typename By::Left* weights, int64_t stride,
                        const T* values, int64_t count, int64_t d,
                        int64_t columns, float* y) {
  const int64_t width = kVectors * hn::Lanes(D());
  for (; columns >= width; columns -= width, values += width, y += width) {
    SumPart<kRows, kVectors, false, By>(weights, stride, values, count, d, 0,
                                        y);
  }
  if (columns == 0) return;
  if constexpr (kVectors > 1) {
    SumRows<kRows, kVectors / 2, By>(weights, stride, values, count, d, columns,
                                     y);
  } else if constexpr (By::kSteps == 1) {
    SumPart<kRows, 1, true, By>(weights, stride, values, count, d, columns, y);
  }
}

template <class By, class T>
HWY_INLINE void SumAll(const typename By::Left* weights, int64_t rows,
                       int64_t stride, const T* values, int64_t count,
                       int64_t d, float* y) {
  int64_t r = 0;
  for (; r + kQueriesTogether <= rows; r += kQueriesTogether) {
    SumRows<kQueriesTogether, 4, By>(weights + r * stride, stride, values,
                                     count, d, d, y + r * d);
  }
  const auto rest = [&](auto left) {
    constexpr int kRows = decltype(left)::value;
    SumRows<kRows, kRows == 3 ? 4 : 8, By>(weights + r * stride, stride, values,
                                           count, d, d, y + r * d);
  };
  OfRows(rows - r, rest);
}

void SumForTarget(const float* weights, int64_t rows, int64_t stride,
                  const float* values, int64_t count, int64_t d, float* y) {
  SumAll<ByFloats>(weights, rows, stride, values, count, d, y);
}

void SumBf16ForTarget(const float* weights, int64_t rows, int64_t stride,
                      const uint16_t* values, int64_t count, int64_t d,
                      float* y) {
  SumAll<ByFloats>(weights, rows, stride, values, count, d, y);
}

void SumPairsForTarget(const uint16_t* weights, int64_t rows, int64_t stride,
                       const uint16_t* values, int64_t count, int64_t d,
                       float* y) {
  SumAll<ByPairs>(weights, rows, stride, values, count, d, y);
}

void MergeForTarget(const SoftmaxState& b, const float* b_y, int64_t d,
                    SoftmaxState* a, float* a_y) {
  const float max = std::max(a->max, b.max);
  const float a_factor = Exp2(a->max - max);
  const float b_factor = Exp2(b.max - max);
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
HWY_EXPORT(PairBlockForTarget);
HWY_EXPORT(FinishForTarget);
HWY_EXPORT(ScoreForTarget);
HWY_EXPORT(ScoreBf16ForTarget);
HWY_EXPORT(ScorePairsForTarget);
HWY_EXPORT(SumForTarget);
HWY_EXPORT(SumBf16ForTarget);
HWY_EXPORT(SumPairsForTarget);
HWY_EXPORT(MergeForTarget);
}  // namespace

SoftmaxState EmptySoftmax() { return {hwy::LowestValue<float>(), 0.0f}; }

void SoftmaxBlock(float* scores, int64_t rows, int64_t cols, int64_t stride,
                  const int64_t* seen, float scale, SoftmaxState* states,
                  float* y, int64_t d) {
  HWY_DYNAMIC_DISPATCH(BlockForTarget)
  (scores, rows, cols, stride, seen, scale, states, y, d);
}

void SoftmaxPairBlock(float* scores, int64_t rows, int64_t cols, int64_t stride,
                      const int64_t* seen, float scale, SoftmaxState* states,
                      float* y, int64_t d) {
  HWY_DYNAMIC_DISPATCH(PairBlockForTarget)
  (scores, rows, cols, stride, seen, scale, states, y, d);
}

void FinishRows(const SoftmaxState* states, int64_t rows, int64_t d, float* y) {
  HWY_DYNAMIC_DISPATCH(FinishForTarget)(states, rows, d, y);
}

void ScoreKeys(const float* q, int64_t rows, const float* keys, int64_t count,
               int64_t d, float* scores, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(ScoreForTarget)(q, rows, keys, count, d, scores, stride);
}

void ScoreKeys(const float* q, int64_t rows, const uint16_t* keys,
               int64_t count, int64_t d, float* scores, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(ScoreBf16ForTarget)
  (q, rows, keys, count, d, scores, stride);
}

void ScoreKeys(const uint16_t* q, int64_t rows, const uint16_t* keys,
               int64_t count, int64_t d, float* scores, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(ScorePairsForTarget)
  (q, rows, keys, count, d, scores, stride);
}

void SumValues(const float* weights, int64_t rows, int64_t stride,
               const float* values, int64_t count, int64_t d, float* y) {
  HWY_DYNAMIC_DISPATCH(SumForTarget)
  (weights, rows, stride, values, count, d, y);
}

void SumValues(const float* weights, int64_t rows, int64_t stride,
               const uint16_t* values, int64_t count, int64_t d, float* y) {
  HWY_DYNAMIC_DISPATCH(SumBf16ForTarget)
  (weights, rows, stride, values, count, d, y);
}

void SumValues(const uint16_t* weights, int64_t rows, int64_t stride,
               const uint16_t* values, int64_t count, int64_t d, float* y) {
  HWY_DYNAMIC_DISPATCH(SumPairsForTarget)
  (weights, rows, stride, values, count, d, y);
}

void MergeSoftmax(const SoftmaxState& b, const float* b_y, int64_t d,
                  SoftmaxState* a, float* a_y) {
  HWY_DYNAMIC_DISPATCH(MergeForTarget)(b, b_y, d, a, a_y);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
