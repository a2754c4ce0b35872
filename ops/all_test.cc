// Every operator of //ops:all is complete: a folder that lacks its macro, or a
// kernel that the macro does not know, shows here.

#include "gtest/gtest.h"
#include "ops/core/registry.h"

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
    EXPECT_TRUE(entry->space.path == entry->package + "/" + entry->op->name() +
                                         ".space.textproto" ||
                entry->space.path == "ops/lib/elementwise.space.textproto")
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

TEST(AllOperators, LeaveTestOperatorsOut) {
  EXPECT_EQ(Registry::Get().Find("faulty"), nullptr);
}

}  // namespace
}  // namespace optrail::ops
