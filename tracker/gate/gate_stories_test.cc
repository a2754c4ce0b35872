// What happens to real projects, told from histories: each story is a list of
// runs, and what the gate says of them on the way.

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/testing/fault_injecting_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/gate_report.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr int64_t kStart = 1795000000LL * 1000000000;
constexpr int64_t kHour = 3600LL * 1000000000;

// A benchmark's time, in logarithms beside its level, and one process more.
using Effect = std::function<double(int benchmark, int process)>;

class GateStories : public ::testing::Test {
 protected:
  static constexpr int kBenchmarks = 6, kProcesses = 5;

  GateStories() : history_(*History::Open("/history", &fs_)) {}

  static std::string Name(int benchmark) {
    return absl::StrCat("BM_", benchmark);
  }

  static std::string CommitId(int position) {
    return absl::StrFormat("%040d", position);
  }

  // The next run of main. `machine` is what the calibration loops see, too.
  void Record(const Effect& effect = nullptr, double machine = 0) {
    proto::Run run;
    const int position = next_++;
    run.set_started_unix_ns(kStart + position * kHour);
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    run.set_suite("smoke");
    run.mutable_hardware()->set_id("amd-epyc-zen4-2c");
    run.mutable_toolchain()->set_compiler(compiler_);
    run.mutable_commit()->set_id(CommitId(position));
    run.mutable_commit()->set_branch("main");
    run.mutable_commit()->set_first_parent_position(position);
    const double drift = .004 * rng_.Gaussian();
    for (int j = 0; j < kBenchmarks; ++j) {
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(Name(j));
      result->set_outcome(proto::OK);
      const double level = drift + machine + .003 * rng_.Gaussian();
      for (int p = 0; p < kProcesses; ++p) {
        proto::Measurement* measurement = result->add_measurements();
        measurement->set_median_ns(
            1000 * std::exp(level + .005 * rng_.Gaussian() +
                            (effect == nullptr ? 0 : effect(j, p))));
        if (!calibrated_) continue;
        for (const char* name : {"arithmetic", "l1", "l2", "l3", "memory"}) {
          proto::Calibration* loop =
              measurement->mutable_conditions()->add_calibrations();
          loop->set_loop(name);
          loop->set_time_ns(100 *
                            std::exp(drift + machine + .002 * rng_.Gaussian()));
        }
      }
    }
    const absl::Status appended = history_.AppendRun(run);
    ASSERT_TRUE(appended.ok()) << appended;
  }

  void RecordMany(int count, const Effect& effect = nullptr) {
    for (int i = 0; i < count; ++i) Record(effect);
  }

  GateReport Latest(const std::string& policy = "",
                    const GateOptions& options = {}) {
    const auto parsed = Policy::Parse(policy, "policy");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    const auto report = Gate(history_, *parsed, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  static Effect Slower(int benchmark, double factor) {
    return [=](int j, int) { return j == benchmark ? std::log(factor) : 0; };
  }

  FaultInjectingFileSystem fs_;
  History history_;
  Rng rng_{20};
  std::string compiler_ = "g++ 12.2.0";
  bool calibrated_ = false;
  int next_ = 1;
};

TEST_F(GateStories, ACompilerUpgradeIsANewEpochAndNoRegression) {
  RecordMany(12);
  compiler_ = "g++ 13.1.0";
  const Effect slower = [](int, int) { return std::log(1.08); };
  Record(slower);
  GateReport report = Latest();
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_EQ(report.CountRed(), 0) << GateText(report);
  EXPECT_THAT(report.summary, HasSubstr("toolchain"));
  RecordMany(6, slower);
  EXPECT_EQ(Latest().exit_code, 0) << GateText(Latest());
  Record([](int j, int) { return std::log(j == 2 ? 1.08 * 1.1 : 1.08); });
  EXPECT_EQ(Latest().exit_code, 1);
}

TEST_F(GateStories, ANoisyNeighbourForADayIsNotForgotten) {
  RecordMany(12);
  // Its runs are slow in whatever it disturbs.
  for (int hour = 0; hour < 4; ++hour) {
    Record([&](int j, int) { return j < 3 ? .05 + .1 * hour : 0; });
  }
  RecordMany(2);
  const GateReport report = Latest();
  EXPECT_NE(report.exit_code, 1) << GateText(report);
  // And what became slower is found when it is measured again.
  Record(Slower(4, 1.2));
  proto::Run again =
      *history_.ReadRun(history_.Resolve("latest")->front().id());
  again.set_started_unix_ns(again.started_unix_ns() + 1000000000);
  again.set_run_id(NewRecordId(again.started_unix_ns()));
  ASSERT_TRUE(history_.AppendRun(again).ok());
  GateOptions options;
  options.candidate = CommitId(next_ - 1);
  EXPECT_EQ(Latest("", options).exit_code, 1) << GateText(Latest("", options));
}

TEST_F(GateStories, AFrequencyThatDropsForAllIsTheMachineWhereItIsCalibrated) {
  calibrated_ = true;
  RecordMany(15);
  Record(nullptr, std::log(1.1));
  const GateReport report = Latest();
  EXPECT_NE(report.exit_code, 1) << GateText(report);
}

TEST_F(GateStories, WhatAllShareIsTheCodesWhereTheMachineNeverDidIt) {
  RecordMany(15);
  Record(nullptr, std::log(1.3));
  const GateReport report = Latest();
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_GT(report.CountRed(), 2) << GateText(report);
}

// Benchmarks that a neighbour on the memory slows, and others that it does not.
TEST_F(GateStories, WhatOnlySomeShareIsNoChangeOfAll) {
  double neighbour = 0;
  const Effect some = [&](int j, int) { return j < 3 ? neighbour : 0; };
  for (int i = 0; i < 15; ++i) {
    neighbour = .015 * rng_.Gaussian();
    Record(some);
  }
  neighbour = .09;
  Record(some);
  const GateReport report = Latest();
  EXPECT_NE(report.exit_code, 0) << GateText(report);
  for (const GateRow& row : report.rows) {
    EXPECT_EQ(row.row.verdict != Verdict::kUnchanged, row.row.name < Name(3))
        << row.row.name << ": " << row.row.reason;
  }
}

TEST_F(GateStories, ABenchmarkThatBecameBimodalIsNotGreen) {
  RecordMany(15);
  Record([](int j, int p) { return j == 1 && p % 2 == 0 ? .3 : 0; });
  const GateReport report = Latest();
  EXPECT_NE(report.exit_code, 0) << GateText(report);
  EXPECT_THAT(GateText(report), HasSubstr("BM_1"));
}

// A collected suite of Google Benchmark: five processes, no calibration, and
// now and then a process that something disturbed.
TEST_F(GateStories, ImportsWithWildProcessesAreGreenAndEachSlowCommitIsRed) {
  const auto wild = [&] {
    return rng_.UniformReal() < .1 ? .1 + .3 * rng_.UniformReal() : 0.;
  };
  const Effect unchanged = [&](int, int) { return wild(); };
  RecordMany(6, unchanged);
  for (int i = 0; i < 6; ++i) {
    Record(unchanged);
    EXPECT_EQ(Latest().exit_code, 0) << GateText(Latest());
  }
  const Effect slow = [&](int j, int) {
    return wild() + (j == 2 ? std::log(1.08) : 0);
  };
  for (int i = 0; i < 2; ++i) {
    Record(slow);
    const GateReport report = Latest();
    EXPECT_EQ(report.exit_code, 1) << GateText(report);
    EXPECT_EQ(report.CountRed(), 1) << GateText(report);
    const Row& row = report.rows[0].row;
    EXPECT_EQ(row.name, Name(2));
    ASSERT_TRUE(row.ratio.has_value());
    EXPECT_NEAR(row.ratio->ratio, 1.08, .03);
    EXPECT_NEAR(row.ratio->candidate / row.ratio->baseline, row.ratio->ratio,
                1e-9);
    // Near what was recorded, too.
    EXPECT_NEAR(*row.candidate.value / row.ratio->candidate, 1, .05);
  }
}

TEST_F(GateStories, ARunWhoseSettingsAreNoNumbersIsJudged) {
  RecordMany(12);
  proto::Run strange =
      *history_.ReadRun(history_.Resolve("latest")->front().id());
  strange.mutable_settings()->set_max_calibration_ratio(
      std::numeric_limits<double>::quiet_NaN());
  strange.set_started_unix_ns(strange.started_unix_ns() + 1000000000);
  strange.set_run_id(NewRecordId(strange.started_unix_ns()));
  ASSERT_TRUE(history_.AppendRun(strange).ok());
  GateOptions options;
  options.candidate = strange.run_id();
  const GateReport report = Latest("", options);
  ASSERT_EQ(report.candidate_runs.size(), 1);
  EXPECT_NE(report.exit_code, 1) << GateText(report);
}

TEST_F(GateStories, ARunOfADirtyTreeWithoutAFingerprintIsJudged) {
  RecordMany(12);
  proto::Run dirty =
      *history_.ReadRun(history_.Resolve("latest")->front().id());
  dirty.mutable_commit()->set_dirty(true);
  dirty.set_started_unix_ns(dirty.started_unix_ns() + 1000000000);
  dirty.set_run_id(NewRecordId(dirty.started_unix_ns()));
  ASSERT_TRUE(history_.AppendRun(dirty).ok());
  GateOptions options;
  options.candidate = dirty.run_id();
  const GateReport report = Latest("", options);
  ASSERT_EQ(report.candidate_runs.size(), 1);
  EXPECT_NE(report.exit_code, 1) << GateText(report);
}

TEST_F(GateStories, CreepIsCaughtByThePinnedRelease) {
  // 1% a week, a run a day.
  for (int day = 0; day < 60; ++day) {
    Record(Slower(0, std::pow(1.01, day / 7.)));
  }
  EXPECT_NE(Latest("baseline { window {} }").exit_code, 1);
  GateOptions options;
  options.git.resolve = [](absl::string_view) { return CommitId(1); };
  const GateReport report = Latest("baseline { tag: \"v1\" }", options);
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_EQ(report.rows[0].row.name, Name(0));
}

// More points can't confirm a creep, and somebody has to answer it all the
// same.
TEST_F(GateStories, ACreepThatAlertsIsUnansweredAndNotConfirmed) {
  for (int day = 0; day < 70; ++day) {
    Record(Slower(0, std::pow(1.013, day / 7.)));
  }
  GateOptions options;
  options.history_flag = " --history=../h1";
  const GateReport report = Latest("baseline { window {} }", options);
  ASSERT_EQ(report.open_changes.size(), 1) << GateText(report);
  const GateReport::OpenChange& creep = report.open_changes[0];
  EXPECT_EQ(creep.state, "creep, new");
  EXPECT_FALSE(creep.is_confirmed);
  EXPECT_TRUE(creep.is_unanswered);
  EXPECT_EQ(creep.next, absl::StrCat("optrail show '", CanonicalText(creep.key),
                                     "' --history=../h1"));
  EXPECT_THAT(report.notes,
              Contains(HasSubstr("nobody has answered 1 change")));
}

TEST_F(GateStories, AnImprovementRevertedIsASlowDown) {
  RecordMany(12);
  RecordMany(6, Slower(3, .85));
  EXPECT_EQ(Latest().exit_code, 0) << GateText(Latest());
  Record();
  const GateReport report = Latest();
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_EQ(report.rows[0].row.name, Name(3));
}

// One run that was better is not the level yet, and may be.
TEST_F(GateStories, AnImprovementThatTheNextRunUndoesIsNotGreen) {
  RecordMany(40);
  Record(Slower(3, .7));
  EXPECT_EQ(Latest().exit_code, 0) << GateText(Latest());
  Record(Slower(3, .9));
  const GateReport report = Latest();
  EXPECT_EQ(report.exit_code, 3) << GateText(report);
  EXPECT_EQ(report.CountCannotTell(), 1) << GateText(report);
}

TEST_F(GateStories, OneBadRunOrAnImprovementBlindsForAtMostTwoRuns) {
  const Effect events[] = {
      Slower(2, 1.5), [](int, int) { return std::log(1.5); }, Slower(2, .95)};
  for (int kind = 0; kind < 3; ++kind) {
    for (const double factor : {1., 1.2}) {
      history_ = *History::Open(absl::StrCat("/history_", kind, factor), &fs_);
      next_ = 1;
      RecordMany(10);
      Record(events[kind]);
      const bool lasts = kind == 2;
      RecordMany(2, lasts ? events[kind] : nullptr);
      Record(Slower(2, lasts ? .95 * factor : factor));
      EXPECT_EQ(Latest().exit_code, factor > 1 ? 1 : 0)
          << kind << " " << factor << GateText(Latest());
    }
  }
}

// The note on a change and the row of its benchmark speak of one baseline, and
// a baseline of fewer runs than the window has its reason.
TEST_F(GateStories, TheNoteOnAChangeAndItsRowHaveOneBaseline) {
  RecordMany(30);
  bool was_level_before = false;
  for (int since = 1; since <= 8; ++since) {
    Record(Slower(2, 1.3));
    const GateReport report = Latest();
    ASSERT_EQ(report.open_changes.size(), 1) << since;
    const GateReport::OpenChange& change = report.open_changes[0];
    for (const GateRow& row : report.rows) {
      if (row.row.name != "BM_2" || row.row.unused_runs == 0) continue;
      EXPECT_EQ(change.is_norm, row.row.verdict != Verdict::kSlower) << since;
      const std::string& reason = row.row.reason;
      if (change.is_norm) {
        EXPECT_THAT(reason, AnyOf(HasSubstr("; baseline from run"), Eq("")));
      } else {
        EXPECT_THAT(reason, AnyOf(HasSubstr("; baseline up to run"),
                                  HasSubstr("baseline far off, left out")));
      }
    }
    if (!change.is_confirmed) continue;
    was_level_before |= !change.is_norm;
    const std::string text = GateText(report);
    EXPECT_THAT(
        text, HasSubstr(change.is_norm ? "the level since then is the baseline"
                                       : "the baseline is the level before"));
  }
  EXPECT_TRUE(was_level_before);
  EXPECT_EQ(Latest().exit_code, 0);
}

}  // namespace
}  // namespace optrail::tracker
