#include "tracker/triage/triage_command.h"

#include <unistd.h>

#include <cmath>
#include <functional>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/sqlite.h"
#include "tracker/judge/changes_command.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSecondNs = 1'000'000'000;
const int64_t kStartNs = absl::ToUnixNanos(
    absl::FromCivil(absl::CivilDay(2026, 1, 1), absl::UTCTimeZone()));

std::string CommitId(int i) { return absl::StrFormat("%040x", i + 1); }

class TriageCommandTest : public ::testing::Test {
 protected:
  TriageCommandTest() { Record(/*new_settings_at=*/40); }

  // Into a history of its own.
  void Record(int new_settings_at, int commits = 40) {
    static int count = 0;
    common_.history =
        absl::StrCat(::testing::TempDir(), "/triage_", getpid(), "_", count++);
    common_.workspace = ::testing::TempDir();
    common_.format = OutputFormat::kJson;
    common_.now_unix_ns = kStartNs + 100 * kSecondNs;
    // Slower by 20% from commit 20 on unless level_at_ says otherwise, in a
    // benchmark with a hostile name; and one that does not change.
    Rng rng(1);
    const History history = *History::Open(common_.history);
    for (int i = 0; i < commits; ++i) {
      proto::Run run;
      run.set_started_unix_ns(kStartNs + i * kSecondNs);
      run.set_run_id(NewRecordId(run.started_unix_ns()));
      run.mutable_commit()->set_id(CommitId(i));
      run.mutable_commit()->set_branch("main");
      run.mutable_commit()->set_first_parent_position(i);
      run.mutable_hardware()->set_id("machine");
      run.mutable_settings()->set_min_sample_ns(i >= new_settings_at ? 500'000
                                                                     : 100'000);
      for (const bool slows : {true, false}) {
        proto::BenchmarkResult* result = run.add_results();
        result->mutable_key()->set_operator_name(
            slows ? "BM_\x1b[31m|\"<b>'; rm" : "BM_Quiet");
        result->set_outcome(proto::OK);
        proto::Measurement* process = result->add_measurements();
        process->set_calls_per_sample(1);
        process->add_sample_ns(static_cast<int64_t>(
            1e6 * (slows ? level_at_(i) : 1) * std::exp(.01 * rng.Gaussian())));
      }
      EXPECT_TRUE(history.AppendRun(run).ok());
    }
  }

  int Changes(nlohmann::json* json = nullptr) {
    ChangesCommand options;
    options.common = common_;
    std::ostringstream out;
    const absl::StatusOr<int> code = RunChanges(options, out);
    EXPECT_TRUE(code.ok()) << code.status();
    if (json != nullptr) *json = nlohmann::json::parse(out.str());
    return code.value_or(-1);
  }

  absl::StatusOr<std::string> Add(proto::TriageKind kind,
                                  const std::string& scope, int commit,
                                  const std::string& until = "",
                                  const std::string& effect = "",
                                  const std::string& text = "because") {
    TriageAddCommand options;
    options.common = common_;
    options.kind = kind;
    options.scope = scope;
    options.commit = CommitId(commit);
    options.until = until;
    options.effect = effect;
    options.text = text;
    std::ostringstream out;
    const absl::StatusOr<int> code = RunTriageAdd(options, out);
    if (!code.ok()) return code.status();
    return nlohmann::json::parse(out.str())[0]["id"].get<std::string>();
  }

  CommonOptions common_;
  std::function<double(int)> level_at_ = [](int i) { return i < 20 ? 1 : 1.2; };
};

TEST_F(TriageCommandTest, ANewChangeForTheWorseIsExitCode1) {
  nlohmann::json json;
  EXPECT_EQ(Changes(&json), 1);
  ASSERT_EQ(json.size(), 1);
  EXPECT_EQ(json[0]["state"], "new");
  EXPECT_NEAR(json[0]["relative_change"].get<double>(), .2, .02);
  EXPECT_EQ(json[0]["first_commit_after"], CommitId(20).substr(0, 12));
  EXPECT_EQ(json[0]["last_commit_before"], CommitId(19).substr(0, 12));
}

TEST_F(TriageCommandTest, ChangesAreTheSameFromTheIndexAndFromTheFiles) {
  nlohmann::json from_files, from_index;
  EXPECT_EQ(Changes(&from_files), 1);
  { ASSERT_TRUE(HistoryIndex::Open(*History::Open(common_.history)).ok()); }
  EXPECT_EQ(Changes(&from_index), 1);
  EXPECT_EQ(from_index, from_files);
  // It is the index that is asked: where it says that nothing was run, there is
  // nothing to tell.
  {
    const auto db =
        *OpenSqlite(common_.history + "/index.sqlite", SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(db->Execute("DELETE FROM series").ok());
  }
  EXPECT_EQ(Changes(), 3);
}

TEST_F(TriageCommandTest, WhatIsMeasuredDifferentlyIsANewEpochAndNoAlert) {
  Record(/*new_settings_at=*/20);
  nlohmann::json changes;
  EXPECT_EQ(Changes(&changes), 0);
  ASSERT_EQ(changes.size(), 1);
  EXPECT_EQ(changes[0]["state"], "new epoch");
  EXPECT_NEAR(changes[0]["relative_change"].get<double>(), .2, .02);
  EXPECT_THAT(std::string(changes[0]["why"]),
              HasSubstr("measured differently: min sample 100 us -> 500 us"));
}

TEST_F(TriageCommandTest, AnAcknowledgedSeriesIsQuietUntilThatIsUndone) {
  nlohmann::json json;
  Changes(&json);
  // The series as it is printed; the commit a point beside.
  const std::string series = json[0]["series"];
  const auto id = Add(proto::ACKNOWLEDGE, series, 21);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(Changes(&json), 0);
  EXPECT_EQ(json[0]["state"], "acknowledged");
  EXPECT_THAT(json[0]["why"].get<std::string>(), HasSubstr("because"));

  TriageUndoCommand undo;
  undo.common = common_;
  undo.common.now_unix_ns += kSecondNs;
  undo.id = *id;
  std::ostringstream out;
  ASSERT_TRUE(RunTriageUndo(undo, out).ok());
  EXPECT_EQ(Changes(), 1);
  EXPECT_THAT(std::string(RunTriageUndo(undo, out).status().message()),
              HasSubstr("undone already"));

  TriageListCommand list;
  list.common = common_;
  out.str("");
  ASSERT_TRUE(RunTriageList(list, out).ok());
  json = nlohmann::json::parse(out.str());
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0]["state"], "undone");
  EXPECT_EQ(json[1]["kind"], "undo");
}

TEST_F(TriageCommandTest, AnAnswerToTenPercentDoesNotCoverThirtyAtTheNext) {
  // +10% at commit 20 is known, whether the detector has told it or not, and
  // answered; +30% comes with commit 21.
  level_at_ = [](int i) { return i < 20 ? 1 : i < 21 ? 1.1 : 1.1 * 1.3; };
  for (const int known : {21, 40}) {
    auto later = level_at_;
    if (known == 40) level_at_ = [](int i) { return i < 20 ? 1 : 1.1; };
    Record(/*new_settings_at=*/100, known);
    const auto id = Add(proto::ACKNOWLEDGE, "BM_.*", 20);
    ASSERT_TRUE(id.ok()) << id.status();
    const LoadedTriage said = *History::Open(common_.history)->LoadTriage();
    EXPECT_EQ(Changes(), 0) << "answered";
    level_at_ = later;
    Record(/*new_settings_at=*/100, 40);
    ASSERT_TRUE(
        History::Open(common_.history)->AppendTriage(said.records[0]).ok());
    nlohmann::json json;
    EXPECT_EQ(Changes(&json), 1) << "answered after commit " << known;
    EXPECT_EQ(json[0]["state"], "new");
  }
}

// The slow-down of one commit is no level, so the gain behind it is what
// `changes` lists, with the slow-down among its suspects.
TEST_F(TriageCommandTest, AnAckOfASlowDownDoesNotCoverTheGainBehindIt) {
  level_at_ = [](int i) { return i < 20 ? 1 : i < 21 ? 1.15 : .8; };
  Record(/*new_settings_at=*/100, 40);
  nlohmann::json json;
  EXPECT_EQ(Changes(&json), 0);
  ASSERT_EQ(json.size(), 1);
  ASSERT_LT(json[0]["worse_by"].get<double>(), -.1);
  ASSERT_TRUE(Add(proto::ACKNOWLEDGE, "BM_.*", 20).ok());
  Changes(&json);
  EXPECT_EQ(json[0]["state"], "new");
  const LoadedTriage said = *History::Open(common_.history)->LoadTriage();
  int looked_at = 0;
  for (const proto::AnsweredChange& answered : said.records[0].answered()) {
    if (answered.series().find("Quiet") != std::string::npos) continue;
    ++looked_at;
    EXPECT_GT(answered.effect_low(), .05);
  }
  EXPECT_EQ(looked_at, 1);
  // One of the commit of the gain covers it.
  ASSERT_TRUE(Add(proto::ACKNOWLEDGE, "BM_.*", 21).ok());
  Changes(&json);
  EXPECT_EQ(json[0]["state"], "acknowledged");
}

TEST_F(TriageCommandTest, AnAnswerNamesTheSuspectsAndTheSize) {
  ASSERT_TRUE(Add(proto::ACKNOWLEDGE, "BM_.*", 21).ok());
  const LoadedTriage said = *History::Open(common_.history)->LoadTriage();
  ASSERT_EQ(said.records[0].answered_size(), 2);
  for (const proto::AnsweredChange& answered : said.records[0].answered()) {
    const bool slows = answered.series().find("Quiet") == std::string::npos;
    EXPECT_EQ(answered.last_before().id(), CommitId(slows ? 19 : 20));
    EXPECT_EQ(answered.last().id(), CommitId(slows ? 20 : 21));
    EXPECT_NEAR(answered.effect_low(), slows ? .2 : 0, .03);
    EXPECT_NEAR(answered.effect_high(), slows ? .2 : 0, .03);
  }
  // --effect names the size.
  ASSERT_TRUE(Add(proto::EXPECT, "BM_.*", 20, "", "+50%").ok());
  int expectations = 0;
  const LoadedTriage both = *History::Open(common_.history)->LoadTriage();
  for (const proto::TriageRecord& record : both.records) {
    if (record.kind() != proto::EXPECT) continue;
    ++expectations;
    EXPECT_FALSE(record.answered(0).has_effect_high());
  }
  EXPECT_EQ(expectations, 1);
}

TEST_F(TriageCommandTest, AnExpectationCoversItsEffectOnly) {
  ASSERT_TRUE(Add(proto::EXPECT, "BM_.*", 20, "", "+5%").ok());
  EXPECT_EQ(Changes(), 1);
  ASSERT_TRUE(Add(proto::EXPECT, "BM_.*", 20, "", "+25%").ok());
  EXPECT_EQ(Changes(), 0);
}

TEST_F(TriageCommandTest, AMuteLastsThroughTheDayItNames) {
  constexpr int64_t kDayNs = 24 * 3600 * kSecondNs;
  ASSERT_TRUE(Add(proto::MUTE, "BM_.*", 0, "2026-01-02").ok());
  const int64_t end_ns = *ParseEndOfDay("2026-01-02");
  common_.now_unix_ns = end_ns - kDayNs;
  EXPECT_EQ(Changes(), 0) << "the first instant of that day";
  common_.now_unix_ns = end_ns - 1;
  EXPECT_EQ(Changes(), 0) << "its last";
  common_.now_unix_ns = end_ns;
  EXPECT_EQ(Changes(), 1) << "the first of the next";
}

TEST_F(TriageCommandTest, AMuteUntilTodayIsListedWithTheDayThatWasTyped) {
  common_.now_unix_ns = *ParseEndOfDay("2026-01-02") - 1;
  ASSERT_TRUE(Add(proto::MUTE, "BM_.*", 0, "2026-01-02").ok());
  TriageListCommand list;
  list.common = common_;
  std::ostringstream out;
  ASSERT_TRUE(RunTriageList(list, out).ok());
  const nlohmann::json json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json[0]["until"], "2026-01-02");
  EXPECT_EQ(json[0]["state"], "active");
}

TEST_F(TriageCommandTest, WhatDoesNotMatchDoesNotQuieten) {
  ASSERT_TRUE(Add(proto::ACKNOWLEDGE, "BM_Quiet", 20).ok());
  ASSERT_TRUE(Add(proto::ACKNOWLEDGE, "BM_.*", 30).ok());
  EXPECT_EQ(Changes(), 1);
}

TEST_F(TriageCommandTest, AnAlertIsToldWhatIsNewAndNothingElse) {
  const std::string told = common_.history + "_told.json";
  ChangesCommand options;
  options.common = common_;
  options.alert_command = "cat > " + told;
  std::ostringstream out;
  EXPECT_EQ(RunChanges(options, out).value_or(-1), 1);
  const nlohmann::json rows = nlohmann::json::parse(*ReadFile(told));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0]["state"], "new");
  ASSERT_TRUE(RemoveFile(told).ok());

  // One that fails changes nothing; and nothing new is nothing to tell.
  options.alert_command = "exit 7";
  EXPECT_EQ(RunChanges(options, out).value_or(-1), 1);
  options.alert_command = "cat > " + told;
  options.filter = "Quiet";
  EXPECT_EQ(RunChanges(options, out).value_or(-1), 0);
  EXPECT_FALSE(FileExists(told));
  // A crash is told too, and no mute answers it.
  proto::Run run;
  run.set_started_unix_ns(kStartNs + 50 * kSecondNs);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  run.mutable_commit()->set_id(CommitId(50));
  run.mutable_commit()->set_branch("main");
  run.mutable_commit()->set_first_parent_position(50);
  run.mutable_hardware()->set_id("machine");
  run.mutable_settings()->set_min_sample_ns(100'000);
  proto::BenchmarkResult* crash = run.add_results();
  crash->mutable_key()->set_operator_name("BM_Quiet");
  crash->set_outcome(proto::CRASHED);
  EXPECT_TRUE(History::Open(common_.history)->AppendRun(run).ok());
  EXPECT_EQ(RunChanges(options, out).value_or(-1), 1);
  EXPECT_EQ(nlohmann::json::parse(*ReadFile(told))[0]["state"], "failed");
  // Flags that match nothing are no pass.
  options.hardware_id = "unknown";
  EXPECT_EQ(RunChanges(options, out).value_or(-1), 3);
}

TEST_F(TriageCommandTest, MergingHistoriesMergesWhatWasSaid) {
  ASSERT_TRUE(Add(proto::ACKNOWLEDGE, "BM_.*", 20).ok());
  const History from = *History::Open(common_.history);
  const History to = *History::Open(common_.history + "_merged");
  const auto report = to.MergeFrom(from);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->copied, 41);
  EXPECT_EQ(to.Verify()->triage_records, 1);
  common_.history += "_merged";
  EXPECT_EQ(Changes(), 0);
}

TEST_F(TriageCommandTest, RefusesWhatMeansNothingAndRecordsNothing) {
  const auto message = [](const absl::StatusOr<std::string>& status) {
    return std::string(status.status().message());
  };
  EXPECT_THAT(message(Add(proto::ACKNOWLEDGE, "(", 20)),
              HasSubstr("regular expression"));
  EXPECT_THAT(message(Add(proto::ACKNOWLEDGE, "x", 20, "", "", " ")),
              HasSubstr("--reason is missing"));
  EXPECT_THAT(message(Add(proto::MUTE, "x", 20, "2025-12-31")),
              HasSubstr("has passed"));
  EXPECT_THAT(message(Add(proto::MUTE, "x", 20, "soon")),
              HasSubstr("expected a day"));
  EXPECT_THAT(message(Add(proto::EXPECT, "x", 20, "", "much")),
              HasSubstr("expected a percentage"));
  EXPECT_THAT(message(Add(proto::ACKNOWLEDGE, "no_such_name", 20)),
              HasSubstr("'no_such_name' is no series of the history and "
                        "matches none"));
  EXPECT_TRUE(History::Open(common_.history)->LoadTriage()->records.empty());
  // An expected benchmark may still come.
  EXPECT_TRUE(Add(proto::EXPECT, "no_such_name", 20).ok());
}

TEST_F(TriageCommandTest, AnAckOfACrashIsRefusedAndOneOfARemovalIsNot) {
  const History history = *History::Open(common_.history);
  const auto record_without = [&](int i, absl::optional<proto::Outcome> quiet) {
    proto::Run run = *history.ReadRun(history.FindRun("latest")->id());
    run.set_started_unix_ns(kStartNs + i * kSecondNs);
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    run.mutable_commit()->set_id(CommitId(i));
    run.mutable_commit()->set_first_parent_position(i);
    proto::BenchmarkResult* const result = run.mutable_results(1);
    result->clear_measurements();
    if (quiet) {
      result->set_outcome(*quiet);
      result->set_detail("segmentation fault");
    } else {
      run.mutable_results()->RemoveLast();
    }
    ASSERT_TRUE(history.AppendRun(run).ok());
  };
  record_without(40, proto::CRASHED);
  const absl::Status refused = Add(proto::ACKNOWLEDGE, "BM_Quiet", 40).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("BM_Quiet"), HasSubstr("segmentation fault"),
                    HasSubstr("exemption")));
  EXPECT_TRUE(history.LoadTriage()->records.empty());
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Add(proto::ACKNOWLEDGE, ".*", 40).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("does not answer a failure"));

  record_without(41, absl::nullopt);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Add(proto::ACKNOWLEDGE, "BM_Quiet", 41).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("that is acknowledged"));
  ChangesCommand changes;
  changes.common = common_;
  std::ostringstream out;
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(RunChanges(changes, out).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("lacks it; acknowledged: because"));
}

TEST_F(TriageCommandTest, NamesAreSafeInATerminal) {
  common_.format = OutputFormat::kTable;
  ChangesCommand options;
  options.common = common_;
  std::ostringstream out;
  ASSERT_TRUE(RunChanges(options, out).ok());
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
  EXPECT_THAT(out.str(), HasSubstr("1 new for the worse"));
}

}  // namespace
}  // namespace optrail::tracker
