#include "diagnosis/classes.h"

#include <set>
#include <string>

#include "diagnosis/derived.h"
#include "diagnosis/testing/class_numbers.h"
#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

TEST(ClassTableTest, ParentsExistAndComeFirstAndNamesAreUnique) {
  std::set<std::string> names = {""};
  for (const ClassRule& rule : ClassTable()) {
    EXPECT_EQ(names.count(rule.parent()), 1) << rule.name();
    EXPECT_TRUE(names.insert(rule.name()).second) << rule.name();
    EXPECT_FALSE(rule.when().empty()) << rule.name();
    EXPECT_EQ(rule.is_cause(), !rule.advice().empty()) << rule.name();
  }
}

TEST(JudgeTest, WithinTenPercentOfTheRooflineThereIsNoCause) {
  Numbers numbers = MemoryBound();
  numbers.Set("passes", 3, "test");
  numbers.Set("walk_jumps", 0, "test");
  numbers.Set("regular_share", 1, "test");
  numbers.Set("pass_gain", .66, "test");
  EXPECT_EQ(FirstCause(numbers), "extra_passes");
  numbers.Set("roofline_share", .93, "test");
  EXPECT_EQ(FirstCause(numbers), "");
}

TEST(JudgeTest, AtThePeakOfArithmeticThereIsNoCauseEither) {
  Numbers numbers = MemoryBound();
  numbers.SetUnsupported("roofline_share", "the caches are hidden");
  numbers.Set("huge_page_gain", .3, "test");
  EXPECT_EQ(FirstCause(numbers), "tlb");
  numbers.Set("arithmetic_share", .93, "test");
  EXPECT_EQ(FirstCause(numbers), "");
}

TEST(JudgeTest, AChildIsNoCauseWithoutItsParent) {
  Numbers numbers = Computing();
  numbers.Set("passes", 3, "test");
  numbers.Set("walk_jumps", 0, "test");
  numbers.Set("regular_share", 1, "test");
  numbers.Set("pass_gain", .66, "test");
  EXPECT_EQ(FirstCause(numbers), "");
}

TEST(JudgeTest, TheChainNamesTheLevelOfTheMemory) {
  Numbers numbers = MemoryBound();
  numbers.Set("walk_jumps", 40, "test");
  numbers.Set("regular_share", .9, "test");
  numbers.Set("workspace_share", 0, "test");
  const auto causes = Judge(numbers);
  ASSERT_EQ(causes.size(), 1u);
  ASSERT_EQ(causes[0].chain_size(), 3);
  EXPECT_EQ(causes[0].chain(0).class_name(), "memory");
  EXPECT_EQ(causes[0].chain(1).class_name(), "dram");
  EXPECT_EQ(causes[0].chain(2).class_name(), "strided");
  EXPECT_EQ(causes[0].recoverable(), .7);
  EXPECT_EQ(causes[0].low(), .68);
}

// Both have all that the roofline leaves; extra_passes is first in the table.
TEST(JudgeTest, OfTwoCausesWithAllThatIsLeftTheLargerComesFirst) {
  Numbers numbers = MemoryBound();
  numbers.Set("roofline_share", .6, "test");
  numbers.Set("passes", 2, "test");
  numbers.Set("walk_jumps", 0, "test");
  numbers.Set("regular_share", 1, "test");
  numbers.Set("pass_gain", .5, "test");
  numbers.Set("huge_page_gain", .65, "test");
  const auto causes = Judge(numbers);
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].chain().rbegin()->class_name(), "tlb");
  EXPECT_NEAR(causes[0].recoverable(), .4, 1e-9);
  EXPECT_EQ(causes[1].chain().rbegin()->class_name(), "extra_passes");
  EXPECT_NEAR(causes[1].recoverable(), .4, 1e-9);
  numbers.Set("pass_gain", .66, "test");
  EXPECT_EQ(FirstCause(numbers), "extra_passes");
}

TEST(JudgeTest, AnUnknownNumberHoldsForNothing) {
  Numbers numbers = MemoryBound();
  numbers.SetUnsupported("huge_page_gain", "no huge pages here");
  EXPECT_EQ(FirstCause(numbers), "");
  numbers.Set("huge_page_gain", .3, "test");
  EXPECT_EQ(FirstCause(numbers), "tlb");
}

// Recorded or made-up evidence stands for what this machine cannot show.
TEST(JudgeTest, ThrottlingContentionAndDenormalsAreCauses) {
  Numbers throttled = Computing();
  throttled.Set("throttled_share", .4, "test");
  EXPECT_EQ(FirstCause(throttled), "throttling");
  Numbers contended = Computing();
  contended.Set("disturbed_share", .8, "test");
  EXPECT_EQ(FirstCause(contended), "contention");
  Numbers denormal = Computing();
  denormal.Set("denormal_gain", .9, "test");
  denormal.Set("data_gain", .9, "test");
  EXPECT_EQ(FirstCause(denormal), "denormals");
}

TEST(JudgeTest, DeviceFactsAreCauses) {
  Numbers spills = Computing();
  spills.Set("spill_bytes", 512, "test");
  AddDerived({}, 1, &spills);
  EXPECT_EQ(FirstCause(spills), "device_spills");
  Numbers barriers = Computing();
  barriers.Set("barrier_gain", .3, "test");
  EXPECT_EQ(FirstCause(barriers), "barriers");
  Numbers launch = Computing();
  launch.Set("graph_gain", .5, "test");
  EXPECT_EQ(FirstCause(launch), "device_launch");
}

TEST(JudgeTest, ScalarAndNarrowCodeAreTold) {
  Numbers numbers = Computing();
  numbers.Set("vector_use", .01, "test");
  numbers.Set("page_jumps", 1, "test");
  numbers.Set("data_gain", 0, "test");
  numbers.Set("loop_calls", 0, "test");
  numbers.Set("loop_instructions", 10, "test");
  numbers.Set("loop_scalar_fp", 6, "test");
  numbers.Set("loop_vector_fp", 0, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "scalar");
  numbers.Set("loop_calls", 2, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "slow_instructions");
  numbers.Set("loop_calls", 0, "test");
  // The compiler would vectorise it, if it could add in any order.
  numbers.Set("reassociation_gain", .6, "test");
  numbers.Set("reassociated_scalar_share", 0, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "latency");
  numbers.Set("reassociation_gain", 0, "test");
  numbers.Set("loop_scalar_fp", 0, "test");
  numbers.Set("loop_vector_fp", 6, "test");
  numbers.Set("loop_vector_bits", 128, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "narrow_vectors");
}

// Numbers that were recorded on a Zen 4 with two cores follow.

// One sum over lanes of vectors: three vectors and 16 scalar additions, which
// stay scalar in any order. What waits for the step before is not computing, so
// vectors bring only their share of the rest.
TEST(JudgeTest, AChainComesBeforeTheScalarCodeThatItConsistsOf) {
  Numbers numbers = Computing();
  numbers.Set("vector_use", {0, -.001, .003}, "test");
  numbers.Set("page_jumps", 1, "test");
  numbers.Set("data_gain", 0, "test");
  numbers.Set("loop_calls", 0, "test");
  numbers.Set("loop_instructions", 41, "test");
  numbers.Set("loop_scalar_fp", 16, "test");
  numbers.Set("loop_vector_fp", 3, "test");
  numbers.Set("loop_vector_bits", 512, "test");
  numbers.Set("loop_memory_bytes", 448, "test");
  numbers.Set("reassociation_gain", {.611, .611, .612}, "test");
  numbers.Set("reassociated_vector_use", {.002, 0, .141}, "test");
  numbers.Set("reassociated_scalar_share", .842, "test");
  numbers.Set("reassociated_vector_fp", 3, "test");
  numbers.Set("reassociated_scalar_fp", 16, "test");
  numbers.Set("reassociated_memory_bytes", 448, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "latency");
  EXPECT_NEAR(numbers.ValueOr("scalar_gain", 1), .95 * .389 * .9375, .01);
}

// Each step of v = v * x * .5 + .5 is two instructions, or one if products may
// be regrouped. Eight chains in place of four bring 1%.
TEST(JudgeTest, LessArithmeticIsNoLatency) {
  Numbers numbers = Computing();
  numbers.Set("arithmetic_share", .442, "test");
  numbers.Set("reassociation_gain", {.487, .486, .495}, "test");
  numbers.Set("loop_instructions", 136, "test");
  numbers.Set("loop_vector_fp", 124, "test");
  numbers.Set("loop_scalar_fp", 0, "test");
  numbers.Set("loop_vector_bits", 512, "test");
  numbers.Set("loop_memory_bytes", 512, "test");
  numbers.Set("reassociated_vector_fp", 72, "test");
  numbers.Set("reassociated_scalar_fp", 0, "test");
  // An operand is loaded twice.
  numbers.Set("reassociated_memory_bytes", 768, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_NEAR(numbers.ValueOr("order_gain", 1), .116, .001);
  EXPECT_NEAR(numbers.ValueOr("spared_gain", 0), .419, .001);
  EXPECT_EQ(FirstCause(numbers), "extra_arithmetic");
  // Latency is as much arithmetic in less time.
  numbers.Set("reassociated_vector_fp", 124, "test");
  numbers.Set("reassociated_memory_bytes", 512, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "latency");
}

// The remainder of a vectorised loop was taken for the main one.
TEST(JudgeTest, CodeThatIsSlowerWithoutVectorsUsesThem) {
  Numbers numbers = Computing();
  numbers.Set("vector_use", {.084, .078, .087}, "test");
  numbers.Set("page_jumps", 1, "test");
  numbers.Set("data_gain", 0, "test");
  numbers.Set("loop_instructions", 39, "test");
  numbers.Set("loop_scalar_fp", 16, "test");
  numbers.Set("loop_vector_fp", 2, "test");
  numbers.Set("loop_vector_bits", 512, "test");
  numbers.Set("reassociated_scalar_share", .778, "test");
  numbers.Set("reassociation_gain", {.882, .88, .882}, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_NEAR(numbers.ValueOr("scalar_in_any_order", 0), .778, 1e-9);
  numbers.Set("reassociated_vector_use", {4.2, 4.1, 4.3}, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(numbers.ValueOr("scalar_in_any_order", 1), 0);
  EXPECT_EQ(FirstCause(numbers), "latency");
}

// The ceiling of two threads had been read while others had one of the cores.
TEST(JudgeTest, NobodyIsHealthyAboveTheCeiling) {
  Numbers numbers = MemoryBound();
  numbers.Set("huge_page_gain", .3, "test");
  numbers.Set("arithmetic_share", .552, "test");
  numbers.Set("roofline_share", 1.1, "test");
  EXPECT_EQ(FirstCause(numbers), "tlb");
  EXPECT_EQ(ReachedShare(numbers), .552);
  numbers.Set("roofline_share", 1.01, "test");
  EXPECT_EQ(FirstCause(numbers), "");
}

// Zeros travel faster on some machines, without any branch.
TEST(JudgeTest, DataThatGoesWithTheTrafficIsNoBranch) {
  Numbers numbers = Computing();
  numbers.Set("memory_gain", {.3, .28, .32}, "test");
  numbers.Set("data_gain", {.23, .2, .25}, "test");
  numbers.Set("denormal_gain", 0, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "");
  numbers.Set("memory_gain", {.05, .04, .06}, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "branches");
  // Operands may stream without a small block showing it.
  numbers.Set("streaming_share", .55, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_EQ(FirstCause(numbers), "");
}

TEST(JudgeTest, LanesThatPaddingWouldFillAreUnused) {
  Numbers numbers = Computing();
  numbers.Set("padding_gain", .7, "test");
  numbers.Set("short_length", 2, "test");
  numbers.Set("padded_length", 16, "test");
  numbers.Set("padded_share", .4, "test");
  AddDerived(Zen(), 1, &numbers);
  ASSERT_EQ(FirstCause(numbers), "unused_lanes");
  EXPECT_EQ(Judge(numbers)[0].chain().rbegin()->says(),
            "a contiguous dimension of 2 leaves lanes empty: with 16 it would "
            "reach 40% of the roofline");
}

// Shares of a time are never below none or above what the roofline leaves.
TEST(JudgeTest, SharesStayWithinTheTime) {
  Numbers numbers;
  numbers.Set("memory_gain", -.89, "operands in one small block");
  numbers.Set("more", 1.4, "a reading");
  EXPECT_EQ(FillIn("{memory_gain%} and {more%}", numbers), "0% and 100%");
  numbers.Set("disturbed_share", 1, "others");
  numbers.Set("roofline_share", .25, "measured ceilings");
  const auto causes = Judge(numbers);
  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(causes[0].chain(0).class_name(), "contention");
  EXPECT_DOUBLE_EQ(causes[0].recoverable(), .75);
}

// A share of a ceiling repeats within 5%, and a hot cache keeps something of
// what does not fit.
TEST(PossibleLimitsTest, NearAThresholdThereAreTwo) {
  proto::Hardware gpu;
  gpu.set_device_kind(proto::CUDA);
  const auto limits = [&](Number arithmetic, Number from_memory) {
    Numbers numbers;
    numbers.Set("grid_blocks", 1000, "test");
    numbers.Set("level_dram", 1, "test");
    numbers.Set("memory_gain", {.2, .19, .21}, "test");
    numbers.Set("arithmetic_share", arithmetic, "test");
    numbers.Set("from_memory_share", from_memory, "test");
    AddDerived(gpu, 1, &numbers);
    return PossibleLimits(numbers);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(limits({.1, .095, .105}, {.85, .8, .9}), Names({"dram"}));
  EXPECT_EQ(limits({.1, .095, .105}, {.3, .28, .32}),
            Names({"device_latency"}));
  EXPECT_EQ(limits({.1, .095, .105}, {.74, .49, .78}),
            Names({"dram", "device_latency"}));
  EXPECT_EQ(limits({.59, .56, .62}, {.3, .28, .32}),
            Names({"device_latency", "compute"}));
  EXPECT_EQ(limits({.9, .85, .95}, {.3, .28, .32}), Names({"compute"}));
  EXPECT_EQ(PossibleLimits(Numbers()), Names());
}

TEST(NumberTextTest, LargeNumbersHaveNoExponent) {
  EXPECT_EQ(NumberText(.4312), "0.431");
  EXPECT_EQ(NumberText(999.4), "999");
  EXPECT_EQ(NumberText(4921.3), "4921");
  EXPECT_EQ(NumberText(-123456), "-123456");
}

TEST(JudgeTest, BranchesAreNotTakenForMemory) {
  // A block that repeats its values is predicted, too.
  Numbers numbers = MemoryBound();
  numbers.Set("data_gain", .8, "test");
  numbers.Set("denormal_gain", 0, "test");
  AddDerived(Zen(), 1, &numbers);
  EXPECT_NEAR(numbers.Find("memory_gain")->value, .2, 1e-9);
  EXPECT_EQ(FirstCause(numbers), "branches");
}

TEST(JudgeTest, WaitingAndSystemCallsAreNoLaunch) {
  Numbers waiting = Computing();
  waiting.Set("fixed_share", .99, "test");
  waiting.Set("processor_share", .02, "test");
  waiting.Set("switches", 1, "test");
  waiting.Set("system_share", 1, "test");
  waiting.Set("page_faults", 0, "test");
  AddDerived(Zen(), 1, &waiting);
  EXPECT_EQ(FirstCause(waiting), "waiting");
  Numbers calls = Computing();
  calls.Set("fixed_share", .45, "test");
  calls.Set("processor_share", 1, "test");
  calls.Set("switches", 0, "test");
  calls.Set("system_share", .4, "test");
  calls.Set("page_faults", 0, "test");
  AddDerived(Zen(), 1, &calls);
  EXPECT_EQ(FirstCause(calls), "system_calls");
}

TEST(JudgeTest, AnEstimateWhoseIntervalReachesNothingIsNoise) {
  Numbers numbers = Computing();
  numbers.Set("denormal_gain", {.15, .01, .2}, "test");
  EXPECT_EQ(FirstCause(numbers), "");
  numbers.Set("denormal_gain", {.15, .1, .2}, "test");
  EXPECT_EQ(FirstCause(numbers), "denormals");
}

TEST(FillInTest, NumbersAndSharesAndWhatIsNotKnown) {
  Numbers numbers;
  numbers.Set("a_share", .123, "test");
  numbers.Set("count", 4.5, "test");
  EXPECT_EQ(FillIn("{a_share%} of {count}, {other}", numbers), "12% of 4.5, ?");
}

}  // namespace
}  // namespace optrail::diagnosis
