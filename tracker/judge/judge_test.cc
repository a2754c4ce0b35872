#include "tracker/judge/judge.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/online.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/judge_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

TEST_F(JudgeTest, ANewChangeForTheWorseIsARegressionAndTheNorm) {
  Measure(40, 100);
  Measure(20, 110);
  const Judgement judgement = Judge();
  EXPECT_EQ(judgement.standing, Verdict::kSlower);
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_TRUE(judgement.changes[0].IsAlert());
  EXPECT_EQ(judgement.decided_by, 0);
  EXPECT_EQ(judgement.baseline_begin, 40);
}

TEST_F(JudgeTest, AStepThatStandsApartAlertsBeforeItIsConfirmed) {
  Measure(12, 100);
  Measure(4, 140);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_TRUE(judgement.changes[0].provisional);
  EXPECT_TRUE(judgement.changes[0].IsAlert());
  EXPECT_EQ(judgement.standing, Verdict::kSlower);
  EXPECT_EQ(judgement.NormOf(16, series_[0], TriageBook({}, 0)), 0);

  // One of a size that noise may have is none before that.
  runs_.clear();
  Measure(12, 100);
  Measure(8, 104);
  for (const Change& change : Judge().changes) {
    EXPECT_FALSE(change.IsAlert());
  }
}

// The gate calls the newest run alone faster: the series is not unchanged.
TEST_F(JudgeTest, AGainOfOnePointIsSuspectedAndNoAlert) {
  for (const int before : {7, 30}) {
    runs_.clear();
    Measure(before, 100);
    EXPECT_THAT(Judge().changes, SizeIs(0)) << before;
    Measure(1, 80);
    Judgement judgement = Judge();
    ASSERT_THAT(judgement.changes, SizeIs(1)) << before;
    EXPECT_EQ(ChangeText(judgement.changes[0]), "provisional, new");
    EXPECT_EQ(judgement.changes[0].change.index, before);
    EXPECT_LT(judgement.changes[0].worse_by, -.15);
    EXPECT_EQ(judgement.standing, Verdict::kMaybeFaster) << before;
    Measure(5, 80);
    judgement = Judge();
    EXPECT_EQ(judgement.standing, Verdict::kFaster) << before;
    EXPECT_FALSE(judgement.changes[0].IsAlert());
  }
}

// A commit alone may be a bad run; the gate judges it.
TEST_F(JudgeTest, AStepFarFromTheNoiseAlertsFromItsSecondCommitOn) {
  Measure(20, 100);
  Measure(1, 140);
  EXPECT_FALSE(Judge().changes.at(0).IsAlert());
  EXPECT_EQ(Judge().standing, Verdict::kMaybeSlower);
  for (int since = 2; since < 8; ++since) {
    Measure(1, 140);
    const Judgement judgement = Judge();
    ASSERT_THAT(judgement.changes, SizeIs(1));
    EXPECT_TRUE(judgement.changes[0].IsAlert()) << since;
    EXPECT_EQ(judgement.changes[0].change.index, 20) << since;
    EXPECT_EQ(judgement.standing, Verdict::kSlower) << since;
  }
}

// The detector needs eight points before a step to see it.
TEST_F(JudgeTest, AStepAfterFewPointsBeginsWhereItDid) {
  Measure(7, 100);
  Measure(4, 140);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_EQ(judgement.changes[0].change.index, 7);
  EXPECT_EQ(judgement.changes[0].PointsSince(), 4);
  EXPECT_TRUE(judgement.changes[0].IsAlert());
}

// What follows a mark of an epoch that has ended is of another epoch.
TEST_F(JudgeTest, NothingConfirmsAMarkOfAPastEpoch) {
  Measure(30, 100);
  Measure(3, 110);
  ASSERT_TRUE(Judge().changes.at(0).points_to_answer);
  Measure(1, 100, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
    run.mutable_results(0)->clear_measurements();
    run.mutable_results(0)->set_outcome(proto::CRASHED);
  });
  ASSERT_THAT(Judge().changes, SizeIs(1));
  EXPECT_FALSE(Judge().changes[0].points_to_answer);
  EXPECT_THAT(Judge().changes[0].AnswerText(), HasSubstr("epoch ended"));
}

TEST_F(JudgeTest, ARegressionThatNobodyAnsweredStaysForEver) {
  Measure(40, 100);
  Measure(200, 110);
  EXPECT_EQ(Judge().standing, Verdict::kSlower);
  EXPECT_EQ(Judge().why, "since 200 points");
  // Another compiler is no answer.
  Measure(30, 105, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  EXPECT_EQ(Judge().standing, Verdict::kSlower);
  Say(proto::ACKNOWLEDGE, 40);
  EXPECT_EQ(Judge().standing, Verdict::kAcknowledged);
}

// Too few points for the detector: the gate is red at the first of them.
TEST_F(JudgeTest, NewestPointsThatStandOffAreMaybeSlowerFromTheFirstOn) {
  Measure(30, 100);
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
  for (int since = 1; Judge().standing != Verdict::kSlower; ++since) {
    ASSERT_LT(since, 30);
    Measure(1, 112);
    const Judgement judgement = Judge();
    if (judgement.standing == Verdict::kSlower) break;
    EXPECT_EQ(judgement.standing, Verdict::kMaybeSlower) << since;
    ASSERT_THAT(judgement.changes, SizeIs(1));
    EXPECT_EQ(judgement.changes[0].PointsSince(), since);
    EXPECT_TRUE(judgement.changes[0].IsOpen());
    EXPECT_THAT(judgement.why, HasSubstr("gate judges the newest run"));
    ASSERT_TRUE(judgement.changes[0].points_to_answer);
    EXPECT_LT(*judgement.changes[0].points_to_answer, 30);
  }
}

// Steps of 2.7% are no news, and hide none that come on top of them.
TEST_F(JudgeTest, ASlowDownOnTopOfAStepThatIsNoNewsIsSaid) {
  const auto exactly = [](double ns) {
    return [ns](proto::Run& run) {
      const double noise = .001 * (run.started_unix_ns() % 3 - 1.);
      run.mutable_results(0)->mutable_measurements(0)->set_median_ns(
          ns * (1 + noise));
    };
  };
  Measure(30, 100, exactly(100));
  Measure(8, 102.7, exactly(102.7));
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
  ASSERT_THAT(Judge().levels, SizeIs(2));
  Measure(1, 104, exactly(104));
  const Judgement judgement = Judge();
  EXPECT_EQ(judgement.standing, Verdict::kMaybeSlower);
  ASSERT_THAT(judgement.changes, SizeIs(2));
  EXPECT_NEAR(judgement.changes[1].change.relative_change, .04, .005);
}

// A creep of .34% a point has a mark of less than 3% for a while: the points
// since then spread by more than the noise, those before do not.
TEST_F(JudgeTest, AMarkThatIsNoNewsHidesNoClimbBeyondIt) {
  for (const double noise : {.001, .003}) {
    runs_.clear();
    const auto measure = [&](double ns) {
      Measure(1, ns, [&](proto::Run& run) {
        run.mutable_results(0)->mutable_measurements(0)->set_median_ns(
            ns * std::exp(noise * rng_.Gaussian()));
      });
    };
    for (int i = 0; i < 22; ++i) measure(100);
    for (int i = 1; i <= 20; ++i) {
      measure(100 * (1 + .0034 * i));
      const Judgement judgement = Judge();
      if (i < 7) {
        EXPECT_EQ(judgement.standing, Verdict::kUnchanged) << i;
      }
      if (.0034 * i < .03 + 4 * noise) continue;
      EXPECT_TRUE(judgement.standing == Verdict::kMaybeSlower ||
                  judgement.standing == Verdict::kSlower)
          << noise << " " << i << " " << judgement.why;
    }
  }
}

// A gain of a third at the newest point, beside a mark of .6%.
TEST_F(JudgeTest, AMarkThatIsNoNewsHidesNoGain) {
  for (const double factor : {1.006, .994}) {
    runs_.clear();
    const auto measure = [&](double ns) {
      Measure(1, ns, [&](proto::Run& run) {
        run.mutable_results(0)->mutable_measurements(0)->set_median_ns(
            ns * (1 + .0005 * (run.started_unix_ns() % 3 - 1.)));
      });
    };
    for (int i = 0; i < 25; ++i) measure(100);
    int marked = 0;
    for (int i = 0; i < 8; ++i) {
      measure(100 * factor);
      const Judgement before = Judge();
      marked += !before.changes.empty() && before.changes.back().provisional;
      measure(64);
      EXPECT_EQ(Judge().standing, Verdict::kMaybeFaster) << factor << " " << i;
      runs_.pop_back();
    }
    EXPECT_GT(marked, 0);
  }
}

TEST_F(JudgeTest, NewestPointsWithinTheNoiseAreNoChange) {
  int marked = 0;
  for (int k = 0; k < 300; ++k) {
    runs_.clear();
    Measure(30, 100);
    marked += Judge().standing == Verdict::kMaybeSlower;
  }
  EXPECT_LE(marked, 3);
}

// The report shows standings, `changes` counts alerts.
TEST_F(JudgeTest, WhatIsAnAlertIsARegressionAndNothingElseIs) {
  for (int story = 0; story < 60; ++story) {
    runs_.clear();
    records_.clear();
    double level = 100;
    for (int stretch = 0; stretch < 5; ++stretch) {
      level *= std::exp(.08 * rng_.Gaussian());
      Measure(5 + static_cast<int>(40 * rng_.UniformReal()), level,
              [&](proto::Run& run) {
                if (story % 3 != 0 || stretch != 3) return;
                run.mutable_toolchain()->set_compiler("g++ 13");
              });
    }
    if (story % 2 == 0) {
      Say(proto::MUTE, static_cast<int>(runs_.size() * rng_.UniformReal()));
    }
    const Judgement judgement = Judge();
    int alerts = 0;
    for (const Change& change : judgement.changes) {
      alerts += change.IsAlert() && change.worse_by >= kLeastEffect;
    }
    EXPECT_EQ(judgement.standing == Verdict::kSlower, alerts > 0) << story;
  }
}

TEST_F(JudgeTest, LevelsOfTwoEpochsDoNotCompare) {
  Measure(40, 100);
  Measure(25, 110, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  const Judgement judgement = Judge();
  EXPECT_NE(judgement.standing, Verdict::kSlower);
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_EQ(judgement.changes[0].kind, ChangeKind::kEpoch);
  EXPECT_NEAR(judgement.changes[0].change.relative_change, .1, .02);
  EXPECT_EQ(ChangeText(judgement.changes[0]), "new epoch");
  EXPECT_EQ(judgement.baseline_begin, 40);
  EXPECT_EQ(judgement.epoch_begins, (std::vector<int>{0, 40}));
}

TEST_F(JudgeTest, ARegressionThatWasFixedIsNoAlert) {
  Measure(40, 100);
  Measure(30, 110);
  Measure(30, 100);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(2));
  EXPECT_TRUE(judgement.changes[0].IsUndone());
  EXPECT_FALSE(judgement.changes[0].IsAlert());
  EXPECT_NE(judgement.standing, Verdict::kSlower);
}

// Too few points came before it for a detector to confirm it while it lasted.
TEST_F(JudgeTest, AStretchThatEndedIsListedWithItsEnd) {
  for (const int after : {6, 12, 20}) {
    runs_.clear();
    Measure(12, 100);
    Measure(8, 130);
    Measure(after, 100);
    const Judgement judgement = Judge();
    ASSERT_FALSE(judgement.changes.empty()) << after;
    const Change& begin = judgement.changes.front();
    EXPECT_EQ(begin.change.index, 12) << after;
    EXPECT_NEAR(begin.worse_by, .3, .03) << after;
    ASSERT_NE(begin.back, nullptr) << after;
    EXPECT_EQ(begin.back->runs->commit.id(), CommitId(20)) << after;
    EXPECT_FALSE(begin.IsAlert() || begin.IsOpen()) << after;
    EXPECT_TRUE(judgement.standing == Verdict::kUnchanged ||
                judgement.standing == Verdict::kCannotTell)
        << after << ": " << judgement.why;
  }
}

TEST_F(JudgeTest, AGainHasNoStretchBeforeIt) {
  Measure(30, 100);
  Measure(8, 80);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_FALSE(judgement.changes[0].IsUndone());
}

TEST_F(JudgeTest, AnImprovementThatIsLostIsAnAlert) {
  Measure(40, 110);
  Measure(30, 100);
  Measure(30, 110);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(2));
  EXPECT_TRUE(judgement.changes[1].IsAlert());
  EXPECT_EQ(judgement.standing, Verdict::kSlower);
}

TEST_F(JudgeTest, WhatCannotBeJudgedIsNeverUnchanged) {
  Measure(1, 100);
  EXPECT_EQ(Judge().standing, Verdict::kNoBaseline);
  while (runs_.size() < OnlineDetector::kFewestPoints - 1) {
    Measure(1, 100);
    EXPECT_EQ(Judge().standing, Verdict::kCannotTell) << runs_.size();
  }
  Measure(30, 100);
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
  Measure(3, 100, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  EXPECT_EQ(Judge().standing, Verdict::kCannotTell);
  EXPECT_THAT(Judge().why, HasSubstr("3 of 20 points of a new epoch"));
}

TEST_F(JudgeTest, NoiseThatHidesChangesIsSaid) {
  for (int i = 0; i < 60; ++i) Measure(1, 100 * std::exp(.1 * rng_.Gaussian()));
  const Judgement judgement = Judge();
  EXPECT_EQ(judgement.standing, Verdict::kCannotTell);
  EXPECT_THAT(judgement.why, HasSubstr("noise hides"));
}

TEST_F(JudgeTest, TheNewestPointThatFailedIsSaid) {
  Measure(40, 100);
  Measure(1, 100, [](proto::Run& run) {
    run.mutable_results(0)->clear_measurements();
    run.mutable_results(0)->set_outcome(proto::CRASHED);
    run.mutable_results(0)->set_detail("signal 11");
  });
  EXPECT_EQ(Judge().standing, Verdict::kFailed);
  EXPECT_EQ(Judge().why, "CRASHED: signal 11");
  EXPECT_EQ(Judge().weights.back(), 0);
}

TEST_F(JudgeTest, ACrashOfOneProcessOfTheNewestPointIsSaid) {
  Measure(40, 100);
  Measure(1, 100, [](proto::Run& run) {
    run.mutable_results(0)->set_outcome(proto::CRASHED);
    run.mutable_results(0)->set_detail("signal 11");
  });
  EXPECT_EQ(Judge().standing, Verdict::kFailed);
  EXPECT_EQ(Judge().why, "CRASHED: signal 11");
}

TEST_F(JudgeTest, WhatIsSkippedIsMissingOrWasNeverMeasured) {
  const auto skip = [](proto::Run& run) {
    run.mutable_results(0)->clear_measurements();
    run.mutable_results(0)->set_outcome(proto::UNSUPPORTED);
    run.mutable_results(0)->set_detail("needs AVX-512");
  };
  Measure(3, 100, skip);
  EXPECT_EQ(Judge().standing, Verdict::kSkipped);
  EXPECT_EQ(Judge().why, "skipped: needs AVX-512");
  Measure(30, 100);
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
  Measure(1, 100, skip);
  EXPECT_EQ(Judge().standing, Verdict::kMissing);
  EXPECT_EQ(Judge().why, "skipped: needs AVX-512");
}

TEST_F(JudgeTest, OneRunFarOffIsWeighedDown) {
  Measure(20, 100);
  Measure(1, 150);
  Measure(5, 100);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.weights, SizeIs(26));
  EXPECT_THAT(judgement.weights[20], Lt(.05));
  EXPECT_EQ(judgement.baseline_begin, 0);
  double others = 0;
  for (const double weight : judgement.weights) others += weight;
  EXPECT_GT(others - judgement.weights[20], 24);
}

TEST_F(JudgeTest, HigherMayBeBetter) {
  const auto as_rate = [](proto::Run& run) {
    proto::Measurement* measurement =
        run.mutable_results(0)->mutable_measurements(0);
    proto::MetricSamples* samples = measurement->add_metrics();
    samples->set_metric("rate");
    samples->set_unit("items/s");
    samples->set_direction(proto::HIGHER_IS_BETTER);
    samples->add_values(1e3 / measurement->median_ns());
  };
  Measure(40, 100, as_rate);
  Measure(20, 125, as_rate);
  series_ = BuildSeries(runs_);
  ASSERT_THAT(series_, SizeIs(2));
  const TriageBook book(records_, 0);
  for (const Judgement& judgement : JudgeAll(series_, book)) {
    EXPECT_EQ(judgement.standing, Verdict::kSlower);
    EXPECT_NEAR(judgement.changes[0].worse_by, .25, .02);
  }
}

TEST_F(JudgeTest, TooFewPointsSayHowManyThereAreAndWhatToUse) {
  Measure(1, 100);
  EXPECT_EQ(Judge().why, "1 of 20 points; use gate or bisect");
  Measure(8, 100);
  EXPECT_EQ(Judge().standing, Verdict::kCannotTell);
  EXPECT_EQ(Judge().why, "9 of 20 points; use gate or bisect");
  Measure(3, 100, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  EXPECT_EQ(Judge().why, "3 of 20 points of a new epoch; use gate or bisect");
}

}  // namespace
}  // namespace optrail::tracker
