#include "reports/sample/demo_command.h"

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "base/file/file.h"
#include "gtest/gtest.h"
#include "reports/build_report_data.h"
#include "reports/sample/sample_history.h"
#include "tracker/compare/verdict.h"
#include "tracker/gate/gate.h"
#include "tracker/history/history.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"
#include "tracker/triage/triage.h"

namespace optrail::reports {
namespace {

TEST(RunDemoTest, WritesAHistoryAndAPageThatSayThatTheyAreMadeUp) {
  DemoCommand options;
  options.out = JoinPath(::testing::TempDir(), "demo");
  // An interrupted demo leaves an empty folder.
  ASSERT_TRUE(CreateDirectories(options.out).ok());
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
  EXPECT_EQ(verified->triage_records, 6);
  const auto latest = history->FindRun("latest");
  ASSERT_TRUE(latest.ok()) << latest.status();

  const auto page = ReadFile(JoinPath(options.out, "report.html"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(absl::StrContains(*page, "\"synthetic\":true"));
}

TEST(RunDemoTest, TakesTheFolderOfAnInterruptedDemoAndNoOther) {
  DemoCommand options;
  options.out = JoinPath(::testing::TempDir(), "interrupted");
  std::ostringstream out, log;
  ASSERT_TRUE(RunDemo(options, out, log).ok());
  const auto runs = [&] {
    return tracker::History::Open(JoinPath(options.out, "history"))
        ->Verify()
        ->runs;
  };
  const int64_t all = runs();
  EXPECT_EQ(RunDemo(options, out, log).status().code(),
            absl::StatusCode::kAlreadyExists)
      << "a whole demo is not overwritten";
  // The folder looks like this after some of the records.
  ASSERT_TRUE(RemoveFile(JoinPath(options.out, "report.html")).ok());
  ASSERT_TRUE(
      WriteFileAtomically(JoinPath(options.out, ".unfinished_demo"), "").ok());
  ASSERT_TRUE(RunDemo(options, out, log).ok());
  EXPECT_EQ(runs(), all);
  EXPECT_EQ(ListDirectory(options.out)->size(), 2);
  // The file of somebody else is kept.
  ASSERT_TRUE(
      WriteFileAtomically(JoinPath(options.out, ".unfinished_demo"), "").ok());
  const std::string notes = JoinPath(options.out, "notes.txt");
  ASSERT_TRUE(WriteFileAtomically(notes, "mine").ok());
  EXPECT_FALSE(RunDemo(options, out, log).ok());
  EXPECT_TRUE(FileExists(notes));
}

// The history of `optrail demo`, of which it writes no more than this.
class DemoHistoryTest : public ::testing::Test {
 protected:
  DemoHistoryTest() {
    SampleOptions options;
    options.states = true;
    sample_ = MakeSampleHistory(options);
    now_ns_ = options.end_unix_ns + int64_t{3600} * 1000000000 * 2;
  }
  SampleHistory sample_;
  int64_t now_ns_ = 0;
};

TEST_F(DemoHistoryTest, ASeriesHasEachVerdict) {
  BuildOptions options;
  options.triage = sample_.triage;
  options.now_unix_ns = now_ns_;
  std::set<std::string> seen;
  const ReportData data =
      BuildReportData(sample_.runs, sample_.sessions, options);
  for (const SeriesView& series : data.series) {
    seen.insert(std::string(tracker::VerdictName(series.verdict)));
  }
  for (const tracker::VerdictInfo& info : tracker::Verdicts()) {
    if (!info.of_series) continue;
    EXPECT_EQ(seen.count(std::string(info.name)), 1) << info.name;
  }
}

TEST_F(DemoHistoryTest, TheJudgeHasEachKindOfChangeAndEachAnswer) {
  const std::vector<tracker::Series> series =
      tracker::BuildSeries(sample_.runs);
  std::set<std::string> states;
  for (const tracker::Judgement& judgement : tracker::JudgeAll(
           series, tracker::TriageBook(sample_.triage, now_ns_))) {
    for (const tracker::Change& change : judgement.changes) {
      states.insert(tracker::ChangeText(change));
    }
  }
  for (const char* state : {"new", "acknowledged", "expected", "muted",
                            "undone", "provisional, new", "return", "new epoch",
                            "the machine", "creep, new", "renamed, new"}) {
    EXPECT_EQ(states.count(state), 1) << state;
  }
}

TEST_F(DemoHistoryTest, TheGateGivesEachVerdictOfTwoSides) {
  const std::string folder = JoinPath(::testing::TempDir(), "gated");
  const auto history = tracker::History::Open(folder);
  ASSERT_TRUE(history.ok()) << history.status();
  for (const proto::Run& run : sample_.runs) {
    ASSERT_TRUE(history->AppendRun(run).ok());
  }
  tracker::GateOptions options;
  options.hardware_id = sample_.runs.back().hardware().id();
  options.now_unix_s = now_ns_ / 1000000000;
  const auto policy = tracker::Policy::Parse("", "policy");
  ASSERT_TRUE(policy.ok()) << policy.status();
  const auto report = tracker::Gate(*history, *policy, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->exit_code, 1);
  std::set<std::string> seen;
  for (const tracker::GateRow& row : report->rows) {
    seen.insert(std::string(tracker::VerdictName(row.row.verdict)));
  }
  for (const tracker::VerdictInfo& info : tracker::Verdicts()) {
    // Those of a series alone, and of one without any past.
    const Verdict of_series[] = {
        Verdict::kMaybeSlower,  Verdict::kMaybeFaster, Verdict::kFailed,
        Verdict::kNoBaseline,   Verdict::kMuted,       Verdict::kExpected,
        Verdict::kAcknowledged,
    };
    if (absl::c_linear_search(of_series, info.verdict)) continue;
    EXPECT_EQ(seen.count(std::string(info.name)), 1) << info.name;
  }
}

TEST(RunDemoTest, NeverWritesIntoAFolderThatHoldsSomething) {
  DemoCommand options;
  options.out = JoinPath(::testing::TempDir(), "taken");
  ASSERT_TRUE(CreateDirectories(options.out).ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(options.out, "mine"), "text").ok());
  std::ostringstream out, log;
  const absl::StatusOr<int> code = RunDemo(options, out, log);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(absl::StrContains(code.status().message(), "does not exist"));
}

}  // namespace
}  // namespace optrail::reports
