#include "reports/commands.h"

#include <sstream>
#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/sample/sample_history.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/sqlite.h"

namespace optrail::reports {
namespace {

using ::testing::HasSubstr;

std::string FreshFolder(const std::string& name) {
  const std::string dir = JoinPath(::testing::TempDir(), name);
  EXPECT_TRUE(CreateDirectories(dir).ok());
  return dir;
}

std::string RecordSample(const std::string& dir) {
  SampleOptions options;
  options.commits = 3;
  options.shapes_per_operator = 1;
  options.sessions = 1;
  SampleHistory sample = MakeSampleHistory(options);
  const absl::StatusOr<tracker::History> history =
      tracker::History::Open(JoinPath(dir, "history"));
  EXPECT_TRUE(history.ok());
  for (proto::Run& run : sample.runs) {
    run.set_run_id(tracker::NewRecordId(run.started_unix_ns()));
    const absl::Status status = history->AppendRun(run);
    EXPECT_TRUE(status.ok()) << status;
  }
  for (proto::Session& session : sample.sessions) {
    session.set_session_id(tracker::NewRecordId(session.started_unix_ns()));
    const absl::Status status = history->AppendSession(session);
    EXPECT_TRUE(status.ok()) << status;
  }
  return history->dir();
}

TEST(RunReportTest, IsTheSameFromTheIndexAndFromTheFiles) {
  const std::string dir = FreshFolder("indexed");
  ReportCommand options;
  options.history = RecordSample(dir);
  options.out = "-";
  options.format = "json";
  const auto report = [&] {
    std::ostringstream log, out;
    EXPECT_TRUE(RunReport(options, log, out).ok());
    EXPECT_EQ(log.str(), "");
    return out.str();
  };
  const std::string from_files = report();
  ASSERT_FALSE(FileExists(JoinPath(options.history, "index.sqlite")));
  const auto history = tracker::History::Open(options.history);
  ASSERT_TRUE(history.ok());
  { ASSERT_TRUE(tracker::HistoryIndex::Open(*history).ok()); }
  EXPECT_EQ(report(), from_files);
  // It is the index that is asked.
  {
    auto db = tracker::OpenSqlite(JoinPath(options.history, "index.sqlite"),
                                  SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE((*db)->Execute("DELETE FROM series").ok());
  }
  EXPECT_NE(report(), from_files);
}

TEST(RunReportTest, WritesTheFormatThatTheFileNameAsksFor) {
  const std::string dir = FreshFolder("formats");
  ReportCommand options;
  options.history = RecordSample(dir);
  const std::pair<const char*, const char*> kFiles[] = {
      {"r.html", "<!DOCTYPE html>"},
      {"r.md", "## Optrail report"},
      {"r.json", "\"schema\": 1"}};
  for (const auto& [name, expected] : kFiles) {
    options.out = JoinPath(dir, name);
    std::ostringstream log;
    const absl::StatusOr<int> code = RunReport(options, log);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(*code, 0);
    EXPECT_THAT(log.str(), HasSubstr("42 series, 1 tuning session,"));
    EXPECT_THAT(*ReadFile(options.out), HasSubstr(expected));
  }
  options.out = JoinPath(dir, "r.foo");
  std::ostringstream log;
  const absl::StatusOr<int> code = RunReport(options, log);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(code.status().message(), HasSubstr("r.foo: expected a name"));
  EXPECT_FALSE(ReadFile(options.out).ok());
}

TEST(RunReportTest, AnEmptyHistoryGivesAnHonestPage) {
  const std::string dir = FreshFolder("empty");
  ReportCommand options;
  options.history = JoinPath(dir, "nothing-here");
  options.out = JoinPath(dir, "report.html");
  std::ostringstream log;
  const absl::StatusOr<int> code = RunReport(options, log);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(log.str(), HasSubstr("optrail bench --op=softmax --record"));
}

TEST(RunReportTest, NamesDamagedFilesAndShowsTheOthers) {
  const std::string dir = FreshFolder("damaged");
  ReportCommand options;
  options.history = RecordSample(dir);
  const std::string bad =
      JoinPath(options.history, "runs/2026/20261120T090807Z-1a2b3c4d5e6f.pb");
  ASSERT_TRUE(CreateDirectories(DirectoryOf(bad)).ok());
  ASSERT_TRUE(WriteFileAtomically(bad, "not a run").ok());
  options.out = JoinPath(dir, "report.json");
  std::ostringstream log;
  const absl::StatusOr<int> code = RunReport(options, log);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(*ReadFile(options.out),
              HasSubstr("20261120T090807Z-1a2b3c4d5e6f.pb"));
  EXPECT_THAT(log.str(), HasSubstr("42 series"));
}

TEST(RunReportTest, RefusesUnknownFormatsAndUnwritableFiles) {
  ReportCommand options;
  options.history = FreshFolder("refuses");
  options.format = "docx";
  std::ostringstream log;
  EXPECT_THAT(std::string(RunReport(options, log).status().message()),
              HasSubstr("--report_format=docx: expected html"));
  options.format = "html";
  options.out = "/no/such/folder/report.html";
  EXPECT_FALSE(RunReport(options, log).ok());
}

}  // namespace
}  // namespace optrail::reports
