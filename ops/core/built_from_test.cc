#include "ops/core/built_from.h"

#include "base/file/file.h"
#include "base/hash/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BuiltFromTest, NamesWhatChangedSince) {
  AddBuiltFrom("op", "cpu",
               {{"ops/op/op.cc", Fingerprint("one")},
                {"ops/op/op.h", Fingerprint("two")}});
  const std::string workspace = JoinPath(::testing::TempDir(), "built_from");
  EXPECT_THAT(ChangedSources("op", "cpu", workspace), IsEmpty())
      << "far from its sources";
  ASSERT_TRUE(CreateDirectories(JoinPath(workspace, "ops/op")).ok());
  const auto write = [&](const char* path, const char* text) {
    ASSERT_TRUE(WriteFileAtomically(JoinPath(workspace, path), text).ok());
  };
  write("ops/op/op.cc", "one");
  write("ops/op/op.h", "two");
  EXPECT_THAT(ChangedSources("op", "cpu", workspace), IsEmpty());
  write("ops/op/op.h", "three");
  EXPECT_THAT(ChangedSources("op", "cpu", workspace),
              ElementsAre("ops/op/op.h"));
  EXPECT_THAT(ChangedSources("op", "onednn", workspace), IsEmpty());
}

}  // namespace
}  // namespace optrail::ops
