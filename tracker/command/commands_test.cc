// The tracker's commands, one after another on one history.

#include <sys/stat.h>

#include <cstdlib>
#include <sstream>

#include "base/file/file.h"
#include "base/testing/unprivileged.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/command/commands_test_fixture.h"
#include "tracker/command/log_command.h"
#include "tracker/command/show_command.h"
#include "tracker/compare/compare_command.h"
#include "tracker/gate/gate_command.h"
#include "tracker/history/history.h"
#include "tracker/history/index/index_commands.h"
#include "tracker/import/import_command.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandsTest, ImportedRunsAreLoggedShownAndCompared) {
  Import(Hash('a'), 100);
  Import(Hash('b'), 130);
  LogCommand log;
  log.common = common_;
  const auto [log_code, logged] = Call(RunLog, log);
  ASSERT_TRUE(log_code.ok()) << log_code.status();
  EXPECT_THAT(logged, AllOf(HasSubstr("aaaaaaaaaaaa"),
                            HasSubstr("bbbbbbbbbbbb"), HasSubstr("test-2c")));
  EXPECT_LT(logged.find("bbbbbbbbbbbb"), logged.find("aaaaaaaaaaaa"))
      << "the newest is not first";

  log.what = "series";
  log.filter = "Sort";
  EXPECT_THAT(Call(RunLog, log).second,
              AllOf(HasSubstr("BM_Sort|time|ns|test-2c|main"),
                    Not(HasSubstr("BM_Copy"))));

  ShowCommand show;
  show.common = common_;
  show.what = "aaaa";
  EXPECT_THAT(Call(RunShow, show).second, HasSubstr("100 ns"));
  show.what = "BM_Sort|time|ns|test-2c|main";
  EXPECT_THAT(Call(RunShow, show).second,
              AllOf(HasSubstr("100 ns"), HasSubstr("130 ns")));

  CompareCommand compare;
  compare.common = common_;
  compare.a = "aaaa";
  compare.b = "bbbb";
  const auto [code, compared] = Call(RunCompare, compare);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_THAT(compared, AllOf(HasSubstr("1.300"), HasSubstr("slower"),
                              HasSubstr("takes 30% more time, p < 0.001")));

  // Two names of one commit.
  compare.a = "bbbbb";
  EXPECT_THAT(std::string(Call(RunCompare, compare).first.status().message()),
              HasSubstr("name the same runs"));
}

TEST_F(CommandsTest, HowRunsWereMeasuredIsShownAndDifferencesAreNoted) {
  const History history = *History::Open(common_.history);
  std::vector<std::string> ids;
  for (const int64_t min_sample_ns : {100'000, 500'000}) {
    proto::Run run;
    run.set_started_unix_ns(kNow + min_sample_ns);
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    run.mutable_hardware()->set_id("test-2c");
    run.mutable_commit()->set_branch("main");
    run.mutable_settings()->set_min_sample_ns(min_sample_ns);
    run.mutable_settings()->set_max_config_bytes(int64_t{1} << 30);
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name("BM_Sort");
    result->set_outcome(proto::OK);
    for (int i = 0; i < 5; ++i) {
      result->add_measurements()->set_median_ns(100 + .1 * i);
    }
    ASSERT_TRUE(history.AppendRun(run).ok());
    ids.push_back(run.run_id());
  }
  ShowCommand show;
  show.common = common_;
  show.what = ids[0];
  EXPECT_THAT(
      Call(RunShow, show).second,
      HasSubstr("measured with min sample 100 us, max config 1.00 GiB\n"));
  show.what = "BM_Sort|time|ns|test-2c|main";
  EXPECT_THAT(
      Call(RunShow, show).second,
      HasSubstr("new epoch: measured differently: min sample 100 us -> 500"));

  CompareCommand compare;
  compare.common = common_;
  compare.a = ids[0];
  compare.b = ids[1];
  const std::string note = "measured differently: min sample 100 us -> 500 us";
  EXPECT_THAT(Call(RunCompare, compare).second, HasSubstr("note: " + note));
  compare.common.format = OutputFormat::kMarkdown;
  EXPECT_THAT(Call(RunCompare, compare).second, HasSubstr(note));
  compare.common.format = OutputFormat::kJson;
  EXPECT_EQ(nlohmann::json::parse(
                Call(RunCompare, compare).second)[0]["measured_differently"],
            "min sample 100 us -> 500 us");
}

TEST_F(CommandsTest, ARunThatDoesNotTellHowItWasMeasuredIsShownWithoutThat) {
  Import(Hash('a'), 100);
  ShowCommand show;
  show.common = common_;
  show.what = "aaaa";
  EXPECT_THAT(Call(RunShow, show).second, Not(HasSubstr("measured")));
}

TEST_F(CommandsTest, WhatDoesNotExistIsNamed) {
  Import(Hash('a'), 100);
  ShowCommand show;
  show.common = common_;
  show.what = "ffff";
  EXPECT_THAT(std::string(Call(RunShow, show).first.status().message()),
              HasSubstr("ffff"));
  show.what = "latest";
  show.filter = "a(";
  EXPECT_THAT(std::string(Call(RunShow, show).first.status().message()),
              AllOf(HasSubstr("a("), HasSubstr("regular expression")));
  LogCommand log;
  log.common = common_;
  log.what = "ruins";
  EXPECT_THAT(std::string(Call(RunLog, log).first.status().message()),
              HasSubstr("expected runs, sessions or series"));
  GateCommand gate;
  gate.common = common_;
  gate.baseline = "branch:main";
  EXPECT_THAT(std::string(Call(RunGate, gate).first.status().message()),
              HasSubstr("branch:main"));
}

TEST_F(CommandsTest, WithoutARunTheNewestSessionIsNamed) {
  ShowCommand show;
  show.common = common_;
  const auto answer = [&] {
    return std::string(Call(RunShow, show).first.status().message());
  };
  EXPECT_THAT(answer(), AllOf(HasSubstr("there are no runs in"),
                              HasSubstr("next: optrail bench"),
                              testing::Not(HasSubstr("latest"))));
  proto::Session session;
  session.set_started_unix_ns(kNow);
  session.set_session_id(NewRecordId(kNow));
  ASSERT_TRUE(History::Open(common_.history)->AppendSession(session).ok());
  EXPECT_THAT(answer(),
              AllOf(HasSubstr("and 1 tuning session; next: optrail show " +
                              session.session_id())));
  show.what = "latest~1";
  EXPECT_THAT(answer(),
              HasSubstr("next: optrail show " + session.session_id()));
}

TEST_F(CommandsTest, TrialsOfASessionAreThoseThatItMeasured) {
  proto::Session session;
  session.set_started_unix_ns(kNow);
  session.set_session_id(NewRecordId(kNow));
  for (int i = 0; i < 5; ++i) session.add_trials()->set_outcome(proto::OK);
  session.set_warm_start_trial_count(3);
  session.add_source_session_ids("20261120T000000Z-0123456789ab");
  for (const char* name : {"gpu7:7070", "gpu8:7070"}) {
    proto::MeasuringNode& node = *session.add_nodes();
    node.set_name(name);
    node.set_verdict(proto::NODE_EQUAL);
    node.set_searches(true);
  }
  session.mutable_nodes(1)->set_lost_because("the cable is out");
  const auto history = History::Open(common_.history);
  ASSERT_TRUE(history.ok()) << history.status();
  ASSERT_TRUE(history->AppendSession(session).ok());

  LogCommand log;
  log.common = common_;
  log.common.format = OutputFormat::kJson;
  log.what = "sessions";
  const auto rows = nlohmann::json::parse(Call(RunLog, log).second);
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0]["trials"], 2);

  ShowCommand show;
  show.common = common_;
  show.what = session.session_id();
  EXPECT_THAT(
      Call(RunShow, show).second,
      AllOf(HasSubstr("\n2 trials beside 3 of earlier sessions\n"),
            HasSubstr("the first 3 trials below are of earlier sessions\n"
                      "could learn from 20261120T000000Z-0123456789ab\n"),
            HasSubstr("node gpu8:7070: the reference; searches; lost during "
                      "the search: the cable is out\n")));
  // Rows of trials have no place for that.
  show.common.format = OutputFormat::kJson;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(nlohmann::json::parse(Call(RunShow, show).second).size(), 5);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("gpu8:7070"), Not(HasSubstr("gpu7:7070"))));
}

TEST_F(CommandsTest, WithoutGitOnlyAFullHashIsACommit) {
  ImportCommand import;
  import.common = common_;
  import.files = {WriteResults("r.json", 100)};
  import.commit = "no-such-branch";
  EXPECT_THAT(std::string(Call(RunImport, import).first.status().message()),
              AllOf(HasSubstr("no-such-branch"), HasSubstr("full hash")));
  // Without a commit a run is recorded all the same.
  import.commit = "";
  EXPECT_TRUE(Call(RunImport, import).first.ok());
  GateCommand gate;
  gate.common = common_;
  gate.common.now_unix_ns += 30 * 86'400 * 1'000'000'000LL;
  gate.baseline = "tag:v1";
  const absl::Status status = Call(RunGate, gate).first.status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("git"));
}

TEST_F(CommandsTest, NothingIsRecordedUnlessEveryFileIsGood) {
  ImportCommand import;
  import.common = common_;
  import.files = {WriteResults("good.json", 100), Write("bad.json", "{")};
  EXPECT_THAT(std::string(Call(RunImport, import).first.status().message()),
              HasSubstr("bad.json"));
  import.files = {WriteResults("good.json", 100)};
  import.dry_run = true;
  EXPECT_TRUE(Call(RunImport, import).first.ok());
  EXPECT_TRUE(History::Open(common_.history)->ListRuns()->runs.empty());
}

TEST_F(CommandsTest, AReadOnlyHistoryIsAnError) {
  const Unprivileged unprivileged;
  Import(Hash('a'), 100);
  chmod(JoinPath(common_.history, "runs").c_str(), 0500);
  chmod(JoinPath(common_.history, "runs/2026").c_str(), 0500);
  ImportCommand import;
  import.common = common_;
  import.files = {WriteResults("r.json", 101)};
  import.commit = Hash('b');
  EXPECT_EQ(Call(RunImport, import).first.status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(CommandsTest, MergeCopiesWhatIsNotDamaged) {
  Import(Hash('a'), 100);
  Import(Hash('b'), 100);
  const RunList list = *History::Open(common_.history)->ListRuns();
  ASSERT_TRUE(WriteFileAtomically(list.runs[0].path, "garbage").ok());
  HistoryMergeCommand merge;
  merge.common = common_;
  merge.common.history = JoinPath(dir_, "other");
  merge.from = common_.history;
  EXPECT_EQ(*Call(RunHistoryMerge, merge).first, 1) << "one was damaged";
  EXPECT_EQ(History::Open(merge.common.history)->ListRuns()->runs.size(), 1);
}

TEST_F(CommandsTest, WrongPatternsAndNumbersAreRefusedByTheNameOfTheirFlag) {
  std::ostringstream out;
  const auto message = [](const absl::StatusOr<int>& code) {
    return std::string(code.status().message());
  };
  for (const char* what : {"runs", "sessions", "series"}) {
    LogCommand log;
    log.common = common_;
    log.what = what;
    log.filter = "(";
    EXPECT_THAT(message(RunLog(log, out)), HasSubstr("--filter='('")) << what;
    log.filter = "";
    log.limit = -1;
    EXPECT_THAT(message(RunLog(log, out)),
                HasSubstr("--limit=-1: expected at least 0"))
        << what;
  }
  LogCommand log;
  log.common = common_;
  log.filter = "BM_Sort";
  EXPECT_THAT(message(RunLog(log, out)), HasSubstr("log series"));
  CompareCommand compare;
  compare.common = common_;
  compare.metric = "(";
  EXPECT_THAT(message(RunCompare(compare, out)), HasSubstr("--metric='('"));
  compare.metric = "time";
  compare.false_alarm_rate = 2;
  EXPECT_THAT(message(RunCompare(compare, out)),
              HasSubstr("--false_alarm_rate=2: expected"));
  GateCommand gate;
  gate.common = common_;
  gate.looks = 0;
  EXPECT_THAT(message(RunGate(gate, out)), HasSubstr("--looks=0: expected"));
  EXPECT_EQ(out.str(), "");
}

TEST_F(CommandsTest, WhatPeopleCopyIsWholeInANarrowTerminal) {
  setenv("COLUMNS", "60", 1);
  ImportCommand import;
  import.common = common_;
  import.files = {WriteResults("a.json", 100)};
  import.hardware_id = "a-machine-with-a-name-of-some-length-2c";
  std::ostringstream out;
  ASSERT_TRUE(RunImport(import, out).ok());
  const History history = *History::Open(common_.history);
  const std::string id = history.ListRuns()->runs[0].id();
  LogCommand log;
  log.common = common_;
  out.str("");
  ASSERT_TRUE(RunLog(log, out).ok());
  EXPECT_THAT(out.str(), AllOf(HasSubstr(id), HasSubstr(import.hardware_id)));
  log.what = "series";
  out.str("");
  ASSERT_TRUE(RunLog(log, out).ok());
  EXPECT_THAT(out.str(), HasSubstr("BM_Sort|time|ns|" + import.hardware_id));
  unsetenv("COLUMNS");
}

TEST_F(CommandsTest, AMistypedHistoryIsNoEmptyHistory) {
  common_.history = JoinPath(dir_, "histroy");
  common_.history_is_named = true;
  std::ostringstream out;
  LogCommand log;
  log.common = common_;
  ShowCommand show;
  show.common = common_;
  CompareCommand compare;
  compare.common = common_;
  GateCommand gate;
  gate.common = common_;
  for (const absl::StatusOr<int>& code :
       {RunLog(log, out), RunShow(show, out), RunCompare(compare, out),
        RunGate(gate, out)}) {
    EXPECT_THAT(std::string(code.status().message()),
                AllOf(HasSubstr(common_.history), HasSubstr("next: ")));
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace optrail::tracker
