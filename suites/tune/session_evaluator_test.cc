#include "suites/tune/session_evaluator.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/process/host_name.h"
#include "gtest/gtest.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/testing/one_by_one_evaluator.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using tuning::Purpose;
using tuning::Request;

class Recording : public OneByOneEvaluator {
 public:
  bool IsReady(const proto::Config& config) override { return ready; }
  void AwaitReady(const std::vector<proto::Config>& configs,
                  absl::Duration wait) override {
    waited = wait;
    ready |= wait == absl::InfiniteDuration();
  }
  Evaluator* Smaller(const proto::Config& example, double) override {
    return smaller;
  }
  bool ready = true, ready_after = true;  // an evaluation
  absl::Duration waited;
  Recording* smaller = nullptr;
  Evaluation EvaluateOne(const proto::Config& config,
                         const EvaluationOptions& options) override {
    seen = options;
    evaluated.push_back(tuning::CanonicalText(config));
    ready &= ready_after;
    return next;
  }
  bool Begin(const proto::Config& config,
             const EvaluationOptions& options) override {
    begun.push_back(tuning::CanonicalText(config));
    begun_seed = options.input_seed;
    return can_begin;
  }
  std::vector<Evaluation> Measure(const std::vector<Contender>& contenders,
                                  const EvaluationOptions& options) override {
    if (contenders.size() > 1) together.push_back(contenders.size());
    return OneByOneEvaluator::Measure(contenders, options);
  }
  std::vector<size_t> together;
  std::vector<std::string> evaluated, begun;
  uint64_t begun_seed = 0;
  bool can_begin = true;
  void OpenAhead(const ComingProcess& process) override {
    opened.push_back(process);
  }
  void Prepare(const proto::Config& config) override {
    prepared.push_back(tuning::CanonicalText(config));
  }
  bool IsOpen(absl::optional<int64_t>) override { return open; }
  bool open = true;
  EvaluationOptions seen;
  Evaluation next;
  std::vector<ComingProcess> opened;
  std::vector<std::string> prepared;
};

// The policy of a device beside which processes may wait.
ops::MeasurementPolicy Waiting(int processes_ahead) {
  ops::MeasurementPolicy policy;
  policy.host_is_free = true;
  policy.processes_ahead = processes_ahead;
  policy.interleaves_rounds = true;
  policy.proof_processes = 5;
  policy.round_sample_ns = 1'000'000;
  policy.search_warm_up_ns = 500'000;
  return policy;
}

class SessionEvaluatorTest : public ::testing::Test {
 protected:
  SessionEvaluatorTest() {
    options_.sampling.set_max_time_ns(200'000'000);
    options_.sampling.set_warm_up_ns(2'000'000);
    request_.set_ticket(5);
    request_.set_purpose(Request::SEARCH);
    *request_.mutable_config() = *tuning::ParseConfig("x=1");
  }
  void SetMetrics(const std::vector<std::string>& metrics) {
    *request_.mutable_metrics() = {metrics.begin(), metrics.end()};
  }
  Evaluation Ask() {
    SessionEvaluator evaluator(measured_, options_);
    evaluator.Submit(request_);
    const auto answers = evaluator.Poll(absl::InfiniteDuration());
    EXPECT_EQ(answers.size(), 1);
    EXPECT_EQ(answers[0].ticket(), 5);
    return answers[0];
  }

  SessionEvaluatorOptions options_;
  Recording measured_;
  Request request_;
};

TEST_F(SessionEvaluatorTest, AProofGoesOnAtItsHostAlone) {
  SessionEvaluator evaluator(measured_, options_);
  EXPECT_TRUE(evaluator.ProveOn(HostName(), "").ok());
  EXPECT_EQ(evaluator.ProveOn("elsewhere", "").message(),
            absl::StrCat("this host is ", HostName(), ", expected elsewhere"));
}

TEST_F(SessionEvaluatorTest, SearchRotatesInputsAndKeepsItsProcess) {
  request_.set_round(7);
  request_.set_hopeless_above(9);
  Ask();
  EXPECT_EQ(measured_.seen.input_seed, 1);
  EXPECT_FALSE(measured_.seen.process_of_round.has_value());
  EXPECT_FALSE(measured_.seen.fresh_process);
  EXPECT_EQ(measured_.seen.sampling.hopeless_above_ns(), 9);
}

TEST_F(SessionEvaluatorTest, EveryRoundHasAProcessAndThePurposesShareNone) {
  request_.set_round(4);
  request_.set_purpose(Request::RANK);
  Ask();
  const EvaluationOptions rank = measured_.seen;
  request_.set_purpose(Request::PROVE);
  Ask();
  EXPECT_NE(measured_.seen.process_of_round, rank.process_of_round);
  EXPECT_NE(measured_.seen.input_seed, rank.input_seed);
  request_.set_round(5);
  Ask();
  EXPECT_NE(measured_.seen.process_of_round, rank.process_of_round);
  EXPECT_FALSE(measured_.seen.sampling.has_hopeless_above_ns());
  EXPECT_EQ(measured_.seen.sampling.max_time_ns(), kRoundSamplingNs);
}

TEST_F(SessionEvaluatorTest, WhereNothingWaitsNothingIsOpenedAhead) {
  Ask();
  request_.set_purpose(Request::PROVE);
  Ask();
  EXPECT_TRUE(measured_.opened.empty());
}

TEST_F(SessionEvaluatorTest, TheNextIsBegunBeforeTheSessionHasThought) {
  const std::vector<std::string> configs = {"x=1", "x=2", "x=3"};
  for (const bool can_begin : {true, false}) {
    for (const int processes_ahead : {0, 2}) {
      measured_ = Recording();
      measured_.can_begin = can_begin;
      options_.policy = processes_ahead > 0 ? Waiting(processes_ahead)
                                            : ops::MeasurementPolicy();
      SessionEvaluator evaluator(measured_, options_);
      for (size_t i = 0; i < configs.size(); ++i) {
        request_.set_ticket(static_cast<int64_t>(i));
        request_.set_round(static_cast<int64_t>(i));
        *request_.mutable_config() = *tuning::ParseConfig(configs[i]);
        evaluator.Submit(request_);
      }
      for (size_t i = 0; i < configs.size(); ++i) {
        const auto answers = evaluator.Poll(absl::InfiniteDuration());
        ASSERT_EQ(answers.size(), 1);
        EXPECT_EQ(answers[0].ticket(), i);
        EXPECT_EQ(tuning::CanonicalText(answers[0].trial().config()),
                  configs[i]);
        const bool begins = processes_ahead > 0 && i + 1 < configs.size();
        ASSERT_EQ(measured_.begun.size(),
                  processes_ahead == 0 ? 0 : std::min<size_t>(i + 1, 2));
        if (begins) {
          EXPECT_EQ(measured_.begun.back(), configs[i + 1]);
          EXPECT_EQ(measured_.begun_seed, i + 1);
        }
      }
      EXPECT_EQ(measured_.evaluated, configs);
      EXPECT_TRUE(evaluator.Poll(absl::InfiniteDuration()).empty());
    }
  }
}

TEST_F(SessionEvaluatorTest, ARoundOfFinalistsIsReadTogether) {
  const auto submit = [&](SessionEvaluator& evaluator) {
    request_.set_purpose(Request::RANK);
    for (int i = 0; i < 5; ++i) {
      request_.set_ticket(i);
      request_.set_round(i < 3 ? 7 : 8);
      *request_.mutable_config() = *tuning::ParseConfig(absl::StrCat("x=", i));
      evaluator.Submit(request_);
    }
  };
  options_.policy = Waiting(2);
  SessionEvaluator evaluator(measured_, options_);
  submit(evaluator);
  auto answers = evaluator.Poll(absl::InfiniteDuration());
  ASSERT_EQ(answers.size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i].ticket(), i);
    EXPECT_EQ(tuning::CanonicalText(answers[i].trial().config()),
              absl::StrCat("x=", i));
  }
  EXPECT_EQ(measured_.together, std::vector<size_t>{3});
  EXPECT_TRUE(measured_.begun.empty());
  EXPECT_EQ(evaluator.Poll(absl::InfiniteDuration()).size(), 2);
  EXPECT_EQ(measured_.together, (std::vector<size_t>{3, 2}));
  EXPECT_TRUE(evaluator.Poll(absl::InfiniteDuration()).empty());

  // Once all of them are here.
  request_.set_of_round(2);
  request_.set_round(9);
  evaluator.Submit(request_);
  EXPECT_TRUE(evaluator.Poll(absl::ZeroDuration()).empty());
  evaluator.Submit(request_);
  EXPECT_EQ(evaluator.Poll(absl::ZeroDuration()).size(), 2);
  request_.set_of_round(1);

  // Elsewhere, where calls are long, and where a meter reads: one by one.
  const auto is_single = [&] {
    measured_.together.clear();
    SessionEvaluator single(measured_, options_);
    submit(single);
    return single.Poll(absl::InfiniteDuration()).size() == 1 &&
           measured_.together.empty();
  };
  SetMetrics({"time", "joules"});
  EXPECT_TRUE(is_single());
  SetMetrics({"joules"});
  EXPECT_TRUE(is_single());
  SetMetrics({"time"});
  request_.set_expected(2 * kLongCallNs);
  EXPECT_TRUE(is_single());
  request_.set_expected(1000);
  EXPECT_FALSE(is_single());
  options_.policy = {};
  EXPECT_TRUE(is_single());
}

TEST_F(SessionEvaluatorTest, IsReadyOnceAConfigIsCompiled) {
  SessionEvaluator evaluator(measured_, options_);
  EXPECT_TRUE(evaluator.IsReady()) << "nothing to wait for";
  measured_.ready = false;
  evaluator.Submit(request_);
  EXPECT_FALSE(evaluator.IsReady());
  measured_.ready = true;
  EXPECT_TRUE(evaluator.IsReady());
  // And the process that measures it is open.
  measured_.open = false;
  EXPECT_FALSE(evaluator.IsReady());
}

TEST_F(SessionEvaluatorTest, OfLongCallsNoneIsBegunAhead) {
  options_.policy = Waiting(2);
  request_.set_expected(2 * kLongCallNs);
  SessionEvaluator evaluator(measured_, options_);
  for (int i = 0; i < 2; ++i) {
    evaluator.Submit(request_);
  }
  evaluator.Poll(absl::InfiniteDuration());
  EXPECT_TRUE(measured_.begun.empty());
}

TEST_F(SessionEvaluatorTest, ARoundNamesThoseThatMayBeOpenedWithIt) {
  options_.policy.processes_together = 3;
  Ask();
  EXPECT_TRUE(measured_.seen.next_rounds.empty()) << "the search has one";
  for (const Purpose purpose : {Request::RANK, Request::PROVE}) {
    request_.set_purpose(purpose);
    request_.set_round(4);
    Ask();
    const std::vector<ComingProcess> next = measured_.seen.next_rounds;
    ASSERT_EQ(next.size(), 2);
    for (const ComingProcess& process : next) {
      request_.set_round(request_.round() + 1);
      Ask();
      EXPECT_EQ(process.process_of_round, measured_.seen.process_of_round);
      EXPECT_EQ(process.input_seeds,
                std::vector<uint64_t>{measured_.seen.input_seed});
    }
  }
  EXPECT_TRUE(measured_.opened.empty()) << "beside one that is measured";
}

TEST_F(SessionEvaluatorTest, ProcessesOfFinalistsAreOpenedBesideTheSearch) {
  options_.policy = Waiting(5);
  options_.finalists_ahead = [] { return true; };
  SessionEvaluator evaluator(measured_, options_);
  const auto ask = [&](Purpose purpose, int64_t round) {
    request_.set_purpose(purpose);
    request_.set_round(round);
    evaluator.Submit(request_);
    evaluator.Poll(absl::InfiniteDuration());
    return measured_.seen;
  };
  ask(Request::SEARCH, 0);
  // The process of the search is opened for all of its inputs.
  ASSERT_EQ(measured_.opened.size(), 1);
  EXPECT_FALSE(measured_.opened[0].process_of_round.has_value());
  EXPECT_EQ(measured_.opened[0].input_seeds.size(),
            static_cast<size_t>(options_.policy.input_sets));
  // Then one after the other, by how many answers there were.
  int64_t searched = 1;
  for (; measured_.opened.size() < 2; ++searched) {
    ASSERT_LT(searched, 20);
    ask(Request::SEARCH, searched);
  }
  EXPECT_GT(searched, 4);
  // Or by how long they took.
  measured_.next.mutable_trial()->set_elapsed_ns(
      absl::ToInt64Nanoseconds(absl::Seconds(1)));
  for (int i = 0; i < 20; ++i) ask(Request::SEARCH, searched++);
  ASSERT_EQ(measured_.opened.size(), 1 + options_.policy.proof_processes);
  const std::vector<ComingProcess> opened = measured_.opened;
  const auto is_open = [&](const EvaluationOptions& options) {
    return std::any_of(
        opened.begin(), opened.end(), [&](const ComingProcess& process) {
          return process.process_of_round == options.process_of_round &&
                 std::count(process.input_seeds.begin(),
                            process.input_seeds.end(), options.input_seed) == 1;
        });
  };
  // Finalists are ranked in the process of the search, with its inputs.
  for (int64_t round = 0; round < 8; ++round) {
    const EvaluationOptions seen = ask(Request::RANK, round);
    EXPECT_FALSE(seen.process_of_round.has_value());
    EXPECT_TRUE(is_open(seen)) << round;
  }
  // The rounds that each proof has share none; others go round among these.
  std::set<int64_t> proof;
  for (int64_t round = 0; round < 12; ++round) {
    const EvaluationOptions seen = ask(Request::PROVE, round);
    EXPECT_TRUE(is_open(seen)) << round;
    proof.insert(*seen.process_of_round);
    EXPECT_EQ(proof.size(),
              std::min<int64_t>(round + 1, options_.policy.proof_processes));
  }
  EXPECT_EQ(measured_.opened.size(), 1 + options_.policy.proof_processes);
}

TEST_F(SessionEvaluatorTest, WhereFewMayWaitTheNextIsOpenedInTime) {
  options_.policy = Waiting(2);
  options_.finalists_ahead = [] { return true; };
  measured_.next.mutable_trial()->set_elapsed_ns(
      absl::ToInt64Nanoseconds(absl::Seconds(1)));
  SessionEvaluator evaluator(measured_, options_);
  const auto proofs_after = [&](Purpose purpose, int64_t round) {
    request_.set_purpose(purpose);
    request_.set_round(round);
    evaluator.Submit(request_);
    evaluator.Poll(absl::InfiniteDuration());
    return static_cast<int>(measured_.opened.size()) - 1;
  };
  for (int i = 0; i < 4; ++i) proofs_after(Request::SEARCH, i);
  EXPECT_EQ(proofs_after(Request::RANK, 0), 2);
  EXPECT_EQ(proofs_after(Request::PROVE, 0), 3);
  EXPECT_EQ(proofs_after(Request::PROVE, 1), 4);
  EXPECT_EQ(proofs_after(Request::PROVE, 2), 5);
  EXPECT_EQ(proofs_after(Request::PROVE, 3), 5);
}

// If many open together, the first is open as late as the last.
TEST_F(SessionEvaluatorTest, NoMoreThanTwoAreOpenedAtATime) {
  options_.policy = Waiting(5);
  options_.finalists_ahead = [] { return true; };
  measured_.next.mutable_trial()->set_elapsed_ns(
      absl::ToInt64Nanoseconds(absl::Seconds(1)));
  SessionEvaluator evaluator(measured_, options_);
  for (int i = 0; i < 8; ++i) evaluator.Submit(request_);
  const size_t of_search = measured_.opened.size();
  const auto opened = [&] {
    evaluator.Poll(absl::InfiniteDuration());
    return measured_.opened.size() - of_search;
  };
  measured_.open = false;
  EXPECT_EQ(opened(), 1);
  EXPECT_EQ(opened(), 2);
  EXPECT_EQ(opened(), 2);
  measured_.open = true;
  EXPECT_EQ(opened(), 3);
  measured_.open = false;
  EXPECT_EQ(opened(), 4);
  EXPECT_EQ(opened(), 4);
  // What a round needs is opened for it in any case.
  request_.set_purpose(Request::PROVE);
  request_.set_round(4);
  evaluator.Submit(request_);
  EXPECT_EQ(measured_.opened.size() - of_search, 5);
}

TEST_F(SessionEvaluatorTest, WhereOthersAreTunedFinalistsWaitForTheirTurn) {
  options_.policy = Waiting(5);
  SessionEvaluator evaluator(measured_, options_);
  for (int64_t round = 0; round < 3; ++round) {
    request_.set_round(round);
    evaluator.Submit(request_);
    evaluator.Poll(absl::InfiniteDuration());
  }
  EXPECT_EQ(measured_.opened.size(), 1);
  request_.set_purpose(Request::RANK);
  request_.set_round(0);
  evaluator.Submit(request_);
  EXPECT_EQ(measured_.opened.size(), 1) << "finalists have that of the search";
  evaluator.Poll(absl::InfiniteDuration());
  EXPECT_EQ(measured_.opened.size(), 3);
}

TEST_F(SessionEvaluatorTest, TheDefaultIsCompiledBehindTheFirstOfTheSearch) {
  options_.default_config = *tuning::ParseConfig("x=0");
  SessionEvaluator evaluator(measured_, options_);
  evaluator.Submit(request_);
  evaluator.Submit(request_);
  EXPECT_EQ(measured_.prepared, (std::vector<std::string>{"x=1", "x=1"}));
  evaluator.Poll(absl::InfiniteDuration());
  for (int i = 0; i < 2; ++i) evaluator.Submit(request_);
  EXPECT_EQ(measured_.prepared,
            (std::vector<std::string>{"x=1", "x=1", "x=1", "x=0", "x=1"}));
}

TEST_F(SessionEvaluatorTest,
       WhatIsClearlySlowerIsSampledLessWhereNobodyElseIs) {
  request_.set_expected(1e5);
  Ask();
  EXPECT_FALSE(measured_.seen.sampling.has_decisive_above_ns());
  options_.policy = Waiting(5);
  Ask();
  EXPECT_EQ(measured_.seen.sampling.decisive_above_ns(), kClearlySlower * 1e5);
  // A bound on joules is none on time; what decides is sampled in full.
  SetMetrics({"joules"});
  Ask();
  EXPECT_FALSE(measured_.seen.sampling.has_decisive_above_ns());
  request_.clear_metrics();
  request_.set_purpose(Request::RANK);
  Ask();
  EXPECT_FALSE(measured_.seen.sampling.has_decisive_above_ns());
}

TEST_F(SessionEvaluatorTest, WhatWaitedIsRacedAgainstTheBestSinceThen) {
  options_.race_factor = 1.5;
  SessionEvaluator evaluator(measured_, options_);
  const auto poll = [&] { evaluator.Poll(absl::InfiniteDuration()); };
  for (int i = 0; i < 4; ++i) evaluator.Submit(request_);
  measured_.next.mutable_trial()->set_outcome(proto::OK);
  measured_.next.mutable_trial()->set_time_ns(2e5);
  poll();
  EXPECT_FALSE(measured_.seen.sampling.has_hopeless_above_ns());
  measured_.next.mutable_trial()->set_time_ns(1e5);
  poll();
  EXPECT_EQ(measured_.seen.sampling.hopeless_above_ns(), 3e5);
  measured_.next.mutable_trial()->set_outcome(proto::CENSORED);
  measured_.next.mutable_trial()->set_time_ns(5e4);  // a lower bound
  poll();
  EXPECT_EQ(measured_.seen.sampling.hopeless_above_ns(), 1.5e5);
  poll();
  EXPECT_EQ(measured_.seen.sampling.hopeless_above_ns(), 1.5e5);

  // What the session knows may be better, from an earlier sitting.
  request_.set_expected(5e4);
  request_.set_hopeless_above(7.5e4);
  evaluator.Submit(request_);
  poll();
  EXPECT_EQ(measured_.seen.sampling.hopeless_above_ns(), 7.5e4);
  // A bound on time is none on joules, and finalists are read in any case.
  request_ = {};
  SetMetrics({"joules"});
  evaluator.Submit(request_);
  poll();
  EXPECT_FALSE(measured_.seen.sampling.has_hopeless_above_ns());
  request_.clear_metrics();
  request_.set_purpose(Request::PROVE);
  evaluator.Submit(request_);
  poll();
  EXPECT_FALSE(measured_.seen.sampling.has_hopeless_above_ns());
}

TEST_F(SessionEvaluatorTest, LongCallsAreNotRepeatedBeyondNeed) {
  request_.set_expected(1e8);
  Ask();
  EXPECT_EQ(measured_.seen.sampling.max_time_ns(), 1);
  EXPECT_EQ(measured_.seen.sampling.warm_up_ns(), 0);
  EXPECT_EQ(measured_.seen.sampling.decisive_above_ns(), kClearlySlower * 1e8);
  request_.set_purpose(Request::RANK);
  Ask();
  EXPECT_FALSE(measured_.seen.sampling.has_decisive_above_ns());
  request_.set_purpose(Request::SEARCH);
  request_.set_expected(1e5);
  Ask();
  EXPECT_EQ(measured_.seen.sampling.max_time_ns(), 200'000'000);
}

TEST_F(SessionEvaluatorTest, WaitsForCompilersNoLongerThanAsked) {
  measured_.ready = false;
  SessionEvaluator evaluator(measured_, options_);
  evaluator.Submit(request_);
  EXPECT_TRUE(evaluator.Poll(absl::Milliseconds(20)).empty());
  EXPECT_EQ(measured_.waited, absl::Milliseconds(20));
  EXPECT_TRUE(evaluator.Poll(absl::ZeroDuration()).empty());
  EXPECT_EQ(evaluator.Poll(absl::InfiniteDuration()).size(), 1);
}

TEST_F(SessionEvaluatorTest, ALongCallThatIsClearlySlowerOnLessIsNotMade) {
  Recording smaller;
  measured_.smaller = &smaller;
  measured_.next.mutable_trial()->set_outcome(proto::OK);
  smaller.next.mutable_trial()->set_outcome(proto::OK);
  measured_.next.mutable_trial()->set_time_ns(1e8);
  smaller.next.mutable_trial()->set_time_ns(5e6);
  SetMetrics({"time"});
  request_.set_expected(1e8);
  request_.set_hopeless_above(1.5e8);
  *request_.mutable_best() = *tuning::ParseConfig("x=2");
  measured_.next.mutable_trial()->set_elapsed_ns(500'000'000);

  SessionEvaluator evaluator(measured_, options_);
  evaluator.Submit(request_);
  // The best is read there, too.
  EXPECT_EQ(evaluator.Poll(absl::InfiniteDuration())[0].trial().fidelity(), 0);
  EXPECT_EQ(measured_.seen.hopeless_after, absl::InfiniteDuration())
      << "nobody knows what a reading takes";
  evaluator.Submit(request_);
  EXPECT_EQ(evaluator.Poll(absl::InfiniteDuration())[0].trial().fidelity(), 0);
  EXPECT_EQ(measured_.seen.hopeless_after, absl::Milliseconds(2800));

  smaller.next.mutable_trial()->set_time_ns(10e6);
  measured_.seen = EvaluationOptions();
  evaluator.Submit(request_);
  const auto answers = evaluator.Poll(absl::InfiniteDuration());
  ASSERT_EQ(answers.size(), 1);
  const proto::Trial& trial = answers[0].trial();
  EXPECT_EQ(trial.outcome(), proto::CENSORED);
  EXPECT_EQ(trial.fidelity(), 1);
  EXPECT_EQ(trial.time_ns(), 2e8);
  EXPECT_EQ(trial.measurements_size(), 0);
  EXPECT_EQ(measured_.seen.hopeless_after, absl::InfiniteDuration())
      << "the whole was called";

  // What only a ranking or a proof can tell is always read.
  for (const Purpose purpose : {Request::RANK, Request::PROVE}) {
    request_.set_purpose(purpose);
    request_.clear_hopeless_above();
    EXPECT_EQ(Ask().trial().outcome(), proto::OK);
  }
}

TEST_F(SessionEvaluatorTest, AnAnswerHasAllOfTheEvaluation) {
  measured_.next.mutable_trial()->set_outcome(proto::OK);
  measured_.next.mutable_trial()->set_detail("fine");
  measured_.next.mutable_trial()->set_time_ns(3);
  measured_.next.mutable_trial()->set_compile_ns(4);
  measured_.next.mutable_trial()->set_elapsed_ns(6);
  measured_.next.mutable_trial()->set_load_ns(5);
  measured_.next.mutable_trial()->add_facts()->set_name("registers");
  measured_.next.mutable_trial()->set_error_in_tolerances(.5);
  measured_.next.set_unpaid_ns(7);
  measured_.next.mutable_trial()->mutable_effort()->set_check_ns(8);
  measured_.next.mutable_trial()->mutable_effort()->set_busy_ns(9);
  SetMetrics({"time", "joules"});
  measured_.next.mutable_trial()->add_measurements();
  measured_.next.mutable_trial()->mutable_measurements(0)->set_median_ns(3);
  const proto::Trial trial = Ask().trial();
  EXPECT_EQ(tuning::CanonicalText(trial.config()), "x=1");
  EXPECT_EQ(trial.outcome(), proto::OK);
  EXPECT_EQ(trial.detail(), "fine");
  EXPECT_EQ(trial.time_ns(), 3);
  EXPECT_EQ(trial.compile_ns(), 4);
  EXPECT_EQ(trial.elapsed_ns(), 6);
  EXPECT_EQ(trial.load_ns(), 5);
  EXPECT_EQ(trial.facts(0).name(), "registers");
  EXPECT_EQ(trial.effort().open_ns(), 7);
  EXPECT_EQ(trial.effort().check_ns(), 8);
  EXPECT_EQ(trial.effort().busy_ns(), 9);
  ASSERT_EQ(measured_.seen.metering.metrics_size(), 1);
  EXPECT_EQ(measured_.seen.metering.metrics(0), "joules");
  EXPECT_EQ(trial.error_in_tolerances(), .5);
  EXPECT_EQ(trial.measurements(0).median_ns(), 3);
  measured_.next.set_lost(true);
  EXPECT_TRUE(Ask().lost());
}

}  // namespace
}  // namespace optrail::suites
