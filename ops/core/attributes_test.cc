#include "ops/core/attributes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/operator.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

using ::testing::HasSubstr;

class Pool : public Operator {
 public:
  std::string name() const override { return "pool"; }
  std::vector<std::string> dims() const override { return {"n"}; }
  std::vector<AttributeSpec> attributes() const override {
    return {IntAttribute("padding", 0, 0, 3), IntAttribute("stride", 1, 1),
            VariantAttribute("kind", "max", {"max", "mean"})};
  }
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    const int64_t padded = n + 2 * IntAttributeOf(*this, shape, "padding");
    return std::vector<OperandSpec>{{"x", proto::F32, {n}, Role::kInput},
                                    {"y", proto::F32, {padded}, Role::kOutput}};
  }
  double Flop(const proto::Shape& shape) const override { return 1; }
  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    return {};
  }
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {};
  }
};

proto::Shape Shape(const std::string& text) {
  const auto shape = tuning::ParseShape(text);
  EXPECT_TRUE(shape.ok()) << shape.status();
  return *shape;
}

std::string Normal(const std::string& text) {
  const auto shape = NormaliseAttributes(Pool(), Shape(text));
  return shape.ok() ? tuning::CanonicalText(*shape)
                    : std::string(shape.status().message());
}

TEST(AttributesTest, DefaultsAreLeftOutSoThatAShapeHasOneText) {
  EXPECT_EQ(Normal("n=4/f32"), "n=4/f32");
  EXPECT_EQ(Normal("n=4/stride=1,padding=0,kind=max/f32"), "n=4/f32");
  EXPECT_EQ(Normal("n=4/stride=2,padding=0,kind=mean/f32"),
            "n=4/kind=mean,stride=2/f32");
}

TEST(AttributesTest, WrongOnesAreNamedWithWhatWasExpected) {
  EXPECT_THAT(Normal("n=4/strde=2/f32"),
              HasSubstr("operator pool has no attribute \"strde\"; it has: "
                        "padding, stride, kind"));
  EXPECT_THAT(Normal("n=4/stride=0/f32"),
              HasSubstr("stride is 0, expected an integer of at least 1"));
  EXPECT_THAT(Normal("n=4/padding=4/f32"),
              HasSubstr("expected an integer from 0 to 3"));
  EXPECT_THAT(Normal("n=4/kind=min/f32"),
              HasSubstr("kind is min, expected one of max, mean"));
  EXPECT_THAT(Normal("n=4/stride=same/f32"), HasSubstr("an integer"));
  EXPECT_THAT(Normal("n=4/kind=1/f32"), HasSubstr("one of max, mean"));
}

TEST(AttributesTest, CheckShapeTakesNormalShapesOnly) {
  EXPECT_TRUE(CheckShape(Pool(), Shape("n=4/stride=2/f32")).ok());
  EXPECT_THAT(
      std::string(CheckShape(Pool(), Shape("n=4/stride=1/f32")).message()),
      HasSubstr("expected n=4/f32, without defaults"));
  EXPECT_FALSE(CheckShape(Pool(), Shape("n=4/nonsense=1/f32")).ok());
  // A duplicate is no shape, however it came about.
  proto::Shape twice = Shape("n=4/stride=2/f32");
  *twice.add_attributes() = twice.attributes(0);
  EXPECT_THAT(std::string(CheckShape(Pool(), twice).message()),
              HasSubstr("twice"));
}

TEST(AttributesTest, AreReadWithTheirDefaults) {
  const Pool pool;
  EXPECT_EQ(IntAttributeOf(pool, Shape("n=4/f32"), "stride"), 1);
  EXPECT_EQ(IntAttributeOf(pool, Shape("n=4/stride=3/f32"), "stride"), 3);
  EXPECT_EQ(VariantAttributeOf(pool, Shape("n=4/f32"), "kind"), "max");
  EXPECT_EQ((*pool.Operands(Shape("n=4/padding=2/f32")))[1].dims[0], 8);
}

TEST(AttributesTest, ASpaceDeclaresTheOperatorsDefaults) {
  const Pool pool;
  const auto check = [&](const char* text) {
    return std::string(
        CheckDeclaredAttributes(pool, *tuning::ParseAttributes(text))
            .message());
  };
  EXPECT_EQ(check("padding=0,kind=max"), "");
  EXPECT_TRUE(CheckDeclaredAttributes(
                  pool, *tuning::ParseAttributes("padding=0,of_another=1"),
                  /*shared=*/true)
                  .ok());
  EXPECT_THAT(check("padding=1"), HasSubstr("expected the operator's, 0"));
  EXPECT_THAT(check("pading=0"), HasSubstr("no attribute \"pading\""));
}

}  // namespace
}  // namespace optrail::ops
