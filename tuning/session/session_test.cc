#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/session_journal.h"
#include "tuning/session/session_test_fixture.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SessionTest, FindsTheBestOfWhatItTriedAndVerifiesIt) {
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 40);
  EXPECT_EQ(session->stop_reason(), proto::TRIALS_SPENT);
  double best_ns = 1e18;
  std::string best;
  for (const std::string& config : Tried(*session)) {
    const double time_ns = FakeEvaluator::TimeNs(*ParseConfig(config));
    if (time_ns < best_ns) {
      best_ns = time_ns;
      best = config;
    }
  }
  EXPECT_EQ(CanonicalText(session->winner()), best);
}

TEST_F(SessionTest, StartsWhereItsSourcesWereBestAndResumesWithThem) {
  setup_.header.set_strategy("default");
  std::vector<std::string> asked_for;
  load_sources = [&](const proto::Session& header) {
    asked_for.assign(header.source_session_ids().begin(),
                     header.source_session_ids().end());
    TransferSource source;
    for (int64_t i = 0; i < *bound_->size(); ++i) {
      const Levels levels = bound_->At(i);
      source.trials.push_back(
          {levels,
           proto::OK,
           {FakeEvaluator::TimeNs(bound_->ToConfig(levels))}});
    }
    return std::vector<TransferSource>{source};
  };
  setup_.header.add_source_session_ids("first");
  FakeEvaluator evaluator;
  evaluator.stop_after = 3;
  EXPECT_THROW(Run(evaluator).IgnoreError(), Killed);
  EXPECT_EQ(evaluator.evaluated[0], "tile=16,unroll=5");
  // Meanwhile another session would be nearer.
  setup_.header.set_source_session_ids(0, "newer");
  FakeEvaluator second;
  const auto session = Run(second);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(asked_for, ElementsAre("first"));
  EXPECT_THAT(session->source_session_ids(), ElementsAre("first"));
}

TEST_F(SessionTest, EndsWhenTheSpaceIsExhausted) {
  setup_.header.mutable_budget()->set_trials(1000);
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->stop_reason(), proto::SPACE_EXHAUSTED);
  EXPECT_EQ(session->trials_size(), 64);
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

TEST_F(SessionTest, EachOutcomeIsRecordedAndSuchAConfigNeverWins) {
  setup_.header.mutable_budget()->set_trials(1000);
  FakeEvaluator evaluator;
  // The fastest configs all fail, each in its own way.
  evaluator.failures = {{"tile=16,unroll=5", proto::CRASHED},
                        {"tile=16,unroll=4", proto::TIMED_OUT},
                        {"tile=16,unroll=6", proto::OUT_OF_MEMORY},
                        {"tile=16,unroll=3", proto::WRONG_RESULT},
                        {"tile=16,unroll=7", proto::INVALID},
                        {"tile=16,unroll=8", proto::LAUNCH_ERROR}};
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  std::map<std::string, proto::Outcome> seen;
  for (const proto::Trial& trial : session->trials()) {
    if (trial.outcome() != proto::OK && trial.outcome() != proto::CENSORED) {
      seen[CanonicalText(trial.config())] = trial.outcome();
    }
  }
  EXPECT_EQ(seen, evaluator.failures);
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=2");
}

// Right during the search and wrong in one of the fresh processes.
TEST_F(SessionTest, AFinalistThatFailsWhenReadAgainDoesNotWin) {
  setup_.header.mutable_budget()->set_trials(1000);
  for (const Purpose purpose : {Request::RANK, Request::PROVE}) {
    class Flaky : public FakeEvaluator {
     public:
      explicit Flaky(Purpose purpose) : purpose_(purpose) {}
      Evaluation Evaluate(const Request& request) override {
        Evaluation answer = FakeEvaluator::Evaluate(request);
        if (request.purpose() == purpose_ &&
            CanonicalText(request.config()) == "tile=16,unroll=5" &&
            ++readings_ == 2) {
          answer.mutable_trial()->set_outcome(proto::WRONG_RESULT);
        }
        return answer;
      }

     private:
      const Purpose purpose_;
      int readings_ = 0;
    } evaluator(purpose);
    setup_.journal_directory += "x";
    const auto session = Run(evaluator);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_NE(CanonicalText(session->winner()), "tile=16,unroll=5");
    EXPECT_EQ(session->finalists(1).outcome(), proto::WRONG_RESULT);
    // The next best is proven instead.
    EXPECT_EQ(session->proof().candidate().SerializeAsString(),
              session->winner().SerializeAsString());
    EXPECT_TRUE(session->proof().claimed());
  }
}

TEST_F(SessionTest, WithoutADefaultThatWorksTheBestWinsUnproven) {
  setup_.header.mutable_budget()->set_trials(1000);
  FakeEvaluator evaluator;
  evaluator.failures = {{"tile=1,unroll=1", proto::CRASHED}};
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
  EXPECT_FALSE(session->has_proof());
  EXPECT_GE(session->finalists(1).measurements_size(), setup_.rank_rounds);
}

TEST_F(SessionTest, WhereNothingElseWorksTheDefaultIsReadUntilItIsKnownToWork) {
  FakeEvaluator evaluator;
  for (int64_t i = 0; i < *bound_->size(); ++i) {
    const std::string text = CanonicalText(bound_->ToConfig(bound_->At(i)));
    if (text != "tile=1,unroll=1") evaluator.failures[text] = proto::CRASHED;
  }
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=1,unroll=1");
  EXPECT_EQ(session->finalists(0).measurements_size(), setup_.rank_rounds);
  EXPECT_TRUE(session->finalists(0).has_time_ns());
}

TEST_F(SessionTest, NoWinnerWhenNothingWorks) {
  FakeEvaluator evaluator;
  for (int64_t i = 0; i < *bound_->size(); ++i) {
    evaluator.failures[CanonicalText(bound_->ToConfig(bound_->At(i)))] =
        proto::CRASHED;
  }
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(session->has_winner());
}

TEST_F(SessionTest, PrefersTheDefaultToAGainTooSmallToMatter) {
  setup_.header.mutable_budget()->set_trials(1000);
  class Flat : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      const bool is_default =
          CanonicalText(request.config()) == "tile=1,unroll=1";
      answer.mutable_trial()->set_outcome(proto::OK);
      SetTime(is_default ? 1.001e5 : 1e5, *answer.mutable_trial());
      return answer;
    }
  } evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=1,unroll=1");
  // What was found is on record all the same.
  EXPECT_FALSE(session->proof().claimed());
  EXPECT_NEAR(session->proof().gain(), .001, .0005);
}

TEST_F(SessionTest, AProofEndsWithTheTimeThatItWasGiven) {
  // Ratios of rounds vary by a fifth: nothing is known within 1% soon.
  class Noisy : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() == Request::PROVE) {
        SetTime(answer.trial().time_ns() * (1 + .2 * (++readings_ % 3)),
                *answer.mutable_trial());
      }
      return answer;
    }

   private:
    int readings_ = 0;
  };
  std::vector<int> rounds;
  for (const absl::Duration time : {absl::Nanoseconds(1), absl::Seconds(1)}) {
    Noisy evaluator;
    setup_.proof.max_time = time;
    setup_.journal_directory += "x";
    const auto session = Run(evaluator);
    ASSERT_TRUE(session.ok()) << session.status();
    if (rounds.empty()) {
      EXPECT_EQ(session->proof().end(), proto::PROOF_TIME_SPENT);
    }
    rounds.push_back(session->proof().rounds());
  }
  EXPECT_EQ(rounds[0], setup_.proof.min_rounds);
  EXPECT_GT(rounds[1], rounds[0]);
}

// A reading takes 1 ms, a round of the ranking 4, a round of the proof 2.
TEST_F(SessionTest, RankingAndProofEndWithTheTimeOfTheSession) {
  FakeEvaluator evaluator;
  evaluator.again_noise = .3;
  setup_.rank_rounds = 50;
  setup_.proof.max_time = absl::Milliseconds(10);
  const auto run = [&](absl::optional<absl::Duration> whole) {
    setup_.proof.session_max_time = whole;
    auto opened = Session::Open(setup_, evaluator, clock_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    while (!(*opened)->search_ended()) EXPECT_TRUE((*opened)->Advance().ok());
    auto session = (*opened)->Finish();
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*opened)->ranking_cut(), whole.has_value());
    EXPECT_TRUE(RemoveSessionJournal(setup_).ok());
    return *session;
  };
  const proto::Session free = run(absl::nullopt);
  EXPECT_GT(free.time().rank_ns(), 60'000'000);
  // 40 ms of search, 10 of proof: 15 of ranking are left.
  const proto::Session bounded = run(absl::Milliseconds(65));
  EXPECT_EQ(bounded.time().rank_ns(), 16'000'000);
  EXPECT_LT(bounded.elapsed_ns(), 70'000'000);
  EXPECT_TRUE(bounded.has_winner());
  // Nothing is left: one round, and the fewest that a proof needs.
  const proto::Session late = run(absl::Milliseconds(40));
  EXPECT_EQ(late.time().rank_ns(), 4'000'000);
  EXPECT_EQ(late.time().prove_ns(), 10'000'000);
  EXPECT_TRUE(late.has_winner());
}

// Opening a process takes nine times as long as reading.
TEST_F(SessionTest, ATimeOfTheSessionPaysForOpeningProcesses) {
  FakeEvaluator evaluator;
  evaluator.open_ns = 9'000'000;
  setup_.header.mutable_budget()->clear_trials();
  setup_.header.mutable_budget()->set_time_ns(300'000'000);
  setup_.proof.max_time = absl::Milliseconds(200);
  const auto run = [&](absl::optional<absl::Duration> whole) {
    setup_.proof.session_max_time = whole;
    auto session = Run(evaluator);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(RemoveSessionJournal(setup_).ok());
    return *session;
  };
  const auto trials = [](const proto::Session& session) {
    return session.trials_size() - session.warm_start_trial_count();
  };
  const proto::Session bounded = run(absl::Milliseconds(600));
  EXPECT_EQ(trials(bounded), 30);
  EXPECT_LE(bounded.elapsed_ns() + bounded.time().effort().open_ns(),
            700'000'000);
  EXPECT_TRUE(bounded.has_winner());
  // A search alone is bounded by what it reads.
  EXPECT_GT(trials(run(absl::nullopt)), 2 * trials(bounded));
}

// Reading with its process takes 10 ms, the least proof ten readings.
TEST_F(SessionTest, ATimeOfTheSessionIsLeftToTheFinalists) {
  setup_.header.mutable_budget()->clear_trials();
  const auto run = [&](absl::Duration whole, std::string* short_text) {
    FakeEvaluator evaluator;
    evaluator.open_ns = 9'000'000;
    setup_.header.mutable_budget()->set_time_ns(
        absl::ToInt64Nanoseconds(whole / 2));
    setup_.proof.max_time = whole / 3;
    setup_.proof.session_max_time = whole;
    auto opened = Session::Open(setup_, evaluator, clock_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->ShortBudgetText(), "");  // nothing is known yet
    while (!(*opened)->search_ended()) EXPECT_TRUE((*opened)->Advance().ok());
    *short_text = (*opened)->ShortBudgetText();
    auto session = (*opened)->Finish();
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(session->has_winner());
    EXPECT_TRUE(RemoveSessionJournal(setup_).ok());
    return absl::Nanoseconds(session->elapsed_ns() +
                             session->time().effort().open_ns());
  };
  std::string text;
  // Half of it for the search would leave too little for the proof. A round of
  // the ranking that has begun ends.
  EXPECT_LE(run(absl::Milliseconds(180), &text), absl::Milliseconds(190));
  EXPECT_EQ(text, "");
  // The least is two trials and a proof of one config.
  EXPECT_EQ(run(absl::Milliseconds(50), &text), absl::Milliseconds(120));
  EXPECT_THAT(text, HasSubstr("about 120 ms, not the 50.0 ms"));
}

TEST_F(SessionTest, TheProofIsOfRoundsThatHadNoPartInTheChoice) {
  setup_.header.mutable_budget()->set_trials(1000);
  // Whatever chooses sees the best as twice as fast as it is.
  class Flattering : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() != Request::PROVE &&
          answer.trial().outcome() == proto::OK) {
        SetTime(answer.trial().time_ns() / 2, *answer.mutable_trial());
      }
      return answer;
    }
  } evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  const double truth = 1 - FakeEvaluator::TimeNs(session->proof().candidate()) /
                               FakeEvaluator::TimeNs(setup_.default_config);
  EXPECT_NEAR(session->proof().gain(), truth, .01);
  EXPECT_LE(session->proof().gain_low(), truth);
  EXPECT_GE(session->proof().gain_high(), truth);
  EXPECT_EQ(session->proof().rounds(),
            session->proof().candidate_measurements_size());
}

// The search's luckiest reading is of another config than the best: the one
// that leads is not the one that wins.
TEST_F(SessionTest, ReadingAgainCorrectsTheWinnersCurse) {
  setup_.header.mutable_budget()->set_trials(1000);
  setup_.finalists = 8;
  class Lucky : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() == Request::SEARCH &&
          CanonicalText(request.config()) == "tile=16,unroll=7") {
        SetTime(9e4, *answer.mutable_trial());
      }
      return answer;
    }
  } evaluator;
  evaluator.again_noise = .01;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->finalists(1).config()), "tile=16,unroll=7");
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

// Where readings vary so much that the best of the search may be any of many,
// more of them are read again than the few that led, and the best is found
// though the search put it behind these.
TEST_F(SessionTest, WhereReadingsVaryMoreConfigsAreRanked) {
  setup_.header.mutable_budget()->set_trials(1000);
  setup_.finalists = 2;
  class Vague : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() == Request::SEARCH &&
          CanonicalText(request.config()) == "tile=16,unroll=5") {
        SetTime(answer.trial().time_ns() * 1.1, *answer.mutable_trial());
      }
      // A small part of what the search took.
      if (request.purpose() == Request::RANK) {
        answer.mutable_trial()->set_elapsed_ns(1);
      }
      return answer;
    }
  };
  setup_.rank_rounds = 4;
  for (const double noise : {.001, .06}) {
    ASSERT_TRUE(RemoveSessionJournal(setup_).ok());
    Vague evaluator;
    evaluator.again_noise = noise;
    const auto session = Run(evaluator);
    ASSERT_TRUE(session.ok()) << session.status();
    for (const proto::Finalist& finalist : session->finalists()) {
      EXPECT_TRUE(finalist.is_default() || finalist.measurements_size() > 0);
    }
    if (noise < .01) {
      EXPECT_EQ(session->finalists_size(), 3);  // two and the default
    } else {
      EXPECT_GT(session->finalists_size(), 3);
      EXPECT_EQ(CanonicalText(session->proof().candidate()),
                "tile=16,unroll=5");
    }
  }
}

}  // namespace
}  // namespace optrail::tuning
