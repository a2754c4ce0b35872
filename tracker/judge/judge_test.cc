#include "tracker/judge/judge.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/online.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/judge_test_fixture.h"
#include "tracker/series/series_key.h"

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

TEST_F(JudgeTest, AnAcknowledgedGainOfOnePointKeepsItsRow) {
  Measure(7, 100);
  Measure(1, 70);
  Say(proto::ACKNOWLEDGE, 7);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_EQ(judgement.changes[0].opinion.state, ChangeState::kAcknowledged);
  EXPECT_EQ(judgement.changes[0].change.index, 7);
}

TEST_F(JudgeTest, AnAcknowledgedSlowDownHidesNoGainAfterIt) {
  Measure(7, 100);
  Measure(1, 130);
  Say(proto::ACKNOWLEDGE, 7);
  Measure(1, 70);
  const Judgement judgement = Judge();
  ASSERT_FALSE(judgement.changes.empty());
  const Change& newest = judgement.changes.back();
  EXPECT_EQ(newest.change.index, 8);
  EXPECT_LT(newest.worse_by, -.2);
}

TEST_F(JudgeTest, WhatWasAnsweredIsNeverUnchanged) {
  Measure(40, 100);
  Measure(60, 120);
  for (const auto& [kind, verdict] :
       {std::make_pair(proto::MUTE, Verdict::kMuted),
        std::make_pair(proto::EXPECT, Verdict::kExpected),
        std::make_pair(proto::ACKNOWLEDGE, Verdict::kAcknowledged)}) {
    records_.clear();
    Say(kind, 40);
    const Judgement judgement = Judge();
    EXPECT_EQ(judgement.standing, verdict);
    EXPECT_THAT(judgement.why, HasSubstr("because; since 60 points"));
    ChangeCounts counts;
    counts.Add(judgement.changes.at(0));
    EXPECT_EQ(counts.Text(.03),
              kind == proto::MUTE
                  ? "0 new for the worse, 1 change of at least 3% (1 muted)"
                  : "0 new for the worse, 1 change of at least 3% (1 "
                    "answered)");
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

TEST_F(JudgeTest, ACreepThatWasReportedStaysWhileTheLevelDoes) {
  int reported = 0;
  for (int story = 0; story < 20; ++story) {
    runs_.clear();
    bool is_known = false;
    Measure(20, 100);
    for (int i = 1; i <= 50; ++i) {
      Measure(1, 100 * (1 + .003 * i));
      const Judgement judgement = Judge();
      const auto has = [&](const auto& wanted) {
        return std::any_of(judgement.changes.begin(), judgement.changes.end(),
                           wanted);
      };
      EXPECT_TRUE(!is_known || has([](const Change& change) {
        return change.IsOpen() || change.IsAlert();
      })) << story
          << " at " << i;
      is_known |= has([](const Change& change) {
        return change.kind == ChangeKind::kCreep;
      });
      if (!is_known) continue;
      EXPECT_NE(judgement.standing, Verdict::kUnchanged) << story << " " << i;
    }
    reported += is_known;
  }
  EXPECT_GE(reported, 19);
}

// Nobody's single commit is to blame, and the level is worse all the same.
TEST_F(JudgeTest, ACreepBeyondDoubtIsAnAlertUntilItIsAcknowledged) {
  for (int i = 0; i < 60; ++i) Measure(1, 100 * (1 + .003 * i));
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  const Change& creep = judgement.changes[0];
  EXPECT_EQ(creep.kind, ChangeKind::kCreep);
  EXPECT_TRUE(creep.IsAlert());
  EXPECT_EQ(judgement.standing, Verdict::kSlower);
  EXPECT_THAT(judgement.why, HasSubstr("creeps: +"));
  const Evidence evidence = EvidenceOf(creep);
  EXPECT_EQ(NarrowingCommand(creep, evidence, " --history=../h1"),
            absl::StrCat("optrail show '", CanonicalText(creep.series->key),
                         "' --history=../h1"));
  EXPECT_THAT(EvidenceText(creep, evidence), HasSubstr("little by little"));

  Say(proto::ACKNOWLEDGE, creep.change.index);
  for (int since = 0; since < 20; ++since) {
    for (const Change& change : Judge().changes) {
      EXPECT_FALSE(change.IsOpen() || change.IsAlert())
          << ChangeText(change) << " at " << change.change.index << ", "
          << since;
    }
    Measure(1, 100 * (1 + .003 * 60));
  }
  // A climb of an epoch that has ended stays answered.
  const std::vector<proto::Run> one_epoch = runs_;
  Measure(25, 100 * (1 + .003 * 60), [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  for (const Change& change : Judge().changes) {
    EXPECT_FALSE(change.IsOpen() || change.IsAlert()) << ChangeText(change);
  }
  runs_ = one_epoch;
  // A jump behind it is another change.
  Measure(4, 100 * (1 + .003 * 60) * 1.2);
  EXPECT_EQ(Judge().standing, Verdict::kSlower);
}

// It begins no level that hides the creep, and covers no more than its size.
TEST_F(JudgeTest, AnAcknowledgementWithinACreepAnswersWhatItCovers) {
  for (int i = 0; i < 60; ++i) Measure(1, 100 * (1 + .003 * i));
  const ChangePoint creep = Judge().changes.at(0).change;
  const auto acknowledge = [&](int place, double low, double high) {
    records_.clear();
    Say(proto::ACKNOWLEDGE, place);
    proto::AnsweredChange* answered = records_[0].add_answered();
    answered->set_series(series_.at(0).text);
    answered->set_effect_low(low);
    answered->set_effect_high(high);
    *answered->mutable_last() = runs_[place].commit();
    *answered->mutable_last_before() = runs_[place - 1].commit();
  };
  for (const int place :
       {creep.earliest, (creep.earliest + creep.index) / 2, creep.index, 58}) {
    acknowledge(place, -.019, .023);
    Judgement judgement = Judge();
    ASSERT_THAT(judgement.changes, SizeIs(1)) << place;
    EXPECT_EQ(judgement.changes[0].kind, ChangeKind::kCreep);
    EXPECT_TRUE(judgement.changes[0].IsAlert()) << place;
    EXPECT_EQ(judgement.changes[0].change.relative_change,
              creep.relative_change);
    EXPECT_EQ(judgement.standing, Verdict::kSlower) << place;
    if (place == 58) continue;
    acknowledge(place, creep.relative_change_low, creep.relative_change_high);
    judgement = Judge();
    ASSERT_THAT(judgement.changes, SizeIs(1)) << place;
    EXPECT_EQ(ChangeText(judgement.changes[0]), "creep, acknowledged");
    EXPECT_EQ(judgement.changes[0].change.relative_change,
              creep.relative_change);
    EXPECT_EQ(judgement.standing, Verdict::kAcknowledged) << place;
    // The acknowledgement does not cover twice the creep.
    const std::vector<proto::Run> known = runs_;
    for (int i = 60; i < 130; ++i) Measure(1, 100 * (1 + .003 * i));
    EXPECT_EQ(Judge().standing, Verdict::kSlower) << place;
    runs_ = known;
  }
}

// Noise hides how much of it matters.
TEST_F(JudgeTest, ASmallCreepMayBeOne) {
  for (int i = 0; i < 60; ++i) Measure(1, 100 * (1 + .0008 * i));
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_EQ(judgement.changes[0].kind, ChangeKind::kCreep);
  EXPECT_FALSE(judgement.changes[0].IsAlert());
  EXPECT_EQ(judgement.standing, Verdict::kMaybeSlower);
}

TEST_F(JudgeTest, ACreepThatWentBackIsGone) {
  for (int i = 0; i < 40; ++i) Measure(1, 100 * (1 + .003 * i));
  ASSERT_THAT(Judge().changes, SizeIs(1));
  EXPECT_EQ(Judge().changes[0].kind, ChangeKind::kCreep);
  Measure(30, 100);
  for (const Change& change : Judge().changes) {
    EXPECT_NE(change.kind, ChangeKind::kCreep);
  }
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

TEST_F(JudgeTest, AnAcknowledgedPointHasARowBeforeItIsConfirmed) {
  Measure(12, 100);
  Measure(2, 140);
  Say(proto::ACKNOWLEDGE, 12);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_EQ(judgement.changes[0].opinion.state, ChangeState::kAcknowledged);
  EXPECT_EQ(judgement.standing, Verdict::kAcknowledged);
  const TriageBook book(records_, 0);
  EXPECT_EQ(judgement.NormOf(14, series_[0], book), 12);
  EXPECT_EQ(judgement.NormOf(12, series_[0], book), 0) << "not known then";
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

TEST_F(JudgeTest, WhatIsAnsweredIsNoRegression) {
  Measure(40, 100);
  Measure(20, 110);
  for (const proto::TriageKind kind :
       {proto::ACKNOWLEDGE, proto::EXPECT, proto::MUTE}) {
    records_.clear();
    Say(kind, 40, kind == proto::EXPECT ? .12 : 0);
    const Judgement judgement = Judge();
    EXPECT_NE(judgement.standing, Verdict::kSlower) << kind;
    EXPECT_THAT(judgement.why, HasSubstr("because"));
    ASSERT_THAT(judgement.changes, SizeIs(1));
    EXPECT_FALSE(judgement.changes[0].IsAlert());
  }
  records_.clear();
  Say(proto::EXPECT, 40, .02);
  EXPECT_EQ(Judge().standing, Verdict::kSlower);
}

TEST_F(JudgeTest, AnAcknowledgementIsABaselineBeforeItsChangeIsFound) {
  Measure(40, 100);
  Measure(1, 104);
  Say(proto::ACKNOWLEDGE, 40);
  EXPECT_EQ(Judge().baseline_begin, 40);
  records_.clear();
  EXPECT_EQ(Judge().baseline_begin, 0);
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
  EXPECT_TRUE(judgement.changes[0].undone);
  EXPECT_FALSE(judgement.changes[0].IsAlert());
  EXPECT_NE(judgement.standing, Verdict::kSlower);
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
