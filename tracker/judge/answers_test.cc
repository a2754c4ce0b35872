// The judge's answers hold what people have said of changes.

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/judge/judge.h"
#include "tracker/judge/judge_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

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

// `changes` counts it as answered, whichever way it went.
TEST_F(JudgeTest, AnAcknowledgedGainIsNotFasterAnyMore) {
  Measure(30, 100);
  Measure(8, 80);
  EXPECT_EQ(Judge().standing, Verdict::kFaster);
  Say(proto::ACKNOWLEDGE, 30);
  const Judgement judgement = Judge();
  EXPECT_EQ(judgement.standing, Verdict::kAcknowledged);
  EXPECT_THAT(judgement.why, HasSubstr("because"));
  ChangeCounts counts;
  for (const Change& change : judgement.changes) counts.Add(change);
  EXPECT_EQ(counts.answered, 1);
}

// It covers no change, so it takes no verdict back.
TEST_F(JudgeTest, AnAckBesideAChangeMakesItNoLessSure) {
  for (const bool names_size : {true, false}) {
    runs_.clear();
    records_.clear();
    Measure(33, 100);
    if (names_size) {
      Say(proto::ACKNOWLEDGE, 32);
      proto::AnsweredChange* answered = records_[0].add_answered();
      series_ = BuildSeries(runs_);
      answered->set_series(series_[0].text);
      answered->mutable_last_before()->set_id(CommitId(31));
      answered->mutable_last()->set_id(CommitId(32));
      answered->set_effect_low(-.01);
      answered->set_effect_high(.005);
    }
    Measure(2, 130);
    const Judgement judgement = Judge();
    ASSERT_THAT(judgement.changes, SizeIs(1)) << names_size;
    EXPECT_EQ(judgement.changes[0].opinion.state, ChangeState::kNew);
    EXPECT_TRUE(judgement.changes[0].IsAlert()) << names_size;
    EXPECT_EQ(judgement.standing, Verdict::kSlower) << names_size;
  }
}

// The gate is red there: a level of two points hides no second step.
TEST_F(JudgeTest, AnAcknowledgedStepHidesNoLargerOneAFewPointsLater) {
  for (const int between : {1, 2, 3, 4}) {
    runs_.clear();
    records_.clear();
    Measure(30, 100);
    Measure(between, 110);
    Say(proto::ACKNOWLEDGE, 30);
    proto::AnsweredChange* answered = records_[0].add_answered();
    series_ = BuildSeries(runs_);
    answered->set_series(series_[0].text);
    answered->mutable_last_before()->set_id(CommitId(29));
    answered->mutable_last()->set_id(CommitId(30));
    answered->set_effect_low(.08);
    answered->set_effect_high(.12);
    Measure(1, 135);
    const Judgement judgement = Judge();
    ASSERT_FALSE(judgement.changes.empty()) << between;
    const Change& newest = judgement.changes.back();
    EXPECT_EQ(newest.opinion.state, ChangeState::kNew) << between;
    EXPECT_GT(newest.worse_by, .1) << between;
    EXPECT_EQ(judgement.standing, Verdict::kMaybeSlower) << between;
  }
}

}  // namespace
}  // namespace optrail::tracker
