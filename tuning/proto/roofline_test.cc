#include "tuning/proto/roofline.h"

#include <string>

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

proto::Ceilings Ceilings() {
  proto::Ceilings ceilings;
  ceilings.set_flop_per_s_one_thread(100e9);
  ceilings.set_flop_per_s_all_threads(200e9);
  ceilings.set_l1_read_bytes_per_s(200e9);
  ceilings.set_l2_read_bytes_per_s(100e9);
  ceilings.set_memory_read_bytes_per_s_one_thread(10e9);
  ceilings.set_memory_read_bytes_per_s_all_threads(16e9);
  ceilings.set_memory_copy_bytes_per_s_one_thread(8e9);
  ceilings.set_memory_copy_bytes_per_s_all_threads(20e9);
  return ceilings;
}

proto::Hardware Hardware() {
  proto::Hardware hardware;
  hardware.set_l1d_bytes(32 << 10);
  hardware.set_l2_bytes(1 << 20);
  return hardware;
}

TEST(Roofline, IsTheSlowerOfArithmeticAndMemory) {
  const auto time_ns = [](double flop, double moved_bytes, int threads) {
    return RooflineOf(flop, moved_bytes, 0, {}, Ceilings(), threads, threads)
        .time_ns;
  };
  EXPECT_DOUBLE_EQ(time_ns(1000, 10, 1), 10);
  EXPECT_DOUBLE_EQ(time_ns(10, 1000, 1), 100);
  EXPECT_DOUBLE_EQ(time_ns(1000, 10, 2), 5);
  EXPECT_DOUBLE_EQ(time_ns(10, 1000, 2), 50);
}

TEST(Roofline, WarmOperandsLieAsNearAsTheyFit) {
  const auto at = [](double bytes, int threads) {
    return RooflineOf(0, 1000, bytes, Hardware(), Ceilings(), threads, 2);
  };
  EXPECT_STREQ(at(10000, 1).level, "L1");
  EXPECT_DOUBLE_EQ(at(10000, 1).time_ns, 5);
  EXPECT_STREQ(at(100000, 1).level, "L2");
  // A quarter of it may lie in L1.
  EXPECT_STREQ(at(128 << 10, 1).level, "L2");
  EXPECT_DOUBLE_EQ(at(128 << 10, 1).time_ns, 0.25 * 5 + 0.75 * 10);
  // And half in L1 and L2, where L2 holds what L1 does.
  EXPECT_STREQ(at(1 << 21, 1).level, "memory");
  EXPECT_DOUBLE_EQ(at(1 << 21, 1).time_ns,
                   5 / 64.0 + (0.5 - 1 / 64.0) * 10 + 0.5 * 100);
  // Two threads have two private caches.
  EXPECT_STREQ(at(1 << 21, 2).level, "L2");
  EXPECT_TRUE(at(10000, 1).memory_bound);
}

// Memory is read from far beyond the L3: warm operands that lie in it may be
// faster than that.
TEST(Roofline, WarmOperandsMayComeFromTheSharedCache) {
  proto::Hardware hardware = Hardware();
  hardware.set_l3_bytes(32 << 20);
  proto::Ceilings ceilings = Ceilings();
  EXPECT_STREQ(RooflineOf(0, 1000, 8 << 20, hardware, ceilings, 1, 2).level,
               "memory")
      << "nobody measured the L3";
  ceilings.set_l3_read_bytes_per_s(50e9);
  const auto at = [&](double bytes, int threads) {
    return RooflineOf(0, 1000, bytes, hardware, ceilings, threads, 2);
  };
  EXPECT_STREQ(at(8 << 20, 1).level, "L3");
  EXPECT_DOUBLE_EQ(at(8 << 20, 1).time_ns,
                   5 / 256.0 + (1 / 8.0 - 1 / 256.0) * 10 + 7 / 8.0 * 20);
  EXPECT_LT(at(8 << 20, 2).time_ns, 10);
  EXPECT_STREQ(at(64 << 20, 1).level, "memory");
  EXPECT_STREQ(at(0, 1).level, "memory") << "cold caches";
}

TEST(Roofline, TakesTheCachesThatRatesShowForHiddenOnes) {
  proto::Ceilings ceilings = Ceilings();
  const auto level = [&](const proto::Hardware& hardware, double bytes) {
    return std::string(
        RooflineOf(0, 1000, bytes, hardware, ceilings, 1, 2).level);
  };
  EXPECT_EQ(level({}, 1 << 20), "memory");
  ceilings.set_l2_bytes_seen(1 << 20);
  ceilings.set_l3_bytes_seen(1 << 24);
  ceilings.set_l3_read_bytes_per_s(50e9);
  EXPECT_EQ(level({}, 1 << 20), "L2");
  EXPECT_EQ(level({}, 1 << 21), "L3");
  // A size that the machine shows counts more.
  EXPECT_EQ(L2Bytes(Hardware(), ceilings), Hardware().l2_bytes());
  EXPECT_EQ(level({}, 1 << 25), "memory");
}

TEST(Roofline, InterpolatesBetweenOneAndAllThreads) {
  const Roofline roofline =
      RooflineOf(1000, 0, 0, Hardware(), Ceilings(), 2, 3);
  EXPECT_DOUBLE_EQ(roofline.time_ns, 1000 / 150.0);
  EXPECT_FALSE(roofline.memory_bound);
}

TEST(Roofline, NamesTheRatesOfTheThreads) {
  const RooflineCeilings two =
      CeilingsOfThreads(Hardware(), Ceilings(), /*threads=*/2, 2);
  EXPECT_DOUBLE_EQ(two.flop_per_s, 200e9);
  ASSERT_EQ(two.levels.size(), 3) << "nobody measured the L3";
  EXPECT_STREQ(two.levels[0].name, "L1");
  EXPECT_DOUBLE_EQ(two.levels[0].bytes_per_s, 400e9);
  EXPECT_STREQ(two.levels[2].name, "memory");
  EXPECT_DOUBLE_EQ(two.levels[2].bytes_per_s, 20e9);
}

TEST(Roofline, IsZeroWithoutCeilings) {
  EXPECT_EQ(RooflineOf(10, 10, 0, {}, {}, 1, 1).time_ns, 0);
}

}  // namespace
}  // namespace optrail::tuning
