#include "graph/memory/check.h"

#include <gtest/gtest.h>

namespace optrail::graph {
namespace {

MemoryBuffer Named(const std::string& id, int64_t lower, int64_t upper,
                   int64_t size, const std::string& group = "") {
  MemoryBuffer buffer;
  buffer.id = id;
  buffer.lower = lower;
  buffer.upper = upper;
  buffer.size_bytes = size;
  buffer.group = group;
  return buffer;
}

std::string Message(const std::vector<MemoryBuffer>& buffers,
                    const std::vector<int64_t>& offsets, int64_t capacity,
                    int64_t alignment = 1) {
  return std::string(
      CheckPlan(buffers, offsets, capacity, alignment).message());
}

TEST(CheckPlanTest, AcceptsBuffersThatOnlyTouchInTimeAndInMemory) {
  EXPECT_EQ(
      Message({Named("a", 0, 2, 4), Named("b", 2, 4, 4), Named("c", 0, 4, 4)},
              {0, 0, 4}, 8),
      "");
}

TEST(CheckPlanTest, NamesTwoLiveBuffersThatOverlap) {
  EXPECT_EQ(Message({Named("a", 0, 3, 4), Named("b", 2, 4, 4)}, {0, 3}, 8),
            "buffer \"b\", live in [2, 4), at bytes [3, 7) overlaps buffer "
            "\"a\", live in [0, 3), at bytes [0, 4)");
}

TEST(CheckPlanTest, FindsAnOverlapWithALargeBufferBelow) {
  EXPECT_NE(
      Message({Named("a", 0, 9, 100), Named("b", 1, 2, 1), Named("c", 3, 4, 1)},
              {0, 100, 50}, 200),
      "");
}

TEST(CheckPlanTest, NamesAnOffsetBeyondTheCapacityOrUnaligned) {
  EXPECT_EQ(Message({Named("a", 0, 3, 4)}, {5}, 8),
            "buffer \"a\": offset 5 and size 4, expected to be within 8 bytes");
  EXPECT_EQ(Message({Named("a", 0, 3, 4)}, {-1}, 8),
            "buffer \"a\": offset -1 and size 4, expected to be within 8 "
            "bytes");
  EXPECT_EQ(Message({Named("a", 0, 3, 4)}, {2}, 8, 4),
            "buffer \"a\": offset 2, expected a multiple of 4");
}

TEST(CheckPlanTest, HoldsFixedOffsetsAndGroups) {
  std::vector<MemoryBuffer> buffers = {
      Named("a", 0, 2, 4, "g"), Named("b", 5, 6, 8, "g"), Named("c", 3, 4, 4)};
  EXPECT_EQ(Message(buffers, {0, 0, 8}, 12), "");
  EXPECT_NE(Message(buffers, {0, 8, 8}, 16), "");
  // The storage of a group is taken between its buffers' lifetimes, too.
  EXPECT_NE(Message(buffers, {0, 0, 0}, 12), "");
  buffers[2].fixed_offset = 12;
  EXPECT_EQ(Message(buffers, {0, 0, 8}, 16),
            "buffer \"c\": offset 8, expected its fixed offset 12");
}

TEST(CheckPlanTest, WantsAnOffsetForEachBuffer) {
  EXPECT_EQ(Message({Named("a", 0, 3, 4)}, {}, 8),
            "0 offsets, expected one for each of 1 buffers");
}

}  // namespace
}  // namespace optrail::graph
