// Classes of several threads, by clocks around loop bodies.

#include "diagnosis/classes.h"
#include "diagnosis/derived.h"
#include "diagnosis/diagnose.h"
#include "diagnosis/testing/class_numbers.h"
#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

// Two threads on two cores of which others took a part.
Numbers TwoThreads() {
  Numbers numbers = Computing();
  numbers.Set("parallel_loss", .281, "test");
  numbers.Set("disturbed_share", .2, "test");
  numbers.Set("threads", 2, "test");
  numbers.Set("time_ns", 2.37e6, "test");
  numbers.Set("call_ns", 2.42e6, "test");
  numbers.Set("parallel_loops", 1, "test");
  numbers.Set("parallel_ns", 3.54e6, "test");
  numbers.Set("slowest_thread_ns", 3.53e6, "test");
  numbers.Set("mean_thread_ns", 2.16e6, "test");
  numbers.Set("one_thread_ns", 3.41e6, "test");
  return numbers;
}

TEST(JudgeTest, AThreadThatLostItsCoreIsNoImbalance) {
  Numbers numbers = TwoThreads();
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "");
  EXPECT_EQ(numbers.WhyUnknown("imbalance_share"),
            "others had the cores while loops were observed");
  // Loops that take as long as calls do are those of the kernel.
  numbers.Set("call_ns", 3.54e6, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "imbalance");
}

// Vectors would not bring back what threads lose to each other.
TEST(JudgeTest, FalseSharingComesBeforeTheScalarCodeThatWaitsForIt) {
  Numbers numbers = TwoThreads();
  numbers.Set("parallel_loss", .481, "test");
  numbers.Set("time_ns", 6.32e5, "test");
  numbers.Set("call_ns", 7.24e5, "test");
  numbers.Set("parallel_ns", 8.06e5, "test");
  numbers.Set("slowest_thread_ns", 8.05e5, "test");
  numbers.Set("mean_thread_ns", 7.93e5, "test");
  numbers.Set("one_thread_ns", 6.57e5, "test");
  numbers.Set("vector_use", .002, "test");
  numbers.Set("data_gain", .004, "test");
  numbers.Set("page_jumps", 2, "test");
  numbers.Set("loop_instructions", 74, "test");
  numbers.Set("loop_scalar_fp", 16, "test");
  numbers.Set("loop_vector_fp", 6, "test");
  numbers.Set("loop_vector_bits", 512, "test");
  numbers.Set("loop_locked", 0, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "false_sharing");
  EXPECT_NEAR(numbers.ValueOr("scalar_gain", 1), .389 * .95, .02);
}

TEST(JudgeTest, ThreadsThatFightForLinesAreToldByTheirInstructions) {
  Numbers numbers = Computing();
  numbers.Set("parallel_loss", .6, "test");
  numbers.Set("disturbed_share", .1, "test");
  numbers.Set("call_ns", 1000, "test");
  numbers.Set("parallel_ns", 990, "test");
  numbers.Set("slowest_thread_ns", 980, "test");
  numbers.Set("mean_thread_ns", 970, "test");
  numbers.Set("one_thread_ns", 800, "test");
  numbers.Set("loop_locked", 0, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "false_sharing");
  numbers.Set("loop_locked", 1, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "contended_lines");
  // A lock may be in what the loop calls.
  numbers.Set("loop_locked", 0, "test");
  numbers.Set("loop_calls", 2, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "contended_lines");
  // Loops that are shorter than sharing them out tell nothing of lines.
  numbers.Set("parallel_loops", 10, "test");
  numbers.Set("empty_loop_ns", 80, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "synchronisation");
}

// One thread does all of the work in a thirtieth of the time, so two threads
// wait for most of theirs, however badly the loop was compiled.
TEST(JudgeTest, ThreadsThatWaitForEachOtherComputeLittle) {
  Numbers numbers = TwoThreads();
  numbers.Set("time_ns", 7.52e5, "test");
  numbers.Set("one_thread_ns", 2.31e4, "test");
  numbers.Set("loop_instructions", 110, "test");
  numbers.Set("loop_stack_accesses", 79, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_LT(numbers.ValueOr("spill_gain", 1), .03);
  numbers.Set("one_thread_ns", 1.4e6, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_GT(numbers.ValueOr("spill_gain", 0), .5);
}

// Neither what threads do to each other nor what each does: the kernel may be
// imbalanced and scalar, or its threads lost their cores.
TEST(JudgeTest, ThreadsWhoseCoresOthersHaveTellNothing) {
  Numbers numbers = TwoThreads();
  numbers.Set("call_ns", 3.54e6, "test");
  numbers.Set("vector_use", 0, "test");
  numbers.Set("scalar_share", 1, "test");
  numbers.Set("scalar_in_any_order", 1, "test");
  numbers.Set("page_jumps", 1, "test");
  numbers.Set("data_gain", 0, "test");
  numbers.Set("scalar_gain", .9, "test");
  numbers.Set("loop_calls", 0, "test");
  numbers.Set("disturbed_share", .4, "test");
  AddDerived(Zen(), 2, &numbers);
  EXPECT_EQ(FirstCause(numbers), "scalar");
  EXPECT_FALSE(IsInconclusive(numbers));
  numbers.Set("disturbed_share", .73, "test");
  EXPECT_TRUE(IsInconclusive(numbers));
  const auto causes = Judge(numbers);
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].chain().rbegin()->class_name(), "contention");
  EXPECT_EQ(VerdictOf(numbers, {causes.begin(), causes.end()}),
            "inconclusive: others have the cores (73% of samples disturbed), "
            "which looks like a kernel whose threads wait; measure again on a "
            "quiet machine");
  // One thread is compared with itself, in pairs of samples.
  numbers.Set("threads", 1, "test");
  EXPECT_EQ(FirstCause(numbers), "scalar");
}

}  // namespace
}  // namespace optrail::diagnosis
