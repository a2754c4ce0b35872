#include "base/running_binary.h"

#include "base/file.h"
#include "base/hash.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(RunningBinaryFingerprint, IsThatOfTheFileThatRuns) {
  const auto contents = ReadFile("/proc/self/exe");
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_FALSE(contents->empty());
  EXPECT_EQ(RunningBinaryFingerprint(), Fingerprint(*contents));
  EXPECT_EQ(RunningBinaryFingerprint().size(), 16);
}

TEST(RunningBinaryFingerprint, IsComputedOnce) {
  EXPECT_EQ(&RunningBinaryFingerprint(), &RunningBinaryFingerprint());
}

}  // namespace
}  // namespace optrail
