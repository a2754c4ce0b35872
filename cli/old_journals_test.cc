#include "cli/old_journals.h"

#include <utime.h>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kDay = 24 * 3600;
constexpr int64_t kNow = 1795000000;

TEST(OldJournalsTest, CountsJournalsThatNobodyWentOnWith) {
  const std::string state = JoinPath(::testing::TempDir(), "state");
  const auto write = [&](const std::string& name, int64_t age_s) {
    const std::string path = JoinPath(state, name);
    ASSERT_TRUE(CreateDirectories(DirectoryOf(path)).ok());
    ASSERT_TRUE(WriteFileAtomically(path, "12345").ok());
    const utimbuf times = {kNow - age_s, kNow - age_s};
    ASSERT_EQ(utime(path.c_str(), &times), 0);
  };
  EXPECT_EQ(FindOldJournals(state, kNow).count, 0) << "no folder, no journals";
  write("tuning/a.journal", 31 * kDay);
  write("commands/b.journal", 400 * kDay);
  write("tuning/recent.journal", 29 * kDay);
  write("ceilings-machine.textproto", 400 * kDay);
  const OldJournals old = FindOldJournals(state, kNow);
  EXPECT_EQ(old.count, 2);
  EXPECT_EQ(old.size_bytes, 10);
  EXPECT_THAT(OldJournalsText(old, state),
              AllOf(HasSubstr("2 older than 30 days"),
                    HasSubstr("find '" + state +
                              "' -name '*.journal' -mtime +29 -delete")));
  EXPECT_EQ(OldJournalsText({}, state), "none older than 30 days");
}

}  // namespace
}  // namespace optrail::cli
