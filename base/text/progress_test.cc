#include "base/text/progress.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ProgressTest : public testing::Test {
 protected:
  ProgressOptions Options(bool is_terminal) {
    ProgressOptions options;
    options.is_terminal = is_terminal;
    options.width = 200;
    options.sink = [this](absl::string_view text) {
      absl::StrAppend(&output_, text);
      ++writes_;
    };
    return options;
  }

  FakeClock clock_;
  std::string output_;
  int writes_ = 0;
};

TEST_F(ProgressTest, ShowsShareCountEtaAndDetail) {
  Progress progress("tuning", 200, Options(true), &clock_);
  clock_.Advance(absl::Seconds(50));
  progress.Update(50, "best 81 us");
  EXPECT_EQ(output_,
            "\r\x1b[Ktuning  [#####---------------]   25%  50/200  "
            "ETA 2 min 30 s  best 81 us");
}

TEST_F(ProgressTest, TheEtaLeavesOutWhatWasDoneBefore) {
  Progress progress("tuning", 200, Options(true), &clock_);
  progress.SetEarlier(100);
  clock_.Advance(absl::Seconds(50));
  progress.Update(150);
  EXPECT_THAT(output_, HasSubstr("75%  150/200  ETA 50.0 s"));
}

TEST_F(ProgressTest, CountsThatSayNothingAreLeftOut) {
  ProgressOptions options = Options(true);
  options.counts = false;
  Progress progress("tuning", 1000, options, &clock_);
  clock_.Advance(absl::Seconds(10));
  progress.Update(500, "[2/4]");
  EXPECT_THAT(output_, HasSubstr("]   50%  ETA 10.0 s  [2/4]"));
}

TEST_F(ProgressTest, RedrawsAtMostTenTimesASecond) {
  Progress progress("tuning", 1000, Options(true), &clock_);
  for (int i = 0; i < 1000; ++i) {
    progress.Update(i);
    clock_.Advance(absl::Milliseconds(1));
  }
  EXPECT_EQ(writes_, 10);
}

TEST_F(ProgressTest, FinishShowsTheLastState) {
  Progress progress("tuning", 3, Options(true), &clock_);
  progress.Update(1);
  progress.Update(3, "done");
  EXPECT_THAT(output_, Not(HasSubstr("3/3")));
  progress.Finish();
  EXPECT_THAT(output_, HasSubstr("100%  3/3  in 0.00 ns  done\n"));
  const std::string before = output_;
  progress.Update(3);
  progress.Finish();
  EXPECT_EQ(output_, before);
}

TEST_F(ProgressTest, LogsGetPlainLinesNowAndThen) {
  {
    Progress progress("tuning", 100, Options(false), &clock_);
    for (int i = 0; i <= 100; ++i) {
      progress.Update(i);
      clock_.Advance(absl::Seconds(1));
    }
  }
  EXPECT_EQ(writes_, 4);  // after 30, 60 and 90 seconds, and at the end
  EXPECT_THAT(output_, Not(HasSubstr("\r")));
  EXPECT_THAT(output_, Not(HasSubstr("\x1b")));
}

TEST_F(ProgressTest, QuietShowsNothing) {
  ProgressOptions options = Options(true);
  options.quiet = true;
  {
    Progress progress("tuning", 100, options, &clock_);
    progress.Update(1);
    progress.Clear();
  }
  EXPECT_EQ(output_, "");
}

TEST_F(ProgressTest, ClearRemovesTheLineAndTheNextUpdateDrawsIt) {
  Progress progress("tuning", 100, Options(true), &clock_);
  progress.Update(1);
  output_.clear();
  progress.Clear();
  EXPECT_EQ(output_, "\r\x1b[K");
  output_.clear();
  progress.Update(2);
  EXPECT_THAT(output_, HasSubstr("2/100"));
}

TEST_F(ProgressTest, LongAndHostileDetailsStayInTheLine) {
  ProgressOptions options = Options(true);
  options.width = 40;
  Progress progress("tuning", 0, options, &clock_);
  progress.Update(7, "\n\x1b[2J" + std::string(100, 'x'));
  EXPECT_EQ(output_.find('\n'), std::string::npos);
  EXPECT_EQ(output_.size(), std::string("\r\x1b[K").size() + 39);
  EXPECT_EQ(output_.find("\x1b[2J"), std::string::npos);
}

TEST_F(ProgressTest, WithoutWorkThereIsNoOutput) {
  { Progress progress("tuning", 0, Options(true), &clock_); }
  EXPECT_EQ(output_, "");
}

}  // namespace
}  // namespace optrail
