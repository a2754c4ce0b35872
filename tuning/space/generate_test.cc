#include "tuning/space/generate.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/generate_test_knobs.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

Space MustParse(const std::string& text) {
  const absl::StatusOr<Space> space = Space::Parse(text, "s.textproto");
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

std::string InstantiationError(const std::string& text) {
  const auto instantiations = Instantiations(MustParse(text));
  EXPECT_FALSE(instantiations.ok());
  return std::string(instantiations.status().message());
}

constexpr char kTwoKnobs[] =
    "knob { name: 'a' pow2 { max: 256 } compile_time: true }\n"
    "knob { name: 'b' ints: [1,2,3,4,5,6,7,8] compile_time: true }\n"
    "default { set { knob: 'a' int: 1 } set { knob: 'b' int: 1 } }\n";

TEST(GenerateTest, LimitsInstantiationsAndNamesTheKnobs) {
  EXPECT_THAT(InstantiationError(kTwoKnobs),
              HasSubstr("the compile_time knobs a (9), b (8) ask for 72 "
                        "instantiations, expected at most 64"));
  EXPECT_EQ(Instantiations(
                MustParse(absl::StrCat(kTwoKnobs, "max_instantiations: 72")))
                ->size(),
            72u);
}

TEST(GenerateTest, OnlyConstraintsOverCompileTimeKnobsPrune) {
  const auto count = [](const std::string& constraint) {
    return Instantiations(MustParse(absl::StrCat(
                              "max_instantiations: 100 constraint { expr: '",
                              constraint, "' }\n", kTwoKnobs)))
        ->size();
  };
  EXPECT_EQ(count("a <= 4"), 3u * 8);
  EXPECT_EQ(count("a <= 4 && a <= dim.n"), 3u * 8);
  EXPECT_EQ(count("a <= hw.cores"), 9u * 8);
}

TEST(GenerateTest, RefusesLevelsThatDependOnTheShape) {
  EXPECT_THAT(InstantiationError(
                  "knob { name: 'a' divisors { dim: 'n' } compile_time: true }"
                  "default { set { knob: 'a' int: 1 } }"),
              HasSubstr("its values depend on dim.n"));
}

TEST(GenerateTest, RefusesVariantsThatShareACppName) {
  GenerateOptions options;
  options.name = "x";
  const auto header = GenerateKnobsHeader(
      MustParse("knob { name: 'a' variants: ['b_c', 'b-c'] }"
                "default { set { knob: 'a' variant: 'b_c' } }"),
      options);
  EXPECT_THAT(std::string(header.status().message()),
              HasSubstr("would both be called kBC"));
}

// The header of generate_test.space.textproto, compiled.
using Knobs = generated::SampleKnobs;

TEST(GeneratedHeaderTest, ReadsConfigs) {
  const auto knobs = Knobs::From(
      *ParseConfig("unroll=2,mode=two_pass,packed=true,default=7,tile=4"));
  ASSERT_TRUE(knobs.ok()) << knobs.status();
  EXPECT_EQ(knobs->unroll, 2);
  EXPECT_EQ(knobs->mode, Knobs::Mode::kTwoPass);
  EXPECT_TRUE(knobs->packed);
  EXPECT_EQ(knobs->default_, 7);
  EXPECT_EQ(knobs->tile, 4);
}

TEST(GeneratedHeaderTest, RefusesWrongConfigs) {
  const auto error = [](const std::string& config) {
    return std::string(Knobs::From(*ParseConfig(config)).status().message());
  };
  const std::string rest = "mode=online,packed=true,default=7,tile=4";
  EXPECT_THAT(error(rest), HasSubstr("lacks knob \"unroll\""));
  EXPECT_THAT(error(rest + ",unroll=x"), HasSubstr("expected an integer"));
  EXPECT_THAT(error(rest + ",unroll=1,u=1"), HasSubstr("no such knob"));
  EXPECT_THAT(error("mode=x"), HasSubstr("expected one of two_pass, online"));
}

TEST(GeneratedHeaderTest, NumbersInstantiationsAsTheMacrosDo) {
  int count = 0;
#define CHECK_ONE(index, unroll_value, mode_value, packed_value) \
  {                                                              \
    Knobs knobs;                                                 \
    knobs.unroll = unroll_value;                                 \
    knobs.mode = generated::mode_value;                          \
    knobs.packed = packed_value;                                 \
    EXPECT_EQ(knobs.InstantiationIndex(), index);                \
    EXPECT_EQ(count++, index);                                   \
  }
  OPTRAIL_SAMPLE_INSTANTIATIONS(CHECK_ONE)
#undef CHECK_ONE
  // unroll 1, 2, 4 x 2 modes x packed or not, without (two_pass, packed).
  EXPECT_EQ(count, 9);
  EXPECT_EQ(count, OPTRAIL_SAMPLE_INSTANTIATION_COUNT);
  Knobs absent;
  absent.unroll = 3;
  EXPECT_EQ(absent.InstantiationIndex(), -1);
}

TEST(GeneratedHeaderTest, ShardsShareOutTheInstantiations) {
  int indices = 0;
  int count = 0;
#define ADD_ONE(index, ...) \
  indices |= 1 << index;    \
  ++count;
#define SHARD 0
  OPTRAIL_SAMPLE_INSTANTIATIONS_SHARD(SHARD, ADD_ONE)
#undef SHARD
#define SHARD 1
  OPTRAIL_SAMPLE_INSTANTIATIONS_SHARD(SHARD, ADD_ONE)
#undef SHARD
#undef ADD_ONE
  EXPECT_EQ(indices, (1 << OPTRAIL_SAMPLE_INSTANTIATION_COUNT) - 1);
  EXPECT_EQ(count, OPTRAIL_SAMPLE_INSTANTIATION_COUNT);
  EXPECT_EQ(OPTRAIL_SAMPLE_SHARDS, 2);
}

}  // namespace
}  // namespace optrail::tuning
