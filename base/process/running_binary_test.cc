#include "base/process/running_binary.h"

#include <string>

#include "absl/strings/escaping.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
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

TEST(RunningBuildId, StandsInTheFileThatRuns) {
  const std::string id = RunningBuildId();
  if (id == RunningBinaryFingerprint()) GTEST_SKIP() << "no build id here";
  const std::string bytes = absl::HexStringToBytes(id);
  EXPECT_GE(bytes.size(), 8);
  EXPECT_EQ(absl::BytesToHexString(bytes), id);
  EXPECT_NE(ReadFile("/proc/self/exe")->find(bytes), std::string::npos);
}

}  // namespace
}  // namespace optrail
