#include "cli/version.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(VersionTest, IsCommitAndDateOfAStampedBuild) {
  EXPECT_EQ(VersionText("1a2b3c4d5e6f+", "2026-11-21T10:11Z"),
            "optrail 1a2b3c4d5e6f+ (2026-11-21T10:11Z)");
}

TEST(VersionTest, AnUnstampedBuildSaysSoAndHowToStampIt) {
  EXPECT_THAT(VersionText("", ""),
              AllOf(StartsWith("optrail unknown: unstamped build"),
                    HasSubstr("--config=stamp")));
}

}  // namespace
}  // namespace optrail::cli
