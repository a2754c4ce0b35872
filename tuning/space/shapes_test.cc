#include "tuning/space/shapes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Error(const std::string& text) {
  const auto shapes = ParseShapes(text, "s.textproto");
  EXPECT_FALSE(shapes.ok()) << text;
  return std::string(shapes.status().message());
}

TEST(ShapesTest, ReadsShapesInOrder) {
  const auto shapes = ParseShapes(
      "shape { dims: 'rows=64,cols=32' dtype: F32 name: 'b' doc: 'd' "
      "tags: 'smoke' tags: 'x' }\n"
      "shape { dims: 'rows=8,cols=4' dtype: BF16 dtype: F32 }",
      "s.textproto");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  ASSERT_EQ(shapes->size(), 2u);
  EXPECT_EQ((*shapes)[0].name, "b");
  EXPECT_THAT((*shapes)[0].tags, ElementsAre("smoke", "x"));
  EXPECT_EQ((*shapes)[1].name, "rows=8,cols=4/bf16+f32");
  EXPECT_EQ(CanonicalText((*shapes)[1].shape), "rows=8,cols=4/bf16+f32");
  EXPECT_EQ((*shapes)[1].line, 2);
}

TEST(ShapesTest, ErrorsNameTheLine) {
  const std::string good = "shape { dims: 'n=4' dtype: F32 name: 'a' }\n";
  EXPECT_THAT(Error(""), HasSubstr("lists no shape"));
  EXPECT_THAT(Error(good + good), HasSubstr("s.textproto:2:1: shape n=4/f32 is "
                                            "given twice, first in line 1"));
  EXPECT_THAT(Error(good + "shape { dims: 'n=5' dtype: F32 name: 'a' }"),
              HasSubstr("the name \"a\" is given twice"));
  EXPECT_THAT(Error(good + "shape { dims: 'm=5' dtype: F32 }"),
              HasSubstr("s.textproto:2:9: the dimensions are m, expected n"));
  EXPECT_THAT(Error("shape { dims: 'n=0' dtype: F32 }"),
              HasSubstr("expected a positive integer"));
  EXPECT_THAT(Error("shape { dims: 'n=4' }"), HasSubstr("without dtype"));
  EXPECT_THAT(Error("shape { dtype: F32 }"), HasSubstr("without dims"));
  EXPECT_THAT(Error("shape { dims: 'n=4' dtype: F33 }"),
              HasSubstr("s.textproto:1:"));
}

TEST(ShapesTest, ReadsAttributes) {
  const auto shapes = ParseShapes(
      "shape { dims: \"n=4\" dtype: F32 }\n"
      "shape { dims: \"n=4\" attributes: \"stride=2, act=relu\" dtype: F32 }",
      "s");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ(CanonicalText((*shapes)[1].shape), "n=4/act=relu,stride=2/f32");
  EXPECT_EQ((*shapes)[1].name, "n=4/act=relu,stride=2/f32");
  const auto wrong = ParseShapes(
      "shape { dims: \"n=4\" dtype: F32\n  attributes: \"stride\" }", "s");
  EXPECT_EQ(wrong.status().message().substr(0, 4), "s:2:");
}

}  // namespace
}  // namespace optrail::tuning
