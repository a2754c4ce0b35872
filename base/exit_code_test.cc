#include "base/exit_code.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(ExitCodeTest, EachKindOfErrorHasItsCode) {
  EXPECT_EQ(ToInt(ExitCodeOf(absl::OkStatus())), 0);
  EXPECT_EQ(ToInt(ExitCodeOf(CheckFailedError("slower"))), 1);
  EXPECT_EQ(ToInt(ExitCodeOf(absl::InvalidArgumentError("flag"))), 2);
  EXPECT_EQ(ToInt(ExitCodeOf(absl::FailedPreconditionError("locked"))), 2);
  EXPECT_EQ(ToInt(ExitCodeOf(NotEnoughDataError("one process"))), 3);
}

TEST(ExitCodeTest, MessagesAreKept) {
  EXPECT_EQ(CheckFailedError("slower").message(), "slower");
}

}  // namespace
}  // namespace optrail
