#include "ops/conv2d/pixel_line.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/conv2d/pixel_line.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

// Values may be multiplied as they are loaded, and take no register then.
constexpr int kVectorRegisters = HWY_TARGET == HWY_AVX3 ? 32 : 15;

constexpr int64_t kUnroll = 4;

// The values of all pixels of a tile at some step. As in register_tile.cc, they
// are reached by odd multiples of the step from one pointer, which the compiler
// must not see through.
template <int kPixels>
class Values {
 public:
  HWY_INLINE Values(const float* x, int64_t pixel_step) : next_(x) {
    OPTRAIL_UNROLL for (int i = 0; i < kPixels / 2; ++i) {
      multiples_[i] = (2 * i + 1) * pixel_step * int64_t{sizeof(float)};
      asm("" : "+r"(multiples_[i]));
    }
  }

  // That of pixel i, `u` steps ahead; both are constants.
  HWY_INLINE const float& At(int i, int u) const {
    if (i == 0) return next_[u];
    const int power = i & -i;
    return reinterpret_cast<const float*>(reinterpret_cast<const char*>(next_) +
                                          multiples_[i / power / 2] * power)[u];
  }

  HWY_INLINE void Skip(int64_t floats) {
    next_ += floats;
    asm("" : "+r"(next_));
  }

 private:
  const float* next_;
  int64_t multiples_[kPixels / 2 + 1];  // in bytes
};

// What is prefetched while a tile is computed: its pixels of y, then what is
// next. All at once would take the buffers that loads of filters need.
struct Prefetches {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  template <int kVectors>
  HWY_INLINE void Turn() {
    if (--turns > 0) return;
    const int64_t lanes = hn::Lanes(D());
    if (pixels > 0) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        __builtin_prefetch(y + j * lanes, 1);
      }
      y += y_step;
      --pixels;
    } else {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        __builtin_prefetch(next + j * lanes, 0, /*locality, L2:*/ 2);
      }
      next += next_step;
      --rows;
    }
    turns = pixels + rows > 0 ? per_row : kNever;
  }

  int64_t turns;
  int64_t per_row;
  int64_t pixels;
  int64_t rows;
  const float* y;
  int64_t y_step;
  const float* next;
  int64_t next_step;
};

// Elements are pairs where kPairs says so. Highway 1.0.3 and the compiler's
// options for its targets lack AVX512_BF16, hence assembly.
template <bool kPairs>
HWY_INLINE V MultiplyAdd(V value, V filters, V sum) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kPairs) {
    asm("vdpbf16ps %2, %1, %0"
        : "+v"(sum.raw)
        : "v"(filters.raw), "v"(value.raw));
    return sum;
  }
#endif
  return hn::MulAdd(value, filters, sum);
}

// The same of a value that takes no register.
template <bool kPairs>
HWY_INLINE V MultiplyAdd(const float& value, V filters, V sum) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kPairs) {
    asm("vdpbf16ps %2%{1to16%}, %1, %0"
        : "+v"(sum.raw)
        : "v"(filters.raw), "m"(value));
    return sum;
  }
#endif
  return hn::MulAdd(hn::Set(D(), value), filters, sum);
}

// Adds a step, `u` ahead, to all pixels but the first kFirst and the last
// kLast; kHalf: of pairs the first half.
template <bool kPairs, bool kHalf, int kFirst, int kLast, int kPixels,
          int kVectors>
HWY_INLINE void AddStep(int u, int64_t panel_step,
                        const Values<kPixels>& values, const float*& panel,
                        V (&acc)[kPixels][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  constexpr bool kFull = (kPixels + 1) * kVectors >= kVectorRegisters;
  V filters[kVectors];
  OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
    filters[j] = hn::LoadU(d, panel + j * lanes);
  }
  OPTRAIL_UNROLL for (int i = kFirst; i < kPixels - kLast; ++i) {
    if constexpr (kPairs && kFull && !kHalf) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = MultiplyAdd<kPairs>(values.At(i, u), filters[j], acc[i][j]);
      }
    } else {
      V value = hn::Set(d, values.At(i, u));
      if constexpr (kHalf) {
        const hn::RebindToUnsigned<D> bits;
        value = hn::BitCast(
            d, hn::And(hn::BitCast(bits, value), hn::Set(bits, 0xffff)));
      }
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = MultiplyAdd<kPairs>(value, filters[j], acc[i][j]);
      }
    }
  }
  panel += panel_step;
  asm("" : "+r"(panel));
}

// Adds `steps` of a row.
template <bool kPairs, int kFirst, int kLast, int kPixels, int kVectors>
HWY_INLINE void AddSteps(int64_t steps, int64_t panel_step,
                         Values<kPixels>& values, const float*& panel,
                         Prefetches& prefetches, V (&acc)[kPixels][kVectors]) {
  const auto add_step = [&](int u) OPTRAIL_INLINE_LAMBDA {
    AddStep<kPairs, /*kHalf=*/false, kFirst, kLast>(u, panel_step, values,
                                                    panel, acc);
  };
  for (; steps >= kUnroll; steps -= kUnroll) {
    prefetches.Turn<kVectors>();
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) add_step(u);
    values.Skip(kUnroll);
  }
  for (; steps > 0; --steps) {
    add_step(0);
    values.Skip(1);
  }
}

// y = or += the tile, but for the first pixels and what it has beyond the
// columns.
template <int kPixels, int kVectors>
HWY_INLINE void StoreTile(const PixelLine& line, int64_t first, float* y,
                          const V (&acc)[kPixels][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const bool whole = line.columns >= kVectors * lanes;
  OPTRAIL_UNROLL for (int i = 0; i < kPixels; ++i) {
    if (i < first) continue;
    float* const to = y + i * line.y_step;
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      float* const at = to + j * lanes;
      const int64_t left = line.columns - j * lanes;
      if (whole || left >= lanes) {
        hn::StoreU(
            line.accumulate ? hn::Add(acc[i][j], hn::LoadU(d, at)) : acc[i][j],
            d, at);
      } else if (left > 0) {
        StoreFirst(line.accumulate
                       ? hn::Add(acc[i][j], LoadFirst(at, left, hn::Zero(d)))
                       : acc[i][j],
                   left, at);
      }
    }
  }
}

template <bool kPairs, int kPixels, int kVectors>
void MultiplyLine(const PixelLine& line) {
  const int64_t steps = line.filter_rows * line.row_depth;
  Prefetches prefetches;
  prefetches.per_row =
      std::max<int64_t>(1, steps / (kUnroll * (kPixels + line.next_rows + 1)));
  prefetches.y_step = line.y_step;
  prefetches.next = line.next;
  prefetches.next_step = line.panel_step;
  const int64_t gap = line.line_step - line.row_depth;
  // A last tile that would go beyond the line begins earlier, and leaves the
  // pixels that are there.
  for (int64_t done = 0; done < line.pixels; done += kPixels) {
    const int64_t begin = std::min(done, line.pixels - kPixels);
    float* const y = line.y + begin * line.y_step;
    prefetches.pixels = line.prefetch_y ? kPixels : 0;
    prefetches.rows = line.next_rows;
    prefetches.y = y;
    prefetches.turns = prefetches.pixels + prefetches.rows > 0
                           ? prefetches.per_row
                           : Prefetches::kNever;

    const int64_t first_lacks = begin == 0 ? line.first_lacks : 0;
    const int64_t last_lacks =
        begin + kPixels == line.pixels ? line.last_lacks : 0;
    const int64_t all_have = line.row_depth - first_lacks - last_lacks;
    Values<kPixels> values(line.x + begin * line.pixel_step, line.pixel_step);
    const float* panel = line.panel;
    V acc[kPixels][kVectors];
    OPTRAIL_UNROLL for (int i = 0; i < kPixels; ++i) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = hn::Zero(D());
      }
    }
    for (int64_t row = 0; row < line.filter_rows; ++row) {
      AddSteps<kPairs, 1, 0>(first_lacks, line.panel_step, values, panel,
                             prefetches, acc);
      AddSteps<kPairs, 0, 0>(all_have, line.panel_step, values, panel,
                             prefetches, acc);
      AddSteps<kPairs, 0, 1>(last_lacks, line.panel_step, values, panel,
                             prefetches, acc);
      if constexpr (kPairs) {
        if (line.ends_in_half) {
          AddStep<kPairs, /*kHalf=*/true, 0, 0>(0, line.panel_step, values,
                                                panel, acc);
        }
      }
      values.Skip(gap);
    }
    StoreTile(line, done - begin, y, acc);
  }
}

template <bool kPairs, int kPixels, int kVectors>
PixelTile TileOf() {
  PixelTile tile;
  // Sums and a row of filters.
  if constexpr ((kPixels + 1) * kVectors <= kVectorRegisters &&
                (!kPairs || HWY_TARGET == HWY_AVX3)) {
    tile.pixels = kPixels;
    tile.columns = kVectors * static_cast<int>(hn::Lanes(D()));
    tile.multiply = &MultiplyLine<kPairs, kPixels, kVectors>;
  }
  return tile;
}

template <bool kPairs, int kPixels>
PixelTile TileOf(int vectors) {
  switch (vectors) {
    case 1:
      return TileOf<kPairs, kPixels, 1>();
    case 2:
      return TileOf<kPairs, kPixels, 2>();
    case 4:
      return TileOf<kPairs, kPixels, 4>();
    default:
      return PixelTile();
  }
}

template <bool kPairs>
PixelTile TileOf(int pixels, int vectors) {
  switch (pixels) {
    case 1:
      return TileOf<kPairs, 1>(vectors);
    case 4:
      return TileOf<kPairs, 4>(vectors);
    case 6:
      return TileOf<kPairs, 6>(vectors);
    case 7:
      return TileOf<kPairs, 7>(vectors);
    case 8:
      return TileOf<kPairs, 8>(vectors);
    case 12:
      return TileOf<kPairs, 12>(vectors);
    case 14:
      return TileOf<kPairs, 14>(vectors);
    default:
      return PixelTile();
  }
}

PixelTile TileForTarget(int pixels, int vectors, PixelElement element) {
  return element == PixelElement::kPair ? TileOf<true>(pixels, vectors)
                                        : TileOf<false>(pixels, vectors);
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {
namespace {
HWY_EXPORT(TileForTarget);
}  // namespace

PixelTile FindPixelTile(int pixels, int vectors, PixelElement element) {
  __builtin_cpu_init();
  if (element == PixelElement::kPair && !__builtin_cpu_supports("avx512bf16")) {
    return PixelTile();
  }
  return HWY_DYNAMIC_DISPATCH(TileForTarget)(pixels, vectors, element);
}

PixelTile FindTileForLine(int pixels, int vectors, PixelElement element,
                          int64_t length) {
  if (pixels <= length) return FindPixelTile(pixels, vectors, element);
  PixelTile best;
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (int64_t p = length; p > 0; --p) {
    const PixelTile tile = FindPixelTile(static_cast<int>(p), vectors, element);
    // To begin and end a tile takes about as long as two pixels.
    const int64_t time = (length + p - 1) / p * (p + 2);
    if (tile.multiply == nullptr || time >= shortest) continue;
    shortest = time;
    best = tile;
  }
  return best;
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
