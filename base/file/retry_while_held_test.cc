#include "base/file/retry_while_held.h"

#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/journal.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(RetryWhileHeldTest, WaitsForTheOtherWriterAndSaysSoOnce) {
  const std::string path = JoinPath(testing::TempDir(), "held.journal");
  auto other = Journal::Open(path);
  ASSERT_TRUE(other.ok()) << other.status();
  int attempts = 0;
  std::vector<std::string> notes;
  const absl::Status status = RetryWhileHeld(
      [&](bool waited) {
        EXPECT_EQ(waited, attempts > 0);
        if (++attempts == 3) other->reset();
        return Journal::Open(path).status();
      },
      [&](const std::string& why) { notes.push_back(why); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts, 3);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find(path), std::string::npos);
}

TEST(RetryWhileHeldTest, OtherErrorsAreNotTriedAgain) {
  int attempts = 0;
  const absl::Status status = RetryWhileHeld(
      [&](bool) {
        ++attempts;
        return absl::FailedPreconditionError("no");
      },
      [](const std::string&) { FAIL(); });
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace optrail
