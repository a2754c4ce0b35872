#include "ops/product/cpu/blocked_product.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/product/cpu/micro_kernel.h"
#include "ops/product/cpu/testing/whole_numbers.h"

namespace optrail::ops {
namespace {

std::string Describe(const Blocking& blocking, const ProductSize& size) {
  return "m=" + std::to_string(size.m) + " n=" + std::to_string(size.n) +
         " k=" + std::to_string(size.k) +
         " tile=" + std::to_string(blocking.tile.rows) + "x" +
         std::to_string(blocking.tile.columns) +
         " k_unroll=" + std::to_string(blocking.tile.k_unroll) +
         " mc=" + std::to_string(blocking.mc) +
         " nc=" + std::to_string(blocking.nc) +
         " kc=" + std::to_string(blocking.kc) +
         " pack_a=" + std::to_string(blocking.pack_a) +
         " pack_b=" + std::to_string(blocking.pack_b) +
         " rows_outermost=" + std::to_string(blocking.rows_outermost) +
         " a_panel_stays=" + std::to_string(blocking.a_panel_stays) +
         " prefetch_a=" + std::to_string(blocking.prefetch_a) +
         " a_transposed=" + std::to_string(blocking.a_transposed) +
         " b_transposed=" + std::to_string(blocking.b_transposed) +
         " b_in_panels=" + std::to_string(blocking.b_in_panels);
}

// [rows, columns] row by row, as [columns, rows].
std::vector<float> Transposed(const std::vector<float>& x, int64_t rows,
                              int64_t columns) {
  std::vector<float> y(x.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  }
  return y;
}

void ExpectExact(const Blocking& blocking, const ProductSize& size) {
  SCOPED_TRACE(Describe(blocking, size));
  Rng rng(size.m * 10007 + size.n * 101 + size.k);
  const std::vector<float> a = WholeNumbers(size.m * size.k, rng);
  const std::vector<float> b = WholeNumbers(size.k * size.n, rng);
  // C lies in a wider matrix; what surrounds it must not change.
  const int64_t ldc = size.n + 3;
  std::vector<float> c(size.m * ldc + 1, kGuard);

  constexpr int64_t kSlack = 16;
  const int64_t floats = BlockedProduct(blocking, size).workspace_floats();
  std::vector<float> memory(floats + 2 * kSlack, kGuard);
  auto* workspace = memory.data();
  while (reinterpret_cast<uintptr_t>(workspace) % 64 != 0) ++workspace;
  // Stale contents must not show.
  std::fill_n(workspace, floats, std::numeric_limits<float>::quiet_NaN());

  const std::vector<float> a_lies =
      blocking.a_transposed ? Transposed(a, size.m, size.k) : a;
  std::vector<float> b_lies =
      blocking.b_transposed ? Transposed(b, size.k, size.n) : b;
  int64_t ldb = blocking.b_transposed ? size.k : size.n;
  if (blocking.b_in_panels) {
    const PackedB panels = {blocking.tile.columns, size.k};
    b_lies.assign(panels.floats(size.n),
                  std::numeric_limits<float>::quiet_NaN());
    panels.Pack(size.n, b.data(), size.n, b_lies.data());
    ldb = panels.panel_floats();
  }
  Result result;
  result.data = c.data();
  result.stride = ldc;
  BlockedProduct(blocking, size)
      .Multiply(size,
                {{a_lies.data(), blocking.a_transposed ? size.m : size.k}},
                {{b_lies.data(), ldb}}, result, workspace);

  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t j = 0; j < size.n; ++j) {
      float expected = 0;
      for (int64_t p = 0; p < size.k; ++p) {
        expected += a[i * size.k + p] * b[p * size.n + j];
      }
      ASSERT_EQ(c[i * ldc + j], expected) << "at " << i << ", " << j;
    }
    for (int64_t j = size.n; j < ldc; ++j) {
      ASSERT_EQ(c[i * ldc + j], kGuard) << "overwritten at " << i << ", " << j;
    }
  }
  EXPECT_EQ(c.back(), kGuard);
  EXPECT_EQ(workspace[floats], kGuard) << "the workspace is too small";
}

std::vector<RegisterTile> AllTiles() {
  std::vector<RegisterTile> tiles;
  for (int rows = 1; rows <= 32; ++rows) {
    for (int vectors = 1; vectors <= 8; ++vectors) {
      for (int k_unroll = 1; k_unroll <= 16; ++k_unroll) {
        const RegisterTile tile = FindRegisterTile(rows, vectors, k_unroll);
        if (tile.plain_a != nullptr) tiles.push_back(tile);
      }
    }
  }
  return tiles;
}

// How a product is computed; with how its factors lie: ForEachLayout.
template <class Visit>
void ForEachVariant(Blocking blocking, const Visit& visit) {
  for (int bits = 0; bits < 32; ++bits) {
    blocking.pack_a = bits & 1;
    blocking.pack_b = bits & 2;
    blocking.rows_outermost = bits & 4;
    blocking.a_panel_stays = bits & 8;
    blocking.prefetch_a = bits & 16;
    visit(blocking);
  }
}

template <class Visit>
void ForEachLayout(Blocking blocking, const Visit& visit) {
  for (int bits = 0; bits < 6; ++bits) {
    blocking.a_transposed = bits & 1;
    blocking.b_transposed = bits & 2;
    blocking.b_in_panels = bits & 4;
    ForEachVariant(blocking, visit);
  }
}

TEST(RegisterTile, IsFoundForWhatIsInstantiatedOnly) {
  EXPECT_GE(AllTiles().size(), 16u);
  EXPECT_EQ(FindRegisterTile(10, 1, 1).plain_a, nullptr);
  EXPECT_EQ(FindRegisterTile(1, 1, 3).plain_a, nullptr);
  EXPECT_EQ(FindRegisterTile(-1, 1, 4).plain_a, nullptr);
  EXPECT_EQ(FindRegisterTile(1, 1000, 4).plain_a, nullptr);
  const RegisterTile tile = FindRegisterTile(6, 2, 4);
  ASSERT_NE(tile.plain_a, nullptr);
  ASSERT_NE(tile.plain_a, nullptr);
  EXPECT_EQ(tile.rows, 6);
  EXPECT_EQ(tile.columns, 2 * TileLanes());
  EXPECT_EQ(tile.k_unroll, 4);
}

// What is left of a product's columns takes one.
TEST(RegisterTile, IsFoundForFewerVectorsToo) {
  for (const RegisterTile& tile : AllTiles()) {
    for (int vectors = tile.columns / TileLanes(); vectors > 0; --vectors) {
      EXPECT_NE(FindRegisterTile(tile.rows, vectors, tile.k_unroll).plain_a,
                nullptr)
          << tile.rows << " x " << vectors << " by " << tile.k_unroll;
    }
  }
}

TEST(BlockedProduct, IsExactWithEveryTileAndVariant) {
  for (const RegisterTile& tile : AllTiles()) {
    Blocking blocking;
    blocking.tile = tile;
    blocking.mc = 2 * tile.rows;
    blocking.nc = 2 * tile.columns;
    blocking.kc = 8;
    // Several blocks each way; the last of each is ragged.
    const ProductSize size = {3 * tile.rows + 1, 2 * tile.columns + 5, 19};
    ForEachLayout(blocking, [&](const Blocking& b) { ExpectExact(b, size); });
  }
}

TEST(BlockedProduct, IsExactForSizesAroundTheTile) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(4, 2, 4);
  ASSERT_NE(blocking.tile.plain_a, nullptr);
  blocking.mc = 8;
  blocking.nc = 2 * blocking.tile.columns;
  blocking.kc = 8;
  const int64_t nr = blocking.tile.columns;
  for (const int64_t m : {1, 3, 4, 5, 8, 9}) {
    for (const int64_t n :
         {int64_t{1}, nr - 1, nr, nr + 1, 2 * nr, 2 * nr + 1}) {
      for (const int64_t k : {1, 3, 4, 5, 8, 9, 17}) {
        ForEachLayout(blocking, [&](const Blocking& b) {
          ExpectExact(b, {m, n, k});
        });
      }
    }
  }
}

TEST(BlockedProduct, IsExactForPrimesAndVectors) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(6, 2, 1);
  ASSERT_NE(blocking.tile.plain_a, nullptr);
  blocking.mc = 24;
  blocking.nc = 4 * blocking.tile.columns;
  blocking.kc = 32;
  for (const ProductSize& size :
       {ProductSize{1, 1, 1}, ProductSize{1, 211, 127},
        ProductSize{211, 1, 127}, ProductSize{101, 103, 1},
        ProductSize{101, 103, 107}}) {
    ForEachLayout(blocking, [&](const Blocking& b) { ExpectExact(b, size); });
  }
}

TEST(BlockedProduct, PrefetchingChangesNothing) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(2, 1, 4);
  ASSERT_NE(blocking.tile.plain_a, nullptr);
  blocking.mc = 8;
  blocking.nc = 64;
  blocking.kc = 16;
  blocking.pack_b = false;
  for (const int64_t prefetch : {0, 4, 1000000}) {
    blocking.prefetch = prefetch;
    ExpectExact(blocking, {9, 70, 33});
  }
}

TEST(BlockedProduct, NeedsLittleWorkspaceWithoutPacking) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(6, 2, 4);
  blocking.mc = 96;
  blocking.nc = 1024;
  blocking.kc = 256;
  const ProductSize size = {1024, 1024, 1024};
  const int64_t packed = BlockedProduct(blocking, size).workspace_floats();
  blocking.pack_a = false;
  blocking.pack_b = false;
  EXPECT_LT(BlockedProduct(blocking, size).workspace_floats(), packed / 10);
}

TEST(BlockedProduct, ReadsRowsThatOverlapAndAddsToWhatIsThere) {
  for (const bool pack_a : {false, true}) {
    for (const bool a_panel_stays : {false, true}) {
      for (const int64_t kc : {5, 8, 64}) {
        for (const ProductSize& size : std::vector<ProductSize>{
                 {1, 1, 1}, {13, 37, 63}, {28, 64, 21}, {150, 190, 64}}) {
          Blocking blocking;
          blocking.tile = FindRegisterTile(6, 2, 4);
          blocking.mc = 126;
          blocking.nc = 10 * blocking.tile.columns;
          blocking.kc = kc;
          blocking.pack_a = pack_a;
          blocking.pack_b = false;
          blocking.a_panel_stays = a_panel_stays;
          SCOPED_TRACE(Describe(blocking, size));
          const int64_t lda = 2;
          Rng rng(kc * 31 + size.m);
          const std::vector<float> a = WholeNumbers(size.m * lda + size.k, rng);
          const std::vector<float> b = WholeNumbers(size.k * size.n, rng);
          std::vector<float> c = WholeNumbers(size.m * size.n, rng);
          std::vector<float> expected = c;
          for (int64_t i = 0; i < size.m; ++i) {
            for (int64_t p = 0; p < size.k; ++p) {
              for (int64_t j = 0; j < size.n; ++j) {
                expected[i * size.n + j] += a[i * lda + p] * b[p * size.n + j];
              }
            }
          }
          std::vector<float> memory(
              BlockedProduct(blocking, size).workspace_floats() + 16);
          auto* workspace = memory.data();
          while (reinterpret_cast<uintptr_t>(workspace) % 64 != 0) ++workspace;
          Result result;
          result.data = c.data();
          result.stride = size.n;
          result.accumulate = true;
          BlockedProduct(blocking, size)
              .Multiply(size, {{a.data(), lda}}, {{b.data(), size.n}}, result,
                        workspace);
          ASSERT_EQ(c, expected);
        }
      }
    }
  }
}

// Ended twice, or before the last block of k, or beside the tile, it would
// show.
TEST(BlockedProduct, EndsEveryElementOnce) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(6, 2, 4);
  ASSERT_NE(blocking.tile.plain_a, nullptr);
  blocking.mc = 66;
  blocking.nc = 9 * blocking.tile.columns;
  blocking.kc = 8;
  for (const ProductSize& size :
       {ProductSize{1, 1, 1},
        ProductSize{13, 5 * blocking.tile.columns - 3, 19},
        ProductSize{29, 2 * blocking.tile.columns, 8},
        ProductSize{127, 10 * blocking.tile.columns + 1, 8}}) {
    Rng rng(size.m);
    const std::vector<float> a = WholeNumbers(size.m * size.k, rng);
    const std::vector<float> b = WholeNumbers(size.k * size.n, rng);
    const std::vector<float> scale = WholeNumbers(size.n, rng);
    const std::vector<float> shift = WholeNumbers(size.n, rng);
    for (const bool scales : {false, true}) {
      for (const bool shifts : {false, true}) {
        for (const Activation activation :
             {Activation::kNone, Activation::kRelu}) {
          const Epilogue epilogue = {scales ? scale.data() : nullptr,
                                     shifts ? shift.data() : nullptr,
                                     activation};
          ForEachVariant(blocking, [&](const Blocking& variant) {
            SCOPED_TRACE(Describe(variant, size));
            std::vector<float> c(size.m * size.n, kGuard);
            std::vector<float> memory(
                BlockedProduct(variant, size).workspace_floats() + 16);
            auto* workspace = memory.data();
            while (reinterpret_cast<uintptr_t>(workspace) % 64 != 0) {
              ++workspace;
            }
            Result result;
            result.data = c.data();
            result.stride = size.n;
            result.epilogue = epilogue;
            BlockedProduct(variant, size)
                .Multiply(size, {{a.data(), size.k}}, {{b.data(), size.n}},
                          result, workspace);
            for (int64_t i = 0; i < size.m; ++i) {
              for (int64_t j = 0; j < size.n; ++j) {
                float expected = 0;
                for (int64_t p = 0; p < size.k; ++p) {
                  expected += a[i * size.k + p] * b[p * size.n + j];
                }
                if (scales) expected *= scale[j];
                if (shifts) expected += shift[j];
                if (activation == Activation::kRelu && expected < 0) {
                  expected = 0;
                }
                ASSERT_EQ(c[i * size.n + j], expected)
                    << "at " << i << ", " << j;
              }
            }
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace optrail::ops
