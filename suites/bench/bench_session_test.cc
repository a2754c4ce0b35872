#include "suites/bench/bench_session.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/bench/bench_journal.h"
#include "suites/worker/testing/one_by_one_evaluator.h"

namespace optrail::suites {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Answers with the outcomes of a list, the last one for ever.
class ScriptedEvaluator : public OneByOneEvaluator {
 public:
  ScriptedEvaluator(std::string name, std::vector<proto::Outcome> outcomes,
                    int unwaited, std::vector<double>* core_loops_ns,
                    std::vector<std::string>* log)
      : name_(std::move(name)),
        outcomes_(std::move(outcomes)),
        unwaited_(unwaited),
        core_loops_ns_(core_loops_ns),
        log_(log) {}

  Evaluation EvaluateOne(const proto::Config&,
                         const EvaluationOptions& options) override {
    EXPECT_TRUE(options.fresh_process);
    log_->push_back(name_);
    Evaluation evaluation;
    evaluation.mutable_trial()->set_outcome(
        outcomes_[std::min(next_++, outcomes_.size() - 1)]);
    // Like the worker: a disturbed process may have a clean sample or two.
    if (evaluation.trial().outcome() == proto::OK ||
        evaluation.trial().outcome() == proto::CONTENDED) {
      evaluation.mutable_trial()->add_measurements();
      evaluation.mutable_trial()->mutable_measurements(0)->set_median_ns(100);
      for (int i = 0; i < unwaited_; ++i) {
        evaluation.mutable_trial()->mutable_measurements(0)->add_unwaited_ns(
            100);
      }
      if (!core_loops_ns_->empty()) {
        proto::Calibration* loop = evaluation.mutable_trial()
                                       ->mutable_measurements(0)
                                       ->mutable_conditions()
                                       ->add_calibrations();
        loop->set_loop("l1");
        loop->set_fastest_ns(core_loops_ns_->front());
        core_loops_ns_->erase(core_loops_ns_->begin());
      }
    }
    return evaluation;
  }

 private:
  std::string name_;
  std::vector<proto::Outcome> outcomes_;
  size_t next_ = 0;
  int unwaited_;
  std::vector<double>* core_loops_ns_;
  std::vector<std::string>* log_;
};

// Samples several in turns, unless one of them is said to be wrong.
class InTurnsEvaluator : public ScriptedEvaluator {
 public:
  InTurnsEvaluator(std::string name, std::vector<proto::Outcome> outcomes,
                   const std::string* wrong, std::vector<double>* no_loops,
                   std::vector<std::string>* log)
      : ScriptedEvaluator(std::move(name), std::move(outcomes), /*unwaited=*/0,
                          no_loops, log),
        wrong_(wrong),
        log_(log) {}

  ops::MeasurementPolicy policy() const override {
    ops::MeasurementPolicy policy;
    policy.interleaves_rounds = true;
    return policy;
  }
  std::vector<Evaluation> Measure(const std::vector<Contender>& contenders,
                                  const EvaluationOptions& options) override {
    if (contenders.size() == 1) {
      return ScriptedEvaluator::Measure(contenders, options);
    }
    EXPECT_TRUE(options.fresh_process);
    std::string names = absl::StrCat("round ", options.input_seed + 1, ":");
    bool is_wrong = names == *wrong_;
    for (const Contender& one : contenders) {
      absl::StrAppend(&names, " ", one.backend());
      is_wrong |= one.backend() == *wrong_;
    }
    log_->push_back(names);
    if (is_wrong) return {Evaluation()};
    std::vector<Evaluation> evaluations(contenders.size());
    for (size_t i = 0; i < evaluations.size(); ++i) {
      evaluations[i].mutable_trial()->set_outcome(proto::OK);
      evaluations[i].mutable_trial()->add_measurements();
      evaluations[i].mutable_trial()->mutable_measurements(0)->set_median_ns(
          100 + static_cast<double>(i));
    }
    return evaluations;
  }

 private:
  const std::string* const wrong_;
  std::vector<std::string>* const log_;
};

class BenchSessionTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, std::vector<proto::Outcome> outcomes) {
    BenchCase bench;
    bench.task.set_operator_name(name);
    bench.result.mutable_key()->set_operator_name(name);
    cases_.push_back(bench);
    outcomes_[name] = std::move(outcomes);
  }

  std::vector<proto::BenchmarkResult> Run() {
    return RunBenchSession(cases_, options_, [&](const proto::Task& task) {
      return std::make_unique<ScriptedEvaluator>(
          task.operator_name(), outcomes_[task.operator_name()], unwaited_,
          &core_loops_ns_, &log_);
    });
  }

  static std::vector<double> CoreLoopsOf(const proto::BenchmarkResult& result) {
    std::vector<double> loops_ns;
    for (const proto::Measurement& measurement : result.measurements()) {
      EXPECT_EQ(measurement.round(), loops_ns.size() + 1);
      loops_ns.push_back(measurement.conditions().calibrations(0).fastest_ns());
    }
    return loops_ns;
  }

  std::vector<BenchCase> cases_;
  std::map<std::string, std::vector<proto::Outcome>> outcomes_;
  BenchOptions options_;
  int unwaited_ = 0;                   // samples of each process
  std::vector<double> core_loops_ns_;  // of the processes to come
  std::vector<std::string> log_;
};

TEST_F(BenchSessionTest, EveryRoundGivesEachBenchmarkAFreshProcess) {
  options_.processes = 3;
  Add("a", {proto::OK});
  Add("b", {proto::OK});
  const auto results = Run();
  EXPECT_THAT(log_, ElementsAre("a", "b", "a", "b", "a", "b"));
  EXPECT_EQ(results[0].measurements_size(), 3);
  EXPECT_EQ(results[1].outcome(), proto::OK);
}

TEST_F(BenchSessionTest, RandomInterleavingKeepsRoundsAndIsSeeded) {
  options_.processes = 4;
  options_.random_interleaving = true;
  for (const char* name : {"a", "b", "c"}) Add(name, {proto::OK});
  Run();
  const std::vector<std::string> first = log_;
  for (int round = 0; round < 4; ++round) {
    EXPECT_THAT(std::vector<std::string>(first.begin() + 3 * round,
                                         first.begin() + 3 * round + 3),
                UnorderedElementsAre("a", "b", "c"));
  }
  log_.clear();
  Run();
  EXPECT_EQ(log_, first);
  EXPECT_NE(std::vector<std::string>(first.begin(), first.begin() + 3),
            std::vector<std::string>(first.begin() + 3, first.begin() + 6));
}

TEST_F(BenchSessionTest, AFailureIsTheOutcomeAndEndsThatBenchmarkOnly) {
  options_.processes = 3;
  Add("good", {proto::OK});
  Add("flaky", {proto::OK, proto::WRONG_RESULT});
  const auto results = Run();
  EXPECT_EQ(results[0].outcome(), proto::OK);
  EXPECT_EQ(results[1].outcome(), proto::WRONG_RESULT);
  EXPECT_THAT(log_, ElementsAre("good", "flaky", "good", "flaky", "good"));
}

TEST_F(BenchSessionTest, DisturbedProcessesAreTriedAgain) {
  options_.processes = 2;
  Add("a", {proto::CONTENDED, proto::CONTENDED, proto::OK});
  const auto results = Run();
  EXPECT_EQ(results[0].outcome(), proto::OK);
  EXPECT_EQ(results[0].measurements_size(), 2);
  EXPECT_EQ(log_.size(), 4);
}

TEST_F(BenchSessionTest, NothingIsConcludedFromABusyMachine) {
  options_.processes = 3;
  Add("a", {proto::CONTENDED});
  const auto results = Run();
  EXPECT_EQ(results[0].outcome(), proto::CONTENDED);
  EXPECT_EQ(results[0].measurements_size(), 0);
}

TEST_F(BenchSessionTest, ProcessesThatOnlyWaitedForACoreTell) {
  options_.processes = 3;
  Add("a", {proto::CONTENDED});
  unwaited_ = kSamplesOfContended - 1;
  EXPECT_EQ(Run()[0].outcome(), proto::CONTENDED);
  unwaited_ = kSamplesOfContended;
  const auto results = Run();
  EXPECT_EQ(results[0].outcome(), proto::OK);
  EXPECT_EQ(results[0].measurements_size(), 3);
}

TEST_F(BenchSessionTest, ProcessesOnSlowCoresAreMeasuredAgainAtTheEnd) {
  options_.processes = 2;
  Add("a", {proto::OK});
  Add("b", {proto::OK});
  //               a    b    a    b, then a, b     and b
  core_loops_ns_ = {120, 104, 100, 130, 101, 110, 99};
  const auto results = Run();
  EXPECT_THAT(log_, ElementsAre("a", "b", "a", "b", "a", "b", "b"));
  EXPECT_THAT(CoreLoopsOf(results[0]), ElementsAre(101, 100));
  EXPECT_THAT(CoreLoopsOf(results[1]), ElementsAre(104, 99));
}

TEST_F(BenchSessionTest, TheCalmerProcessStaysAndAFailureCounts) {
  options_.processes = 2;
  Add("a", {proto::OK});
  core_loops_ns_ = {100, 120, 125, 115};
  EXPECT_THAT(CoreLoopsOf(Run()[0]), ElementsAre(100, 115));
  Add("b", {proto::OK, proto::OK, proto::CRASHED});
  core_loops_ns_ = {100, 100, 100, 120};
  EXPECT_EQ(Run()[1].outcome(), proto::CRASHED);
}

class InTurnsTest : public BenchSessionTest {
 protected:
  InTurnsTest() {
    for (const char* backend : {"a", "b", "c"}) AddBackend("op", backend);
    options_.processes = 2;
  }

  void AddBackend(const std::string& op, const std::string& backend) {
    BenchCase bench;
    bench.task.set_operator_name(op);
    bench.task.set_backend(backend);
    bench.task.set_kernel_id(absl::StrCat(backend, " of ", op));
    cases_.push_back(bench);
  }

  std::vector<proto::BenchmarkResult> Run() {
    return RunBenchSession(cases_, options_, [&](const proto::Task& task) {
      return std::make_unique<InTurnsEvaluator>(
          task.backend(),
          std::vector<proto::Outcome>{
              task.backend() == wrong_ ? proto::WRONG_RESULT : proto::OK},
          &wrong_, &core_loops_ns_, &log_);
    });
  }

  std::string wrong_;
};

TEST_F(InTurnsTest, BackendsOfOneShapeShareAProcessARound) {
  AddBackend("another", "a");
  const auto results = Run();
  EXPECT_THAT(log_, ElementsAre("round 1: a b c", "a", "round 2: a b c", "a"));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i].outcome(), proto::OK);
    ASSERT_EQ(results[i].measurements_size(), 2);
    EXPECT_EQ(results[i].measurements(1).round(), 2);
    EXPECT_EQ(results[i].measurements(1).median_ns(), 100 + i);
  }
  EXPECT_EQ(results[3].measurements_size(), 2);
}

TEST_F(InTurnsTest, OneThatFailsIsFoundAloneAndTheOthersGoOn) {
  wrong_ = "b";
  const auto results = Run();
  EXPECT_THAT(log_, ElementsAre("round 1: a b c", "a", "b", "c", "round 1: a c",
                                "round 2: a c"));
  EXPECT_EQ(results[0].measurements_size(), 2);
  EXPECT_EQ(results[1].outcome(), proto::WRONG_RESULT);
  EXPECT_EQ(results[1].measurements_size(), 0);
  EXPECT_EQ(results[2].measurements_size(), 2);
}

TEST_F(InTurnsTest, WhatWasNotSampledInTurnsIsSaid) {
  wrong_ = "round 2:";
  ::testing::internal::CaptureStderr();
  const auto results = Run();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr(
                  "1 of 2 groups of benchmarks were measured one by one"));
  EXPECT_THAT(log_,
              ElementsAre("round 1: a b c", "round 2: a b c", "a", "b", "c"));
  EXPECT_EQ(results[0].measurements_size(), 2);
  // Where one failed, the others are sampled in turns all the same.
  wrong_ = "b";
  log_.clear();
  ::testing::internal::CaptureStderr();
  Run();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(InTurnsTest, WhatIsKnownToFailIsLeftOutAndOneIsNoGroup) {
  cases_[0].result.set_outcome(proto::UNSUPPORTED);
  cases_[2].result.set_outcome(proto::UNSUPPORTED);
  const auto results = Run();
  EXPECT_THAT(log_, ElementsAre("b", "b"));
  EXPECT_EQ(results[0].outcome(), proto::UNSUPPORTED);
  EXPECT_EQ(results[1].outcome(), proto::OK);
}

TEST_F(BenchSessionTest, NoMoreProcessesAreAddedThanThereAre) {
  options_.processes = 3;
  Add("a", {proto::OK});
  core_loops_ns_ = {100, 120, 120, 120, 120, 120, 120, 120, 120};
  Run();
  EXPECT_EQ(log_.size(), 6);
}

// What an interrupted bench kept is not measured again, failures included, and
// the results are those of a bench that nobody interrupted.
TEST_F(BenchSessionTest, GoesOnFromAJournal) {
  options_.processes = 3;
  Add("a", {proto::OK});
  Add("fails", {proto::OK, proto::CRASHED});
  Add("b", {proto::OK});
  const std::string folder =
      absl::StrCat(::testing::TempDir(), "/goes_on_from_a_journal");
  proto::BenchJournalRecord::Header header;
  header.set_run_id("run");
  std::vector<proto::BenchmarkResult> whole;
  {
    auto journal = *BenchJournal::Open(folder, "id", header, /*resume=*/true);
    options_.journal = journal.get();
    whole = Run();
    EXPECT_EQ(log_.size(), 8);
  }
  log_.clear();
  auto journal = *BenchJournal::Open(folder, "id", header, /*resume=*/true);
  EXPECT_EQ(journal->found(), 9);
  options_.journal = journal.get();
  const auto again = Run();
  EXPECT_THAT(log_, ElementsAre());
  ASSERT_EQ(again.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(again[i].DebugString(), whole[i].DebugString());
  }
  // One more round than was kept is all that is left to do.
  options_.processes = 4;
  Run();
  EXPECT_THAT(log_, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace optrail::suites
