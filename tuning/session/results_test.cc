#include "tuning/session/results.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/numerics.h"

namespace optrail::tuning {
namespace {

template <typename Stored>
void AddValue(const std::string& metric, double value, Stored* stored) {
  proto::MetricSamples& samples = *stored->add_objectives();
  samples.set_metric(metric);
  samples.add_values(value);
}

// A session of a command with the configs b=1, the default, where t is 1 and m
// is 9, and b=2, where t is 2 and m is 8.
proto::Session CommandSession() {
  proto::Session session;
  for (const char* metric : {"t", "m"}) {
    proto::Objective& objective = *session.add_objectives();
    objective.set_metric(metric);
    objective.set_direction(proto::LOWER_IS_BETTER);
  }
  for (const int b : {1, 2}) {
    proto::Trial& trial = *session.add_trials();
    *trial.mutable_config() = *ParseConfig("b=" + std::to_string(b));
    trial.set_outcome(proto::OK);
    AddValue("t", b, &trial);
    AddValue("m", 10 - b, &trial);
    proto::Finalist& finalist = *session.add_finalists();
    *finalist.mutable_config() = trial.config();
    finalist.set_outcome(proto::OK);
    finalist.set_is_default(b == 1);
    AddValue("t", b, &finalist);
    AddValue("m", 10 - b, &finalist);
  }
  return session;
}

void Compare(double gain, bool claimed, proto::Session* session) {
  proto::Proof& proof = *session->mutable_proof();
  *proof.mutable_candidate() = *ParseConfig("b=2");
  proof.set_metric("t");
  proof.set_rounds(44);
  proof.set_gain(gain);
  proof.set_gain_low(gain - .02);
  proof.set_gain_high(gain + .02);
  proof.set_claimed(claimed);
}

TEST(ResultsTest, AProofNamesWhatWasCompared) {
  proto::Session session = CommandSession();
  Compare(.224, /*claimed=*/true, &session);
  *session.mutable_winner() = *ParseConfig("b=2");
  EXPECT_EQ(ProofText(session),
            "proven: 22.4% better than the default in t (20.4% to 24.4%, 44 "
            "paired rounds)");
  Compare(-.072, /*claimed=*/false, &session);
  session.mutable_proof()->set_end(proto::PROOF_TIME_SPENT);
  *session.mutable_winner() = *ParseConfig("b=1");
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: b=2 is 7.2% worse than it "
            "in t (5.2% to 9.2%, 44 paired rounds; time spent)");
  *session.mutable_incumbent() = *ParseConfig("b=2");
  *session.mutable_winner() = *ParseConfig("b=2");
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the stored config stays: it is 7.2% worse than "
            "the default in t (5.2% to 9.2%, 44 paired rounds; time spent)");
}

TEST(ResultsTest, AProofWithoutRoundsHasNoGain) {
  proto::Session session = CommandSession();
  *session.mutable_winner() = *ParseConfig("b=1");
  session.mutable_proof()->set_end(proto::PROOF_DISTURBED);
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: not one paired round could "
            "be measured (disturbed)");
  session.mutable_proof()->set_rounds(1);
  session.mutable_proof()->set_gain(.03);
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: the best other config is "
            "3.0% better than it (too few rounds for an interval, 1 paired "
            "round; disturbed)");
}

TEST(ResultsTest, ADefaultBeyondALimitDoesNotStay) {
  proto::Session session = CommandSession();
  session.mutable_objectives(1)->set_limit(8);
  Compare(-1, /*claimed=*/false, &session);
  *session.mutable_winner() = *ParseConfig("b=2");
  EXPECT_EQ(
      ProofText(session),
      "the default is beyond m<=8 and may not win; the best config within "
      "is 100.0% worse than the default in t (98.0% to 102.0%, 44 paired "
      "rounds)");
}

TEST(ResultsTest, AWeightedGainSaysWhatEachMetricBecame) {
  proto::Session session = CommandSession();
  session.mutable_objectives(0)->set_weight(1);
  session.mutable_objectives(1)->set_weight(1);
  session.mutable_objectives(1)->set_direction(proto::HIGHER_IS_BETTER);
  Compare(-1.25, /*claimed=*/false, &session);
  *session.mutable_winner() = *ParseConfig("b=1");
  EXPECT_EQ(ProofText(session),
            "no gain is proven, the default stays: b=2 is 125.0% worse than it "
            "in the weighted product of t and m (123.0% to 127.0%, 44 paired "
            "rounds); t 100.0% worse, m 11.1% worse");
}

TEST(ResultsTest, WithoutAWinnerTheReasonIsNamed) {
  proto::Session session = CommandSession();
  session.mutable_objectives(1)->set_limit(3);
  EXPECT_TRUE(ResultsOf(session).empty());
  EXPECT_EQ(NoWinnerText(session),
            "no config is within m<=3: the nearest is b=2 with m 8");
  session.mutable_objectives(1)->set_limit(9);
  for (proto::Finalist& finalist : *session.mutable_finalists()) {
    finalist.set_outcome(proto::CRASHED);
    finalist.set_detail("exit code 7");
  }
  EXPECT_EQ(NoWinnerText(session),
            "no config worked: b=1 failed when it was run again: CRASHED, exit "
            "code 7; b=2 failed when it was run again: CRASHED, exit code 7");
  for (proto::Finalist& finalist : *session.mutable_finalists()) {
    finalist.set_outcome(proto::OK);
  }
  EXPECT_EQ(NoWinnerText(session), "none of the configs that worked may win");
  *session.mutable_winner() = *ParseConfig("b=1");
  EXPECT_EQ(NoWinnerText(session), "");
  EXPECT_EQ(NoWinnerText(proto::Session()), "no config worked");
}

// CommandSession judged by t alone, with b=3, which was not run again.
proto::Session WithAnUnreadConfig() {
  proto::Session session = CommandSession();
  session.mutable_objectives()->RemoveLast();
  proto::Trial& trial = *session.add_trials();
  *trial.mutable_config() = *ParseConfig("b=3");
  trial.set_outcome(proto::OK);
  AddValue("t", 3, &trial);
  return session;
}

TEST(ResultsTest, ConfigsThatWorkedAreNotDeniedWhereAllFinalistsFail) {
  proto::Session session = WithAnUnreadConfig();
  for (proto::Finalist& finalist : *session.mutable_finalists()) {
    finalist.set_outcome(proto::CRASHED);
  }
  EXPECT_EQ(ResultsOf(session).size(), 1u);
  EXPECT_EQ(WhyNoWinner(session), NoWinner::kFailedAgain);
  EXPECT_EQ(NoWinnerText(session),
            "no config that was run again worked: b=1 failed when it was run "
            "again: CRASHED; b=2 failed when it was run again: CRASHED");
  session.mutable_finalists(0)->set_outcome(proto::OK);
  EXPECT_EQ(NoWinnerText(session),
            "no config that was run again may win: b=2 failed when it was run "
            "again: CRASHED");
  session.mutable_finalists(0)->set_outcome(proto::CONTENDED);
  EXPECT_EQ(WhyNoWinner(session), NoWinner::kBusy);
  EXPECT_EQ(NoWinnerText(session),
            "the machine was too busy to measure b=1 again; b=2 failed when it "
            "was run again: CRASHED");
  session.clear_finalists();
  EXPECT_EQ(WhyNoWinner(session), NoWinner::kNotRunAgain);
  EXPECT_EQ(NoWinnerText(session),
            "the session ended before it ran its best configs again");
}

TEST(ResultsTest, WhatMayNotWinIsNamedWhereItIsKnown) {
  proto::Session session = WithAnUnreadConfig();
  EXPECT_EQ(WhyNoWinner(session), NoWinner::kMayNotWin);
  for (proto::Trial& trial : *session.mutable_trials()) {
    AddNumerics(uint64_t{1} << 60, trial.mutable_facts());
    AddBatchInvariance(false, trial.mutable_facts());
  }
  EXPECT_EQ(NoWinnerText(session),
            "no config that was tried is batch-invariant");
  session.mutable_trials(1)->clear_facts();
  AddNumerics(uint64_t{1} << 60, session.mutable_trials(1)->mutable_facts());
  AddBatchInvariance(true, session.mutable_trials(1)->mutable_facts());
  EXPECT_EQ(NoWinnerText(session), "none of the configs that worked may win");
}

TEST(ResultsTest, AFrontNamesNoWinnerAndMissesNone) {
  proto::Session session = CommandSession();
  EXPECT_EQ(WhyNoWinner(session), NoWinner::kHasOne);
  EXPECT_EQ(NoWinnerText(session), "");
  for (proto::Trial& trial : *session.mutable_trials()) {
    trial.set_outcome(proto::CRASHED);
  }
  session.clear_finalists();
  EXPECT_EQ(NoWinnerText(session), "no config worked");
}

}  // namespace
}  // namespace optrail::tuning
