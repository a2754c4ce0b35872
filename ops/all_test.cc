// Every operator of //ops:all is complete: a folder that lacks its macro, or a
// kernel that the macro does not know, shows here.

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

TEST(AllOperators, AreListedWithFilesAndKernels) {
  EXPECT_NE(Registry::Get().Find("add"), nullptr);
  EXPECT_NE(Registry::Get().Find("matmul"), nullptr);
  EXPECT_NE(Registry::Get().Find("softmax"), nullptr);
  for (const OperatorEntry* entry : Registry::Get().List()) {
    SCOPED_TRACE(entry->op->name());
    EXPECT_EQ(entry->package, "ops/" + entry->op->name());
    // Its own, or one that it shares with its like.
    EXPECT_THAT(entry->space.path,
                ::testing::AnyOf(entry->package + "/" + entry->op->name() +
                                     ".space.textproto",
                                 "ops/elementwise/elementwise.space.textproto",
                                 "ops/conv2d/conv2d.space.textproto"))
        << entry->space.path;
    EXPECT_FALSE(entry->space.contents.empty());
    EXPECT_FALSE(entry->shapes.contents.empty());
    const auto own = entry->FindBackend(proto::CPU, "");
    ASSERT_TRUE(own.ok()) << own.status();
    const auto id = (*own)->Id({});
    ASSERT_TRUE(id.ok()) << id.status();
    EXPECT_EQ(id->size(), 16);
    ASSERT_NE((*own)->space(), nullptr);
    EXPECT_EQ((*own)->space()->path, entry->space.path);
  }
}

// Only those rows of a table are read that indices name.
TEST(AllOperators, SayHowManyRowsOfATableAreTouched) {
  const OperatorEntry* entry = Registry::Get().Find("embedding_bag");
  ASSERT_NE(entry, nullptr);
  for (const char* text :
       {"rows=1000000,cols=64,bags=2048,lookups=32/f32",
        "rows=1000000,cols=64,bags=2048,lookups=32/indices=skewed/f32",
        "rows=1000,cols=64,bags=512,lookups=8/f32",
        "rows=1000,cols=64,bags=512,lookups=8/indices=skewed/f32",
        "rows=7,cols=64,bags=1,lookups=3/f32"}) {
    SCOPED_TRACE(text);
    const auto shape = tuning::ParseShape(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    const auto operands = entry->op->Operands(*shape);
    ASSERT_TRUE(operands.ok()) << operands.status();
    // The mean of what is really drawn.
    constexpr int kDraws = 20;
    double rows = 0;
    for (int seed = 0; seed < kDraws; ++seed) {
      const std::vector<double> indices =
          RandomValues((*operands)[1], seed, Values::kTypical);
      rows += static_cast<double>(
          std::set<double>(indices.begin(), indices.end()).size());
    }
    rows /= kDraws;
    EXPECT_NEAR((*operands)[0].touched_elements, rows * 64, .05 * rows * 64);
  }
}

TEST(AllOperators, LeaveTestOperatorsOut) {
  EXPECT_EQ(Registry::Get().Find("faulty"), nullptr);
}

}  // namespace
}  // namespace optrail::ops
