#include "tracker/gate/gate.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/fault_injecting_file_system.h"
#include "base/file.h"
#include "base/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/gate/gate_report.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kStart = 1795000000LL * 1000000000;
constexpr int64_t kMinute = 60LL * 1000000000;
constexpr char kHardware[] = "amd-epyc-zen4-2c";

// A history in memory whose runs differ by next to nothing.
class GateTest : public ::testing::Test {
 protected:
  GateTest() : history_(*History::Open("/history", &fs_)) {}

  // A run in which each benchmark took `ns` in five processes that differ by
  // 0.1%.
  proto::Run MakeRun(int position, const std::string& branch,
                     const std::vector<std::pair<std::string, double>>& times) {
    proto::Run run;
    run.set_started_unix_ns(kStart + position * kMinute);
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    run.set_suite("smoke");
    run.mutable_hardware()->set_id(kHardware);
    run.mutable_toolchain()->set_compiler("g++ 12.2.0");
    run.mutable_commit()->set_id(CommitId(position));
    run.mutable_commit()->set_branch(branch);
    run.mutable_commit()->set_first_parent_position(position);
    for (const auto& [name, ns] : times) {
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(name);
      result->set_outcome(proto::OK);
      for (int process = 0; process < 5; ++process) {
        result->add_measurements()->set_median_ns(
            ns * (1 + .001 * ((process + position) % 5 - 2)));
      }
    }
    return run;
  }

  // "00...0a" for 10.
  static std::string CommitId(int position) {
    const std::string digits = std::to_string(position);
    return std::string(40 - digits.size(), '0') + digits;
  }

  void Record(const proto::Run& run) {
    const absl::Status appended = history_.AppendRun(run);
    ASSERT_TRUE(appended.ok()) << appended;
  }

  void RecordMain(int runs, double ns = 100) {
    for (int i = 1; i <= runs; ++i) {
      Record(MakeRun(i, "main", {{"a", ns}, {"b", 200}}));
    }
  }

  Policy ParsePolicy(const std::string& text) {
    absl::StatusOr<Policy> policy = Policy::Parse(text, "policy.textproto");
    EXPECT_TRUE(policy.ok()) << policy.status();
    return *std::move(policy);
  }

  GateReport Judged(const std::string& policy = "",
                    const GateOptions& options = {}) {
    absl::StatusOr<GateReport> report =
        Gate(history_, ParsePolicy(policy), options);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : GateReport();
  }

  absl::Status Error(const GateOptions& options,
                     const std::string& policy = "") {
    return Gate(history_, ParsePolicy(policy), options).status();
  }

  static const GateRow& RowOf(const GateReport& report,
                              const std::string& name) {
    for (const GateRow& row : report.rows) {
      if (row.row.name == name) return row;
    }
    ADD_FAILURE() << "no row " << name;
    static const GateRow none;
    return none;
  }

  FaultInjectingFileSystem fs_;
  History history_;
};

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
  EXPECT_THAT(text, AllOf(HasSubstr("red"), HasSubstr("1.2"),
                          HasSubstr("unroll=1"), HasSubstr("operator a"),
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
  // What no setting explains is red all the same.
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
  EXPECT_EQ(Judged("baseline { merge_base: \"main\" }", options).exit_code, 0);
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

TEST_F(GateTest, NamesAreInertWhereverTheyAreShown) {
  const std::string hostile = "x|</td><script>\x1b[31m\n# heading";
  for (int i = 1; i <= 6; ++i) Record(MakeRun(i, "main", {{hostile, 100}}));
  Record(MakeRun(7, "topic", {{hostile, 150}}));
  const GateReport report = Judged();
  ASSERT_EQ(report.exit_code, 1);
  EXPECT_THAT(GateText(report), Not(HasSubstr("\x1b")));
  const std::string markdown = GateMarkdown(report);
  // In code, where it does nothing; the pipe would end the cell even there.
  EXPECT_THAT(markdown, HasSubstr("`x`&#124;`</td><script>\\x1b[31m\\n#"));
  EXPECT_THAT(markdown, Not(HasSubstr("\n# heading")));
}

TEST_F(GateTest, JsonHasWhatAProgramNeeds) {
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 120}, {"b", 200}}));
  const nlohmann::json json = nlohmann::json::parse(GateJson(Judged()));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["reason"], "regression");
  EXPECT_EQ(json["red"], 1);
  EXPECT_EQ(json["rows"][0]["suite"], "smoke");
  EXPECT_EQ(json["rows"][0]["hardware"], kHardware);
  EXPECT_EQ(json["remeasure"], nullptr);
  EXPECT_EQ(json["baselines"][0]["runs"].size(), 6);
  const nlohmann::json& row = json["rows"][0];
  EXPECT_EQ(row["name"], "a");
  EXPECT_EQ(row["verdict"], "slower");
  EXPECT_NEAR(row["ratio"]["ratio"].get<double>(), 1.2, .01);
  EXPECT_LT(row["ratio"]["low"], row["ratio"]["high"]);
  EXPECT_EQ(row["candidate"]["commit"], CommitId(7));
}

TEST_F(GateTest, ADamagedFileIsSaidAndSkipped) {
  RecordMain(7);
  Record(MakeRun(8, "topic", {{"a", 100}, {"b", 200}}));
  const RunList list = *history_.ListRuns();
  ASSERT_TRUE(WriteFileAtomically(list.runs[2].path, "garbage", &fs_).ok());
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_THAT(GateText(report), HasSubstr("damaged file skipped"));
}

TEST_F(GateTest, TextFitsATerminal) {
  const std::string name =
      "matmul/cpu/m=384,n=4096,k=1024/f32/default/threads=1/hot";
  for (int i = 1; i <= 6; ++i) Record(MakeRun(i, "main", {{name, 100}}));
  Record(MakeRun(7, "topic", {{name, 450}}));
  const GateReport report = Judged();
  const std::string text = GateText(report, 100);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(DisplayWidth(line), 100) << line;
  }
  EXPECT_THAT(text, AllOf(HasSubstr(name),
                          HasSubstr("takes 4.50x the time (+350%), p < 0.001"),
                          Not(HasSubstr("metric"))));
}

TEST_F(GateTest, NamesAreNeverCut) {
  const std::string name = absl::StrCat("BM_", std::string(120, 'x'), "/1024");
  for (int i = 1; i <= 6; ++i) Record(MakeRun(i, "main", {{name, 100}}));
  Record(MakeRun(7, "topic", {{name, 450}}));
  const std::string text = GateText(Judged(), 100);
  int rows = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    rows += absl::EndsWith(line, absl::StrCat("  ", name));
  }
  EXPECT_EQ(rows, 1) << text;
  EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xa6")));
}

TEST_F(GateTest, LongConfigsShowWhatDiffers) {
  std::string before, after;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&before, i ? "," : "", "knob", i, "=", 1);
    absl::StrAppend(&after, i ? "," : "", "knob", i, "=", i == 13 ? 7 : 1);
  }
  for (int i = 1; i <= 6; ++i) {
    proto::Run run = MakeRun(i, "main", {{"a", 100}});
    run.mutable_results(0)->set_config(before);
    Record(run);
  }
  proto::Run candidate = MakeRun(7, "topic", {{"a", 150}});
  candidate.mutable_results(0)->set_config(after);
  Record(candidate);
  const GateReport report = Judged();
  const std::string text = GateText(report);
  EXPECT_THAT(text, AllOf(HasSubstr("configs differ in 1 of 20 knobs"),
                          HasSubstr("baseline config:  knob13=1\n"),
                          HasSubstr("candidate config: knob13=7\n"),
                          Not(HasSubstr("knob12"))));
  const nlohmann::json json = nlohmann::json::parse(GateJson(report));
  EXPECT_EQ(json["rows"][0]["baseline"]["config"], before);
  EXPECT_EQ(json["rows"][0]["candidate"]["config"], after);
}

// Names of operators need no escapes, and those that look like patterns match
// nothing else.
TEST_F(GateTest, TheFilterToMeasureAgainIsReadable) {
  const std::vector<double> noisy = {92, 100, 108, 103};
  const std::string names[] = {"add/cpu/n=4,m=2/f32", "BM_<a'b>\n(1.5)"};
  for (int i = 1; i <= 2; ++i) {
    proto::Run run = MakeRun(i, "main", {{names[0], 1}, {names[1], 1}});
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      result.clear_measurements();
      for (const double ns : noisy) {
        result.add_measurements()->set_median_ns(ns);
      }
    }
    Record(run);
  }
  GateOptions options;
  options.baseline = *ParseBaseline("latest~1");
  const GateReport report = Judged("", options);
  const absl::optional<Remeasure> request = RemeasureRequest(report);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->filter, "^(BM_<a'b>\\n\\(1\\.5\\)|add/cpu/n=4,m=2/f32)$");
  EXPECT_EQ(request->additional_processes, request->processes - 4);
  const std::string text = GateText(report);
  EXPECT_THAT(text, AllOf(HasSubstr("RERUN"), Not(HasSubstr("FAIL")),
                          HasSubstr("BM_<a'\\''b>")))
      << "safe to paste into a shell";
}

TEST_F(GateTest, LooksShareTheFalseAlarmRate) {
  EXPECT_DOUBLE_EQ(CompareOptionsFor(Policy::Default(), 2 * 5).false_alarm_rate,
                   .001);
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 100}, {"b", 200}}));
  const std::string policy = "rule { min_effect: 0.001 }";
  GateOptions options;
  const double one =
      *RowOf(Judged(policy, options), "a").row.minimum_detectable_effect;
  options.looks = 1000000;
  EXPECT_GT(*RowOf(Judged(policy, options), "a").row.minimum_detectable_effect,
            1.5 * one);
}

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

// The change is too young to be confirmed: the level is that of before, and so
// is all that is said of the baseline.
TEST_F(GateTest, TheEvidenceIsOfTheRunsThatWereUsed) {
  for (int i = 1; i <= 40; ++i) {
    Record(MakeRun(i, "main", {{"a", i < 37 ? 2000. : 2500.}, {"b", 200}}));
  }
  const GateReport report = Judged();
  const Side& baseline = RowOf(report, "a").row.baseline;
  ASSERT_TRUE(baseline.value.has_value());
  const int last = std::stoi(baseline.commit.id());
  EXPECT_NEAR(*baseline.value, last < 37 ? 2000 : 2500, 30) << GateText(report);
  for (const std::string& id : baseline.run_ids) {
    const proto::Run run = *history_.ReadRun(id);
    EXPECT_NEAR(run.results(0).measurements(0).median_ns(), *baseline.value, 60)
        << id;
  }
  EXPECT_EQ(baseline.processes, 5 * baseline.run_ids.size());
}

TEST_F(GateTest, NotesAreSaidOnceAndNameTheMetric) {
  const auto run = [&](int position, double ns) {
    proto::Run run = MakeRun(position, "main", {{"a", ns}});
    for (proto::Measurement& measurement :
         *run.mutable_results(0)->mutable_measurements()) {
      proto::MetricSamples* cpu = measurement.add_metrics();
      cpu->set_metric("cpu_time");
      cpu->set_unit("ns");
      cpu->set_direction(proto::LOWER_IS_BETTER);
      cpu->add_values(measurement.median_ns());
    }
    return run;
  };
  for (int i = 1; i <= 12; ++i) Record(run(i, 100));
  for (int i = 13; i <= 24; ++i) Record(run(i, 125));
  const GateReport report = Judged();
  const std::string text = GateText(report);
  std::set<std::string> notes(report.notes.begin(), report.notes.end());
  EXPECT_EQ(notes.size(), report.notes.size()) << text;
  // With the words of `changes`: metric, levels, runs and suspected commits.
  EXPECT_THAT(notes,
              Contains(AllOf(HasSubstr("a time: +25.0%, slower"),
                             HasSubstr("100 ns over 12 points (12 runs)"),
                             HasSubstr("125 ns over"), HasSubstr("suspected:"),
                             HasSubstr("nobody has answered"))));
}

}  // namespace
}  // namespace optrail::tracker
