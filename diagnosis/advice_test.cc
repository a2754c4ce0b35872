// Advice about kernels whose times a function tells.

#include "diagnosis/advice.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using suites::Contender;
using suites::Evaluation;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tuning::CanonicalText;

class FakeEvaluator : public suites::Evaluator {
 public:
  std::vector<Evaluation> Measure(
      const std::vector<Contender>& contenders,
      const suites::EvaluationOptions& options) override {
    std::vector<Evaluation> evaluations;
    fresh = options.fresh_process;
    for (const Contender& contender : contenders) {
      const double ns = time_ns(CanonicalText(contender.config()));
      fresh_processes += options.fresh_process;
      Evaluation& evaluation = evaluations.emplace_back();
      evaluation.mutable_trial()->set_outcome(proto::OK);
      evaluation.mutable_trial()->set_time_ns(ns);
      evaluation.mutable_trial()->add_measurements();
      evaluation.mutable_trial()->mutable_measurements(0)->set_calls_per_sample(
          1);
      for (int i = 0; i < 21; ++i) {
        evaluation.mutable_trial()->mutable_measurements(0)->add_sample_ns(
            static_cast<int64_t>(ns) + i % 3);
      }
    }
    return evaluations;
  }

  std::function<double(const std::string&)> time_ns;
  int fresh_processes = 0;
  bool fresh = false;
};

class AdviceTest : public ::testing::Test {
 protected:
  AdviceTest() {
    suites::TaskSelection selection;
    selection.op_regex = "add";
    selection.shape_regex = "n=1048576/f32";
    tools_.hardware.set_device_kind(proto::CPU);
    tools_.hardware.set_cores(1);
    subject_.entry = suites::SelectTasks(selection, tools_.hardware)->front();
    subject_.config = *tuning::ParseConfig(
        "block_elements=16384,prefetch_bytes=0,stores=cached,unroll=2");
    tools_.evaluator_for =
        [this](const proto::Task& task) -> suites::Evaluator& {
      return task.threads() == 1 ? evaluator_ : on_more_threads_;
    };
    evaluator_.time_ns = [](const std::string& config) {
      return Holds(config, "unroll=4") ? 60'000. : 100'000.;
    };
    on_more_threads_.time_ns = [](const std::string&) { return 50'000.; };
  }

  static bool Holds(const std::string& config, const char* part) {
    return config.find(part) != std::string::npos;
  }

  Subject subject_;
  AdviceTools tools_;
  FakeEvaluator evaluator_, on_more_threads_;
};

proto::DiagnosisAdvice TuneUnroll() {
  proto::DiagnosisAdvice advice;
  advice.set_kind(proto::TUNE_KNOBS);
  advice.add_knobs("unroll");
  advice.set_predicted_gain(.4);
  *advice.mutable_config() = *tuning::ParseConfig(
      "block_elements=16384,prefetch_bytes=0,stores=cached,unroll=4");
  return advice;
}

TEST_F(AdviceTest, NamesTheKnobsThatMoveTheTime) {
  const auto all = AdviceFor(subject_, tools_, {}, {});
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].kind(), proto::TUNE_KNOBS);
  EXPECT_THAT(all[0].knobs(), ElementsAre("unroll"));
  EXPECT_NEAR(all[0].predicted_gain(), .4, .01);
}

// The best of six readings is too good: the neighbour is as slow in a fresh
// process.
TEST_F(AdviceTest, ANeighbourThatIsNoFasterInAFreshProcessIsNotAdvised) {
  evaluator_.time_ns = [this](const std::string& config) {
    return Holds(config, "unroll=4") && !evaluator_.fresh ? 60'000. : 100'000.;
  };
  for (const auto& advice : AdviceFor(subject_, tools_, {}, {})) {
    EXPECT_NE(advice.kind(), proto::TUNE_KNOBS);
  }
  EXPECT_GE(evaluator_.fresh_processes, 1);
}

// unroll=4 is faster in its first reading alone, unroll=1 in each.
TEST_F(AdviceTest, TheNextNeighbourIsAdvisedWhereTheLuckiestIsNotConfirmed) {
  evaluator_.time_ns = [this](const std::string& config) {
    if (Holds(config, "unroll=4")) return evaluator_.fresh ? 99'000. : 50'000.;
    return Holds(config, "unroll=1") ? 80'000. : 100'000.;
  };
  const auto all = AdviceFor(subject_, tools_, {}, {});
  ASSERT_FALSE(all.empty());
  ASSERT_EQ(all[0].kind(), proto::TUNE_KNOBS);
  EXPECT_THAT(CanonicalText(all[0].config()), HasSubstr("unroll=1"));
  EXPECT_NEAR(all[0].predicted_gain(), .2, .01);
}

// A fresh process brings less than the first reading, and that is promised.
TEST_F(AdviceTest, TheGainOfTheFreshProcessIsPredictedWithBothIntervals) {
  evaluator_.time_ns = [this](const std::string& config) {
    if (!Holds(config, "unroll=4")) return 100'000.;
    return evaluator_.fresh ? 80'000. : 60'000.;
  };
  const auto all = AdviceFor(subject_, tools_, {}, {});
  ASSERT_FALSE(all.empty());
  ASSERT_EQ(all[0].kind(), proto::TUNE_KNOBS);
  EXPECT_NEAR(all[0].predicted_gain(), .2, .01);
  EXPECT_NEAR(all[0].predicted_low(), .2, .01);
  EXPECT_NEAR(all[0].predicted_high(), .4, .01);
}

TEST_F(AdviceTest, WhatWasTimedComesBeforeALargerEstimateAndThreadsLast) {
  tools_.hardware.set_cores(2);
  tools_.cores = 2;
  Numbers numbers;
  numbers.Set("pass_gain", .9, "estimated");
  proto::DiagnosisCause cause;
  cause.add_chain()->set_class_name("extra_passes");
  cause.set_recoverable(.9);
  const auto all = AdviceFor(subject_, tools_, numbers, {cause});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].kind(), proto::TUNE_KNOBS);
  EXPECT_EQ(all[1].kind(), proto::CHANGE_CODE);
  EXPECT_EQ(all[2].kind(), proto::USE_THREADS);
}

TEST_F(AdviceTest, TryingSearchesTheNamedKnobsAndMeasuresTheWinner) {
  evaluator_.time_ns = [](const std::string& config) {
    return Holds(config, "unroll=8") ? 50'000. : 100'000.;
  };
  suites::SearchWithin asked;
  tools_.search = [&](const suites::TaskEntry&,
                      const suites::SearchWithin& within) {
    asked = within;
    return tuning::ParseConfig(
        "block_elements=16384,prefetch_bytes=0,stores=cached,unroll=8");
  };
  proto::DiagnosisAdvice advice = TuneUnroll();
  TryAdvice(subject_, tools_, &advice);
  EXPECT_THAT(asked.knobs, ElementsAre("unroll"));
  EXPECT_EQ(CanonicalText(asked.around), CanonicalText(subject_.config));
  EXPECT_NEAR(advice.realised_gain(), .5, .01);
  EXPECT_EQ(advice.predicted_gain(), .4);
  EXPECT_THAT(advice.outcome(), HasSubstr("unroll=8"));
  EXPECT_THAT(CanonicalText(advice.config()), HasSubstr("unroll=8"));
  EXPECT_EQ(evaluator_.fresh_processes, 2);
}

TEST_F(AdviceTest, AFailedSearchIsSaidAndTheNeighbourIsMeasured) {
  tools_.search = [](const suites::TaskEntry&, const suites::SearchWithin&) {
    return absl::StatusOr<proto::Config>(
        absl::UnavailableError("the disk is full"));
  };
  proto::DiagnosisAdvice advice = TuneUnroll();
  TryAdvice(subject_, tools_, &advice);
  EXPECT_NEAR(advice.realised_gain(), .4, .01);
  EXPECT_THAT(advice.outcome(), HasSubstr("the disk is full"));
}

TEST_F(AdviceTest, ThreadsAreComparedInTurns) {
  proto::DiagnosisAdvice advice;
  advice.set_kind(proto::USE_THREADS);
  advice.set_threads(2);
  TryAdvice(subject_, tools_, &advice);
  EXPECT_NEAR(advice.realised_gain(), .5, .01);
}

TEST_F(AdviceTest, AGainThatDoesNotArriveIsRecordedAsItIs) {
  evaluator_.time_ns = [](const std::string& config) {
    return Holds(config, "unroll=4") ? 125'000. : 100'000.;
  };
  proto::DiagnosisAdvice advice = TuneUnroll();
  TryAdvice(subject_, tools_, &advice);
  EXPECT_NEAR(advice.realised_gain(), -.25, .01);
}

TEST_F(AdviceTest, CodeAndMachineAreLeftAlone) {
  for (const auto kind : {proto::CHANGE_CODE, proto::CHANGE_SURROUNDINGS}) {
    proto::DiagnosisAdvice advice;
    advice.set_kind(kind);
    TryAdvice(subject_, tools_, &advice);
    EXPECT_FALSE(advice.has_realised_gain());
    EXPECT_THAT(advice.outcome(), HasSubstr("not tried"));
  }
}

}  // namespace
}  // namespace optrail::diagnosis
