#include "ops/device/cpu/page_trace.h"

#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/device/cpu/operand_memory.h"

namespace optrail::ops {
namespace {

constexpr int kPages = 64;
constexpr int kFloats = kPages * 1024;

class PageTraceTest : public testing::Test {
 protected:
  OperandMemory memory_ = *OperandMemory::Copy(
      std::vector<float>(kFloats).data(), kFloats* int64_t{4},
      OperandMemory::Pages::kSmall, 0);
  float* const x_ = static_cast<float*>(memory_.data());
  PageTrace trace_;
  const int region_ = trace_.Add(memory_.mapping(), memory_.mapped_bytes());
};

TEST_F(PageTraceTest, OnePassVisitsEachPageOnce) {
  trace_.Watch([&] {
    for (int i = 0; i < kFloats; ++i) x_[i] = 1;
  });
  EXPECT_EQ(trace_.visits(region_), kPages);
  EXPECT_EQ(trace_.distinct(region_), kPages);
  EXPECT_TRUE(trace_.complete(region_));
  EXPECT_EQ(x_[kFloats - 1], 1);
}

TEST_F(PageTraceTest, TwoPassesVisitEachPageTwice) {
  trace_.Watch([&] {
    for (int pass = 0; pass < 2; ++pass) {
      for (int i = 0; i < kFloats; ++i) x_[i] += 1;
    }
  });
  EXPECT_EQ(trace_.visits(region_), 2 * kPages);
  EXPECT_GE(trace_.adjacent(region_), 2 * kPages - 2);
}

// Rows of two pages, in blocks of sixteen columns: a page is visited again and
// again, and no byte is.
TEST_F(PageTraceTest, ABlockedWalkVisitsNoAdjacentPages) {
  constexpr int kRows = kPages / 2, kCols = 2048, kBlock = 16;
  // Other pages than those of the walk are visited between two blocks.
  const auto visit_all = [&] {
    for (int page = 0; page < kPages; ++page) x_[page * 1024] += 1;
  };
  int64_t passes = 0;
  trace_.Watch([&] {
    for (int begin = 0; begin < 8 * kBlock; begin += kBlock) {
      for (int r = 0; r < kRows; ++r) x_[r * kCols + begin] += 1;
      visit_all();
      ++passes;
    }
  });
  EXPECT_LE(trace_.adjacent(region_), passes * (kPages + 2));
  EXPECT_GE(trace_.visits(region_) - trace_.adjacent(region_),
            passes * kRows / 2);
}

TEST_F(PageTraceTest, ColumnsVisitPagesAgainAndAgainAtOneStride) {
  trace_.Watch([&] {
    for (int c = 0; c < 16; ++c) {
      for (int r = 0; r < kPages; ++r) x_[r * 1024 + c] += 1;
    }
  });
  EXPECT_EQ(trace_.visits(region_), 16 * kPages);
  EXPECT_GT(trace_.regular(region_), 15 * kPages - 40);
}

TEST_F(PageTraceTest, AColumnInTheOrderOfAVectorsLanesIsRegular) {
  trace_.Watch([&] {
    for (int c = 0; c < 16; ++c) {
      for (int r = 0; r < kPages; r += 8) {
        for (const int lane : {4, 0, 6, 2, 5, 1, 7, 3}) {
          x_[(r + lane) * 1024 + c] += 1;
        }
      }
    }
  });
  EXPECT_GT(trace_.regular(region_), 15 * kPages - 40);
}

TEST_F(PageTraceTest, ARandomOrderIsNotRegular) {
  Rng rng(1);
  trace_.Watch([&] {
    for (int i = 0; i < 4000; ++i) x_[rng.UniformInt(kPages) * 1024] += 1;
  });
  EXPECT_GT(trace_.visits(region_), 500);
  EXPECT_LT(trace_.regular(region_), .35 * trace_.visits(region_));
}

TEST_F(PageTraceTest, StopsAtItsLimitAndSaysSo) {
  trace_.Watch([&] {
    for (int c = 0; c < 1024; ++c) {
      for (int r = 0; r < kPages; ++r) x_[r * 1024 + c] += 1;
    }
  });
  EXPECT_FALSE(trace_.complete(region_));
  EXPECT_EQ(trace_.visits(region_), 64 * (kPages + 1));  // a page to align
}

}  // namespace
}  // namespace optrail::ops
