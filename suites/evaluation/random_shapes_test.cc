#include "suites/evaluation/random_shapes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

std::vector<proto::Shape> Drawn(const std::string& op, uint64_t seed,
                                int count) {
  RandomShapeOptions options;
  options.seed = seed;
  options.count = count;
  const auto shapes = RandomShapes(*ops::Registry::Get().Find(op)->op, options);
  EXPECT_TRUE(shapes.ok()) << op << ": " << shapes.status();
  return shapes.value_or(std::vector<proto::Shape>());
}

std::vector<std::string> Texts(const std::vector<proto::Shape>& shapes) {
  std::vector<std::string> texts;
  for (const auto& shape : shapes) {
    texts.push_back(tuning::CanonicalText(shape));
  }
  return texts;
}

TEST(RandomShapesTest, EveryOperatorAcceptsFiftyWithinTheLimits) {
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    const auto shapes = Drawn(entry->op->name(), 5, 50);
    EXPECT_EQ(shapes.size(), 50) << entry->op->name();
    for (const proto::Shape& shape : shapes) {
      EXPECT_TRUE(ops::CheckShape(*entry->op, shape).ok())
          << tuning::CanonicalText(shape);
      EXPECT_LE(entry->op->Flop(shape), 6e8);
    }
  }
}

TEST(RandomShapesTest, ASeedAlwaysDrawsTheSameAndAnotherOneOthers) {
  EXPECT_EQ(Texts(Drawn("softmax", 5, 10)), Texts(Drawn("softmax", 5, 10)));
  EXPECT_NE(Texts(Drawn("softmax", 5, 10)), Texts(Drawn("softmax", 6, 10)));
  // A longer list begins with the shorter one.
  const auto more = Texts(Drawn("softmax", 5, 20));
  EXPECT_EQ(Texts(Drawn("softmax", 5, 10)),
            std::vector<std::string>(more.begin(), more.begin() + 10));
}

TEST(RandomShapesTest, ListsHaveOddSizesFewRowsVocabulariesAndAlignedSizes) {
  int odd = 0, aligned = 0, few = 0, vocabularies = 0;
  for (const proto::Shape& shape : Drawn("softmax", 9, 200)) {
    const int64_t rows = *tuning::DimValue(shape, "rows");
    const int64_t cols = *tuning::DimValue(shape, "cols");
    odd += cols % 2;
    aligned += cols % 64 == 0;
    few += rows <= 17;
    vocabularies += cols == 50257 || cols == 151935;
  }
  EXPECT_GT(odd, 30);
  EXPECT_GT(aligned, 30);
  EXPECT_GT(few, 40);
  EXPECT_GT(vocabularies, 0);
}

TEST(RandomShapesTest, AttributesAreDrawn) {
  int with_attributes = 0;
  for (const proto::Shape& shape : Drawn("sum", 3, 60)) {
    with_attributes += shape.attributes_size();
  }
  EXPECT_GT(with_attributes, 5);
  EXPECT_LT(with_attributes, 55);
}

TEST(RandomShapesTest, ExtentsMayBeMultiplesAndSmallShapesLeftOut) {
  const ops::Operator& op = *ops::Registry::Get().Find("matmul")->op;
  RandomShapeOptions options;
  options.min_flop = 1e7;
  options.multiple_of = 8;
  const auto shapes = RandomShapes(op, options);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  int odd_rows = 0;
  for (const proto::Shape& shape : *shapes) {
    EXPECT_EQ(*tuning::DimValue(shape, "n") % 8, 0);
    EXPECT_EQ(*tuning::DimValue(shape, "k") % 8, 0);
    EXPECT_GE(op.Flop(shape), 1e7);
    odd_rows += *tuning::DimValue(shape, "m") % 8 != 0;
  }
  EXPECT_GT(odd_rows, 5);
}

TEST(RandomShapesTest, LimitsThatLeaveNothingAreNamed) {
  RandomShapeOptions options;
  options.max_bytes = 1;
  const auto shapes =
      RandomShapes(*ops::Registry::Get().Find("softmax")->op, options);
  EXPECT_EQ(shapes.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(shapes.status().message()),
              testing::HasSubstr("widen the limits"));
}

TEST(RandomShapesTest, ATypeThatTheOperatorLacksIsUnimplemented) {
  RandomShapeOptions options;
  options.type = proto::I8;
  EXPECT_EQ(RandomShapes(*ops::Registry::Get().Find("softmax")->op, options)
                .status()
                .code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace optrail::suites
