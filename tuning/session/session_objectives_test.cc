// Sessions of other objectives than time.

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/metering.h"
#include "tuning/session/objective.h"
#include "tuning/session/session_journal.h"
#include "tuning/session/session_test_fixture.h"

namespace optrail::tuning {
namespace {

// Objectives other than time, as a command prints them.
class MetricsEvaluator : public OneAtATime {
 public:
  Evaluation Evaluate(const Request& request) override {
    double tile = 0, unroll = 0;
    for (const proto::KnobValue& value : request.config().set()) {
      (value.knob() == "tile" ? tile : unroll) =
          static_cast<double>(value.int_());
    }
    Evaluation answer;
    answer.mutable_trial()->set_outcome(proto::OK);
    answer.mutable_trial()->set_elapsed_ns(1);
    // Throughput and memory both grow with tile.
    Add("throughput", 100 * tile / (1 + std::abs(unroll - 5)),
        *answer.mutable_trial());
    Add("memory", 10 * tile + unroll, *answer.mutable_trial());
    return answer;
  }
  static void Add(const char* metric, double value, proto::Trial& trial) {
    proto::MetricSamples& samples = *trial.add_objectives();
    samples.set_metric(metric);
    samples.add_values(value);
  }
};

class ObjectivesTest : public SessionTest {
 protected:
  ObjectivesTest() {
    setup_.header.mutable_budget()->set_trials(1000);
    proto::Objective& throughput = *setup_.header.add_objectives();
    throughput.set_metric("throughput");
    throughput.set_direction(proto::HIGHER_IS_BETTER);
    proto::Objective& memory = *setup_.header.add_objectives();
    memory.set_metric("memory");
    memory.set_direction(proto::LOWER_IS_BETTER);
  }
  absl::StatusOr<proto::Session> RunIt() {
    MetricsEvaluator evaluator;
    return RunSession(setup_, evaluator, clock_);
  }
};

TEST_F(ObjectivesTest, AFrontHasNoWinner) {
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(session->has_winner());
  EXPECT_FALSE(session->has_proof());
  // Each tile at its best unroll, less memory at lower unrolls, the default.
  EXPECT_GT(session->finalists_size(), 8);
}

TEST_F(ObjectivesTest, WeightsNameAWinner) {
  setup_.header.mutable_objectives(0)->set_weight(1);
  setup_.header.mutable_objectives(1)->set_weight(.1);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=128,unroll=5");
  EXPECT_TRUE(session->proof().claimed());
}

TEST_F(ObjectivesTest, LimitsNameAWinner) {
  setup_.header.mutable_objectives(1)->set_limit(330);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=32,unroll=5");
  EXPECT_EQ(session->proof().metric(), "throughput");
  // From 20 at the default: 3200 / 20 - 1.
  EXPECT_NEAR(session->proof().gain(), 159, .01);
  ASSERT_EQ(session->finalists(1).objectives_size(), 2);
  EXPECT_EQ(session->finalists(1).objectives(1).values(0), 325);
}

TEST_F(ObjectivesTest, ALimitOfTheBestFollowsTheBest) {
  setup_.header.mutable_objectives(0)->Swap(
      setup_.header.mutable_objectives(1));
  // The least memory at no less than .5 of the best throughput.
  setup_.header.mutable_objectives(1)->set_limit_over_best(.5);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->has_winner());
  double best = 0;
  for (const proto::Trial& trial : session->trials()) {
    best = std::max(best, ValueOf(trial, "throughput").value_or(0));
  }
  // The session says what the limit came to, and the winner keeps it.
  EXPECT_EQ(session->objectives(1).limit(), .5 * best);
  double least = 1e300;
  for (const proto::Trial& trial : session->trials()) {
    if (*ValueOf(trial, "throughput") >= .5 * best) {
      least = std::min(least, *ValueOf(trial, "memory"));
    }
  }
  for (const proto::Finalist& finalist : session->finalists()) {
    if (CanonicalText(finalist.config()) != CanonicalText(session->winner())) {
      continue;
    }
    EXPECT_GE(*ValueOf(finalist, "throughput"), .5 * best);
    EXPECT_EQ(*ValueOf(finalist, "memory"), least);
  }
}

TEST_F(ObjectivesTest, AnObjectiveIsComputedFromMetrics) {
  proto::Objective product;
  product.set_metric("memory_time");
  product.set_direction(proto::LOWER_IS_BETTER);
  auto* term = product.add_terms();
  term->set_factor(2);
  term->add_metrics("memory");
  term->add_metrics("memory");
  setup_.header.clear_objectives();
  *setup_.header.add_objectives() = product;
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->has_winner());
  for (const proto::Trial& trial : session->trials()) {
    const double memory = *ValueOf(trial, "memory");
    EXPECT_EQ(*ValueOf(trial, product), 2 * memory * memory);
  }
  // Finalists hold what was read, and the value follows.
  const proto::Finalist& finalist = session->finalists(0);
  ASSERT_TRUE(ValueOf(finalist, "memory").has_value());
  EXPECT_TRUE(ValueOf(finalist, product).has_value());
}

// Of what takes long, little is metered; the winner is.
TEST_F(ObjectivesTest, CostlyMetricsAreReadOfFew) {
  class Costly : public OneAtATime {
   public:
    absl::StatusOr<Offer> Open(const proto::Task&) override {
      Offer offer;
      offer.add_costly_metrics("joules");
      return offer;
    }
    Evaluation Evaluate(const Request& request) override {
      EXPECT_EQ(request.metrics().size(),
                request.purpose() == Request::SEARCH ? 2 : 1);
      const double tile = static_cast<double>(request.config().set(0).int_());
      const double unroll = static_cast<double>(request.config().set(1).int_());
      const double time_ns = 1e6 / tile * (1 + .01 * unroll);
      Evaluation answer;
      answer.mutable_trial()->set_outcome(proto::OK);
      answer.mutable_trial()->set_time_ns(time_ns);
      answer.mutable_trial()->add_measurements()->set_median_ns(time_ns);
      if (request.has_meter_below_ns() && time_ns >= request.meter_below_ns()) {
        return answer;
      }
      metered += request.purpose() == Request::SEARCH ? 1 : 0;
      auto* joules = answer.mutable_trial()->add_objectives();
      joules->set_metric("joules");
      // More unrolling takes time and saves energy.
      joules->add_values(time_ns * (1 - .05 * unroll));
      return answer;
    }
    int metered = 0;
  } evaluator;
  setup_.header.mutable_budget()->set_trials(50);
  setup_.header.clear_objectives();
  proto::Objective* joules = setup_.header.add_objectives();
  joules->set_metric("joules");
  joules->set_direction(proto::LOWER_IS_BETTER);
  const auto session = RunSession(setup_, evaluator, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_LE(evaluator.metered, kMeteredTrials);
  EXPECT_GT(evaluator.metered, 2);
  EXPECT_GT(session->trials_size(), 2 * kMeteredTrials);
  EXPECT_THAT(CanonicalText(session->winner()),
              ::testing::StartsWith("tile=128,"));
  // What was not read is not stored.
  int unknown = 0;
  for (const proto::Trial& trial : session->trials()) {
    unknown += trial.outcome() == proto::OK && !ValueOf(trial, "joules");
  }
  EXPECT_GT(unknown, 0);
}

TEST_F(ObjectivesTest, SessionsOfOtherObjectivesHaveJournalsOfTheirOwn) {
  ASSERT_TRUE(RunIt().ok());
  setup_.header.mutable_objectives(1)->set_limit(330);
  EXPECT_FALSE(HasSessionJournal(setup_));
  auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 1);
  // And each goes on with its own.
  session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  ASSERT_TRUE(RemoveSessionJournal(setup_).ok());
  setup_.header.mutable_objectives(1)->clear_limit();
  EXPECT_TRUE(HasSessionJournal(setup_));
}

TEST_F(ObjectivesTest, AJournalWhoseNameLacksTheObjectivesGoesOn) {
  ASSERT_TRUE(RunIt().ok());
  proto::Session unnamed = setup_.header;
  unnamed.clear_objectives();
  const std::string& folder = setup_.journal_directory;
  const std::string earlier = SessionJournal::Path(folder, unnamed);
  ASSERT_EQ(rename(SessionJournal::Path(folder, setup_.header).c_str(),
                   earlier.c_str()),
            0);
  // It is not that of a session that optimises something else.
  setup_.header.mutable_objectives(1)->set_limit(330);
  EXPECT_FALSE(HasSessionJournal(setup_));
  setup_.header.mutable_objectives(1)->clear_limit();
  EXPECT_EQ(SessionJournal::Path(folder, setup_.header), earlier);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
}

TEST_F(ObjectivesTest, AMissingObjectiveIsUnknownAndNoFailure) {
  class Partly : public MetricsEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = MetricsEvaluator::Evaluate(request);
      if (CanonicalText(request.config()) == "tile=2,unroll=5") {
        answer.mutable_trial()->mutable_objectives()->RemoveLast();
      }
      return answer;
    }
  } evaluator;
  const auto session = RunSession(setup_, evaluator, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const proto::Trial& trial : session->trials()) {
    EXPECT_EQ(trial.outcome(), proto::OK);
  }
}

}  // namespace
}  // namespace optrail::tuning
