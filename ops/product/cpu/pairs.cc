#include "ops/product/cpu/pairs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "ops/lib/blocks.h"
#include "ops/product/cpu/micro_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/pairs.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

using D16 = hn::Rebind<uint16_t, D>;
using D32 = hn::RebindToUnsigned<D>;

void PackForTarget(int64_t width, int64_t columns, int64_t k, const uint16_t* b,
                   int64_t ldb, int64_t step, float* panels) {
  const D32 d32;
  const D16 d16;
  const int64_t lanes = hn::Lanes(d32);
  for (int64_t p = 0; p < k; p += 2) {
    const uint16_t* const first = b + p * ldb;
    const bool alone = p + 1 == k;
    const uint16_t* const second = alone ? first : first + ldb;
    const auto keep = hn::Set(d32, alone ? 0 : 0xffff0000u);
    for (int64_t panel = 0; panel * width < columns; ++panel) {
      const int64_t from = panel * width;
      const int64_t count = std::min(width, columns - from);
      auto* const row =
          reinterpret_cast<uint32_t*>(panels + panel * step + p / 2 * width);
      int64_t c = 0;
      for (; c + lanes <= count; c += lanes) {
        const auto low = hn::PromoteTo(d32, hn::LoadU(d16, first + from + c));
        const auto high = hn::PromoteTo(d32, hn::LoadU(d16, second + from + c));
        hn::StoreU(hn::Or(low, hn::And(keep, hn::ShiftLeft<16>(high))), d32,
                   row + c);
      }
#if HWY_TARGET == HWY_AVX3
      if (c < count && c + lanes <= width) {
        const auto rest = hn::FirstN(d16, static_cast<size_t>(count - c));
        const auto low =
            hn::PromoteTo(d32, hn::MaskedLoad(rest, d16, first + from + c));
        const auto high =
            hn::PromoteTo(d32, hn::MaskedLoad(rest, d16, second + from + c));
        hn::StoreU(hn::Or(low, hn::And(keep, hn::ShiftLeft<16>(high))), d32,
                   row + c);
        c += lanes;
      }
#endif
      for (; c < count; ++c) {
        row[c] = first[from + c] |
                 (alone ? 0 : static_cast<uint32_t>(second[from + c]) << 16);
      }
      if (c < width) std::fill(row + c, row + width, 0u);
    }
  }
}

void RoundForTarget(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                    uint16_t* y, int64_t ldy) {
#if HWY_TARGET == HWY_AVX3
  const D d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += lanes) {
      const int64_t left = std::min(lanes, cols - c);
      const M mask = hn::FirstN(d, static_cast<size_t>(left));
      const V v = hn::MaskedLoad(mask, d, x + r * ldx + c);
      hn::Vec<D16> narrow;
      asm("vcvtneps2bf16 %1, %0" : "=v"(narrow.raw) : "v"(v.raw));
      if (left == lanes) {
        hn::StoreU(narrow, D16(), y + r * ldy + c);
      } else {
        hn::BlendedStore(narrow, hn::FirstN(D16(), static_cast<size_t>(left)),
                         D16(), y + r * ldy + c);
      }
    }
  }
#else
  RoundToBf16(x, rows, cols, ldx, y, ldy);
#endif
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {
namespace {

HWY_EXPORT(PackForTarget);
HWY_EXPORT(RoundForTarget);

// The shortest of some calls.
double SecondsOf(const RegisterTile& tile) {
  using Clock = std::chrono::steady_clock;
  TileCall call;
  call.k = 128;
  call.lda = call.k;
  call.ldb = tile.columns;
  call.ldc = tile.columns;
  call.rows = tile.rows;
  call.columns = tile.columns;
  const std::vector<float> a(tile.rows * call.k);
  const std::vector<float> b(call.k * tile.columns);
  std::vector<float> c(tile.rows * tile.columns);
  double shortest = 1;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    tile.plain_a(call, a.data(), b.data(), c.data());
    shortest = std::min(
        shortest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return shortest;
}

bool MeasurePairs() {
  const RegisterTile pairs = FindPairTile(6, 4);
  if (pairs.plain_a == nullptr) return false;
  // Each of its steps is two; between the two kinds lies a factor of four.
  return SecondsOf(pairs) < 1.5 * SecondsOf(FindRegisterTile(6, 4, 4));
}

}  // namespace

bool PairsPay() {
  static const bool pay = MeasurePairs();
  return pay;
}

void PackPairPanels(int64_t width, int64_t columns, int64_t k,
                    const uint16_t* b, int64_t ldb, int64_t step,
                    float* panels) {
  HWY_DYNAMIC_DISPATCH(PackForTarget)(width, columns, k, b, ldb, step, panels);
}

void RoundPairSums(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                   uint16_t* y, int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(RoundForTarget)(x, rows, cols, ldx, y, ldy);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
