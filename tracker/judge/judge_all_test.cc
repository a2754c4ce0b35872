// JudgeAll: what one series says of another.

#include <functional>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/judge/judge.h"
#include "tracker/judge/judge_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::SizeIs;

TEST_F(JudgeTest, AFailureIsOneOfEveryMetric) {
  const auto with_cpu_time = [](proto::Run& run) {
    proto::MetricSamples* cpu =
        run.mutable_results(0)->mutable_measurements(0)->add_metrics();
    cpu->set_metric("cpu_time");
    cpu->set_unit("ns");
    cpu->add_values(90);
  };
  JudgeOptions options;
  options.runs = &runs_;
  for (const auto& [outcome, standing] :
       {std::make_pair(proto::CRASHED, Verdict::kFailed),
        std::make_pair(proto::CONTENDED, Verdict::kCannotTell),
        std::make_pair(proto::UNSUPPORTED, Verdict::kMissing)}) {
    Measure(30, 100, with_cpu_time);
    Measure(1, 100, [outcome = outcome](proto::Run& run) {
      run.mutable_results(0)->clear_measurements();
      run.mutable_results(0)->set_outcome(outcome);
    });
    series_ = BuildSeries(runs_);
    ASSERT_THAT(series_, SizeIs(2));
    for (const Judgement& judgement :
         JudgeAll(series_, TriageBook({}, 0), options)) {
      EXPECT_EQ(judgement.standing, standing) << judgement.why;
    }
  }
}

// Nobody measures a branch again that was merged or given up.
TEST_F(JudgeTest, AFailureIsPastOnceALaterCommitOfAnotherBranchWorks) {
  const auto crash = [](int position) {
    return [position](proto::Run& run) {
      run.mutable_commit()->set_branch("feature");
      run.mutable_commit()->set_first_parent_position(position);
      run.mutable_results(0)->clear_measurements();
      run.mutable_results(0)->set_outcome(proto::CRASHED);
    };
  };
  const auto judge = [&] {
    series_ = BuildSeries(runs_);
    EXPECT_THAT(series_, SizeIs(2));
    // The branch sorts first.
    return JudgeAll(series_, TriageBook({}, 0)).at(0);
  };
  Measure(30, 100);
  Measure(1, 100, crash(20));
  EXPECT_EQ(judge().standing, Verdict::kFailed) << "measured after main";
  Measure(1, 100, [](proto::Run& run) {
    run.mutable_commit()->set_first_parent_position(19);
  });
  EXPECT_EQ(judge().standing, Verdict::kFailed) << "an earlier commit";
  Measure(1, 100);
  EXPECT_EQ(judge().standing, Verdict::kCannotTell);
  EXPECT_EQ(judge().why, "CRASHED; a later commit of main works");
  Measure(1, 100, crash(40));
  Measure(1, 100);
  EXPECT_EQ(judge().standing, Verdict::kFailed) << "the branch goes on";
  // Without positions the clock alone tells.
  for (proto::Run& run : runs_) {
    run.mutable_commit()->clear_first_parent_position();
  }
  EXPECT_EQ(judge().standing, Verdict::kCannotTell);
}

// The time tells of a crash; another metric has no point there, or has that of
// a process that worked.
TEST_F(JudgeTest, AFailureIsOneByEveryMetric) {
  const auto add_metric = [](proto::Run& run) {
    proto::MetricSamples* samples =
        run.mutable_results(0)->mutable_measurements(0)->add_metrics();
    samples->set_metric("joules");
    samples->add_values(2);
  };
  const auto judge = [&] {
    series_ = BuildSeries(runs_);
    JudgeOptions options;
    options.runs = &runs_;
    return JudgeAll(series_, TriageBook({}, 0), options);
  };
  for (const bool is_partial : {false, true}) {
    runs_.clear();
    Measure(30, 100, add_metric);
    for (int i = 0; i < 2; ++i) {
      Measure(1, 100, [&](proto::Run& run) {
        run.mutable_results(0)->set_outcome(proto::CRASHED);
        add_metric(run);
        if (!is_partial) run.mutable_results(0)->clear_measurements();
      });
    }
    if (is_partial) {  // another run of the commit works
      Measure(1, 100, [&](proto::Run& run) {
        run.mutable_commit()->set_id(CommitId(31));
        run.mutable_commit()->set_first_parent_position(31);
        add_metric(run);
      });
    }
    const auto judgements = judge();
    ASSERT_EQ(judgements.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(judgements[i].standing, Verdict::kFailed) << series_[i].text;
      ASSERT_NE(judgements[i].last_worked, nullptr);
      ASSERT_NE(judgements[i].first_failed, nullptr);
      EXPECT_EQ(judgements[i].last_worked->commit.id(), CommitId(29));
      EXPECT_EQ(judgements[i].first_failed->commit.id(), CommitId(30));
    }
  }
}

TEST_F(JudgeTest, WhatTheNewestRunOfItsSuiteLacksIsMissing) {
  const auto judge = [&] {
    series_ = BuildSeries(runs_);
    JudgeOptions options;
    options.runs = &runs_;
    const auto judgements = JudgeAll(series_, TriageBook({}, 0), options);
    for (size_t i = 0; i < series_.size(); ++i) {
      if (series_[i].key.benchmark.operator_name() == "BM_x") {
        return judgements[i].standing;
      }
    }
    return Verdict::kNew;
  };
  const auto rename = [](proto::Run& run) {
    run.mutable_results(0)->mutable_key()->set_operator_name("BM_other");
  };
  Measure(30, 100);
  EXPECT_EQ(judge(), Verdict::kUnchanged);
  Measure(1, 100, [&](proto::Run& run) {
    rename(run);
    run.set_suite("another");
  });
  EXPECT_EQ(judge(), Verdict::kUnchanged) << "another suite";
  // An old commit that is measured today is not the newest.
  Measure(1, 100, [&](proto::Run& run) {
    rename(run);
    run.mutable_commit()->set_id("old");
    run.mutable_commit()->set_first_parent_position(3);
  });
  EXPECT_EQ(judge(), Verdict::kUnchanged);
  Measure(1, 100, rename);
  EXPECT_EQ(judge(), Verdict::kMissing);
}

// The gate calls the two sides so, too.
TEST_F(JudgeTest, AnotherVersionOrNameTakesThePlaceOfABenchmark) {
  const auto ended = [&](const std::function<void(proto::Run&)>& edit) {
    runs_.clear();
    Measure(30, 100);
    Measure(1, 100, edit);
    series_ = BuildSeries(runs_);
    JudgeOptions options;
    options.runs = &runs_;
    const auto judgements = JudgeAll(series_, TriageBook({}, 0), options);
    for (size_t i = 0; i < series_.size(); ++i) {
      if (series_[i].points.size() == 30) return judgements[i];
    }
    return Judgement();
  };
  const Judgement versioned = ended([](proto::Run& run) {
    run.mutable_results(0)->mutable_key()->set_version(2);
  });
  EXPECT_EQ(versioned.standing, Verdict::kNewVersion);
  EXPECT_EQ(versioned.why, "version 0 -> 2: not compared");
  const Judgement renamed = ended([](proto::Run& run) {
    run.mutable_results(0)->mutable_key()->set_operator_name("BM_xs");
  });
  EXPECT_EQ(renamed.standing, Verdict::kRenamed);
  EXPECT_EQ(renamed.why, "it may be called BM_xs now");
}

}  // namespace
}  // namespace optrail::tracker
