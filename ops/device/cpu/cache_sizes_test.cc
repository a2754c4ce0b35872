#include "ops/device/cpu/cache_sizes.h"

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

// Takes GB/s of powers of two from 128 KiB on.
CacheSizes Find(const std::vector<double>& gb_per_s, double memory) {
  std::vector<SizedRate> rates;
  int64_t bytes = 64 << 10;
  for (const double gb : gb_per_s) rates.push_back({bytes *= 2, gb * 1e9});
  return FindCacheSizes(rates, memory * 1e9);
}

TEST(CacheSizesTest, EachLevelEndsWhereTheRateFalls) {
  const CacheSizes sizes =
      Find({210, 205, 200, 170, 95, 80, 78, 75, 60, 45}, 40);
  EXPECT_EQ(sizes.l2_bytes, 1 << 20);
  EXPECT_EQ(sizes.l3_bytes, 32 << 20);
}

TEST(CacheSizesTest, ADisturbedReadingMakesNoLevelLarger) {
  const CacheSizes sizes =
      Find({90, 205, 200, 170, 95, 80, 78, 75, 60, 45}, 40);
  EXPECT_EQ(sizes.l2_bytes, 1 << 20);
  EXPECT_EQ(sizes.l3_bytes, 32 << 20);
}

TEST(CacheSizesTest, ALevelThatIsHardlyFasterIsMemory) {
  const CacheSizes sizes = Find({100, 98, 50, 21, 20, 20, 20, 20, 20, 20}, 19);
  EXPECT_EQ(sizes.l2_bytes, 256 << 10);
  EXPECT_EQ(sizes.l3_bytes, 0);
}

TEST(CacheSizesTest, WithoutAFallNothingIsKnown) {
  const CacheSizes flat = Find({20, 20, 20, 20, 20, 20, 20, 20, 20, 20}, 20);
  EXPECT_EQ(flat.l2_bytes, 0);
  EXPECT_EQ(flat.l3_bytes, 0);
  EXPECT_EQ(FindCacheSizes({}, 1).l2_bytes, 0);
  // An L2 that is as large as all that was read hides what is behind it.
  const CacheSizes large = Find({90, 90, 90, 90, 90, 90, 90, 90, 90, 90}, 20);
  EXPECT_EQ(large.l2_bytes, 64 << 20);
  EXPECT_EQ(large.l3_bytes, 0);
}

}  // namespace
}  // namespace optrail::ops
