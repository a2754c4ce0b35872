#include "ops/product/cpu/direct_product.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/product/cpu/packing.h"
#include "ops/product/cpu/strips.h"
#include "ops/product/cpu/testing/whole_numbers.h"

namespace optrail::ops {
namespace {

Blocking InPlace() {
  Blocking blocking;
  blocking.tile = FindRegisterTile(6, 2, 4);
  blocking.pack_a = blocking.pack_b = false;
  return blocking;
}

enum class Ending { kNothing, kShift, kRelu, kGelu, kScale };
constexpr int kEndings = 5;

// C is in a wider matrix, whose other places stay as they are.
void ExpectExact(Blocking blocking, const ProductSize& size, Ending ending) {
  Rng rng(size.m * 10007 + size.n * 101 + size.k);
  const std::vector<float> a = WholeNumbers(size.m * size.k, rng);
  const std::vector<float> b = WholeNumbers(size.k * size.n, rng);
  const std::vector<float> shift = WholeNumbers(size.n, rng);
  const std::vector<float> scale = WholeNumbers(size.n, rng);
  const PackedB panels = {blocking.tile.columns, size.k};
  std::vector<float> packed(panels.floats(size.n));
  panels.Pack(size.n, b.data(), size.n, packed.data());
  const int64_t ldc = size.n + 3;
  const auto direct = DirectProduct::Plan(
      blocking, size,
      {size.k, blocking.b_in_panels ? panels.panel_floats() : size.n, ldc});
  if (!direct.has_value()) {
    EXPECT_EQ(FindRegisterTile(1, 1, 4).plain_a_edge, nullptr)
        << "only machines without masks have no calls for some sizes";
    return;
  }
  std::vector<float> c(size.m * ldc + 1, kGuard);
  Epilogue epilogue;
  if (ending != Ending::kNothing) epilogue.shift = shift.data();
  if (ending == Ending::kScale) epilogue.scale = scale.data();
  if (ending == Ending::kRelu) epilogue.activation = Activation::kRelu;
  if (ending == Ending::kGelu) epilogue.activation = Activation::kGelu;
  direct->Multiply(a.data(), blocking.b_in_panels ? packed.data() : b.data(),
                   c.data(), epilogue);
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t j = 0; j < size.n; ++j) {
      float expected = 0;
      for (int64_t p = 0; p < size.k; ++p) {
        expected += a[i * size.k + p] * b[p * size.n + j];
      }
      if (ending == Ending::kScale) expected *= scale[j];
      if (ending != Ending::kNothing) expected += shift[j];
      if (ending == Ending::kRelu && expected < 0) expected = 0;
      if (ending == Ending::kGelu) {
        const double exact =
            expected * .5 * std::erfc(-expected / std::sqrt(2));
        ASSERT_NEAR(c[i * ldc + j], exact, 1e-5 * (1 + std::abs(exact)))
            << size.m << " x " << size.n << " x " << size.k << " at " << i
            << ", " << j;
        continue;
      }
      ASSERT_EQ(c[i * ldc + j], expected) << size.m << " x " << size.n << " x "
                                          << size.k << " at " << i << ", " << j;
    }
    for (int64_t j = size.n; j < ldc; ++j) ASSERT_EQ(c[i * ldc + j], kGuard);
  }
  EXPECT_EQ(c.back(), kGuard);
}

TEST(DirectProduct, IsExactForEveryRemainder) {
  for (int64_t m = 1; m <= 31; ++m) {
    for (const int64_t n :
         {1, 3, 15, 16, 17, 21, 31, 33, 38, 48, 64, 65, 97, 130, 417}) {
      for (const int64_t k : {1, 3, 4, 17}) {
        for (const bool in_panels : {false, true}) {
          Blocking blocking = InPlace();
          blocking.b_in_panels = in_panels;
          ExpectExact(blocking, {m, n, k},
                      m % 2 == 0 ? Ending::kRelu : Ending::kShift);
        }
      }
    }
  }
}

// One to seven columns that are no whole vector: up to six are computed along
// rows, of at most 128 steps and sixteen rows at least.
TEST(DirectProduct, LastColumnsEndAsTheOthersDo) {
  for (const int64_t m : {15, 16, 23, 32}) {
    for (const int64_t n : {17, 18, 22, 23, 38, 65}) {
      for (const int64_t k : {5, 18, 127, 128, 129}) {
        for (const Ending ending :
             {Ending::kNothing, Ending::kShift, Ending::kRelu, Ending::kGelu,
              Ending::kScale}) {
          ExpectExact(InPlace(), {m, n, k}, ending);
        }
      }
    }
  }
}

TEST(DirectProduct, IsExactForMoreRowsOfShortSums) {
  for (const int64_t m : {32, 33, 47, 59, 63, 64}) {
    for (const int64_t n : {1, 17, 65, 417, 3001}) {
      for (const int64_t k : {1, 3, 16}) {
        for (const bool in_panels : {false, true}) {
          Blocking blocking = InPlace();
          blocking.b_in_panels = in_panels;
          ExpectExact(blocking, {m, n, k}, Ending::kRelu);
        }
      }
    }
  }
}

// Strips of every width, of panels of two and of four vectors, and of a C that
// is prefetched, which goes some rows at a time.
TEST(DirectProduct, IsExactForStripsOfEveryRemainder) {
  for (int64_t k = 1; k <= 16; ++k) {
    for (const int64_t m : {1, 2, 3, 4, 5, 31, 33, 71}) {
      for (const int64_t n : {1, 7, 16, 30, 33, 64, 79, 100, 161, 383, 400}) {
        const auto ending = static_cast<Ending>((m + n + k) % kEndings);
        for (const bool prefetch_c : {false, true}) {
          Blocking blocking = InPlace();
          blocking.prefetch_c = prefetch_c;
          ExpectExact(blocking, {m, n, k}, ending);
          blocking.b_in_panels = true;
          // Strips divide no panel.
          for (const int vectors : {2, 4}) {
            if (vectors > MostVectorsOfStrip(k)) continue;
            blocking.tile = FindRegisterTile(6, vectors, 4);
            ExpectExact(blocking, {m, n, k}, ending);
          }
        }
      }
    }
  }
}

TEST(DirectProduct, LeavesLargeProductsAndCopiesToOthers) {
  const DirectProduct::Strides strides = {32, 32, 32};
  const ProductSize size = {32, 32, 32};
  Blocking packs_a = InPlace(), packs_b = InPlace(), transposed = InPlace();
  packs_a.pack_a = true;
  packs_b.pack_b = true;
  transposed.a_transposed = true;
  EXPECT_FALSE(DirectProduct::Plan(packs_a, size, strides).has_value());
  EXPECT_FALSE(DirectProduct::Plan(packs_b, size, strides).has_value());
  EXPECT_FALSE(DirectProduct::Plan(transposed, size, strides).has_value());
  EXPECT_FALSE(
      DirectProduct::Plan(InPlace(), {1000, 1000, 1000}, {1000, 1000, 1000})
          .has_value());
}

}  // namespace
}  // namespace optrail::ops
