// Creeps in the judge's answers, and what people say of them.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/judge.h"
#include "tracker/judge/judge_test_fixture.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace optrail::tracker
