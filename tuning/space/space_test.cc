#include "tuning/space/space.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space_parser.h"

namespace optrail::tuning {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kSoftmax[] = R"(
knob { name: "rows_per_task" pow2 { min: 1 max: 64 } doc: "rows of a task" }
knob { name: "unroll" ints: [4, 1, 2] compile_time: true }
knob { name: "algorithm" variants: ["two_pass", "online"] compile_time: true }
knob { name: "cols_tile" divisors { dim: "cols" } }
constraint { expr: "rows_per_task * dim.cols * 4 <= hw.l2_bytes"
             why: "a task's rows stay in L2" }
constraint { expr: "algorithm == 'online' || cols_tile % unroll == 0"
             why: "the two-pass loop has no tail" }
prior { expr: "hw.l2_bytes - rows_per_task * dim.cols * 4" top_k: 64 }
default {
  set { knob: "rows_per_task" int: 4 }
  set { knob: "unroll" int: 2 }
  set { knob: "algorithm" variant: "online" }
  set { knob: "cols_tile" int: 64 }
}
)";

proto::Shape Shape(const std::string& text) {
  const absl::StatusOr<proto::Shape> shape = ParseShape(text);
  EXPECT_TRUE(shape.ok()) << shape.status();
  return *shape;
}

proto::Hardware TestHardware() {
  proto::Hardware hardware;
  hardware.set_id("test-hardware");
  hardware.set_cores(4);
  hardware.set_l1d_bytes(32 << 10);
  hardware.set_l2_bytes(1 << 20);
  hardware.set_simd_bits(256);
  return hardware;
}

Space MustParse(const std::string& text) {
  absl::StatusOr<Space> space = Space::Parse(text, "s.textproto");
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

std::unique_ptr<BoundSpace> MustBind(const std::string& text,
                                     const std::string& shape,
                                     const BindOptions& options = {}) {
  auto bound = MustParse(text).Bind(Shape(shape), TestHardware(), options);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return std::move(bound).value();
}

std::string ParseError(const std::string& text) {
  const absl::StatusOr<Space> space = Space::Parse(text, "s.textproto");
  EXPECT_FALSE(space.ok());
  return std::string(space.status().message());
}

std::string WithReplaced(const std::string& from, const std::string& to) {
  EXPECT_THAT(std::string(kSoftmax), HasSubstr(from));
  return absl::StrReplaceAll(kSoftmax, {{from, to}});
}

// Every combination of levels, in lexicographic order, that satisfies the
// constraints evaluated one by one: slow and obvious.
std::vector<Levels> BruteForce(const BoundSpace& bound) {
  std::vector<Levels> valid;
  Levels levels(bound.knobs().size(), 0);
  for (;;) {
    if (bound.Validate(bound.ToConfig(levels)).ok()) valid.push_back(levels);
    int k = static_cast<int>(levels.size()) - 1;
    while (k >= 0 && ++levels[k] == bound.knobs()[k].size()) levels[k--] = 0;
    if (k < 0) return valid;
  }
}

// A space of integer knobs with defaults, for enumeration tests.
std::string IntSpace(const std::vector<std::pair<std::string, int>>& knobs,
                     const std::vector<std::string>& constraints) {
  std::string text;
  std::string defaults;
  for (const auto& [name, count] : knobs) {
    absl::StrAppend(&text, "knob { name: '", name, "' ints: [1");
    for (int i = 2; i <= count; ++i) absl::StrAppend(&text, ",", i);
    absl::StrAppend(&text, "] }\n");
    absl::StrAppend(&defaults, "set { knob: '", name, "' int: 1 } ");
  }
  for (const std::string& expr : constraints) {
    absl::StrAppend(&text, "constraint { expr: \"", expr, "\" }\n");
  }
  return absl::StrCat(text, "default { ", defaults, "}\n");
}

void ExpectEnumeratesLikeBruteForce(const BoundSpace& bound) {
  const std::vector<Levels> expected = BruteForce(bound);
  ASSERT_EQ(bound.size(), static_cast<int64_t>(expected.size()));
  EXPECT_EQ(bound.count(), bound.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(bound.At(i), expected[i]) << i;
    ASSERT_EQ(bound.IndexOf(expected[i]), static_cast<int64_t>(i));
    ASSERT_TRUE(bound.IsValid(expected[i]));
  }
}

TEST(SpaceTest, BindsLevelsToTheShape) {
  const auto bound = MustBind(kSoftmax, "rows=8,cols=12/f32");
  ASSERT_EQ(bound->knobs().size(), 4u);
  EXPECT_THAT(bound->knobs()[0].ints, ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(bound->knobs()[1].ints, ElementsAre(1, 2, 4));
  EXPECT_TRUE(bound->knobs()[1].ordinal);
  EXPECT_THAT(bound->knobs()[2].labels, ElementsAre("two_pass", "online"));
  EXPECT_FALSE(bound->knobs()[2].ordinal);
  EXPECT_THAT(bound->knobs()[3].ints, ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_EQ(bound->raw_count(), 7 * 3 * 2 * 6);
  EXPECT_EQ(bound->top_k(), 64);
  EXPECT_THAT(bound->space().dims(), ElementsAre("cols"));
}

TEST(SpaceTest, EnumeratesInLexicographicOrder) {
  ExpectEnumeratesLikeBruteForce(*MustBind(kSoftmax, "rows=8,cols=12/f32"));
  ExpectEnumeratesLikeBruteForce(*MustBind(kSoftmax, "rows=8,cols=16384/f32"));
}

TEST(SpaceTest, EnumeratesInterleavedGroups) {
  ExpectEnumeratesLikeBruteForce(
      *MustBind(IntSpace({{"a", 5}, {"b", 6}, {"c", 4}, {"d", 7}, {"e", 3}},
                         {"a * c <= 6", "b % d == 0 || d == 7", "true"}),
                "n=1/f32"));
}

TEST(SpaceTest, EnumeratesConstraintsThatHaveNoValueSomewhere) {
  ExpectEnumeratesLikeBruteForce(
      *MustBind(IntSpace({{"a", 5}, {"b", 5}, {"c", 5}},
                         {"10 / (a - b) <= c", "log2(a - 2) >= 1 || c > 1"}),
                "n=1/f32"));
}

TEST(SpaceTest, EnumeratesRandomConstraintsLikeBruteForce) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  const std::vector<std::string> operators = {"+", "*", "-", "%", "/"};
  const std::vector<std::string> relations = {"<=", "<", "==", "!=", ">="};
  Rng rng(11);
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[rng.UniformInt(static_cast<int64_t>(from.size()))];
  };
  int empty = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> constraints;
    for (int c = 0; c < 3; ++c) {
      const std::string left =
          absl::StrCat(pick(names), " ", pick(operators), " ", pick(names));
      const std::string right = absl::StrCat(pick(names), " ", pick(operators),
                                             " ", rng.UniformInt(5));
      constraints.push_back(
          absl::StrCat(left, " ", pick(relations), " ", right,
                       rng.UniformInt(2) == 0 ? " || a < c" : ""));
    }
    SCOPED_TRACE(absl::StrCat(constraints[0], "; ", constraints[1], "; ",
                              constraints[2]));
    const Space space = MustParse(
        IntSpace({{"a", 5}, {"b", 4}, {"c", 6}, {"d", 3}}, constraints));
    const auto bound = space.Bind(Shape("n=1/f32"), TestHardware());
    if (!bound.ok()) {
      EXPECT_THAT(std::string(bound.status().message()),
                  HasSubstr("no config is valid"));
      ++empty;
      continue;
    }
    ExpectEnumeratesLikeBruteForce(**bound);
  }
  EXPECT_LT(empty, 40);
}

TEST(SpaceTest, SplitsHaveTheDimensionAsProduct) {
  const auto bound = MustBind(
      "knob { name: 'k' split { dim: 'k' parts: 3 } }\n"
      "default { set { knob: 'k_0' int: 2 } set { knob: 'k_1' int: 2 } "
      "set { knob: 'k_2' int: 2 } }",
      "k=24/f32");
  ExpectEnumeratesLikeBruteForce(*bound);
  // Ordered factorisations of 2^3 * 3 into three parts: C(5,2) * C(3,2).
  EXPECT_EQ(bound->size(), 30);
  for (int64_t i = 0; i < *bound->size(); ++i) {
    const Levels levels = bound->At(i);
    int64_t product = 1;
    for (int k = 0; k < 3; ++k) product *= bound->knobs()[k].ints[levels[k]];
    EXPECT_EQ(product, 24);
  }
}

// Pearson's statistic of `draws` samples over the valid configs, normalised to
// mean 0 and variance 1.
double ChiSquareZ(const BoundSpace& bound, int draws, uint64_t seed) {
  const std::vector<Levels> valid = BruteForce(bound);
  std::vector<int> counts(valid.size());
  Rng rng(seed);
  for (int i = 0; i < draws; ++i) {
    const Levels levels = bound.Sample(rng);
    const auto at = std::lower_bound(valid.begin(), valid.end(), levels);
    EXPECT_TRUE(at != valid.end() && *at == levels);
    ++counts[at - valid.begin()];
  }
  const double expected = static_cast<double>(draws) / valid.size();
  double chi2 = 0;
  for (int count : counts) {
    chi2 += (count - expected) * (count - expected) / expected;
  }
  const double freedom = static_cast<double>(valid.size()) - 1;
  return (chi2 - freedom) / std::sqrt(2 * freedom);
}

TEST(SpaceTest, SamplesUniformly) {
  const auto bound = MustBind(kSoftmax, "rows=8,cols=16384/f32");
  EXPECT_LT(std::abs(ChiSquareZ(*bound, 40000, 5)), 4);
}

TEST(SpaceTest, SamplesUniformlyUnderAPredicate) {
  BindOptions options;
  options.predicate = [](absl::Span<const int64_t> v) {
    return (v[0] + v[1] + v[2]) % 3 == 0;
  };
  const auto bound =
      MustBind(IntSpace({{"a", 9}, {"b", 8}, {"c", 7}}, {"a * b <= 30"}),
               "n=1/f32", options);
  EXPECT_LT(std::abs(ChiSquareZ(*bound, 40000, 6)), 4);
  ExpectEnumeratesLikeBruteForce(*bound);
}

TEST(SpaceTest, CountsWhatIsTooLargeToEnumerate) {
  std::vector<std::pair<std::string, int>> knobs;
  for (int i = 0; i < 12; ++i) knobs.emplace_back(absl::StrCat("k", i), 16);
  const auto bound =
      MustBind(IntSpace(knobs, {"k0 * k11 <= 64", "k3 < k4"}), "n=1/f32");
  EXPECT_EQ(bound->size(), absl::nullopt);
  int64_t products = 0;
  for (int a = 1; a <= 16; ++a) {
    for (int b = 1; b <= 16; ++b) products += a * b <= 64;
  }
  int64_t expected = products * (16 * 15 / 2);
  for (int i = 0; i < 8; ++i) expected *= 16;
  EXPECT_EQ(bound->count(), expected);
  Rng rng(3);
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(bound->IsValid(bound->Sample(rng)));
}

TEST(SpaceTest, SurvivesConstraintsThatNothingFactors) {
  // The remainder of a weighted sum tells every prefix apart.
  std::vector<std::pair<std::string, int>> knobs;
  std::string sum = "0";
  int weight = 1;
  for (int i = 0; i < 7; ++i) {
    knobs.emplace_back(absl::StrCat("k", i), 10);
    absl::StrAppend(&sum, " + ", weight, " * k", i);
    weight = weight * 11 + 5;
  }
  const auto bound = MustBind(
      IntSpace(knobs, {absl::StrCat("(", sum, ") % 101 == 0")}), "n=1/f32");
  ASSERT_TRUE(bound->size().has_value());
  EXPECT_NEAR(static_cast<double>(*bound->size()), 1e7 / 101, 1e7 / 101 * 0.05);
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const Levels levels = bound->Sample(rng);
    EXPECT_TRUE(bound->IsValid(levels));
    EXPECT_EQ(bound->At(*bound->IndexOf(levels)), levels);
  }
  EXPECT_TRUE(bound->Validate(bound->default_config()).ok());
}

TEST(SpaceTest, RejectsLevelsOutOfRange) {
  const auto bound = MustBind(kSoftmax, "rows=8,cols=12/f32");
  EXPECT_FALSE(bound->IsValid(Levels{0, 0, 0}));
  EXPECT_FALSE(bound->IsValid(Levels{0, 0, 0, 0, 0}));
  EXPECT_FALSE(bound->IsValid(Levels{7, 0, 0, 0}));
  EXPECT_EQ(bound->IndexOf(Levels{0, 3, 0, 0}), absl::nullopt);
}

TEST(SpaceTest, ConfigsAndLevelsConvertBothWays) {
  const auto bound = MustBind(kSoftmax, "rows=8,cols=12/f32");
  const auto config =
      ParseConfig("cols_tile=6,algorithm=two_pass,unroll=2,rows_per_task=8");
  const absl::StatusOr<Levels> levels = bound->ToLevels(*config);
  ASSERT_TRUE(levels.ok()) << levels.status();
  EXPECT_EQ(*levels, (Levels{3, 1, 0, 4}));
  EXPECT_EQ(CanonicalText(bound->ToConfig(*levels)), CanonicalText(*config));
  EXPECT_TRUE(bound->Validate(*config).ok());
}

TEST(SpaceTest, ValidateSaysWhatIsWrong) {
  const auto bound = MustBind(kSoftmax, "rows=8,cols=12/f32");
  const auto error = [&](const std::string& config) {
    return std::string(bound->Validate(*ParseConfig(config)).message());
  };
  const std::string rest = "rows_per_task=8,algorithm=two_pass,cols_tile=3";
  EXPECT_THAT(error(rest + ",unroll=2"),
              HasSubstr("violates \"algorithm == 'online' || cols_tile % "
                        "unroll == 0\" (the two-pass loop has no tail) at "
                        "s.textproto:8:"));
  EXPECT_THAT(error(rest + ",unroll=3"),
              HasSubstr("knob \"unroll\" is 3, expected one of 1, 2, 4"));
  EXPECT_THAT(error(rest + ",unroll=true"), HasSubstr("is true, expected"));
  EXPECT_THAT(error(rest), HasSubstr("lacks knob \"unroll\""));
  EXPECT_THAT(error(rest + ",unroll=1,unrol=1"),
              HasSubstr("unknown knob \"unrol\""));
  EXPECT_THAT(error("rows_per_task=8,algorithm=fast,cols_tile=3,unroll=1"),
              HasSubstr("expected one of two_pass, online"));
}

TEST(SpaceTest, DefaultFallsToTheNearestValidConfig) {
  const auto exact = MustBind(kSoftmax, "rows=8,cols=128/f32");
  EXPECT_EQ(CanonicalText(exact->default_config()),
            "algorithm=online,cols_tile=64,rows_per_task=4,unroll=2");
  EXPECT_THAT(exact->notes(), IsEmpty());
  // 48 is the largest divisor of 96 up to 64.
  const auto lower = MustBind(kSoftmax, "rows=8,cols=96/f32");
  EXPECT_EQ(CanonicalText(lower->default_config()),
            "algorithm=online,cols_tile=48,rows_per_task=4,unroll=2");
  EXPECT_THAT(lower->notes(), ElementsAre(HasSubstr("nearest valid config")));
  EXPECT_EQ(lower->default_refusal(), "");
  // Two rows of 2^17 floats fill this L2.
  const auto fewer = MustBind(kSoftmax, "rows=8,cols=131072/f32");
  EXPECT_EQ(CanonicalText(fewer->default_config()),
            "algorithm=online,cols_tile=64,rows_per_task=2,unroll=2");
  ASSERT_EQ(fewer->notes().size(), 1);
  EXPECT_EQ(fewer->default_refusal(), fewer->notes()[0]);
  EXPECT_THAT(fewer->notes()[0],
              HasSubstr("is not valid for shape rows=8,cols=131072/f32 because "
                        "it violates \"rows_per_task * dim.cols * 4 <= "
                        "hw.l2_bytes\" (a task's rows stay in L2) at "
                        "s.textproto:6:"));
}

TEST(SpaceTest, PriorRanksConfigs) {
  const auto bound = MustBind(kSoftmax, "rows=8,cols=12/f32");
  EXPECT_EQ(bound->Prior(Levels{0, 0, 1, 0}), (1 << 20) - 48);
  EXPECT_EQ(bound->Prior(Levels{3, 0, 1, 0}), (1 << 20) - 8 * 48);
  const auto bad =
      MustBind(WithReplaced("hw.l2_bytes - rows_per_task * dim.cols * 4",
                            "1 / (unroll - 1)"),
               "rows=8,cols=12/f32");
  EXPECT_EQ(bad->Prior(Levels{0, 0, 1, 0}),
            -std::numeric_limits<double>::infinity());
  const auto none = MustBind(IntSpace({{"a", 2}}, {}), "n=1/f32");
  EXPECT_EQ(none->Prior(Levels{0}), absl::nullopt);
  EXPECT_FALSE(none->PriorPrefers(none->ToConfig(Levels{1})));
}

TEST(SpaceTest, PriorPrefersWhatItRanksAboveTheDefault) {
  const auto bound = MustBind(kSoftmax, "rows=8,cols=12/f32");
  Levels levels = bound->default_levels();
  EXPECT_FALSE(bound->PriorPrefers(bound->ToConfig(levels)));
  levels[0] = 0;  // fewer rows a task than by default
  EXPECT_TRUE(bound->PriorPrefers(bound->ToConfig(levels)));
  EXPECT_FALSE(bound->PriorPrefers(*ParseConfig("nosuch=1")));
}

TEST(SpaceTest, EmptySpaceIsExplained) {
  const Space space = MustParse(kSoftmax);
  const auto bound =
      space.Bind(Shape("rows=8,cols=1048576/f32"), TestHardware());
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(
      std::string(bound.status().message()),
      AllOf(HasSubstr("no config is valid for shape rows=8,cols=1048576/f32 on "
                      "test-hardware: the constraint at s.textproto:6:21 "
                      "removes the last ones"),
            HasSubstr("a task's rows stay in L2")));
  const auto diagnosis =
      space.Diagnose(Shape("rows=8,cols=12/f32"), TestHardware());
  ASSERT_TRUE(diagnosis.ok());
  EXPECT_EQ(diagnosis->raw, 252);
  EXPECT_EQ(diagnosis->rows[0].valid_so_far, 252);
  EXPECT_EQ(diagnosis->rows[1].valid_so_far,
            *MustBind(kSoftmax, "rows=8,cols=12/f32")->size());
}

TEST(SpaceTest, DiagnosisCountsEvaluationErrors) {
  const Space space =
      MustParse(IntSpace({{"a", 5}, {"b", 5}}, {"10 / (a - b) <= 100"}));
  const auto diagnosis = space.Diagnose(Shape("n=1/f32"), TestHardware());
  ASSERT_TRUE(diagnosis.ok());
  EXPECT_EQ(diagnosis->rows[0].erroneous, 5);
  EXPECT_EQ(diagnosis->rows[0].valid_alone, 20);
}

TEST(SpaceTest, AssumedHardwareIsNoted) {
  const auto bound =
      MustParse(kSoftmax).Bind(Shape("rows=8,cols=12/f32"), proto::Hardware());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_THAT((*bound)->notes()[0],
              HasSubstr("hw.l2_bytes is unknown on this hardware; 262144"));
}

constexpr char kConvolution[] = R"(
knob { name: "tile" pow2 { min: 1 max: 8 } }
knob { name: "act_in_kernel" variants: ["none", "relu"] }
attribute { name: "padding" int: 0 }
attribute { name: "act" variant: "none" }
constraint { expr: "tile > attr.padding" }
constraint { expr: "act_in_kernel == attr.act || attr.act == 'gelu'" }
default { set { knob: "tile" int: 8 } set { knob: "act_in_kernel" variant: "none" } }
)";

TEST(SpaceTest, AttributesOfAShapeAreReadAndAbsentOnesHaveTheirDefault) {
  EXPECT_EQ(MustBind(kConvolution, "n=1/f32")->size(), 4);
  EXPECT_EQ(MustBind(kConvolution, "n=1/padding=2/f32")->size(), 2);
  // Neither a literal of the space nor a variant of a knob.
  EXPECT_EQ(MustBind(kConvolution, "n=1/act=gelu,padding=2/f32")->size(), 4);
  const auto relu = MustBind(kConvolution, "n=1/act=relu/f32");
  EXPECT_EQ(CanonicalText(relu->default_config()), "act_in_kernel=relu,tile=8");
  // What the space does not read does not concern it.
  EXPECT_EQ(MustBind(kConvolution, "n=1/stride=2/f32")->size(), 4);
}

constexpr char kDefaults[] = R"(
knob { name: "tile" pow2 { min: 1 max: 64 } }
knob { name: "packed" boolean: true }
attribute { name: "act" variant: "none" }
constraint { expr: "tile <= dim.n" }
default { set { knob: "tile" int: 8 } set { knob: "packed" bool: true } }
default_where { expr: "dim.n <= 16 && hw.l2_bytes > 0" why: "few" set { knob: "tile" int: 4 } set { knob: "packed" bool: false } }
default_where { expr: "attr.act == 'relu'" set { knob: "tile" int: 64 } }
default_where { expr: "1 / (dim.n - 3) == 9" set { knob: "tile" int: 1 } }
)";

TEST(SpaceTest, DefaultsFollowShapesAndTheLaterRuleWins) {
  const auto of = [](const std::string& shape) {
    return CanonicalText(MustBind(kDefaults, shape)->default_config());
  };
  EXPECT_EQ(of("n=100/f32"), "packed=true,tile=8");
  EXPECT_EQ(of("n=16/f32"), "packed=false,tile=4");
  EXPECT_EQ(of("n=100/act=relu/f32"), "packed=true,tile=64");
  // The nearest valid one; a condition without a value does not hold.
  EXPECT_EQ(of("n=3/act=relu/f32"), "packed=false,tile=2");
  EXPECT_NE(
      MustParse(kDefaults).hash(),
      MustParse(absl::StrReplaceAll(kDefaults, {{"<= 16", "<= 17"}})).hash());
}

constexpr char kAlternatives[] = R"(
knob { name: "tile" ints: [1, 2, 4, 8, 16] }
knob { name: "kernel" variants: ["wide", "narrow"] }
knob { name: "packed" boolean: true }
constraint { expr: "tile <= dim.n" }
constraint { expr: "kernel == 'narrow' || tile >= 4" }
prior { expr: "(packed ? 1 : 0) - (tile - 6) * (tile - 6) + 0" }
default { set { knob: "tile" int: 1 } set { knob: "kernel" variant: "narrow" } set { knob: "packed" bool: false } }
default_where { expr: "dim.n > 1" set { knob: "tile" variant: "2|4|16" } set { knob: "kernel" variant: "wide|narrow" } }
default_where { expr: "dim.n > 2" set { knob: "packed" variant: "false|true" } }
default_where { expr: "dim.n > 100" set { knob: "tile" int: 16 } }
)";

TEST(SpaceTest, OfAlternativesThePriorChoosesTheDefault) {
  const auto of = [](const std::string& shape) {
    return CanonicalText(MustBind(kAlternatives, shape)->default_config());
  };
  // The highest of the valid ones; on a tie the first.
  EXPECT_EQ(of("n=64/f32"), "kernel=wide,packed=true,tile=4");
  EXPECT_EQ(of("n=3/f32"), "kernel=narrow,packed=true,tile=2");
  EXPECT_EQ(of("n=2/f32"), "kernel=narrow,packed=false,tile=2");
  EXPECT_EQ(of("n=1/f32"), "kernel=narrow,packed=false,tile=1");
  // A later rule leaves one.
  EXPECT_EQ(of("n=101/f32"), "kernel=wide,packed=true,tile=16");
  EXPECT_NE(MustParse(kAlternatives).hash(),
            MustParse(absl::StrReplaceAll(kAlternatives, {{"2|4|16", "2|16"}}))
                .hash());
}

TEST(SpaceTest, AlternativesThatCannotBeChosenAreNamed) {
  const auto error = [](const std::string& from, const std::string& to) {
    return ParseError(absl::StrReplaceAll(kAlternatives, {{from, to}}));
  };
  EXPECT_THAT(error("2|4|16", "2|5"), HasSubstr("is 5, expected one of"));
  EXPECT_THAT(error("wide|narrow", "wide|"), HasSubstr("expected one of"));
  EXPECT_THAT(error("int: 1 }", "variant: \"1|2\" }"),
              HasSubstr("expected them in default_where alone"));
  EXPECT_THAT(error("prior {", "constraint {"), HasSubstr("expected a bool"));
  EXPECT_THAT(
      error(
          "prior { expr: \"(packed ? 1 : 0) - (tile - 6) * (tile - 6) + 0\" }",
          ""),
      HasSubstr("the space no prior"));
}

TEST(SpaceTest, FactsOfCompilationAreConstrainedOnceTheyAreKnown) {
  const auto space = MustBind(R"(
knob { name: "tile" pow2 { min: 1 max: 8 } }
constraint { expr: "tile < 8" }
constraint { expr: "fact.registers * tile <= dim.n && fact.spills == 0"
             why: "two blocks a multiprocessor" }
default { set { knob: "tile" int: 4 } }
)",
                              "n=256/f32");
  // Nothing is pruned by what nobody knows yet.
  EXPECT_EQ(space->size(), 3);
  EXPECT_TRUE(space->has_fact_constraints());
  const auto config = *ParseConfig("tile=4");
  EXPECT_TRUE(space->Validate(config).ok());
  EXPECT_TRUE(
      space->CheckFacts(config, {{"registers", 64}, {"spills", 0}}).ok());
  const absl::Status refused =
      space->CheckFacts(config, {{"registers", 65}, {"spills", 0}});
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("fact.registers = 65"),
                    HasSubstr("two blocks a multiprocessor"),
                    HasSubstr("s.textproto:4:2")));
  EXPECT_FALSE(
      space->CheckFacts(config, {{"registers", 1}, {"spills", 1}}).ok());
  EXPECT_THAT(space->CheckFacts(config, {{"registers", 1}}).message(),
              HasSubstr("unknown \"fact.spills\"; compiling told registers"));
  EXPECT_FALSE(
      MustBind(kSoftmax, "rows=8,cols=12/f32")->has_fact_constraints());
}

TEST(SpaceTest, PriorsCannotReadFacts) {
  EXPECT_THAT(ParseError(R"(
knob { name: "tile" ints: [1, 2] }
prior { expr: "fact.registers" }
default { set { knob: "tile" int: 1 } }
)"),
              HasSubstr("s.textproto:3:16: the prior reads fact.*"));
}

TEST(SpaceTest, AttributesAreTypedAndKnownByName) {
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string text = kConvolution;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(ParseError(replaced("tile > attr.padding", "tile > attr.pad")),
              HasSubstr("s.textproto:6:33: unknown attribute \"attr.pad\", "
                        "expected one of act, padding"));
  EXPECT_THAT(ParseError(replaced("tile > attr.padding", "tile > attr.act")),
              HasSubstr("compares int with string"));
  EXPECT_THAT(ParseError(replaced("{ name: \"padding\" int: 0 }",
                                  "{ name: \"padding\" }")),
              HasSubstr("s.textproto:4:1: attribute \"padding\" needs"));
  const auto bound = MustParse(kConvolution)
                         .Bind(Shape("n=1/padding=same/f32"), TestHardware());
  EXPECT_THAT(std::string(bound.status().message()),
              HasSubstr("s.textproto:6:28: attribute \"padding\" of the shape "
                        "n=1/padding=same/f32 is same, expected an integer"));
}

TEST(SpaceTest, TheHashKnowsOfAttributesOnlyWhereThereAreSome) {
  const std::string text = IntSpace({{"a", 8}}, {"a <= 4"});
  EXPECT_THAT(MustParse(text).canonical_text(),
              ::testing::Not(HasSubstr("attributes")));
  EXPECT_NE(MustParse(text).hash(),
            MustParse(text + "attribute { name: \"p\" int: 0 }").hash());
}

TEST(SpaceTest, AShapeThatLacksADimensionHasItsDeclaredValue) {
  const std::string text = IntSpace({{"a", 8}}, {"a <= dim.batch"}) +
                           "dimension { name: \"batch\" absent: 2 }";
  EXPECT_EQ(MustBind(text, "n=1/f32")->size(), 2);
  EXPECT_EQ(MustBind(text, "batch=5,n=1/f32")->size(), 5);
  EXPECT_NE(MustParse(text).hash(),
            MustParse(IntSpace({{"a", 8}}, {"a <= dim.batch"})).hash());
}

TEST(SpaceTest, DeclaredDimensionsAreChecked) {
  const std::string text = IntSpace({{"a", 8}}, {"a <= 4"});
  const auto error = [&](const std::string& dimension) {
    return std::string(
        Space::Parse(text + dimension, "s.textproto").status().message());
  };
  EXPECT_THAT(error("dimension { name: \"b\" }"),
              HasSubstr("expected absent: 1 or more"));
  EXPECT_THAT(error("dimension { name: \"2\" absent: 1 }"),
              HasSubstr("dimension name \"2\""));
  EXPECT_THAT(error("dimension { name: \"b\" absent: 1 }\n"
                    "dimension { name: \"b\" absent: 2 }"),
              HasSubstr("declared twice"));
}

TEST(SpaceTest, AnotherDeviceKindBringsItsOwnNames) {
  proto::Hardware npu;
  npu.set_device_kind(static_cast<proto::DeviceKind>(77));
  npu.set_l2_bytes(4);
  const auto add = [&](const char* name) {
    npu.add_attributes()->set_name(name);
    return npu.mutable_attributes(npu.attributes_size() - 1);
  };
  add("cores_per_tile")->set_int_(2);
  add("has_fp8")->set_bool_(true);
  add("marketing_name")->set_text("N");
  add("clock_ghz")->set_real(1.5);
  const Space space = MustParse(IntSpace(
      {{"a", 8}},
      {"a >= hw.cores_per_tile && a <= hw.l2_bytes && hw.has_fp8 == 1"}));
  const auto bound = space.Bind(Shape("n=1/f32"), npu);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ((*bound)->size(), 3);
  // A name that it does not declare, a CPU's included, is an error in its
  // place.
  for (const char* name : {"threads", "l1d_bytes", "cores_per_tle"}) {
    const Space wrong = MustParse(
        IntSpace({{"a", 8}}, {absl::StrCat("a <= 8 && a <= hw.", name)}));
    const std::string message(
        wrong.Bind(Shape("n=1/f32"), npu).status().message());
    EXPECT_THAT(message, HasSubstr(absl::StrCat("unknown attribute \"hw.", name,
                                                "\", expected one of "
                                                "cores_per_tile, has_fp8, "
                                                "l2_bytes")));
    EXPECT_THAT(message, ::testing::StartsWith("s.textproto:"));
  }
  // What is there and can't be read says so, in its place too.
  for (const auto& [name, is] :
       {std::pair<const char*, const char*>{"marketing_name", "text"},
        {"clock_ghz", "a real number"}}) {
    const Space wrong =
        MustParse(IntSpace({{"a", 8}}, {absl::StrCat("a <= hw.", name)}));
    EXPECT_THAT(
        std::string(wrong.Bind(Shape("n=1/f32"), npu).status().message()),
        ::testing::MatchesRegex(
            absl::StrCat("s.textproto:[0-9]+:[0-9]+: attribute \"hw.", name,
                         "\" is ", is, ", expected an integer or a bool.*")));
  }
  // Nor has a CPU what another kind has.
  EXPECT_THAT(
      std::string(
          space.Bind(Shape("n=1/f32"), TestHardware()).status().message()),
      HasSubstr(
          "unknown attribute \"hw.cores_per_tile\", expected one of cores,"));
}

TEST(SpaceTest, ThreadsComeFromTheCallerOrTheCores) {
  const std::string text = IntSpace({{"a", 8}}, {"a <= hw.threads"});
  EXPECT_EQ(MustBind(text, "n=1/f32")->size(), 4);
  BindOptions options;
  options.threads = 2;
  EXPECT_EQ(MustBind(text, "n=1/f32", options)->size(), 2);
}

TEST(SpaceTest, BindNamesTheMissingDimension) {
  const auto bound =
      MustParse(kSoftmax).Bind(Shape("rows=8/f32"), TestHardware());
  EXPECT_THAT(
      std::string(bound.status().message()),
      HasSubstr("s.textproto:5:1: the shape rows=8/f32 has no dimension "
                "\"cols\""));
}

TEST(SpaceTest, HashIgnoresLayoutAndProse) {
  const std::string hash = MustParse(kSoftmax).hash();
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(MustParse(WithReplaced("why: \"a task's", "# x\nwhy: \"the task's"))
                .hash(),
            hash);
  EXPECT_EQ(MustParse(WithReplaced("rows_per_task * dim.cols * 4 <= hw",
                                   "(rows_per_task*dim.cols)*4<=hw"))
                .hash(),
            hash);
  EXPECT_EQ(MustParse(WithReplaced("[4, 1, 2]", "[1, 2, 4]")).hash(), hash);
  EXPECT_NE(MustParse(WithReplaced("[4, 1, 2]", "[1, 2, 4, 8]")).hash(), hash);
  EXPECT_NE(MustParse(WithReplaced("cols * 4 <= hw", "cols * 4 < hw")).hash(),
            hash);
}

TEST(SpaceTest, ErrorsPointIntoExpressions) {
  EXPECT_THAT(ParseError(WithReplaced("rows_per_task * dim.cols * 4 <= hw",
                                      "rows_per_tsk * dim.cols * 4 <= hw")),
              HasSubstr("s.textproto:6:21: unknown name \"rows_per_tsk\""));
  EXPECT_THAT(ParseError(WithReplaced("cols_tile % unroll == 0",
                                      "cols_tile % unroll = 0")),
              HasSubstr("s.textproto:8:65: \"=\" assigns nothing"));
  // Across escapes, adjacent literals and a comment.
  EXPECT_THAT(ParseError(WithReplaced(
                  "expr: \"algorithm == 'online' || cols_tile % unroll == 0\"",
                  "expr: \"algorithm == \\\"online\\\" \"  # why\n"
                  "   '|| cols_tile % unrol == 0'")),
              HasSubstr("s.textproto:9:20: unknown name \"unrol\""));
}

TEST(SpaceTest, ErrorsNameLineAndKnob) {
  EXPECT_THAT(ParseError(WithReplaced("ints: [4, 1, 2]", "ints: [4, 1, 4]")),
              HasSubstr("s.textproto:3:"));
  EXPECT_THAT(ParseError(WithReplaced("ints: [4, 1, 2]", "ints: [4, 1, 4]")),
              HasSubstr("knob \"unroll\" has the value 4 twice"));
  EXPECT_THAT(ParseError(WithReplaced("ints: [4, 1, 2]", "")),
              HasSubstr("knob \"unroll\" has no values"));
  EXPECT_THAT(
      ParseError(WithReplaced("ints: [4, 1, 2]", "ints: [1] boolean: true")),
      HasSubstr("has ints and boolean, expected one of"));
  EXPECT_THAT(ParseError(WithReplaced("min: 1 max: 64", "min: 3 max: 64")),
              HasSubstr("min of knob \"rows_per_task\" is 3, expected a power "
                        "of two"));
  EXPECT_THAT(ParseError(WithReplaced("min: 1 max: 64", "min: 64 max: 1")),
              HasSubstr("expected at least min"));
  EXPECT_THAT(ParseError(WithReplaced("\"unroll\" ints", "\"log2\" ints")),
              HasSubstr("knob name \"log2\""));
  EXPECT_THAT(
      ParseError(WithReplaced("\"unroll\" ints", "\"rows_per_task\" ints")),
      HasSubstr("declared twice, first at s.textproto:2:1"));
  EXPECT_THAT(ParseError(WithReplaced("\"two_pass\", ", "\"7\", ")),
              HasSubstr("variant \"7\""));
  EXPECT_THAT(ParseError(WithReplaced("int: 2 }", "int: 3 }")),
              HasSubstr("s.textproto:13:3: the default of knob \"unroll\" is "
                        "3, expected one of 1, 2, 4"));
  EXPECT_THAT(ParseError(WithReplaced("set { knob: \"unroll\" int: 2 }", "")),
              HasSubstr("the default lacks knob \"unroll\""));
  EXPECT_THAT(ParseError(WithReplaced("knob: \"unroll\" int: 2",
                                      "knob: \"unrol\" int: 2")),
              HasSubstr("sets \"unrol\", which is no knob"));
  EXPECT_THAT(ParseError("knob { name: 'a' boolean: true }"),
              HasSubstr("has no default"));
  EXPECT_THAT(ParseError(""), HasSubstr("has no knob"));
  const auto rule_error = [](absl::string_view from, absl::string_view to) {
    return ParseError(absl::StrReplaceAll(kDefaults, {{from, to}}));
  };
  EXPECT_THAT(rule_error("dim.n <= 16", "tile <= 16"),
              HasSubstr("reads a knob or a fact"));
  EXPECT_THAT(rule_error("attr.act == 'relu'", "dim.n"),
              HasSubstr("default_where is int, expected a bool"));
  EXPECT_THAT(
      rule_error("{ knob: \"tile\" int: 64 }", "{ knob: \"til\" int: 64 }"),
      HasSubstr("default_where sets \"til\", which is no knob"));
  EXPECT_THAT(rule_error("set { knob: \"tile\" int: 64 }", ""),
              HasSubstr("default_where sets no knob"));
  EXPECT_THAT(ParseError("knob { nme: 'a' }"), HasSubstr("s.textproto:1:"));
  EXPECT_THAT(ParseError(WithReplaced("expr: \"rows_per_task * dim.cols * 4 "
                                      "<= hw.l2_bytes\"",
                                      "expr: \"unroll + 1\"")),
              HasSubstr("the constraint is int, expected a bool"));
}

}  // namespace
}  // namespace optrail::tuning
