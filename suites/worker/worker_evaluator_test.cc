// Every misbehaviour of the test operator, in real worker processes: this
// binary is its own worker.

#include "suites/worker/worker_evaluator.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/tune_session.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;
using tuning::ParseConfig;

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
  if (evaluation.outcome == proto::CONTENDED) {
    GTEST_SKIP() << evaluation.detail;
  }
  ASSERT_EQ(evaluation.outcome, proto::OK) << evaluation.detail;
  EXPECT_GT(*evaluation.time_ns, 0);
  EXPECT_LE(*evaluation.error_in_tolerances, 1);
  ASSERT_TRUE(evaluation.measurement.has_value());
  EXPECT_GE(evaluation.measurement->sample_ns_size(), 3);
  EXPECT_GT(evaluation.measurement->conditions().cpus_size(), 0);
  EXPECT_EQ(evaluation.measurement->metrics(0).metric(), "cpu_time");
}

TEST_F(WorkerEvaluatorTest, EachMisbehaviourBecomesItsOutcome) {
  const std::vector<std::pair<std::string, proto::Outcome>> expected = {
      {"crash", proto::CRASHED},
      {"abort", proto::CRASHED},
      {"exit", proto::CRASHED},
      {"hang", proto::TIMED_OUT},
      {"allocate", proto::OUT_OF_MEMORY},
      {"write_nan", proto::WRONG_RESULT},
      {"write_nothing", proto::WRONG_RESULT},
      {"write_out_of_bounds", proto::WRONG_RESULT},
      {"change_input", proto::WRONG_RESULT},
  };
  for (const auto& [behaviour, outcome] : expected) {
    // Only what hangs may be stopped by the clock, however slow the machine.
    worker_.config_deadline =
        outcome == proto::TIMED_OUT ? absl::Seconds(1) : absl::Minutes(2);
    const Evaluation evaluation = Evaluate(behaviour);
    EXPECT_EQ(evaluation.outcome, outcome)
        << behaviour << ": " << evaluation.detail;
    EXPECT_FALSE(evaluation.time_ns.has_value()) << behaviour;
    EXPECT_NE(evaluation.detail, "") << behaviour;
  }
  EXPECT_THAT(Evaluate("crash").detail, HasSubstr("signal 11"));
  EXPECT_THAT(Evaluate("exit").detail, HasSubstr("code 3"));
}

TEST_F(WorkerEvaluatorTest, GoesOnAfterAFailureInANewWorker) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  const auto good = *ParseConfig("behaviour=ok,work=1");
  evaluator.Evaluate(good, options_);
  evaluator.Evaluate(good, options_);
  EXPECT_EQ(evaluator.workers_started(), 1);
  evaluator.Evaluate(*ParseConfig("behaviour=crash,work=1"), options_);
  const Evaluation after = evaluator.Evaluate(good, options_);
  EXPECT_NE(after.outcome, proto::CRASHED) << after.detail;
  EXPECT_EQ(evaluator.workers_started(), 2);
  options_.fresh_process = true;
  evaluator.Evaluate(good, options_);
  EXPECT_EQ(evaluator.workers_started(), 3);
}

TEST_F(WorkerEvaluatorTest, AConfigThatIsNoneOfTheSpaceIsInvalid) {
  WorkerEvaluator evaluator(entry_.task, worker_);
  const Evaluation evaluation =
      evaluator.Evaluate(*ParseConfig("behaviour=unknown,work=1"), options_);
  EXPECT_EQ(evaluation.outcome, proto::INVALID) << evaluation.detail;
}

TEST_F(WorkerEvaluatorTest, AnUnknownOperatorOrDeviceSaysSo) {
  proto::Task task = entry_.task;
  task.set_operator_name("no_such_operator");
  WorkerEvaluator unknown(task, worker_);
  const Evaluation evaluation =
      unknown.Evaluate(*ParseConfig("work=1"), options_);
  EXPECT_NE(evaluation.outcome, proto::OK);
  EXPECT_THAT(evaluation.detail, HasSubstr("no_such_operator"));

  task = entry_.task;
  task.set_device_kind(proto::CUDA);
  WorkerEvaluator cuda(task, worker_);
  EXPECT_EQ(cuda.Evaluate(*ParseConfig("work=1"), options_).outcome,
            proto::UNSUPPORTED);
}

TEST_F(WorkerEvaluatorTest, AMissingBinaryIsALaunchErrorThatNamesIt) {
  worker_.binary = "/nonexistent/worker";
  const Evaluation evaluation = Evaluate("ok");
  EXPECT_EQ(evaluation.outcome, proto::LAUNCH_ERROR);
  EXPECT_THAT(evaluation.detail, HasSubstr("/nonexistent/worker"));
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
        absl::StrContains(config, "=slow")) {
      continue;
    }
    EXPECT_NE(trial.outcome(), proto::OK) << config;
    EXPECT_NE(trial.outcome(), proto::CENSORED) << config;
  }
  if (session->has_winner()) {
    EXPECT_THAT(tuning::CanonicalText(session->winner()),
                HasSubstr("behaviour=ok"));
  }
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
