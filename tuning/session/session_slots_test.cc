// Sessions with several requests in flight.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/session_journal.h"
#include "tuning/session/session_test_fixture.h"

namespace optrail::tuning {
namespace {

// A device with several places, whose answers come in an order of its own and
// which now and then loses a request.
class ManySlots : public Evaluator {
 public:
  ManySlots(int slots, uint64_t seed) : slots_(slots), rng_(seed) {}
  absl::StatusOr<Offer> Open(const proto::Task&) override {
    Offer offer;
    offer.set_compile_ahead(1);
    offer.set_measure_slots(slots_);
    offer.set_begins_ahead(begins_ahead);
    return offer;
  }
  void Submit(Request request) override {
    submitted.push_back(CanonicalText(request.config()));
    const bool of_round = request.purpose() != Request::SEARCH;
    most_asked_at_once = std::max(most_asked_at_once, request.of_round());
    waiting_.push_back(std::move(request));
    if (of_round) {
      most_of_round =
          std::max(most_of_round, static_cast<int>(waiting_.size()));
    }
    most_in_flight =
        std::max(most_in_flight, static_cast<int>(waiting_.size()));
  }
  std::vector<Evaluation> Poll(absl::Duration) override {
    if (waiting_.empty()) return {};
    if (stop_after-- == 0) throw Killed();
    const size_t i = rng_.UniformInt(waiting_.size());
    Request request = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + i);
    Evaluation answer;
    answer.set_ticket(request.ticket());
    if (losses > 0 && rng_.UniformReal() < .2) {
      --losses;
      answer.set_lost(true);
      return {answer};
    }
    ScriptedEvaluator::Time(request.config(), 0, request,
                            *answer.mutable_trial());
    *answer.mutable_trial()->mutable_config() = request.config();
    return {answer};
  }
  void Cancel(int64_t) override {}

  bool begins_ahead = false;
  int most_in_flight = 0, most_of_round = 0, most_asked_at_once = 0;
  int losses = 0;
  int stop_after = -1;
  std::vector<std::string> submitted;

 private:
  const int slots_;
  Rng rng_;
  std::vector<Request> waiting_;
};

TEST_F(SessionTest, KeepsAsManyInFlightAsOfferedAndTellsInAnyOrder) {
  for (const char* strategy : {"random", "default"}) {
    setup_.header.set_strategy(strategy);
    ManySlots evaluator(3, 7);
    const auto session = RunSession(setup_, evaluator, clock_);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(session->trials_size(), 40);
    EXPECT_EQ(evaluator.most_in_flight, 4);
    const std::vector<std::string> tried = Tried(*session);
    EXPECT_EQ(std::set<std::string>(tried.begin(), tried.end()).size(), 40);
  }
}

TEST_F(SessionTest, WhatAnEvaluatorLosesIsSubmittedAgainAndNeverTold) {
  ManySlots evaluator(1, 3);
  evaluator.losses = 6;
  const auto session = RunSession(setup_, evaluator, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 40);
  EXPECT_EQ(evaluator.losses, 0);
  for (const proto::Trial& trial : session->trials()) {
    EXPECT_NE(trial.outcome(), proto::OUTCOME_UNSPECIFIED);
  }
}

TEST_F(SessionTest, ReadingsOfARoundThatAreAskedForAtOnceAreTheSame) {
  std::vector<proto::Session> sessions;
  for (const bool begins_ahead : {false, true}) {
    ManySlots evaluator(1, 5);
    evaluator.begins_ahead = begins_ahead;
    const auto session = RunSession(setup_, evaluator, clock_);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(evaluator.most_of_round, begins_ahead ? setup_.finalists : 1);
    EXPECT_EQ(evaluator.most_asked_at_once, evaluator.most_of_round);
    sessions.push_back(*session);
    ASSERT_TRUE(RemoveSessionJournal(setup_).ok());
  }
  ASSERT_TRUE(sessions[0].has_proof());
  EXPECT_EQ(CanonicalText(sessions[0].winner()),
            CanonicalText(sessions[1].winner()));
  EXPECT_EQ(sessions[0].proof().rounds(), sessions[1].proof().rounds());
  EXPECT_EQ(sessions[0].proof().gain(), sessions[1].proof().gain());
  ASSERT_EQ(sessions[0].finalists_size(), sessions[1].finalists_size());
  for (int i = 0; i < sessions[0].finalists_size(); ++i) {
    EXPECT_EQ(sessions[0].finalists(i).measurements_size(),
              sessions[1].finalists(i).measurements_size());
  }
  ManySlots loses(1, 5);
  loses.begins_ahead = true;
  loses.losses = 15;
  const auto session = RunSession(setup_, loses, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(loses.losses, 0);
  EXPECT_TRUE(session->has_proof());
}

TEST_F(SessionTest, GivesUpOnAnEvaluatorThatLosesEverything) {
  class Gone : public OneAtATime {
   public:
    Evaluation Evaluate(const Request&) override {
      Evaluation answer;
      answer.set_lost(true);
      return answer;
    }
  } evaluator;
  const auto session = RunSession(setup_, evaluator, clock_);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kUnavailable);
  FakeEvaluator back;
  const auto resumed = Run(back);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->trials_size(), 40);
}

// With several in flight: what was in flight is tried again, nothing else is,
// and the strategy goes on as if nothing had happened.
TEST_F(SessionTest, ResumesWithSeveralInFlight) {
  setup_.header.set_strategy("default");
  setup_.header.mutable_budget()->set_trials(20);
  const std::string directory = setup_.journal_directory;
  for (int cut = 0; cut < 20; ++cut) {
    SCOPED_TRACE(cut);
    setup_.journal_directory = absl::StrCat(directory, "/", cut);
    ManySlots first(3, 7);
    first.stop_after = cut;
    EXPECT_THROW((void)RunSession(setup_, first, clock_), Killed);
    ManySlots second(3, 8);
    auto session = Session::Open(setup_, second, clock_);
    ASSERT_TRUE(session.ok()) << session.status();
    while (!(*session)->search_ended()) {
      const absl::Status status = (*session)->Advance();
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ((*session)->trials(), 20);
    EXPECT_EQ(second.submitted.size(), 20 - cut);
    // What was asked and not answered comes first.
    for (size_t i = 0; i < 3 && i < second.submitted.size() && cut > 0; ++i) {
      EXPECT_THAT(first.submitted, ::testing::Contains(second.submitted[i]));
    }
  }
}

}  // namespace
}  // namespace optrail::tuning
