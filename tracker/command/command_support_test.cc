#include "tracker/command/command_support.h"

#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(CommandSupportTest, ANamedHistoryThatIsNotThereIsAnError) {
  CommonOptions options;
  options.history = JoinPath(::testing::TempDir(), "mistyped");
  EXPECT_TRUE(OpenHistory(options).ok()) << "the default is empty at first";
  options.history_is_named = true;
  const absl::Status status = OpenHistory(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), AllOf(HasSubstr(options.history),
                                     HasSubstr("optrail import --history=")));
  ASSERT_TRUE(CreateDirectories(options.history).ok());
  EXPECT_TRUE(OpenHistory(options).ok());
}

TEST(CommandSupportTest, AFolderOfOtherThingsIsNoEmptyHistory) {
  CommonOptions options;
  options.history = JoinPath(::testing::TempDir(), "other_things");
  options.history_is_named = true;
  ASSERT_TRUE(CreateDirectories(options.history).ok());
  ASSERT_TRUE(
      WriteFileAtomically(JoinPath(options.history, ".gitkeep"), "").ok());
  EXPECT_TRUE(OpenHistory(options).ok()) << "empty for people";
  ASSERT_TRUE(
      WriteFileAtomically(JoinPath(options.history, "notes.txt"), "").ok());
  EXPECT_THAT(Message(OpenHistory(options).status()),
              AllOf(HasSubstr("is no history: it holds none of runs"),
                    HasSubstr("next: ")));
  // One level too high.
  const std::string inside = JoinPath(options.history, "history");
  ASSERT_TRUE(CreateDirectories(JoinPath(inside, "runs")).ok());
  EXPECT_THAT(Message(OpenHistory(options).status()),
              HasSubstr("next: --history=" + inside));
  options.history = inside;
  EXPECT_TRUE(OpenHistory(options).ok());
}

TEST(CommandSupportTest, CommandsToCopyNameAHistoryThatWasNamed) {
  CommonOptions options;
  EXPECT_EQ(HistoryFlag(options), "");
  options.history = "my history";
  options.history_is_named = true;
  EXPECT_EQ(HistoryFlag(options), " --history='my history'");
  // Reports and verdicts are published.
  options.history = "postgresql://me:secret@h/d";
  EXPECT_EQ(HistoryFlag(options), " --history=postgresql://me@h/d");
}

TEST(CommandSupportTest, AnEmptyHistorySaysHowToFillIt) {
  CommonOptions options;
  options.history = JoinPath(::testing::TempDir(), "never_written");
  const History history = *OpenHistory(options);
  for (const char* selector : {"latest", "latest~1", "1a2b3c4"}) {
    EXPECT_THAT(Message(history.Resolve(selector).status()),
                AllOf(HasSubstr("there are no runs in"),
                      HasSubstr(options.history), HasSubstr("optrail import"),
                      HasSubstr("optrail bench --op=softmax --record")));
  }
}

TEST(CommandSupportTest, FlagsThatDoNotHoldAreNamedWithWhatIsExpected) {
  EXPECT_TRUE(CheckFlag(true, "limit", 3, "at least 0").ok());
  EXPECT_EQ(Message(CheckFlag(false, "limit", -1, "at least 0")),
            "--limit=-1: expected at least 0");
}

TEST(CommandSupportTest, PatternsMatchPartsOrWholes) {
  EXPECT_EQ(Message(CompilePattern("filter", "(").status()),
            "--filter='(' is no regular expression (RE2): missing ): (");
  const auto pattern = *CompilePattern("filter", "time");
  EXPECT_TRUE(MatchesPart(*pattern, "cpu_time"));
  EXPECT_FALSE(MatchesWhole(*pattern, "cpu_time"));
  EXPECT_TRUE(MatchesWhole(*pattern, "time"));
  const auto everything = *CompilePattern("filter", "");
  EXPECT_TRUE(MatchesPart(*everything, "cpu_time"));
  EXPECT_TRUE(MatchesWhole(*everything, "cpu_time"));
}

TEST(CommandSupportTest, ANameIsOneLine) {
  EXPECT_TRUE(CheckName("suite", "").ok());
  EXPECT_TRUE(CheckName("suite", "my suite, \xc3\xa9").ok());
  const absl::Status two_lines = CheckName("suite", "a\nb");
  EXPECT_EQ(two_lines.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(two_lines.message(),
            "--suite='a\\nb': expected a name in one line, without control "
            "characters");
}

}  // namespace
}  // namespace optrail::tracker
