// The evidence of the gate, and its verdicts.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/gate/gate_report.h"
#include "tracker/gate/gate_test_fixture.h"
#include "tracker/history/index/history_index.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(GateTest, IdenticalRunsAreGreen) {
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 100}, {"b", 200}}));
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_EQ(report.rows.size(), 2);
  EXPECT_EQ(report.baselines[0].runs.size(), 6);
}

// Benchmarks measured again, or with a filter, push the others out of the last
// ten runs and not out of the window.
TEST_F(GateTest, OfABenchmarkThatTheLastRunsLackEarlierOnesAreTheWindow) {
  for (int i = 1; i <= 14; ++i) {
    Record(MakeRun(i, "main", {{"a", 100}, {"b", 200}}));
  }
  for (int i = 15; i <= 24; ++i) Record(MakeRun(i, "main", {{"b", 200}}));
  Record(MakeRun(25, "main", {{"a", 120}, {"b", 200}, {"c", 300}}));
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_EQ(RowOf(report, "a").row.verdict, Verdict::kSlower);
  EXPECT_EQ(RowOf(report, "a").row.baseline.run_ids.size(), 10);
  EXPECT_EQ(RowOf(report, "b").row.verdict, Verdict::kUnchanged);
  EXPECT_EQ(RowOf(report, "b").row.baseline.run_ids.size(), 10);
  EXPECT_EQ(RowOf(report, "c").row.verdict, Verdict::kNew);
  EXPECT_EQ(report.baselines[0].runs.size(), 20);
}

TEST_F(GateTest, ASlowDownIsRedAndNamesTheEvidence) {
  RecordMain(6);
  proto::Run candidate = MakeRun(7, "topic", {{"a", 120}, {"b", 200}});
  candidate.mutable_results(0)->set_config("unroll=1");
  Record(candidate);
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(report.CountRed(), 1);
  EXPECT_EQ(report.rows[0].row.name, "a") << "what matters comes first";
  EXPECT_EQ(report.rows[0].row.verdict, Verdict::kSlower);
  const std::string text = GateText(report);
  EXPECT_THAT(text,
              AllOf(HasSubstr("red"), HasSubstr("1.2"), HasSubstr("unroll=1"),
                    HasSubstr("slower: a (time)"), Not(HasSubstr("operator")),
                    HasSubstr(CommitId(7).substr(0, 12))));
}

TEST_F(GateTest, AnImprovementIsNeverRed) {
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 50}, {"b", 200}}));
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(RowOf(report, "a").row.verdict, Verdict::kFaster);
  EXPECT_THAT(report.summary, HasSubstr("1 faster"));
}

TEST_F(GateTest, FewerRunsThanThePolicyWantsAreNoBaseline) {
  RecordMain(4);
  Record(MakeRun(5, "topic", {{"a", 300}}));
  EXPECT_EQ(Judged().exit_code, 3);
  EXPECT_THAT(Judged().summary, HasSubstr("4 earlier runs"));
  EXPECT_EQ(Judged("min_baseline_runs: 4").exit_code, 1);
}

TEST_F(GateTest, AMainBranchOfAnotherNameIsPointedOut) {
  for (int i = 1; i <= 7; ++i) {
    Record(MakeRun(i, "master", {{"a", 100}, {"b", 200}}));
  }
  EXPECT_EQ(Judged().exit_code, 3);
  EXPECT_THAT(Judged().summary, HasSubstr("--baseline=window:master:10"));
  EXPECT_EQ(
      Judged("baseline { window { branch: \"master\" runs: 10 } }").exit_code,
      0);
}

TEST_F(GateTest, AnotherToolchainIsAnotherEpoch) {
  RecordMain(6);
  proto::Run candidate = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  candidate.mutable_toolchain()->set_compiler("g++ 13.1.0");
  Record(candidate);
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_THAT(report.summary, HasSubstr("another toolchain"));
}

// `run`, measured with samples of `min_sample_ns`.
proto::Run Measured(proto::Run run, int64_t min_sample_ns) {
  run.mutable_settings()->set_min_sample_ns(min_sample_ns);
  return run;
}

TEST_F(GateTest, RunsThatWereMeasuredDifferentlyStandInWithAWiderError) {
  for (int i = 1; i <= 6; ++i) {
    Record(Measured(MakeRun(i, "main", {{"a", 100}}), 100'000));
  }
  Record(Measured(MakeRun(7, "topic", {{"a", 104.5}}), 500'000));
  EXPECT_NE(Judged().exit_code, 1);
  EXPECT_THAT(Judged().summary, HasSubstr("measured differently than window"));
  EXPECT_EQ(Judged("on_other_settings: FAIL").exit_code, 3);
  EXPECT_THAT(Judged("on_other_settings: FAIL").summary,
              HasSubstr("6 more were measured differently"));
  EXPECT_EQ(Judged("on_other_settings: IGNORE").exit_code, 1);
  const double error = Judged().rows[0].row.ratio->standard_error;
  EXPECT_GT(error, .02);
  EXPECT_LT(error, .03);
  // A change that no setting explains is red all the same.
  Record(Measured(MakeRun(8, "topic", {{"a", 130}}), 500'000));
  EXPECT_EQ(Judged().exit_code, 1);
}

TEST_F(GateTest, AWindowLeavesOutRunsThatWereMeasuredDifferently) {
  for (int i = 1; i <= 6; ++i) {
    Record(Measured(MakeRun(i, "main", {{"a", 300}}), 100'000));
  }
  for (int i = 7; i <= 11; ++i) {
    Record(Measured(MakeRun(i, "main", {{"a", 100}}), 500'000));
  }
  Record(Measured(MakeRun(12, "topic", {{"a", 110}}), 500'000));
  EXPECT_EQ(Judged().exit_code, 1);
  EXPECT_EQ(Judged().baselines[0].runs.size(), 5);
  EXPECT_THAT(Judged().summary, Not(HasSubstr("differently")));
}

TEST_F(GateTest, RecordsOlderThanSettingsAreABaselineForNewOnes) {
  RecordMain(6);
  Record(Measured(MakeRun(7, "topic", {{"a", 100}, {"b", 200}}), 500'000));
  EXPECT_EQ(Judged().exit_code, 0);
  EXPECT_THAT(Judged().summary, Not(HasSubstr("differently")));
}

TEST_F(GateTest, APinnedBaselineMeasuredDifferentlyIsSaidOrForbidden) {
  Record(Measured(MakeRun(1, "main", {{"a", 100}, {"b", 200}}), 100'000));
  Record(Measured(MakeRun(2, "topic", {{"a", 300}, {"b", 200}}), 500'000));
  const std::string baseline =
      absl::StrCat("baseline { commit: '", CommitId(1), "' }");
  const std::string difference = "min sample 100 us -> 500 us";
  const GateReport said = Judged(baseline);
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.summary, HasSubstr("measured differently than commit:"));
  EXPECT_EQ(said.rows[0].row.measured_differently, difference);
  for (const std::string& text : {GateText(said), GateMarkdown(said)}) {
    EXPECT_THAT(text, HasSubstr("measured differently"));
    EXPECT_THAT(text, HasSubstr("min sample 100 us"));
  }
  const auto json = nlohmann::json::parse(GateJson(said));
  EXPECT_EQ(json["baselines"][0]["measured_differently"], difference);
  EXPECT_EQ(json["rows"][0]["measured_differently"], difference);

  const GateReport forbidden =
      Judged(absl::StrCat(baseline, " on_other_settings: FAIL"));
  EXPECT_EQ(forbidden.exit_code, 3);
  EXPECT_TRUE(forbidden.rows.empty());
  EXPECT_THAT(forbidden.summary,
              AllOf(HasSubstr(difference), HasSubstr("on_other_settings")));
}

TEST_F(GateTest, RunsOfTheCandidateMeasuredUnlikeItsLastAreNotJudged) {
  RecordMain(6);
  proto::Run first = MakeRun(7, "topic", {{"a", 300}, {"b", 200}});
  proto::Run last = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  last.set_started_unix_ns(first.started_unix_ns() + kMinute / 2);
  last.set_run_id(NewRecordId(last.started_unix_ns()));
  Record(Measured(first, 100'000));
  Record(Measured(last, 500'000));
  GateOptions options;
  options.candidate = CommitId(7);
  const auto report = Gate(history_, Policy::Default(), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->exit_code, 0);
  EXPECT_EQ(report->candidate_runs.size(), 1);
  EXPECT_THAT(report->notes[0],
              AllOf(HasSubstr(first.run_id()),
                    HasSubstr("min sample 100 us -> 500 us")));
}

TEST_F(GateTest, AWrongResultIsRedHoweverItWasMeasured) {
  RecordMain(6);
  proto::Run first = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  proto::Run last = first;
  last.set_started_unix_ns(first.started_unix_ns() + kMinute / 2);
  last.set_run_id(NewRecordId(last.started_unix_ns()));
  first.mutable_results(0)->set_outcome(proto::WRONG_RESULT);
  Record(Measured(first, 100'000));
  Record(Measured(last, 500'000));
  GateOptions options;
  options.candidate = CommitId(7);
  const GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(RowOf(report, "a").row.verdict, Verdict::kWrongResult);
  EXPECT_EQ(RowOf(report, "b").row.verdict, Verdict::kUnchanged);
}

TEST_F(GateTest, RunsOfOtherHardwareAreNoBaseline) {
  RecordMain(6);
  proto::Run candidate = MakeRun(7, "topic", {{"a", 300}, {"b", 200}});
  candidate.mutable_hardware()->set_id("intel-xeon-2c");
  Record(candidate);
  EXPECT_EQ(Judged().exit_code, 3);
}

TEST_F(GateTest, AMissingBenchmarkIsSaidUntilSomebodyAcknowledgesIt) {
  RecordMain(8);
  for (int i = 9; i <= 21; ++i) Record(MakeRun(i, "main", {{"b", 200}}));
  const auto at = [this](int position) {
    GateOptions options;
    options.candidate = CommitId(position);
    return Judged("", options);
  };
  EXPECT_EQ(at(9).exit_code, 1);
  const auto names_a = HasSubstr("1 benchmark is missing for so long");
  EXPECT_EQ(at(21).exit_code, 0);
  EXPECT_THAT(GateText(at(21)), AllOf(names_a, HasSubstr("a (last at ")));

  proto::TriageRecord ack;
  ack.set_kind(proto::ACKNOWLEDGE);
  ack.set_pattern("a");
  ack.set_text("removed on purpose");
  const auto loaded = LoadSeries(history_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const Series& series : loaded->series) {
    if (series.key.benchmark.operator_name() != "a") continue;
    proto::AnsweredChange& gone = *ack.add_answered();
    gone.set_series(series.text);
    *gone.mutable_last_before() = series.points.back().runs->commit;
  }
  ack.mutable_commit()->set_id(CommitId(8));
  ack.mutable_commit()->set_first_parent_position(8);
  ack.set_created_unix_ns(kStart + 60 * kMinute);
  ack.set_record_id(NewRecordId(ack.created_unix_ns()));
  ASSERT_TRUE(history_.AppendTriage(ack).ok());
  EXPECT_EQ(at(9).exit_code, 1) << "it was measured there, and lost later";
  ack.mutable_commit()->set_id(CommitId(9));
  ack.mutable_commit()->set_first_parent_position(9);
  ack.set_record_id(NewRecordId(ack.created_unix_ns()));
  ASSERT_TRUE(history_.AppendTriage(ack).ok());
  const GateReport acknowledged = at(9);
  EXPECT_EQ(acknowledged.exit_code, 0) << GateText(acknowledged);
  EXPECT_EQ(RowOf(acknowledged, "a").row.verdict, Verdict::kMissing);
  EXPECT_THAT(RowOf(acknowledged, "a").exempted,
              HasSubstr("removed on purpose"));
  EXPECT_THAT(GateText(at(21)), Not(names_a));

  Record(MakeRun(22, "main", {{"a", 100}, {"b", 200}}));
  Record(MakeRun(23, "main", {{"b", 200}}));
  EXPECT_THAT(GateText(at(23)), HasSubstr("missing")) << "it came back";
}

TEST_F(GateTest, WhatIsMissingOrCrashesIsRedWhatIsNewIsNot) {
  RecordMain(6);
  proto::Run candidate = MakeRun(7, "topic", {{"b", 200}, {"unheard_of", 5}});
  candidate.mutable_results(0)->clear_measurements();
  candidate.mutable_results(0)->set_outcome(proto::CRASHED);
  candidate.mutable_results(0)->set_detail("killed by SIGSEGV");
  Record(candidate);
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(RowOf(report, "a").row.verdict, Verdict::kMissing);
  EXPECT_EQ(RowOf(report, "a").action, proto::FAIL);
  EXPECT_EQ(RowOf(report, "b").row.verdict, Verdict::kCrashed);
  EXPECT_THAT(GateText(report), HasSubstr("SIGSEGV"));
  EXPECT_EQ(RowOf(report, "unheard_of").action, proto::IGNORE);
  EXPECT_EQ(Judged("on_missing: WARN on_crashed: WARN").exit_code, 0);
}

TEST_F(GateTest, AWrongResultIsRed) {
  RecordMain(6);
  proto::Run candidate = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  candidate.mutable_results(1)->clear_measurements();
  candidate.mutable_results(1)->set_outcome(proto::WRONG_RESULT);
  Record(candidate);
  EXPECT_EQ(RowOf(Judged(), "b").row.verdict, Verdict::kWrongResult);
  EXPECT_EQ(Judged().exit_code, 1);
}

TEST_F(GateTest, ARenameIsSuspectedNotJudged) {
  for (int i = 1; i <= 6; ++i) {
    Record(MakeRun(i, "main", {{"BM_SortInts/1024", 100}, {"b", 200}}));
  }
  Record(MakeRun(7, "topic", {{"BM_SortInts/1024/real", 100}, {"b", 200}}));
  const GateReport report = Judged();
  const GateRow& row = RowOf(report, "BM_SortInts/1024/real");
  EXPECT_EQ(row.row.verdict, Verdict::kRenamed) << row.row.reason;
  EXPECT_EQ(row.row.renamed_from, "BM_SortInts/1024");
  EXPECT_EQ(row.action, proto::WARN);
}

TEST_F(GateTest, ANewVersionIsNotCompared) {
  RecordMain(6);
  proto::Run candidate = MakeRun(7, "topic", {{"a", 900}, {"b", 200}});
  candidate.mutable_results(0)->mutable_key()->set_version(2);
  Record(candidate);
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_EQ(report.rows[0].row.verdict, Verdict::kNewVersion);
}

TEST_F(GateTest, NoiseAsksForMoreProcessesInsteadOfGuessing) {
  const auto noisy = [&](int position, const std::string& branch) {
    proto::Run run = MakeRun(position, branch, {{"a", 100}, {"b", 200}});
    for (int i = 0; i < 5; ++i) {
      run.mutable_results(0)->mutable_measurements(i)->set_median_ns(
          100 + 8 * ((i + position) % 5) + 9 * (position * 5 % 4));
    }
    return run;
  };
  for (int i = 1; i <= 6; ++i) Record(noisy(i, "main"));
  Record(noisy(7, "topic"));
  GateOptions options;
  options.baseline = *ParseBaseline("latest~1");
  const GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 3) << GateText(report);
  EXPECT_EQ(report.CountCannotTell(), 1);
  const absl::optional<Remeasure> request = RemeasureRequest(report);
  ASSERT_TRUE(request.has_value());
  EXPECT_GT(request->processes, 5);
  EXPECT_EQ(request->filter, "^(a)$");
  EXPECT_EQ(Judged("on_cannot_tell: WARN", options).exit_code, 0);
}

TEST_F(GateTest, AnExemptionHoldsUntilItsDateAndIsSaidAfterIt) {
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 120}, {"b", 200}}));
  const std::string policy =
      "exemption { benchmark: \"a\" until: \"2026-12-31\" reason: \"new "
      "algorithm\" }";
  GateOptions options;
  options.now_unix_s = 1798761599;  // 2026-12-31 23:59:59 UTC
  GateReport report = Judged(policy, options);
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_THAT(RowOf(report, "a").exempted,
              AllOf(HasSubstr("2026-12-31"), HasSubstr("new algorithm")));
  options.now_unix_s += 1;
  report = Judged(policy, options);
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_THAT(GateText(report), HasSubstr("ended on 2026-12-31"));
}

TEST_F(GateTest, RulesDecideByName) {
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 120}, {"b", 240}}));
  const GateReport report = Judged(
      "rule { benchmark: \"a\" action: WARN } rule { benchmark: \"b\" "
      "min_effect: 0.5 detect_effect: 0.9 }");
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_EQ(RowOf(report, "a").action, proto::WARN);
  EXPECT_EQ(RowOf(report, "b").row.verdict, Verdict::kUnchanged);
}

// Ten steps of 2% pass one by one; the pinned release does not forget.
TEST_F(GateTest, APinnedReleaseCatchesCreep) {
  double ns = 100;
  for (int i = 1; i <= 10; ++i, ns *= 1.02) {
    Record(MakeRun(i, "main", {{"a", ns}}));
  }
  GateOptions options;
  options.git.resolve = [](absl::string_view tag) {
    EXPECT_EQ(tag, "v1");
    return CommitId(1);
  };
  options.git.merge_base = [](absl::string_view, absl::string_view) {
    return CommitId(9);
  };
  // Two percent are not seen, among commits that differ by as much.
  EXPECT_NE(Judged("baseline { merge_base: \"main\" }", options).exit_code, 1);
  const GateReport report = Judged(
      "baseline { merge_base: \"main\" } baseline { tag: \"v1\" }", options);
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_EQ(report.CountRed(), 1);
  EXPECT_EQ(report.rows[0].baseline, "tag:v1");
}

TEST_F(GateTest, BaselinesThatNeedGitSaySo) {
  RecordMain(6);
  GateOptions options;
  options.baseline = *ParseBaseline("tag:v1");
  EXPECT_THAT(std::string(Error(options).message()),
              HasSubstr("needs a git work tree"));
  options.git.resolve = [](absl::string_view) -> absl::StatusOr<std::string> {
    return absl::NotFoundError("git knows no commit \"v1\"");
  };
  EXPECT_THAT(std::string(Error(options).message()), HasSubstr("\"v1\""));
}

TEST_F(GateTest, ACommitWithoutRunsIsNoBaseline) {
  RecordMain(6);
  GateOptions options;
  options.baseline = *ParseBaseline("commit:" + CommitId(77));
  EXPECT_EQ(Judged("", options).exit_code, 3);
  options.baseline = *ParseBaseline("commit:" + CommitId(2));
  EXPECT_EQ(Judged("", options).exit_code, 0);
}

TEST_F(GateTest, AForcedConfigIsNoYardstick) {
  RecordMain(6);
  proto::Run forced = MakeRun(7, "main", {{"a", 500}, {"b", 200}});
  forced.mutable_results(0)->set_config_source(proto::GIVEN);
  Record(forced);
  GateOptions options;
  options.candidate = forced.run_id();
  EXPECT_EQ(Judged("", options).exit_code, 1) << "but it is judged itself";
  Record(MakeRun(8, "topic", {{"a", 120}, {"b", 200}}));
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_NEAR(RowOf(report, "a").row.ratio->ratio, 1.2, .01);
}

TEST_F(GateTest, AWindowLeavesOutRunsWithLocalChanges) {
  RecordMain(4);
  for (const int position : {5, 6}) {
    proto::Run dirty = MakeRun(position, "main", {{"a", 100}, {"b", 200}});
    dirty.mutable_commit()->set_dirty(true);
    Record(dirty);
  }
  Record(MakeRun(7, "topic", {{"a", 100}, {"b", 200}}));
  EXPECT_EQ(Judged().exit_code, 3);
  EXPECT_THAT(Judged().summary, HasSubstr("2 more have changes"));
}

TEST_F(GateTest, AnUnknownCandidateIsAnError) {
  RecordMain(1);
  GateOptions options;
  options.candidate = "ffff";
  EXPECT_EQ(Error(options).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace optrail::tracker
