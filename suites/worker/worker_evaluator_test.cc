// Every misbehaviour of the test operator, in real worker processes: this
// binary is its own worker.

#include "suites/worker/worker_evaluator.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/session_evaluator.h"
#include "suites/tune/tune_session.h"
#include "suites/worker/measure.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/session/numerics.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;
using tuning::ParseConfig;

TEST(TooShortCold, CountsASampleAndNotACallOfMany) {
  Sampling sampling;
  sampling.time_ns = 1487.25;
  sampling.measurement.set_calls_per_sample(1);
  EXPECT_THAT(TooShortCold(sampling), HasSubstr("a call takes 1487.25 ns"));
  sampling.measurement.set_calls_per_sample(4000);  // of a graph
  EXPECT_EQ(TooShortCold(sampling), "");
  sampling.time_ns = kMinColdSampleNs;
  sampling.measurement.set_calls_per_sample(1);
  EXPECT_EQ(TooShortCold(sampling), "");
}

class WorkerEvaluatorTest : public ::testing::Test {
 protected:
  WorkerEvaluatorTest() {
    TaskSelection selection;
    selection.op_regex = "faulty";
    selection.with_test_only = true;
    const auto hardware = ops::HardwareOf(proto::CPU);
    EXPECT_TRUE(hardware.ok()) << hardware.status();
    hardware_ = *hardware;
    const auto tasks = SelectTasks(selection, hardware_);
    EXPECT_TRUE(tasks.ok()) << tasks.status();
    entry_ = tasks->at(0);
    worker_.config_deadline = absl::Seconds(2);
    worker_.max_config_bytes = int64_t{64} << 20;
    options_.sampling = DefaultSamplingOptions();
    options_.sampling.set_max_time_ns(20'000'000);
  }

  Evaluation Evaluate(const std::string& behaviour) {
    WorkerEvaluator evaluator(entry_.task, worker_);
    return evaluator.Evaluate(
        *ParseConfig(absl::StrCat("behaviour=", behaviour, ",work=1")),
        options_);
  }

  proto::Hardware hardware_;
  TaskEntry entry_;
  WorkerOptions worker_;
  EvaluationOptions options_;
};

TEST_F(WorkerEvaluatorTest, AGoodConfigIsCheckedAndMeasured) {
  const Evaluation evaluation = Evaluate("ok");
  // On a machine that others keep busy nothing is concluded, and that is right.
  if (evaluation.trial().outcome() == proto::CONTENDED) {
    GTEST_SKIP() << evaluation.trial().detail();
  }
  ASSERT_EQ(evaluation.trial().outcome(), proto::OK)
      << evaluation.trial().detail();
  EXPECT_GT(evaluation.trial().time_ns(), 0);
  EXPECT_LE(evaluation.trial().error_in_tolerances(), 1);
  ASSERT_TRUE(evaluation.trial().measurements_size() > 0);
  EXPECT_GE(evaluation.trial().measurements(0).sample_ns_size(), 3);
  EXPECT_GT(evaluation.trial().measurements(0).conditions().cpus_size(), 0);
  EXPECT_EQ(evaluation.trial().measurements(0).metrics(0).metric(), "cpu_time");
}

// Whatever inputs a config was measured with, its bits are those of others.
TEST_F(WorkerEvaluatorTest, TheClassOfResultsIsThatOfFixedInputs) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  std::vector<std::string> classes;
  for (const char* config : {"behaviour=ok,work=1", "behaviour=ok,work=2"}) {
    for (const uint64_t seed : {1, 2}) {
      for (const uint64_t numerics_seed : {0, 7}) {
        options_.input_seed = seed;
        options_.numerics_seed = numerics_seed;
        const Evaluation evaluation =
            evaluator.Evaluate(*ParseConfig(config), options_);
        if (evaluation.trial().outcome() == proto::CONTENDED) {
          GTEST_SKIP() << evaluation.trial().detail();
        }
        ASSERT_EQ(evaluation.trial().outcome(), proto::OK)
            << evaluation.trial().detail();
        classes.push_back(tuning::NumericsOf(evaluation.trial()));
      }
    }
  }
  EXPECT_EQ(tuning::ParseNumerics(classes[0]).bits.size(), 12u);
  EXPECT_TRUE(tuning::IsBatchInvariant(classes[0])) << classes[0];
  EXPECT_NE(classes[0], classes[1]);
  for (size_t i = 2; i < classes.size(); ++i) {
    EXPECT_EQ(classes[i], classes[i % 2]) << i;
  }
  options_.numerics_seed.reset();
  for (const proto::Fact& fact :
       evaluator.Evaluate(*ParseConfig("behaviour=ok,work=1"), options_)
           .trial()
           .facts()) {
    EXPECT_NE(fact.name(), "numerics");
  }
}

// The last bit depends on whether the number of rows is odd.
TEST_F(WorkerEvaluatorTest, ARowMustNotDependOnTheNumberOfRows) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  options_.numerics_seed = 7;
  const Evaluation evaluation =
      evaluator.Evaluate(*ParseConfig("behaviour=count_rows,work=1"), options_);
  if (evaluation.trial().outcome() == proto::CONTENDED) {
    GTEST_SKIP() << evaluation.trial().detail();
  }
  ASSERT_EQ(evaluation.trial().outcome(), proto::OK)
      << evaluation.trial().detail();
  const tuning::NumericsClass numerics =
      tuning::ParseNumerics(tuning::NumericsOf(evaluation.trial()));
  EXPECT_EQ(numerics.batch_invariant, absl::make_optional(false));
}

TEST_F(WorkerEvaluatorTest, AProcessServesOneTaskAfterAnotherWhileItIsSound) {
  OpenedWorkerOptions options;
  options.binary = "/proc/self/exe";
  options.task = entry_.task;
  options.memory_cap_bytes = int64_t{512} << 20;
  options.open_deadline = absl::Minutes(2);
  auto started = OpenedWorker::Start(options, {1});
  ASSERT_TRUE(started.ok()) << started.status();
  std::unique_ptr<OpenedWorker> worker = *std::move(started);
  EXPECT_FALSE(worker->IsIdle()) << "it was not waited for";

  const auto outcome_of = [&](OpenedWorker& worker,
                              const std::string& behaviour) {
    proto::WorkerRequest request;
    *request.mutable_evaluate()->add_contenders()->mutable_config() =
        *ParseConfig(absl::StrCat("behaviour=", behaviour, ",work=1"));
    *request.mutable_evaluate()->mutable_sampling() = options_.sampling;
    request.mutable_evaluate()->set_input_seed(1);
    return worker.Ask(request, absl::Minutes(2))[0].trial().outcome();
  };
  UsedWorkers used;
  ASSERT_TRUE(IsOk(worker->AwaitOpen()));
  for (const int64_t n : {1000, 77, 4096}) {
    EXPECT_TRUE(worker->IsIdle());
    options.task.mutable_shape()->mutable_dims(0)->set_value(n);
    OpenedWorkerOptions larger = options;
    larger.memory_cap_bytes *= 2;
    EXPECT_FALSE(worker->Suits(larger));
    used.Keep(std::move(worker));
    EXPECT_EQ(used.Take(larger), nullptr);
    worker = used.Take(options);
    ASSERT_NE(worker, nullptr);
    worker->Reopen(options, {1});
    EXPECT_FALSE(worker->IsIdle());
    ASSERT_TRUE(IsOk(worker->AwaitOpen()));
    EXPECT_TRUE(LeavesNothingBehind(outcome_of(*worker, "ok"))) << n;
  }
  EXPECT_EQ(outcome_of(*worker, "write_nan"), proto::WRONG_RESULT);
  // What was wrong once is asked no more, by whomever.
  EXPECT_FALSE(worker->IsIdle());
  used.Keep(std::move(worker));
  EXPECT_EQ(used.Take(options), nullptr);
}

TEST_F(WorkerEvaluatorTest, OfUsedProcessesThoseThatSuitMostAreKept) {
  OpenedWorkerOptions small;
  small.binary = "/proc/self/exe";
  small.task = entry_.task;
  small.memory_cap_bytes = int64_t{512} << 20;
  small.open_deadline = absl::Minutes(2);
  OpenedWorkerOptions large = small;
  large.memory_cap_bytes *= 2;
  UsedWorkers used;
  used.Expect(large.memory_cap_bytes);
  used.Expect(small.memory_cap_bytes);
  EXPECT_EQ(used.memory_cap_bytes(), large.memory_cap_bytes);

  const auto keep = [&](const OpenedWorkerOptions& options) {
    auto worker = OpenedWorker::Start(options, {1});
    ASSERT_TRUE(worker.ok()) << worker.status();
    const absl::Time begin = absl::Now();
    while (!(*worker)->HasOpened() && absl::Now() - begin < absl::Minutes(2)) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    ASSERT_TRUE((*worker)->HasOpened());
    used.Keep(*std::move(worker));
  };
  // More than are kept, so that of the small ones hardly any is left.
  for (int i = 0; i < 12; ++i) keep(small);
  for (int i = 0; i < 11; ++i) keep(large);
  for (int i = 0; i < 11; ++i) {
    std::unique_ptr<OpenedWorker> worker = used.Take(large);
    ASSERT_NE(worker, nullptr) << i;
    // Nobody has asked about what it made ready.
    EXPECT_TRUE(worker->Reopen(large, {1}));
  }
  EXPECT_EQ(used.Take(large), nullptr);
  EXPECT_NE(used.Take(small), nullptr);
  EXPECT_EQ(used.Take(small), nullptr);

  // One that would have to be waited for is no gain.
  auto opening = OpenedWorker::Start(small, {1});
  ASSERT_TRUE(opening.ok()) << opening.status();
  const bool opened = (*opening)->HasOpened();
  used.Keep(*std::move(opening));
  EXPECT_TRUE(opened || used.Take(small) == nullptr);
}

TEST_F(WorkerEvaluatorTest, TellsWhetherAProcessThatWasOpenedAheadIsOpen) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  EXPECT_TRUE(evaluator.IsOpen(1)) << "nobody opens it";
  evaluator.OpenAhead({int64_t{1}, {7}});
  const absl::Time begin = absl::Now();
  while (!evaluator.IsOpen(1) && absl::Now() - begin < absl::Minutes(2)) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_TRUE(evaluator.IsOpen(1));
  options_.process_of_round = 1;
  options_.input_seed = 7;
  evaluator.Evaluate(*ParseConfig("behaviour=ok,work=1"), options_);
  EXPECT_EQ(evaluator.workers_started(), 1);
}

TEST_F(WorkerEvaluatorTest, EachMisbehaviourBecomesItsOutcome) {
  const std::vector<std::pair<std::string, proto::Outcome>> expected = {
      {"crash", proto::CRASHED},
      {"abort", proto::CRASHED},
      {"exit", proto::CRASHED},
      {"hang", proto::TIMED_OUT},
      {"spin", proto::TIMED_OUT},
      {"allocate", proto::OUT_OF_MEMORY},
      {"write_nan", proto::WRONG_RESULT},
      {"write_nothing", proto::WRONG_RESULT},
      {"write_out_of_bounds", proto::WRONG_RESULT},
      {"change_input", proto::WRONG_RESULT},
      {"refuse", proto::INVALID},
      {"write_before", proto::WRONG_RESULT},
      {"wrong_last", proto::WRONG_RESULT},
      {"wrong_beyond_one", proto::WRONG_RESULT},
      {"wrong_denormals", proto::WRONG_RESULT},
      {"wrong_ties", proto::WRONG_RESULT},
      {"wrong_large", proto::WRONG_RESULT},
      {"wrong_later", proto::WRONG_RESULT},
  };
  for (const auto& [behaviour, outcome] : expected) {
    // Only what hangs may be stopped by the clock, however slow the machine.
    worker_.config_deadline =
        outcome == proto::TIMED_OUT ? absl::Seconds(1) : absl::Minutes(2);
    const Evaluation evaluation = Evaluate(behaviour);
    EXPECT_EQ(evaluation.trial().outcome(), outcome)
        << behaviour << ": " << evaluation.trial().detail();
    EXPECT_FALSE(evaluation.trial().has_time_ns()) << behaviour;
    EXPECT_NE(evaluation.trial().detail(), "") << behaviour;
  }
  EXPECT_THAT(Evaluate("crash").trial().detail(), HasSubstr("signal 11"));
  EXPECT_THAT(Evaluate("exit").trial().detail(), HasSubstr("code 3"));
}

TEST_F(WorkerEvaluatorTest, TheFirstLongCallOfAHopelessConfigIsItsLast) {
  worker_.config_deadline = absl::Minutes(2);
  // A call of 50 ms.
  options_.sampling.set_hopeless_above_ns(2.1e7);
  Evaluation hopeless;
  // One that was disturbed says too little, and is followed by others.
  for (int attempt = 0; attempt < 20; ++attempt) {
    hopeless = Evaluate("slow");
    if (!hopeless.trial().has_error_in_tolerances()) break;
  }
  ASSERT_EQ(hopeless.trial().outcome(), proto::CENSORED)
      << hopeless.trial().detail();
  EXPECT_EQ(hopeless.trial().measurements(0).sample_ns_size(), 1);
  EXPECT_GT(hopeless.trial().time_ns(), 4e7);
  // Nobody looked at what it left.
  EXPECT_FALSE(hopeless.trial().has_error_in_tolerances());
  // Where it is not hopeless it is checked, and sampled until it is decided.
  options_.sampling.set_hopeless_above_ns(1e9);
  options_.sampling.set_max_time_ns(1);
  options_.sampling.set_warm_up_ns(0);
  const Evaluation slower = Evaluate("slow");
  ASSERT_TRUE(slower.trial().has_error_in_tolerances())
      << slower.trial().detail();
  EXPECT_GE(slower.trial().measurements(0).sample_ns_size(), kMinCleanSamples);
}

TEST_F(WorkerEvaluatorTest, WhoDoesNotComeBackInTimeIsHopelessWhereThatIsSaid) {
  worker_.config_deadline = absl::Minutes(2);
  options_.sampling.set_hopeless_above_ns(3e7);
  options_.hopeless_after = absl::Seconds(1);
  const Evaluation hanging = Evaluate("hang");
  EXPECT_EQ(hanging.trial().outcome(), proto::CENSORED)
      << hanging.trial().detail();
  EXPECT_EQ(hanging.trial().time_ns(), 3e7);
  // A deadline that is shorter is the config's own.
  worker_.config_deadline = absl::Milliseconds(500);
  EXPECT_EQ(Evaluate("hang").trial().outcome(), proto::TIMED_OUT);
}

TEST_F(WorkerEvaluatorTest, MeasuresOnASmallerProblemWhereThereIsOne) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  const auto good = *ParseConfig("behaviour=ok,work=1");
  Evaluator* const smaller = evaluator.Smaller(good, .25);
  ASSERT_NE(smaller, nullptr);
  EXPECT_EQ(evaluator.Smaller(good, .25), smaller) << "it is kept";
  const Evaluation evaluation = smaller->Evaluate(good, options_);
  EXPECT_NE(evaluation.trial().outcome(), proto::WRONG_RESULT)
      << evaluation.trial().detail();
  EXPECT_NE(evaluation.trial().outcome(), proto::INVALID)
      << evaluation.trial().detail();
  EXPECT_EQ(evaluator.workers_started(), 0) << "in a process of its own";
  EXPECT_GT(evaluator.waiting_bytes(),
            WorkerEvaluator(entry_.task, worker_).waiting_bytes());
  WorkerEvaluator another(entry_.task, worker_);
  EXPECT_EQ(another.Smaller(good, 1e-9), nullptr);
}

TEST_F(WorkerEvaluatorTest, GoesOnAfterAFailureInANewWorker) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  const auto good = *ParseConfig("behaviour=ok,work=1");
  evaluator.Evaluate(good, options_);
  evaluator.Evaluate(good, options_);
  EXPECT_EQ(evaluator.workers_started(), 1);
  evaluator.Evaluate(*ParseConfig("behaviour=crash,work=1"), options_);
  const Evaluation after = evaluator.Evaluate(good, options_);
  EXPECT_NE(after.trial().outcome(), proto::CRASHED) << after.trial().detail();
  EXPECT_EQ(evaluator.workers_started(), 2);
  options_.fresh_process = true;
  evaluator.Evaluate(good, options_);
  EXPECT_EQ(evaluator.workers_started(), 3);
}

TEST_F(WorkerEvaluatorTest, AProcessThatWasOpenedAheadServesItsRound) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  const auto good = *ParseConfig("behaviour=ok,work=1");
  evaluator.OpenAhead({{}, {0}});
  evaluator.OpenAhead({int64_t{1}, {7}});
  evaluator.OpenAhead({int64_t{1}, {7}});
  EXPECT_EQ(evaluator.workers_started(), 2);
  const Evaluation shared = evaluator.Evaluate(good, options_);
  EXPECT_NE(shared.trial().outcome(), proto::LAUNCH_ERROR)
      << shared.trial().detail();
  options_.process_of_round = 1;
  options_.input_seed = 7;
  evaluator.Evaluate(good, options_);
  evaluator.Evaluate(good, options_);
  EXPECT_EQ(evaluator.workers_started(), 2);
  // One that was used makes room on a processor.
  options_.process_of_round.reset();
  evaluator.Evaluate(good, options_);
  EXPECT_EQ(evaluator.workers_started(), 3);
}

TEST_F(WorkerEvaluatorTest, ProcessesOfTheNextRoundsAreOpenedWithTheFirst) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  EXPECT_EQ(evaluator.policy().processes_together % 2, 1)
      << "the side of a pair that is first would always be the same";
  const auto evaluate = [&](int64_t round) {
    options_.process_of_round = round;
    options_.next_rounds = {{round + 1, {0}}, {round + 2, {0}}};
    return evaluator.Evaluate(*ParseConfig("behaviour=ok,work=1"), options_);
  };
  for (int64_t round = 0; round < 7; ++round) {
    for (int side = 0; side < 2; ++side) {
      const Evaluation evaluation = evaluate(round);
      EXPECT_NE(evaluation.trial().outcome(), proto::LAUNCH_ERROR)
          << evaluation.trial().detail();
    }
    EXPECT_EQ(evaluator.workers_started(), 3 * (1 + round / 3)) << round;
  }
  // Rounds of another purpose: those that wait are not theirs.
  evaluate(100);
  EXPECT_EQ(evaluator.workers_started(), 12);
  evaluate(7);
  EXPECT_EQ(evaluator.workers_started(), 15);
}

TEST_F(WorkerEvaluatorTest, AProcessThatDiesWhileItWaitsIsReplaced) {
  worker_.binary = "/bin/false";
  WorkerEvaluator evaluator(entry_.task, worker_);
  evaluator.OpenAhead({{}, {0}});
  const Evaluation evaluation =
      evaluator.Evaluate(*ParseConfig("behaviour=ok,work=1"), options_);
  EXPECT_EQ(evaluation.trial().outcome(), proto::CRASHED)
      << evaluation.trial().detail();
  EXPECT_EQ(evaluator.workers_started(), 2);
}

TEST_F(WorkerEvaluatorTest, ThoseThatAreComparedShareAProcess) {
  options_.process_of_round = 3;
  const auto config = [](const std::string& behaviour, int work) {
    return *ParseConfig(absl::StrCat("behaviour=", behaviour, ",work=", work));
  };
  WorkerEvaluator evaluator(entry_.task, worker_);
  const std::vector<Evaluation> sound =
      evaluator.EvaluateTogether({config("ok", 1), config("ok", 4)}, options_);
  ASSERT_EQ(sound.size(), 2);
  EXPECT_EQ(evaluator.workers_started(), 1);
  for (const Evaluation& one : sound) {
    ASSERT_TRUE(LeavesNothingBehind(one.trial().outcome()))
        << one.trial().detail();
    EXPECT_LE(one.trial().error_in_tolerances(), 1);
    EXPECT_GT(one.trial().elapsed_ns(), 0);
  }
  // One of each at a time.
  EXPECT_EQ(sound[0].trial().measurements(0).sample_ns_size(),
            sound[1].trial().measurements(0).sample_ns_size());
  EXPECT_EQ(sound[0].trial().measurements(0).started_unix_ns(),
            sound[1].trial().measurements(0).started_unix_ns());
  // What goes wrong is the outcome of the one that did it, and of no other.
  for (const auto& [behaviour, outcome] :
       {std::pair<std::string, proto::Outcome>("write_nan",
                                               proto::WRONG_RESULT),
        {"crash", proto::CRASHED},
        {"write_before", proto::WRONG_RESULT},
        {"wrong_later", proto::WRONG_RESULT}}) {
    const std::vector<Evaluation> mixed = evaluator.EvaluateTogether(
        {config("ok", 1), config(behaviour, 1), config("ok", 4)}, options_);
    ASSERT_EQ(mixed.size(), 3);
    EXPECT_TRUE(LeavesNothingBehind(mixed[0].trial().outcome()))
        << mixed[0].trial().detail();
    EXPECT_EQ(mixed[1].trial().outcome(), outcome) << behaviour;
    EXPECT_TRUE(LeavesNothingBehind(mixed[2].trial().outcome()))
        << mixed[2].trial().detail();
  }
}

// Several contenders, in a process on this CPU.
class InTurnsTest : public WorkerEvaluatorTest {
 protected:
  InTurnsTest() {
    OpenedWorkerOptions options;
    options.binary = "/proc/self/exe";
    options.task = entry_.task;
    options.shared_folder = ::testing::TempDir();
    options.memory_cap_bytes = int64_t{512} << 20;
    options.open_deadline = absl::Minutes(2);
    auto started = OpenedWorker::Start(options, {1});
    EXPECT_TRUE(started.ok()) << started.status();
    process_ = *std::move(started);
    EXPECT_TRUE(IsOk(process_->AwaitOpen()));
    together_ = request_.mutable_evaluate();
    *together_->mutable_sampling() = options_.sampling;
    together_->set_input_seed(1);
  }

  void Add(const std::string& backend, const std::string& config) {
    auto& contender = *together_->add_contenders();
    contender.set_backend(backend);
    *contender.mutable_config() = *ParseConfig(config);
  }

  std::vector<Evaluation> Ask(const TimeElsewhere& elsewhere) {
    return process_->Ask(request_, absl::Minutes(2), elsewhere);
  }

  std::unique_ptr<OpenedWorker> process_;
  proto::WorkerRequest request_;
  proto::WorkerRequest::Evaluate* together_;
};

TEST_F(InTurnsTest, BackendsAndOtherProgramsAreSampledByOneProcess) {
  Add("", "behaviour=ok,work=1");
  Add("compiled", "compile=ok,work=2");
  together_->add_contenders()->set_elsewhere(true);
  int asked = 0;
  const std::vector<Evaluation> evaluations =
      Ask([&](int contender, int64_t calls) -> absl::StatusOr<int64_t> {
        EXPECT_EQ(contender, 2);
        ++asked;
        return 1000 * calls;
      });
  ASSERT_EQ(evaluations.size(), 3) << evaluations[0].trial().detail();
  const int samples = evaluations[0].trial().measurements(0).sample_ns_size();
  EXPECT_GE(samples, 3);
  EXPECT_GT(asked, samples) << "warmed up, too";
  for (const Evaluation& one : evaluations) {
    EXPECT_TRUE(LeavesNothingBehind(one.trial().outcome()))
        << one.trial().detail();
    EXPECT_EQ(one.trial().measurements(0).sample_ns_size(), samples);
  }
  EXPECT_TRUE(evaluations[0].trial().has_error_in_tolerances());
  EXPECT_EQ(evaluations[1].trial().facts(0).name(), "registers");
  EXPECT_FALSE(evaluations[2].trial().has_error_in_tolerances());
  EXPECT_EQ(evaluations[2].trial().measurements(0).sample_ns(0),
            1000 * evaluations[2].trial().measurements(0).calls_per_sample());
}

TEST_F(InTurnsTest, WhatIsWrongWithOneIsSaid) {
  Add("", "behaviour=ok,work=1");
  Add("nobody's", "behaviour=ok,work=1");
  EXPECT_THAT(Ask({})[0].trial().detail(), HasSubstr("nobody's"));
  together_->mutable_contenders()->RemoveLast();
  together_->add_contenders()->set_elsewhere(true);
  const std::vector<Evaluation> evaluations =
      Ask([](int, int64_t) -> absl::StatusOr<int64_t> {
        return absl::UnavailableError("the peer has ended");
      });
  ASSERT_EQ(evaluations.size(), 1);
  EXPECT_EQ(evaluations[0].trial().outcome(), proto::LAUNCH_ERROR);
  EXPECT_THAT(evaluations[0].trial().detail(), HasSubstr("the peer has ended"));
}

TEST_F(WorkerEvaluatorTest, ThePolicyOfACpuInterleavesNoRounds) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  EXPECT_FALSE(evaluator.policy().interleaves_rounds);
  EXPECT_EQ(evaluator.policy().processes_ahead, 0);
  EXPECT_EQ(evaluator.workers_started(), 0);
}

TEST_F(WorkerEvaluatorTest, AConfigThatIsNoneOfTheSpaceIsInvalid) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  const Evaluation evaluation =
      evaluator.Evaluate(*ParseConfig("behaviour=unknown,work=1"), options_);
  EXPECT_EQ(evaluation.trial().outcome(), proto::INVALID)
      << evaluation.trial().detail();
}

TEST_F(WorkerEvaluatorTest, AnUnknownOperatorOrDeviceSaysSo) {
  proto::Task task = entry_.task;
  task.set_operator_name("no_such_operator");
  WorkerEvaluator unknown(task, worker_);
  const Evaluation evaluation =
      unknown.Evaluate(*ParseConfig("work=1"), options_);
  EXPECT_NE(evaluation.trial().outcome(), proto::OK);
  EXPECT_THAT(evaluation.trial().detail(), HasSubstr("no_such_operator"));

  task = entry_.task;
  task.set_device_kind(proto::CUDA);
  WorkerEvaluator cuda(task, worker_);
  EXPECT_EQ(cuda.Evaluate(*ParseConfig("work=1"), options_).trial().outcome(),
            proto::UNSUPPORTED);
}

TEST_F(WorkerEvaluatorTest, AMissingBinaryIsALaunchErrorThatNamesIt) {
  worker_.binary = "/nonexistent/worker";
  const Evaluation evaluation = Evaluate("ok");
  EXPECT_EQ(evaluation.trial().outcome(), proto::LAUNCH_ERROR);
  EXPECT_THAT(evaluation.trial().detail(), HasSubstr("/nonexistent/worker"));
}

// The backend whose compiler misbehaves.
class CompilingTest : public WorkerEvaluatorTest {
 protected:
  CompilingTest() {
    entry_.task.set_backend("compiled");
    worker_.shared_folder = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    worker_.compile_deadline = absl::Minutes(2);
    worker_.max_compiler_bytes = int64_t{256} << 20;
    // Measuring may take what it takes on a busy machine.
    worker_.config_deadline = absl::Minutes(2);
  }

  static proto::Config ConfigOf(const std::string& compile, int work = 1) {
    return *ParseConfig(absl::StrCat("compile=", compile, ",work=", work));
  }
  static bool IsMeasured(proto::Outcome outcome) {
    return outcome == proto::OK || outcome == proto::CENSORED ||
           outcome == proto::CONTENDED;
  }
};

TEST_F(CompilingTest, EachMisbehaviourOfACompilerBecomesItsOutcome) {
  const std::vector<std::pair<std::string, proto::Outcome>> expected = {
      {"refuse", proto::COMPILE_ERROR},
      {"crash", proto::COMPILE_ERROR},
      {"hang", proto::TIMED_OUT},
      {"hang_child", proto::TIMED_OUT},
      {"allocate", proto::OUT_OF_MEMORY},
      {"allocate_child", proto::OUT_OF_MEMORY},
  };
  for (const auto& [compile, outcome] : expected) {
    worker_.compile_deadline =
        outcome == proto::TIMED_OUT ? absl::Seconds(1) : absl::Minutes(2);
    WorkerEvaluator evaluator(entry_.task, worker_);
    const Evaluation failed = evaluator.Evaluate(ConfigOf(compile), options_);
    EXPECT_EQ(failed.trial().outcome(), outcome)
        << compile << ": " << failed.trial().detail();
    EXPECT_EQ(failed.trial().elapsed_ns(), 0) << compile;
    // No process that measures was spent on it, and others go on.
    EXPECT_EQ(evaluator.workers_started(), 0) << compile;
    const Evaluation after = evaluator.Evaluate(ConfigOf("ok"), options_);
    EXPECT_TRUE(IsMeasured(after.trial().outcome()))
        << compile << ": " << after.trial().detail();
  }
}

TEST_F(CompilingTest, CodeThatSaysThatItFailedIsNotCalledWrong) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  const Evaluation failed = evaluator.Evaluate(ConfigOf("no_result"), options_);
  EXPECT_EQ(failed.trial().outcome(), proto::LAUNCH_ERROR)
      << failed.trial().detail();
  EXPECT_THAT(failed.trial().detail(), HasSubstr("an assertion of the code"));
}

TEST_F(CompilingTest, WhatTheCompilerToldIsInTheTrialAlsoFromTheCache) {
  for (const bool cached : {false, true}) {
    WorkerEvaluator evaluator(entry_.task, worker_);
    const Evaluation evaluation =
        evaluator.Evaluate(ConfigOf("ok", 2), options_);
    ASSERT_TRUE(IsMeasured(evaluation.trial().outcome()))
        << evaluation.trial().detail();
    ASSERT_EQ(evaluation.trial().facts().size(), 1);
    EXPECT_EQ(evaluation.trial().facts(0).name(), "registers");
    EXPECT_EQ(evaluation.trial().facts(0).value(), 32);
    EXPECT_EQ(evaluation.trial().compile_ns() == 0, cached);
  }
}

TEST_F(CompilingTest, FactsKeepAConfigFromBeingLaunched) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  options_.accept_facts = [](const proto::Config&, const Facts& facts) {
    return facts[0].value() <= 32
               ? absl::OkStatus()
               : absl::InvalidArgumentError("too many registers");
  };
  const Evaluation refused = evaluator.Evaluate(ConfigOf("ok", 4), options_);
  EXPECT_EQ(refused.trial().outcome(), proto::INVALID);
  EXPECT_THAT(refused.trial().detail(), HasSubstr("too many registers"));
  EXPECT_EQ(refused.trial().facts(0).value(), 64);
  EXPECT_EQ(evaluator.workers_started(), 0);
  EXPECT_TRUE(IsMeasured(
      evaluator.Evaluate(ConfigOf("ok", 2), options_).trial().outcome()));
}

TEST_F(CompilingTest, NothingIsCompiledTwice) {
  auto pool =
      std::make_shared<CompilePool>(CompilePoolFor(proto::CPU, 1, worker_));
  worker_.compilers = pool;
  WorkerEvaluator evaluator(entry_.task, worker_);
  evaluator.Prepare(ConfigOf("refuse"));
  evaluator.AwaitReady({ConfigOf("refuse")}, absl::InfiniteDuration());
  EXPECT_TRUE(evaluator.IsReady(ConfigOf("refuse")));
  // Another evaluator of the call knows it, too.
  WorkerEvaluator other(entry_.task, worker_);
  EXPECT_TRUE(other.IsReady(ConfigOf("refuse")));
  EXPECT_FALSE(other.IsReady(ConfigOf("crash")));
}

// Parent and name of every process that is not a zombie.
std::map<pid_t, std::pair<pid_t, std::string>> Processes() {
  std::map<pid_t, std::pair<pid_t, std::string>> processes;
  const auto entries = ListDirectory("/proc");
  for (const std::string& entry : *entries) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry, &pid)) continue;
    const auto stat = ReadFile(absl::StrCat("/proc/", entry, "/stat"));
    if (!stat.ok()) continue;
    // PID (NAME) STATE PARENT ...
    const size_t open = stat->find('('), close = stat->rfind(')');
    if (close == std::string::npos) continue;
    const std::vector<std::string> rest =
        absl::StrSplit(stat->substr(close + 2), ' ');
    pid_t parent = 0;
    if (rest[0] == "Z" || !absl::SimpleAtoi(rest[1], &parent)) continue;
    processes[pid] = {parent, stat->substr(open + 1, close - open - 1)};
  }
  return processes;
}

// The descendants of this process, at any distance.
std::map<pid_t, std::string> Descendants() {
  const auto processes = Processes();
  std::map<pid_t, std::string> found;
  for (const auto& [pid, process] : processes) {
    pid_t ancestor = process.first;
    while (ancestor != getpid() && processes.count(ancestor) > 0) {
      ancestor = processes.at(ancestor).first;
    }
    if (ancestor == getpid()) found[pid] = process.second;
  }
  return found;
}

TEST_F(CompilingTest, APoolThatEndsTakesItsCompilersAlong) {
  worker_.compile_deadline = absl::InfiniteDuration();
  CompilePoolOptions pool = CompilePoolFor(proto::CPU, 1, worker_);
  pool.cores.resize(1);
  pool.cores.push_back(pool.cores[0]);  // two processes on any machine
  pool.pauses = false;
  worker_.compilers = std::make_shared<CompilePool>(pool);
  auto evaluator = std::make_unique<WorkerEvaluator>(entry_.task, worker_);
  for (const char* compile : {"hang_child", "hang", "ok"}) {
    evaluator->Prepare(ConfigOf(compile));
  }
  // Both hang: two compilers, one of which has started a program.
  std::map<pid_t, std::string> running;
  const auto has_child = [&running] {
    return std::any_of(running.begin(), running.end(), [](const auto& process) {
      return process.second == "sleep";
    });
  };
  const absl::Time begin = absl::Now();
  while (!has_child() && absl::Now() - begin < absl::Minutes(2)) {
    evaluator->AwaitReady({ConfigOf("hang")}, absl::Milliseconds(20));
    running = Descendants();
  }
  ASSERT_TRUE(has_child());
  ASSERT_GE(running.size(), 3);
  EXPECT_FALSE(evaluator->IsReady(ConfigOf("ok"))) << "both are taken";
  evaluator.reset();
  worker_.compilers.reset();  // returns, and what has been told to end does
  const absl::Time ended = absl::Now();
  std::map<pid_t, std::string> left;
  do {
    left.clear();
    const auto processes = Processes();
    for (const auto& [pid, name] : running) {
      // A number may have been given to another process since.
      const auto found = processes.find(pid);
      if (found != processes.end() && found->second.second == name) {
        left[pid] = name;
      }
    }
    absl::SleepFor(absl::Milliseconds(5));
  } while (!left.empty() && absl::Now() - ended < absl::Seconds(30));
  EXPECT_THAT(left, ::testing::IsEmpty());
}

// One hangs for as long as it is let; the others are all measured before.
TEST_F(CompilingTest, AnOutlierHoldsUpNobodyButItself) {
  worker_.compile_deadline = absl::Seconds(6);
  CompilePoolOptions pool = CompilePoolFor(proto::CPU, 1, worker_);
  pool.cores.resize(1);
  pool.cores.push_back(pool.cores[0]);  // two processes on any machine
  for (const bool pauses : {false, true}) {
    SCOPED_TRACE(pauses);
    worker_.shared_folder += "x";
    pool.pauses = pauses;
    worker_.compilers = std::make_shared<CompilePool>(pool);
    const auto space = BindTask(entry_, hardware_);
    ASSERT_TRUE(space.ok()) << space.status();
    WorkerEvaluator evaluator(entry_.task, worker_);
    SessionEvaluatorOptions session_options;
    session_options.sampling = options_.sampling;
    session_options.compile_ahead = evaluator.CompileAhead(ConfigOf("ok"));
    EXPECT_EQ(session_options.compile_ahead, 4);
    SessionEvaluator session(evaluator, session_options);
    std::vector<std::string> names = {"hang"};
    tuning::Request request;
    request.set_purpose(tuning::Request::SEARCH);
    *request.mutable_config() = ConfigOf("hang");
    session.Submit(request);
    for (int work = 1; work <= 64; work *= 2) {
      request.set_ticket(work);
      *request.mutable_config() = ConfigOf("ok", work);
      session.Submit(request);
    }
    std::vector<int64_t> answered;
    for (int i = 0; i < 8; ++i) {
      const auto answers = session.Poll(absl::InfiniteDuration());
      ASSERT_EQ(answers.size(), 1);
      answered.push_back(answers[0].ticket());
      const proto::Outcome outcome = answers[0].trial().outcome();
      if (answers[0].ticket() == 0) {
        EXPECT_EQ(outcome, proto::TIMED_OUT) << answers[0].trial().detail();
      } else {
        EXPECT_TRUE(IsMeasured(outcome)) << answers[0].trial().detail();
        EXPECT_THAT(answers[0].trial().facts(),
                    ::testing::Contains(::testing::AllOf(
                        ::testing::Property(&proto::Fact::name, "registers"),
                        ::testing::Property(&proto::Fact::value,
                                            16 * answers[0].ticket()))));
      }
    }
    EXPECT_EQ(answered.back(), 0);
  }
}

// The whole space of the test operator: tuning goes on through every failure,
// and none of the faulty configs wins.
TEST_F(WorkerEvaluatorTest, TuningSurvivesEveryMisbehaviour) {
  worker_.config_deadline = absl::Milliseconds(700);
  const auto space = BindTask(entry_, hardware_);
  ASSERT_TRUE(space.ok()) << space.status();
  TuneSetup setup;
  *setup.header.mutable_task() = entry_.task;
  setup.header.set_session_id("20261120T000000Z-1");
  setup.space = space->bound.get();
  TuneOptions tune;
  tune.strategy = "exhaustive";
  tune.rank_rounds = 1;
  tune.proof.max_rounds = 5;
  tune.finalists = 2;
  tune.sampling = options_.sampling;
  tune.journal_directory = JoinPath(::testing::TempDir(), "journal");
  WorkerEvaluator evaluator(entry_.task, worker_);
  const auto session = RunTuneSession(setup, tune, evaluator, *Clock::Real());
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), *space->bound->size());
  EXPECT_EQ(session->stop_reason(), proto::SPACE_EXHAUSTED);
  for (const proto::Trial& trial : session->trials()) {
    const std::string config = tuning::CanonicalText(trial.config());
    if (absl::StrContains(config, "=ok") ||
        absl::StrContains(config, "=slow") ||
        absl::StrContains(config, "=evict") ||
        absl::StrContains(config, "=count_rows")) {
      continue;
    }
    EXPECT_NE(trial.outcome(), proto::OK) << config;
    EXPECT_NE(trial.outcome(), proto::CENSORED) << config;
  }
  if (session->has_winner()) {
    EXPECT_THAT(tuning::CanonicalText(session->winner()),
                ::testing::AnyOf(HasSubstr("behaviour=ok"),
                                 HasSubstr("behaviour=evict"),
                                 HasSubstr("behaviour=count_rows")));
  }
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
