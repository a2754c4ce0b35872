// The parts of a register tile's computation: values of A, one step, how sums
// begin, end and are stored, and what is prefetched meanwhile. micro_kernel.cc
// puts them together.
//
// Included once per SIMD target (simd_targets.h), hence the toggled guard.

#if defined(OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_INL_H_
#undef OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_INL_H_
#else
#define OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/lib/simd-inl.h"
#include "ops/product/cpu/micro_kernel.h"
#include "ops/product/cpu/register-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

constexpr int kVectorRegisters = HWY_TARGET == HWY_AVX3 ? 32 : 16;
constexpr bool kMasks = HWY_TARGET == HWY_AVX3;
// Vectors of B that several rows take are loaded once. With 16 registers tiles
// lose what this gains, since a broadcast value would find none.
constexpr bool kKeeps = kVectorRegisters == 32;

// The tiles that are compiled here.
#ifdef OPTRAIL_PAIRS
constexpr bool kPairs = true;
constexpr bool IsOurs(int) { return HWY_TARGET == HWY_AVX3; }
#else
constexpr bool kPairs = false;
constexpr bool IsOurs(int vectors) { return (vectors > 2) == OPTRAIL_WIDE; }
#endif

// The sizes of tiles that convolutions have.
constexpr bool HasSegments(int vectors) { return vectors <= 4; }

// The values of A for the next steps. Rows of plain A, or columns of the
// other, are reached by odd multiples of the stride, which addresses can have
// once, twice, four and eight times, from one pointer: more of them would be
// kept in memory. The compiler must not see through them, or it would keep an
// address for every row and step.
template <int kRows, int kUnroll, bool kColumns>
class ValuesOfA {
 public:
  HWY_INLINE ValuesOfA(const float* a, int64_t stride)
      : next_(a), stride_(stride) {
    OPTRAIL_UNROLL for (int i = 0; i < kMultiples; ++i) {
      multiples_[i] = (2 * i + 1) * stride * int64_t{sizeof(float)};
      asm("" : "+r"(multiples_[i]));
    }
  }

  // Where the value of row i is, `u` steps ahead; both are constants.
  HWY_INLINE const char* Place(int i, int u) const {
    const int far = kColumns ? u : i;
    const int near = kColumns ? i : u;
    const int power = far & -far;
    const int64_t to_line = far == 0 ? 0 : multiples_[far / power / 2] * power;
    return reinterpret_cast<const char*>(next_ + near) + to_line;
  }

  HWY_INLINE float At(int i, int u) const {
    float value;  // pairs of bfloat16 may be where no float can
    std::memcpy(&value, Place(i, u), sizeof(value));
    return value;
  }

  HWY_INLINE void Advance(int64_t steps) {
    Skip(kColumns ? steps * stride_ : steps);
  }

  HWY_INLINE void Skip(int64_t floats) {
    next_ += floats;
    asm("" : "+r"(next_));
  }

 private:
  static constexpr int kMultiples = (kColumns ? kUnroll : kRows) / 2;

  const float* next_;
  const int64_t stride_;
  int64_t multiples_[kMultiples + 1];  // in bytes
};

// acc + a * b. In assembly, since Highway 1.0.3 and the compiler's options for
// its targets lack AVX512_BF16.
HWY_INLINE V MultiplyAdd(V a, V b, V acc) {
#if defined(OPTRAIL_PAIRS) && HWY_TARGET == HWY_AVX3
  asm("vdpbf16ps %2, %1, %0" : "+v"(acc.raw) : "v"(b.raw), "v"(a.raw));
  return acc;
#else
  return hn::MulAdd(a, b, acc);
#endif
}

// The same for a pair that is read as it is multiplied, and takes no register.
HWY_INLINE V MultiplyAddPlace(const char* a, V b, V acc) {
#if defined(OPTRAIL_PAIRS) && HWY_TARGET == HWY_AVX3
  asm("vdpbf16ps %2%{1to16%}, %1, %0"
      : "+v"(acc.raw)
      : "v"(b.raw), "m"(*reinterpret_cast<const int32_t*>(a)));
#endif
  return acc;
}

// acc += a column of A times a row of B, whose last vector is `last`. (To load
// a whole one with a mask takes a port that multiplies: 4% of a tile of 6 x 4.)
// The first kFirst rows and the last kLast are left out, and with kHalf the
// second of pairs.
template <bool kEdge, int kFirst = 0, int kLast = 0, bool kHalf = false,
          int kRows, int kVectors, class Values>
HWY_INLINE void AddOuterProduct(const Values& a, int u,
                                const float* HWY_RESTRICT b, M last,
                                V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  constexpr bool kFull = (kRows + 1) * kVectors >= kVectorRegisters;
  V b_row[kVectors];
  OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
    b_row[j] = kEdge && j == kVectors - 1
                   ? hn::MaskedLoad(last, d, b + j * lanes)
                   : hn::LoadU(d, b + j * lanes);
    if constexpr (kKeeps && kRows > 1) KeepInRegister(b_row[j]);
  }
  OPTRAIL_UNROLL for (int i = kFirst; i < kRows - kLast; ++i) {
    if constexpr (kPairs && kFull && !kHalf) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = MultiplyAddPlace(a.Place(i, u), b_row[j], acc[i][j]);
      }
    } else {
      V a_value = hn::Set(d, a.At(i, u));
      if constexpr (kHalf) {
        const hn::RebindToUnsigned<D> bits;
        a_value = hn::BitCast(
            d, hn::And(hn::BitCast(bits, a_value), hn::Set(bits, 0xffff)));
      }
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = MultiplyAdd(a_value, b_row[j], acc[i][j]);
      }
    }
  }
}

// NaN stays.
HWY_INLINE V Relu(V v) {
  return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(D())), v);
}

// Vector j of the tile's columns.
template <int kVectors>
HWY_INLINE V LoadColumns(const float* from, int j, M last) {
  const D d;
  from += j * hn::Lanes(d);
  return j < kVectors - 1 ? hn::LoadU(d, from) : hn::MaskedLoad(last, d, from);
}

// What becomes of the sums before they are stored. `scale` and `shift` are
// those of the tile's columns; a shift alone is in the sums already.
template <int kRows, int kVectors>
HWY_INLINE void EndSums(const TileCall& call, const float* c,
                        const float* scale, const float* shift, M last,
                        V (&acc)[kRows][kVectors]) {
  if (call.accumulate) {
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      if (i == call.rows) break;
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = hn::Add(acc[i][j],
                            LoadColumns<kVectors>(c + i * call.ldc, j, last));
      }
    }
  }
  if (scale != nullptr) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      const V times = LoadColumns<kVectors>(scale, j, last);
      const V plus = shift == nullptr ? hn::Zero(D())
                                      : LoadColumns<kVectors>(shift, j, last);
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        acc[i][j] = hn::MulAdd(acc[i][j], times, plus);
      }
    }
  }
  if (call.relu) {
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = Relu(acc[i][j]);
      }
    }
  }
}

// C = all of the tile.
template <int kRows, int kVectors>
HWY_INLINE void Store(const TileCall& call, float* c,
                      const V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      hn::StoreU(acc[i][j], d, c + i * call.ldc + j * lanes);
    }
  }
}

// C = all rows of the tile, whose last vector is `last`.
template <int kRows, int kVectors>
HWY_INLINE void StoreMasked(const TileCall& call, float* c, M last,
                            const V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    float* const row = c + i * call.ldc;
    OPTRAIL_UNROLL for (int j = 0; j < kVectors - 1; ++j) {
      hn::StoreU(acc[i][j], d, row + j * lanes);
    }
    hn::BlendedStore(acc[i][kVectors - 1], last, d,
                     row + (kVectors - 1) * lanes);
  }
}

// C = the tile from row `first` on, as far as C goes.
template <int kRows, int kVectors>
HWY_INLINE void StoreEdge(const TileCall& call, int64_t first, float* c, M last,
                          const V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    if (i == call.rows) return;
    if (i < first) continue;
    float* const row = c + i * call.ldc;
    OPTRAIL_UNROLL for (int j = 0; j < kVectors - 1; ++j) {
      hn::StoreU(acc[i][j], d, row + j * lanes);
    }
    hn::BlendedStore(acc[i][kVectors - 1], last, d,
                     row + (kVectors - 1) * lanes);
  }
}

// The same as bfloat16.
template <int kRows, int kVectors>
HWY_INLINE void StoreRounded(const TileCall& call, int64_t first,
                             uint16_t* rounded,
                             const V (&acc)[kRows][kVectors]) {
#if defined(OPTRAIL_PAIRS) && HWY_TARGET == HWY_AVX3
  const HWY_FULL(uint16_t) d_two;
  const hn::Rebind<uint16_t, D> d_one;
  const int64_t lanes = hn::Lanes(d_one);
  const int64_t of_last = call.columns - (kVectors - 1) * lanes;
  const auto last = hn::FirstN(d_one, static_cast<size_t>(of_last));
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    if (i == call.rows) return;
    if (i < first) continue;
    uint16_t* const row = rounded + i * call.ld_rounded;
    // A line of two vectors, but for the last one if that is not whole.
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; j += 2) {
      const V& low = acc[i][j];
      const V& high = acc[i][std::min(j + 1, kVectors - 1)];
      if (j + 2 < kVectors || (j + 2 == kVectors && of_last == lanes)) {
        hn::Vec<HWY_FULL(uint16_t)> line;
        asm("vcvtne2ps2bf16 %1, %2, %0"
            : "=v"(line.raw)
            : "v"(low.raw), "v"(high.raw));
        hn::StoreU(line, d_two, row + j * lanes);
        continue;
      }
      hn::Vec<decltype(d_one)> half;
      asm("vcvtneps2bf16 %1, %0" : "=v"(half.raw) : "v"(low.raw));
      if (j + 2 == kVectors) {
        hn::StoreU(half, d_one, row + j * lanes);
        asm("vcvtneps2bf16 %1, %0" : "=v"(half.raw) : "v"(high.raw));
      }
      hn::BlendedStore(half, last, d_one, row + (kVectors - 1) * lanes);
    }
  }
#endif
}

// Sums go to `c`, or, rounded, `rounded_at` elements from where the call says.
template <int kRows, int kVectors>
HWY_INLINE void StoreSums(const TileCall& call, int64_t first, float* c,
                          int64_t rounded_at, M last,
                          const V (&acc)[kRows][kVectors]) {
  const int64_t lanes = hn::Lanes(D());
  if (kPairs && call.rounded != nullptr) {
    StoreRounded(call, first, call.rounded + rounded_at, acc);
  } else if (first > 0 || call.rows < kRows ||
             call.columns < kVectors * lanes) {
    StoreEdge(call, first, c, last, acc);
  } else {
    Store(call, c, acc);
  }
}

// What sums begin with: a shift alone, which EndSums leaves out.
template <int kRows, int kVectors>
HWY_INLINE void BeginSums(const float* scale, const float* shift, M last,
                          V (&acc)[kRows][kVectors]) {
  OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
    const V first = shift == nullptr || scale != nullptr
                        ? hn::Zero(D())
                        : LoadColumns<kVectors>(shift, j, last);
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) acc[i][j] = first;
  }
}

// What is prefetched while a tile is computed, one row every few turns: its
// place in C, then what is next. All rows at once, at the beginning or as C is
// stored, would take the buffers that loads of B need.
template <int kRows, int kVectors>
class Prefetches {
 public:
  HWY_INLINE Prefetches(const TileCall& call, int64_t turns)
      : call_(call), next_(call.next), never_(turns + 1) {
    const int64_t rows = (call.prefetch_c ? kRows : 0) + call.next_rows;
    turns_per_row_ =
        rows > 0 ? std::max<int64_t>(1, turns / (rows + 1)) : never_;
  }

  HWY_INLINE void BeginTile(const float* c) {
    turns_ = turns_per_row_;
    rows_of_c_ = call_.prefetch_c ? kRows : 0;
    rows_left_ = rows_of_c_ + call_.next_rows;
    c_ = c;
  }

  HWY_INLINE void Turn() {
    if (--turns_ != 0) return;
    const int64_t lanes = hn::Lanes(D());
    if (rows_of_c_ > 0) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        __builtin_prefetch(c_ + j * lanes, 1);
      }
      c_ += call_.ldc;
      --rows_of_c_;
    } else {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        __builtin_prefetch(next_ + j * lanes, 0, /*locality, L2:*/ 2);
      }
      next_ += call_.next_stride;
    }
    turns_ = --rows_left_ > 0 ? turns_per_row_ : never_;
  }

 private:
  const TileCall& call_;
  const float* c_ = nullptr;
  const float* next_;
  int64_t never_;
  int64_t turns_per_row_;
  int64_t turns_ = 0;
  int64_t rows_of_c_ = 0;
  int64_t rows_left_ = 0;
};

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_INL_H_
