// Classes of memory, by pages visited.

#include "diagnosis/classes.h"
#include "diagnosis/derived.h"
#include "diagnosis/testing/class_numbers.h"
#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

// Numbers that were recorded on a Zen 4 with two cores follow.

// The trace of 62 MB ends before each page is visited eight times.
TEST(JudgeTest, AGatherShowsInATraceThatEndedEarly) {
  Numbers numbers = Computing();
  numbers.Set("memory_gain", {.759, .753, .763}, "test");
  numbers.Set("page_visits:0", 120'000, "test");
  numbers.Set("pages_visited:0", 15561, "test");
  numbers.Set("regular_visits:0", 83, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "gather");
  numbers.Set("page_visits:0", 110'000, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "");
}

TEST(JudgeTest, PassesOverASmallOperandHideNoGatherFromALargeOne) {
  Numbers numbers = Computing();
  numbers.Set("memory_gain", {.759, .753, .763}, "test");
  numbers.Set("page_visits:0", 120'000, "test");
  numbers.Set("pages_visited:0", 80'000, "test");
  numbers.Set("regular_visits:0", 83, "test");
  numbers.Set("page_visits:1", 64, "test");
  numbers.Set("pages_visited:1", 32, "test");
  numbers.Set("regular_visits:1", 60, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(numbers.ValueOr("page_jumps", 0), 2);
  EXPECT_EQ(numbers.ValueOr("gather_visits", 0), 1.5);
  EXPECT_EQ(numbers.ValueOr("gather_jumps", 0), 8);
  EXPECT_EQ(FirstCause(numbers), "gather");
}

// Rows of a walk are visited in order: it is no gather.
TEST(JudgeTest, AWalkInOrderIsNoGather) {
  Numbers numbers = Computing();
  numbers.Set("memory_gain", {.759, .753, .763}, "test");
  numbers.Set("page_visits:0", 20'000, "test");
  numbers.Set("pages_visited:0", 1'000, "test");
  numbers.Set("regular_visits:0", 19'000, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(numbers.ValueOr("page_jumps", 0), 20);
  EXPECT_EQ(numbers.ValueOr("gather_jumps", -1), 0);
  EXPECT_NE(FirstCause(numbers), "gather");
}

// 4 MB in the L3: each mapping of the block needs its own translation.
TEST(JudgeTest, AWalkIsTheCauseAlsoWhereTheBlockIsSlower) {
  Numbers numbers = Computing();
  numbers.Set("streaming_share", .0308, "test");
  numbers.Set("memory_gain", {-.13, -.143, -.11}, "test");
  numbers.Set("page_visits:0", 68'500, "test");
  numbers.Set("pages_visited:0", 856, "test");
  numbers.Set("regular_visits:0", 68'500, "test");
  numbers.Set("loop_instructions", 48, "test");
  numbers.Set("loop_memory_operands", 12, "test");
  numbers.Set("loop_vector_fp", 2, "test");
  numbers.Set("loop_scalar_fp", 2, "test");
  numbers.Set("loop_vector_bits", 128, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "strided");
}

TEST(JudgeTest, PassesInACacheCostTheirLoadsAndStores) {
  Numbers numbers = Computing();
  numbers.Set("memory_gain", {.0763, .0678, .0856}, "test");
  numbers.Set("page_visits:0", 1014, "test");
  numbers.Set("pages_visited:0", 78, "test");
  numbers.Set("regular_visits:0", 1000, "test");
  numbers.Set("loop_instructions", 7, "test");
  numbers.Set("loop_memory_operands", 3, "test");
  numbers.Set("loop_vector_fp", 2, "test");
  numbers.Set("loop_vector_bits", 512, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "extra_passes");
  // A product of matrices keeps sums in registers.
  numbers.Set("loop_instructions", 16, "test");
  numbers.Set("loop_vector_fp", 12, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "");
}

// A blocked transposition with long rows: all bytes are read once.
TEST(JudgeTest, ABlockedWalkIsNoPassOverTheOperand) {
  Numbers numbers = MemoryBound();
  numbers.Set("roofline_share", .2, "test");
  numbers.Set("memory_gain", {.61, .6, .62}, "test");
  numbers.Set("page_visits:0", 120'000, "test");
  numbers.Set("pages_visited:0", 6000, "test");
  numbers.Set("regular_visits:0", 119'640, "test");
  numbers.Set("adjacent_visits:0", 6000, "test");
  numbers.Set("page_visits:1", 18'000, "test");
  numbers.Set("pages_visited:1", 6000, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "strided");
  EXPECT_NEAR(Judge(numbers)[0].recoverable(), .61, 1e-9);
  numbers.Set("adjacent_visits:0", 119'000, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "extra_passes");
  // Traffic that is gone cannot cost more than it does.
  EXPECT_NEAR(Judge(numbers)[0].recoverable(), .71, 1e-9);
  numbers.Set("roofline_share", .4, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_NEAR(Judge(numbers)[0].recoverable(), .6, 1e-9);
}

// Blocks that go down rows of one page visit a page beside the last one, as
// passes do: 16 visits a page, 64 columns of numbers each. 512 columns leave
// two rows on a page.
TEST(JudgeTest, AWalkInBlocksOverShortRowsIsNeitherWalkNorPass) {
  for (const int columns : {1024, 512}) {
    Numbers numbers = MemoryBound();
    numbers.Set("page_visits:0", 16'000, "test");
    numbers.Set("pages_visited:0", 1000, "test");
    numbers.Set("regular_visits:0", 15'900, "test");
    numbers.Set("adjacent_visits:0", 15'900, "test");
    numbers.Set("row_bytes:0", 4 * columns, "test");
    AddDerived(Zen(), 1, &numbers);
    EXPECT_EQ(FirstCause(numbers), "") << columns;
    EXPECT_EQ(numbers.WhyUnknown("walk_jumps"),
              "rows are shorter than two pages: a walk in blocks looks like "
              "passes");
    // 16 passes would take twice the time.
    numbers.Set("streaming_share", .125, "test");
    AddDerived(Zen(), 1, &numbers);
    EXPECT_EQ(FirstCause(numbers), "") << columns;
    // They would take a sixth of it.
    numbers.Set("streaming_share", .01, "test");
    AddDerived(Zen(), 1, &numbers);
    EXPECT_EQ(FirstCause(numbers), "") << columns;
    // They explain it.
    numbers.Set("streaming_share", .05, "test");
    AddDerived(Zen(), 1, &numbers);
    EXPECT_EQ(FirstCause(numbers), "extra_passes") << columns;
    // Rows of two pages put the next one further away.
    numbers.SetUnsupported("streaming_share", "test");
    numbers.Set("row_bytes:0", 8192, "test");
    AddDerived(Zen(), 1, &numbers);
    EXPECT_EQ(FirstCause(numbers), "extra_passes");
  }
}

// Copies cost 26% here, and 6% goes when nothing travels.
TEST(JudgeTest, CopiesCostInstructionsUnlessArithmeticPaysForThem) {
  Numbers numbers = Computing();
  numbers.Set("arithmetic_share", .0203, "test");
  numbers.Set("memory_gain", {.0583, .0501, .0676}, "test");
  numbers.Set("page_visits:0", 3936, "test");
  numbers.Set("pages_visited:0", 987, "test");
  numbers.Set("regular_visits:0", 3930, "test");
  numbers.Set("page_visits:2", 4920, "test");
  numbers.Set("pages_visited:2", 984, "test");
  numbers.Set("regular_visits:2", 4920, "test");
  numbers.Set("page_visits:workspace", 7872, "test");
  numbers.Set("pages_visited:workspace", 3936, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "copies");
  numbers.Set("arithmetic_share", .4, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "");
}

// An aliased block is walked across as the operands are, so the addresses still
// have to be translated.
TEST(JudgeTest, AWalkAcrossTheLayoutIsTheCauseAlsoWhereTheTlbIsWaitedFor) {
  Numbers numbers = Computing();
  numbers.Set("roofline_share", .05, "test");
  numbers.Set("streaming_share", .05, "test");
  numbers.Set("memory_gain", {.15, .12, .18}, "test");
  numbers.Set("data_gain", .1, "test");
  numbers.Set("page_visits:0", 6400, "test");
  numbers.Set("pages_visited:0", 100, "test");
  numbers.Set("regular_visits:0", 6300, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "strided");
}

}  // namespace
}  // namespace optrail::diagnosis
