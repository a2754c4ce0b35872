// Named expressions, computed defaults, and knobs that are new to a space.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

constexpr char kBlocks[] = R"s(
knob { name: "kc" ints: [8, 64, 128, 512] }
knob { name: "packed" boolean: true }
knob { name: "loop" variants: ["rows", "columns"] absent: "rows" }
let { name: "lanes" expr: "hw.simd_bits / 32" doc: "f32 in a vector" }
let { name: "panel" expr: "kc * lanes * 4" }
constraint { expr: "panel <= hw.l1d_bytes" why: "a panel stays in L1" }
default {
  set { knob: "kc" int: 8 }
  set { knob: "packed" bool: false }
  set { knob: "loop" variant: "columns" }
}
default_where {
  expr: "dim.k > 1"
  set { knob: "kc" expr: "min(256, dim.k)" }
  set { knob: "packed" expr: "dim.k > 8 * lanes" }
}
default_where { expr: "dim.k == 7" set { knob: "kc" expr: "1 / (dim.k - 7)" } }
)s";

std::string With(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kBlocks, {{from, to}});
  EXPECT_NE(text, kBlocks) << from;
  return text;
}

std::string ErrorOf(const std::string& text) {
  return std::string(Space::Parse(text, "s").status().message());
}

std::unique_ptr<BoundSpace> Bind(const std::string& text, int64_t k) {
  proto::Hardware hardware;
  hardware.set_l1d_bytes(8 << 10);
  hardware.set_simd_bits(512);
  const auto space = Space::Parse(text, "s");
  EXPECT_TRUE(space.ok()) << space.status();
  auto bound =
      space->Bind(*ParseShape(absl::StrCat("k=", k, "/f32")), hardware);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return *std::move(bound);
}

TEST(LetTest, StandsForItsExpression) {
  // 128 * 16 * 4 bytes fit into L1, 512 steps do not.
  EXPECT_EQ(Bind(kBlocks, 1)->count(), 12);
  EXPECT_EQ(
      Space::Parse(kBlocks, "s")->hash(),
      Space::Parse(With("panel <=", "kc * (hw.simd_bits / 32) * 4 <="), "s")
          ->hash());
}

TEST(LetTest, ErrorsStandWhereTheNameIsRead) {
  EXPECT_THAT(ErrorOf(With("panel <=", "lanes && panel <=")),
              HasSubstr("s:7:21: an operand of && is int"));
  EXPECT_THAT(ErrorOf(With("\"panel\" expr: \"kc", "\"panel\" expr: \"kx")),
              HasSubstr("s:6:28: unknown name \"kx\", expected a knob (kc, "
                        "packed, loop, lanes)"));
  EXPECT_THAT(ErrorOf(With("\"panel\"", "\"kc\"")),
              HasSubstr("\"kc\" is the name of a knob"));
  EXPECT_THAT(ErrorOf(With("\"panel\"", "\"lanes\"")),
              HasSubstr("\"lanes\" is the name of another let"));
  EXPECT_THAT(ErrorOf(With("\"panel\"", "\"min\"")),
              HasSubstr("let \"min\": expected"));
  EXPECT_THAT(ErrorOf(With("dim.k == 7", "panel == 7")),
              HasSubstr("default_where reads a knob or a fact"));
}

TEST(LetTest, LetsThatGrowExponentiallyAreRefused) {
  std::string lets;
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(
        &lets, "let { name: \"x", i, "\" expr: \"",
        i == 0 ? std::string("kc") : absl::StrCat("x", i - 1), " + ",
        i == 0 ? std::string("kc") : absl::StrCat("x", i - 1), "\" }\n");
  }
  EXPECT_THAT(ErrorOf(With("let { name: \"panel\"",
                           absl::StrCat(lets, "let { name: \"panel\""))),
              HasSubstr("the lets stand for more than 4096 operations"));
}

TEST(ComputedDefaultTest, TakesTheNextHigherLevel) {
  const auto of = [](int64_t k) {
    return CanonicalText(Bind(kBlocks, k)->default_config());
  };
  EXPECT_EQ(of(1), "kc=8,loop=columns,packed=false");
  EXPECT_EQ(of(9), "kc=64,loop=columns,packed=false");
  EXPECT_EQ(of(65), "kc=128,loop=columns,packed=false");
  // The highest valid level.
  EXPECT_EQ(of(129), "kc=128,loop=columns,packed=true");
}

TEST(ComputedDefaultTest, WithoutAValueTheDefaultStaysAndANoteSaysSo) {
  const auto bound = Bind(kBlocks, 7);
  EXPECT_EQ(CanonicalText(bound->default_config()),
            "kc=8,loop=columns,packed=false");
  EXPECT_THAT(bound->notes(),
              ::testing::Contains(
                  HasSubstr("the default of knob \"kc\" has no value here")));
}

TEST(ComputedDefaultTest, WrongOnesAreNamed) {
  EXPECT_THAT(ErrorOf(With("min(256, dim.k)", "kc + 1")),
              HasSubstr("s:15:27: the default of knob \"kc\" reads a knob"));
  EXPECT_THAT(ErrorOf(With("min(256, dim.k)", "dim.k > 2")),
              HasSubstr("the default of knob \"kc\" is bool, expected an int"));
  EXPECT_THAT(ErrorOf(With("knob: \"packed\" expr", "knob: \"loop\" expr")),
              HasSubstr("the default of knob \"loop\" is bool, expected a rule "
                        "for every variant"));
  EXPECT_NE(Space::Parse(kBlocks, "s")->hash(),
            Space::Parse(With("min(256", "min(128"), "s")->hash());
}

TEST(AbsentTest, CompletesConfigsThatWereStoredBeforeTheKnob) {
  const auto bound = Bind(kBlocks, 64);
  proto::Config stored = *ParseConfig("kc=64,packed=true");
  EXPECT_TRUE(bound->Validate(stored).ok());
  EXPECT_EQ(CanonicalText(*bound->Complete(stored)),
            "kc=64,loop=rows,packed=true");
  stored = *ParseConfig("kc=64");
  EXPECT_THAT(std::string(bound->Validate(stored).message()),
              HasSubstr("lacks knob \"packed\""));
  EXPECT_THAT(ErrorOf(With("absent: \"rows\"", "absent: \"3\"")),
              HasSubstr("the default of knob \"loop\" is 3, expected one of "
                        "rows, columns"));
}

}  // namespace
}  // namespace optrail::tuning
