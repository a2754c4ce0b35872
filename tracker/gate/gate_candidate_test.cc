// Which runs the gate judges.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/gate/gate_report.h"
#include "tracker/gate/gate_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(GateTest, RunsWithLocalChangesDoNotStandForTheCommit) {
  RecordMain(6);
  proto::Run clean = MakeRun(7, "topic", {{"a", 150}, {"b", 200}});
  Record(clean);
  proto::Run mended = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  mended.mutable_commit()->set_dirty(true);
  mended.set_started_unix_ns(clean.started_unix_ns() + kMinute);
  mended.set_run_id(NewRecordId(mended.started_unix_ns()));
  Record(mended);
  GateOptions options;
  options.candidate = CommitId(7);
  GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  ASSERT_EQ(report.candidate_runs.size(), 1);
  EXPECT_EQ(report.candidate_runs[0].id(), clean.run_id());
  EXPECT_THAT(report.notes[0],
              AllOf(HasSubstr("changes that the commit lacks"),
                    HasSubstr("--candidate=" + mended.run_id())));
  options.candidate = mended.run_id();
  EXPECT_EQ(Judged("", options).exit_code, 0);
}

TEST_F(GateTest, CommitsThatAreNoAncestorsAreNoBaseline) {
  RecordMain(8);
  // Left main after its fifth commit; its own are numbered on from there.
  Record(MakeRun(9, "topic", {{"a", 100}, {"b", 200}}));
  GateOptions options;
  options.git.merge_base = [](absl::string_view a, absl::string_view) {
    return a <= CommitId(5) ? std::string(a) : CommitId(5);
  };
  const GateReport report = Judged("", options);
  ASSERT_EQ(report.baselines[0].runs.size(), 5);
  EXPECT_EQ(report.baselines[0].runs.back().header.commit().id(), CommitId(5));
}

// A history from elsewhere: each look-up would start git in vain.
TEST_F(GateTest, GitIsNotAskedAboutCommitsWhereItDoesNotKnowTheCandidate) {
  RecordMain(8);
  int asked = 0;
  GateOptions options;
  options.git.merge_base =
      [&](absl::string_view, absl::string_view) -> absl::StatusOr<std::string> {
    ++asked;
    return absl::NotFoundError("git knows no such commit");
  };
  EXPECT_EQ(Judged("", options).baselines[0].runs.size(), 7);
  // Once to find the suites and once to find the runs, not for each commit.
  EXPECT_LE(asked, 2);
}

// A regression is red until somebody answers for it, and the norm from then on.
TEST_F(GateTest, AnAcknowledgedRegressionIsTheNorm) {
  RecordMain(12);
  for (int i = 13; i <= 15; ++i) {
    Record(MakeRun(i, "main", {{"a", 112}, {"b", 200}}));
  }
  GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  proto::TriageRecord record;
  record.set_created_unix_ns(kStart + 14 * kMinute);
  record.set_record_id(NewRecordId(record.created_unix_ns()));
  record.set_kind(proto::ACKNOWLEDGE);
  record.set_pattern("a");
  record.mutable_commit()->set_id(CommitId(13));
  record.mutable_commit()->set_branch("main");
  record.mutable_commit()->set_first_parent_position(13);
  ASSERT_TRUE(history_.AppendTriage(record).ok());
  report = Judged();
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  Record(MakeRun(16, "main", {{"a", 125}, {"b", 200}}));
  EXPECT_EQ(Judged().exit_code, 1);
}

// The default's times are no baseline of the tuned config that is used again.
TEST_F(GateTest, RunsThatFellBackToTheDefaultAreNotPooledWithTunedOnes) {
  for (int i = 1; i <= 13; ++i) {
    const bool fell_back = i <= 6;
    proto::Run run = MakeRun(i, "main", {{"a", fell_back ? 150 : 100}});
    run.mutable_results(0)->mutable_key()->set_selection(proto::TUNED);
    if (fell_back) {
      run.mutable_results(0)->set_config_source(proto::FALLBACK_TO_DEFAULT);
    }
    Record(run);
  }
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  ASSERT_EQ(report.rows.size(), 1);
  EXPECT_EQ(report.rows[0].row.baseline.run_ids.size(), 6) << GateText(report);
}

TEST_F(GateTest, ADamagedNewestRecordIsNotPassedOver) {
  RecordMain(7);
  const int64_t now_ns = kStart + 60 * kMinute;
  Record(MakeRun(8, "topic", {{"a", 150}, {"b", 200}}));
  const std::string path = history_.FindRun("latest")->path;
  ASSERT_TRUE(WriteFileAtomically(path, "garbage", &fs_).ok());
  GateOptions options;
  options.now_unix_s = now_ns / 1000000000;
  const GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_THAT(report.summary,
              AllOf(HasSubstr("damaged"), HasSubstr("history repair")));
  // Asked for by name, what can be read is judged.
  options.candidate = CommitId(7);
  EXPECT_EQ(Judged("", options).exit_code, 0);
}

TEST_F(GateTest, ARunFromTheFutureIsNotTheLatestForGood) {
  RecordMain(6);
  proto::Run future = MakeRun(90, "main", {{"a", 500}, {"b", 200}});
  future.mutable_commit()->clear_first_parent_position();
  future.set_started_unix_ns(7258118400LL * 1000000000);  // 2200
  future.set_run_id(NewRecordId(future.started_unix_ns()));
  Record(future);
  Record(MakeRun(7, "topic", {{"a", 100}, {"b", 200}}));
  history_.set_now_unix_ns(kStart + 60 * kMinute);
  GateOptions options;
  options.now_unix_s = (kStart + 60 * kMinute) / 1000000000;
  const GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_EQ(report.candidate_runs[0].header.commit().id(), CommitId(7));
  EXPECT_THAT(report.notes[0], HasSubstr("in the future"));
}

// What is judged is what was asked for.

constexpr int64_t kDay = 24 * 60 * kMinute;

// `run` recorded `days` later than it would be.
proto::Run Moved(proto::Run run, int64_t days) {
  run.set_started_unix_ns(run.started_unix_ns() + days * kDay);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  return run;
}

proto::Run OfSuite(proto::Run run, const std::string& suite) {
  run.set_suite(suite);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  return run;
}

proto::Run On(proto::Run run, const std::string& hardware) {
  run.mutable_hardware()->set_id(hardware);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  return run;
}

TEST_F(GateTest, ACommitWithoutARunIsNotJudgedByAnOlderOne) {
  RecordMain(8);
  GateOptions options;
  options.candidate = "HEAD";
  options.git.resolve = [](absl::string_view) { return CommitId(9); };
  const GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_EQ(report.reason, GateReason::kNoCandidate);
  EXPECT_THAT(report.summary,
              AllOf(HasSubstr("commit 000000000000 (HEAD) has no run"),
                    HasSubstr("--candidate=latest")));
  EXPECT_TRUE(report.rows.empty());
  const nlohmann::json json = nlohmann::json::parse(GateJson(report));
  EXPECT_EQ(json["reason"], "no_candidate");
}

TEST_F(GateTest, AClockThatIsWrongDoesNotChooseTheCandidate) {
  for (const int64_t days : {-400, 400}) {
    history_ = *History::Open(absl::StrCat("/history_", days), &fs_);
    RecordMain(8);
    Record(Moved(MakeRun(9, "main", {{"a", 200}, {"b", 200}}), days));
    for (const char* candidate : {"latest", "HEAD"}) {
      GateOptions options;
      options.candidate = candidate;
      options.now_unix_s = (kStart + 60 * kMinute) / 1000000000;
      options.git.resolve = [](absl::string_view) { return CommitId(9); };
      const GateReport report = Judged("", options);
      EXPECT_EQ(report.exit_code, 1) << days << GateText(report);
      EXPECT_EQ(RowOf(report, "a").row.verdict, Verdict::kSlower);
    }
  }
}

TEST_F(GateTest, EverySuiteOfTheCommitIsJudged) {
  for (int i = 1; i <= 7; ++i) {
    Record(OfSuite(MakeRun(i, "main", {{"a", i == 7 ? 200. : 100.}}), "full"));
    Record(Moved(MakeRun(i, "main", {{"a", 100}}), 1));
  }
  GateOptions options;
  options.candidate = CommitId(7);
  GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_EQ(report.CountRed(), 1);
  EXPECT_EQ(report.rows[0].suite, "full");
  EXPECT_EQ(report.rows.size(), 2);
  EXPECT_THAT(GateText(report), AllOf(HasSubstr("suite full on amd-epyc"),
                                      HasSubstr("suite smoke on amd-epyc")));
  options.suite = "smoke";
  EXPECT_EQ(Judged("", options).exit_code, 0);
}

TEST_F(GateTest, ASuiteThatTheCommitLacksIsMissing) {
  for (int i = 1; i <= 7; ++i) {
    if (i < 7) Record(OfSuite(MakeRun(i, "main", {{"a", 100}}), "full"));
    Record(MakeRun(i, "main", {{"a", 100}}));
  }
  Record(OfSuite(MakeRun(1, "main", {{"a", 100}}), "tried once"));
  GateOptions options;
  options.candidate = CommitId(7);
  const GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 3) << GateText(report);
  EXPECT_EQ(report.reason, GateReason::kMissing);
  EXPECT_THAT(report.summary, AllOf(HasSubstr("has no run of suite 'full'"),
                                    Not(HasSubstr("tried once"))));
  EXPECT_EQ(Judged("on_missing: WARN", options).exit_code, 0);
  options.suite = "full";
  EXPECT_THAT(Judged("", options).summary,
              HasSubstr("has no run of suite 'full'"));
  options.suite = "smoke";
  EXPECT_EQ(Judged("", options).exit_code, 0);
}

TEST_F(GateTest, HardwareIsWhatWasAskedFor) {
  for (int i = 1; i <= 7; ++i) {
    Record(On(MakeRun(i, "main", {{"a", i == 7 ? 200. : 100.}}), "other-4c"));
    Record(MakeRun(i, "main", {{"a", 100}}));
  }
  GateOptions options;
  options.candidate = CommitId(7);
  GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 1) << "each machine is judged";
  EXPECT_EQ(report.rows[0].hardware_id, "other-4c");
  options.hardware_id = kHardware;
  report = Judged("", options);
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_THAT(GateText(report), HasSubstr(kHardware));
  options.hardware_id = "other-4c";
  EXPECT_EQ(Judged("", options).exit_code, 1);
  options.hardware_id = "elsewhere-1c";
  report = Judged("", options);
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_EQ(report.reason, GateReason::kMissing);
  EXPECT_THAT(report.summary,
              AllOf(HasSubstr("no run on hardware elsewhere-1c"),
                    HasSubstr(kHardware), HasSubstr("other-4c")));
}

TEST_F(GateTest, ADamagedRunOfTheCandidateIsNoRun) {
  RecordMain(8);
  const std::string path = history_.Resolve(CommitId(8))->front().path;
  ASSERT_TRUE(WriteFileAtomically(path, "garbage", &fs_).ok());
  GateOptions options;
  options.candidate = CommitId(8);
  const GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_THAT(report.summary,
              AllOf(HasSubstr("has no run"), HasSubstr("1 record is damaged")));
}

TEST_F(GateTest, AMisspeltBaselineIsWrongUseAndOneWithoutRunsIsNot) {
  RecordMain(8);
  GateOptions options;
  for (const char* name : {"run:nowhere", "commit:nowhere"}) {
    options.baseline = *ParseBaseline(name);
    const absl::Status status = Error(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
  for (const std::string& name :
       {std::string("run:latest~50"), "commit:" + std::string(40, 'f')}) {
    options.baseline = *ParseBaseline(name);
    EXPECT_EQ(Judged("", options).exit_code, 3) << name;
  }
}

TEST_F(GateTest, LocalChangesOfTheCandidateAreNamed) {
  RecordMain(6);
  proto::Run dirty = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  dirty.mutable_commit()->set_dirty(true);
  Record(dirty);
  EXPECT_THAT(GateText(Judged()),
              HasSubstr("was measured with changes that commit"));
}

TEST_F(GateTest, ATunedConfigOfAnotherKernelIsNamed) {
  RecordMain(6);
  proto::Run run = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  for (proto::BenchmarkResult& result : *run.mutable_results()) {
    result.add_labels("unverified config: tuned with kernel k1");
  }
  Record(run);
  EXPECT_THAT(GateText(Judged()),
              HasSubstr("a and 1 more benchmarks: unverified config: tuned "
                        "with kernel k1"));
}

// Two programs have a benchmark of one name, of which only one is judged.
TEST_F(GateTest, NamesOfSeveralSuitesAreNotedWhereTheReportHasThem) {
  for (int i = 1; i <= 6; ++i) {
    Record(MakeRun(i, "main", {{"a", 100}, {"b", 200}}));
    proto::Run other = MakeRun(i, "main", {{"b", 400}, {"c", 100}});
    other.set_suite("other");
    Record(other);
    proto::Run third = MakeRun(i, "main", {{"c", 300}});
    third.set_suite("third one");
    Record(third);
  }
  GateOptions options;
  options.suite = "smoke";
  options.history_flag = " --history=x";
  const std::string text = absl::StrJoin(
      Judged("baseline { window { branch: \"main\" } }", options).notes, "\n");
  EXPECT_THAT(text, AllOf(HasSubstr("times differ: b on"),
                          HasSubstr("(suites other, smoke)"),
                          HasSubstr("--suite=other --history=x")));
  EXPECT_THAT(text, Not(HasSubstr("third one")));
}

}  // namespace
}  // namespace optrail::tracker
