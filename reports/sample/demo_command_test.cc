#include "reports/sample/demo_command.h"

#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "tracker/history/history.h"

namespace optrail::reports {
namespace {

TEST(RunDemoTest, WritesAHistoryAndAPageThatSayThatTheyAreMadeUp) {
  DemoCommand options;
  options.out = JoinPath(::testing::TempDir(), "demo");
  std::ostringstream out, log;
  const absl::StatusOr<int> code = RunDemo(options, out, log);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_TRUE(absl::StrContains(out.str(), "made up")) << out.str();

  const auto history = tracker::History::Open(JoinPath(options.out, "history"));
  ASSERT_TRUE(history.ok());
  const auto verified = history->Verify();
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->bad_files.size(), 0);
  EXPECT_GT(verified->runs, 100);
  EXPECT_GT(verified->sessions, 3);
  EXPECT_EQ(verified->triage_records, 2);
  const auto latest = history->FindRun("latest");
  ASSERT_TRUE(latest.ok()) << latest.status();

  const auto page = ReadFile(JoinPath(options.out, "report.html"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(absl::StrContains(*page, "\"synthetic\":true"));
}

TEST(RunDemoTest, NeverWritesIntoAFolderThatIsThere) {
  DemoCommand options;
  options.out = JoinPath(::testing::TempDir(), "taken");
  ASSERT_TRUE(CreateDirectories(options.out).ok());
  std::ostringstream out, log;
  const absl::StatusOr<int> code = RunDemo(options, out, log);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(absl::StrContains(code.status().message(), "does not exist"));
}

}  // namespace
}  // namespace optrail::reports
