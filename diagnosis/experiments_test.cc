// Experiments against an evaluator that answers from a table of times.

#include "diagnosis/experiments.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/classes.h"
#include "diagnosis/padding.h"
#include "gtest/gtest.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using suites::Contender;
using suites::Evaluation;

Evaluation Taking(double ns) {
  Evaluation evaluation;
  evaluation.mutable_trial()->set_outcome(proto::OK);
  evaluation.mutable_trial()->set_time_ns(ns);
  evaluation.mutable_trial()->add_measurements();
  evaluation.mutable_trial()->mutable_measurements(0)->set_calls_per_sample(10);
  for (int i = 0; i < 21; ++i) {
    evaluation.mutable_trial()->mutable_measurements(0)->add_sample_ns(
        static_cast<int64_t>(10 * ns) + i % 3);
  }
  return evaluation;
}

// A kernel whose time is that of its memory accesses, in part.
class FakeEvaluator : public suites::Evaluator {
 public:
  explicit FakeEvaluator(double memory_part) : memory_part_(memory_part) {}

  std::vector<Evaluation> Measure(const std::vector<Contender>& contenders,
                                  const suites::EvaluationOptions&) override {
    const auto failed = [](proto::Outcome outcome, const char* detail) {
      Evaluation evaluation;
      evaluation.mutable_trial()->set_outcome(outcome);
      evaluation.mutable_trial()->set_detail(detail);
      return std::vector<Evaluation>{evaluation};
    };
    const bool is_alone = contenders.size() == 1;
    if (is_alone && (fails || (fails_at_last && disturbed_readings == 1))) {
      return failed(proto::CRASHED, "signal 11");
    }
    std::vector<Evaluation> evaluations;
    for (const Contender& contender : contenders) {
      double ns = 10'000;
      if (contender.has_perturbation() &&
          contender.perturbation().aliased_operands_size() > 0) {
        ns *= 1 - memory_part_;
      }
      if (contender.has_perturbation() &&
          contender.perturbation().pages() == proto::Perturbation::HUGE) {
        return failed(proto::UNSUPPORTED, "no huge pages here");
      }
      evaluations.push_back(Taking(ns));
    }
    if (contenders.size() == 1 && disturbed_readings > 0) {
      --disturbed_readings;
      for (int i = 0; i < 20; ++i) {
        evaluations[0]
            .mutable_trial()
            ->mutable_measurements(0)
            ->add_contended_samples(i);
      }
    }
    return evaluations;
  }

  // The first profile, `loops_ns` of loops in a call of 10 us, and no other.
  Evaluation Profile(const proto::Config& config,
                     const std::vector<std::string>& compile_options,
                     const suites::EvaluationOptions& options) override {
    if (loops_ns == 0) {
      return Evaluator::Profile(config, compile_options, options);
    }
    Evaluation profile = Taking(10'000);
    proto::MetricSamples& metric =
        *profile.mutable_trial()->mutable_measurements(0)->add_metrics();
    metric.set_metric("parallel_ns");
    metric.add_values(std::exchange(loops_ns, 0));
    return profile;
  }

  bool fails = false;
  int disturbed_readings = 0;
  bool fails_at_last = false;  // from the last of `disturbed_readings` on
  double loops_ns = 0;

 private:
  const double memory_part_;
};

Subject AddSubject() {
  suites::TaskEntry entry;
  entry.entry = ops::Registry::Get().Find("add");
  entry.backend = *entry.entry->FindBackend(proto::CPU, "");
  entry.task.set_operator_name("add");
  entry.task.set_device_kind(proto::CPU);
  entry.task.set_threads(1);
  entry.task.set_cache_mode(proto::HOT);
  proto::Dim& dim = *entry.task.mutable_shape()->add_dims();
  dim.set_name(entry.entry->op->dims()[0]);
  dim.set_value(1 << 20);
  entry.task.mutable_shape()->add_data_types(proto::F32);
  return {entry, {}};
}

TEST(RunExperimentsTest, WhatGoesWhenOperandsStayIsMemory) {
  FakeEvaluator evaluator(.6);
  const auto numbers = RunExperiments(
      AddSubject(), {},
      [&](const proto::Task&) -> suites::Evaluator& { return evaluator; });
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  const Number* const gain = numbers->Find("memory_gain");
  ASSERT_NE(gain, nullptr);
  EXPECT_NEAR(gain->value, .6, .01);
  EXPECT_LE(gain->low, gain->value);
  EXPECT_EQ(numbers->Find("huge_page_gain"), nullptr);
  EXPECT_EQ(numbers->WhyUnknown("huge_page_gain"), "no huge pages here");
  EXPECT_EQ(numbers->WhyUnknown("roofline_share"),
            "a ceiling of this device is not known");
}

TEST(RunExperimentsTest, ADisturbedReadingOfTheKernelIsRepeated) {
  FakeEvaluator evaluator(.6);
  evaluator.disturbed_readings = 2;
  const auto numbers = RunExperiments(
      AddSubject(), {},
      [&](const proto::Task&) -> suites::Evaluator& { return evaluator; });
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->ValueOr("disturbed_share", 1), 0);
  EXPECT_EQ(evaluator.disturbed_readings, 0);
}

TEST(RunExperimentsTest, AReadingThatFailsDoesNotReplaceADisturbedOne) {
  FakeEvaluator evaluator(.6);
  evaluator.disturbed_readings = 3;  // the first is of another size
  evaluator.fails_at_last = true;
  const auto numbers = RunExperiments(
      AddSubject(), {},
      [&](const proto::Task&) -> suites::Evaluator& { return evaluator; });
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->ValueOr("time_ns", 0), 10'000);
  EXPECT_NEAR(numbers->ValueOr("disturbed_share", 0), 20. / 21, 1e-9);
}

TEST(RunExperimentsTest, AProfileThatFailsDoesNotReplaceOneOfBusyCores) {
  FakeEvaluator evaluator(.6);
  evaluator.loops_ns = 30'000;
  const auto numbers = RunExperiments(
      AddSubject(), {},
      [&](const proto::Task&) -> suites::Evaluator& { return evaluator; });
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->ValueOr("parallel_ns", 0), 30'000);
}

TEST(RunExperimentsTest, WithHiddenCachesMemoryIsNoCeiling) {
  FakeEvaluator evaluator(.6);
  Machine machine;
  machine.ceilings.set_flop_per_s_one_thread(1e12);
  machine.ceilings.set_flop_per_s_all_threads(1e12);
  machine.ceilings.set_memory_read_bytes_per_s_one_thread(1e10);
  machine.ceilings.set_memory_read_bytes_per_s_all_threads(1e10);
  machine.ceilings.set_memory_buffer_bytes(256 << 20);
  const auto evaluator_for = [&](const proto::Task&) -> suites::Evaluator& {
    return evaluator;
  };
  const auto hidden = RunExperiments(AddSubject(), machine, evaluator_for);
  ASSERT_TRUE(hidden.ok()) << hidden.status();
  EXPECT_EQ(hidden->WhyUnknown("roofline_share"),
            "this machine hides its caches: 12288 KiB may live in any level");
  EXPECT_NE(hidden->Find("arithmetic_share"), nullptr);
  Machine seen = machine;
  seen.ceilings.set_l2_bytes_seen(1 << 20);
  seen.ceilings.set_l3_bytes_seen(16 << 20);
  seen.ceilings.set_l2_read_bytes_per_s(4e10);
  seen.ceilings.set_l3_read_bytes_per_s(2e10);
  const auto by_rates = RunExperiments(AddSubject(), seen, evaluator_for);
  ASSERT_TRUE(by_rates.ok()) << by_rates.status();
  EXPECT_NE(by_rates->Find("roofline_share"), nullptr);
  EXPECT_EQ(by_rates->ValueOr("level_l3", 0), 1);
  machine.hardware.set_l2_bytes(1 << 20);
  machine.hardware.set_l3_bytes(1 << 22);
  const auto known = RunExperiments(AddSubject(), machine, evaluator_for);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_NE(known->Find("roofline_share"), nullptr);
}

TEST(RunExperimentsTest, AKernelThatDoesNotRunIsAnError) {
  FakeEvaluator evaluator(0);
  evaluator.fails = true;
  const auto numbers = RunExperiments(
      AddSubject(), {},
      [&](const proto::Task&) -> suites::Evaluator& { return evaluator; });
  EXPECT_EQ(numbers.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(numbers.status().message()).find("signal 11"),
            std::string::npos);
}

// A kernel whose time follows from its shape.
class BySize : public suites::Evaluator {
 public:
  explicit BySize(std::function<double(const proto::Shape&)> time_ns)
      : time_ns_(std::move(time_ns)) {}

  EvaluatorFor For() {
    return [this](const proto::Task& task) -> suites::Evaluator& {
      shape_ = task.shape();
      return *this;
    };
  }

  std::vector<Evaluation> Measure(const std::vector<Contender>& contenders,
                                  const suites::EvaluationOptions&) override {
    ++measured;
    std::vector<Evaluation> evaluations;
    for (size_t i = 0; i < contenders.size(); ++i) {
      const double ns = time_ns_(shape_);
      Evaluation& one = evaluations.emplace_back(Taking(ns));
      if (ns > 0) continue;
      one.mutable_trial()->Clear();
      one.mutable_trial()->set_outcome(proto::UNSUPPORTED);
      one.mutable_trial()->set_detail("too narrow");
    }
    return evaluations;
  }

  int measured = 0;

 private:
  const std::function<double(const proto::Shape&)> time_ns_;
  proto::Shape shape_;
};

// The fixed share of `add` of 2^20 numbers, which takes 10 us, where a smaller
// one takes as if half of that were fixed.
double FixedShareIf(double twice_takes_ns) {
  constexpr double kN = 1 << 20;
  BySize evaluator([&](const proto::Shape& shape) {
    const auto n = static_cast<double>(shape.dims(0).value());
    return n > kN ? twice_takes_ns : 5'000 + 5'000 * n / kN;
  });
  const auto numbers = RunExperiments(AddSubject(), {}, evaluator.For());
  EXPECT_TRUE(numbers.ok()) << numbers.status();
  return numbers.ok() ? numbers->ValueOr("fixed_share", -1) : -1;
}

TEST(FixedShareTest, TwiceTheShapeMustShowItUnlessItLeftACache) {
  EXPECT_NEAR(FixedShareIf(15'000), .5, .01);
  // The smaller shape is computed worse.
  EXPECT_NEAR(FixedShareIf(20'000), 0, .01);
  EXPECT_NEAR(FixedShareIf(21'000), 0, .01);
  // It counts half.
  EXPECT_NEAR(FixedShareIf(18'000), .35, .01);
  // Nothing that is fixed makes twice the work take three times as long.
  EXPECT_NEAR(FixedShareIf(30'000), .5, .01);
}

class PaddingTest : public testing::Test {
 protected:
  PaddingTest() {
    machine_.hardware.set_device_kind(proto::CPU);
    machine_.hardware.set_simd_bits(512);
    machine_.hardware.set_cores(1);
    machine_.hardware.set_l2_bytes(1 << 10);
    machine_.hardware.set_l3_bytes(1 << 11);
    machine_.ceilings.set_flop_per_s_one_thread(1e12);
    machine_.ceilings.set_flop_per_s_all_threads(1e12);
    machine_.ceilings.set_memory_read_bytes_per_s_one_thread(1e10);
    machine_.ceilings.set_memory_read_bytes_per_s_all_threads(1e10);
    machine_.ceilings.set_memory_buffer_bytes(256 << 20);
  }

  // Measures padding of a kernel that takes as long for any shape.
  Numbers Measure(const std::string& op, const std::string& shape,
                  double time_ns) {
    Subject subject;
    subject.entry.entry = ops::Registry::Get().Find(op);
    subject.entry.backend = *subject.entry.entry->FindBackend(proto::CPU, "");
    subject.entry.task.set_operator_name(op);
    subject.entry.task.set_device_kind(proto::CPU);
    subject.entry.task.set_threads(1);
    subject.entry.task.set_cache_mode(proto::HOT);
    *subject.entry.task.mutable_shape() = *tuning::ParseShape(shape);
    Numbers numbers;
    numbers.Set("time_ns", 65'536, "test");
    numbers.Set("roofline_share", .1, "test");
    BySize evaluator([&](const proto::Shape&) { return time_ns; });
    MeasurePadding(subject, machine_, evaluator.For(), {}, &numbers);
    measured_ = evaluator.measured;
    return numbers;
  }

  Machine machine_;
  int measured_ = 0;
};

// 16 columns take as long as 2: they move 512 KiB in 65.5 us, at 10 GB/s 52 us.
TEST_F(PaddingTest, ColumnsThatFillNoVectorAreTold) {
  const Numbers numbers = Measure("softmax", "rows=4096,cols=2/f32", 65'536);
  EXPECT_NEAR(numbers.ValueOr("padded_share", 0), .8, .01);
  EXPECT_NEAR(numbers.ValueOr("padding_gain", 0), .875, .01);
  EXPECT_EQ(numbers.ValueOr("short_length", 0), 2);
  EXPECT_EQ(numbers.ValueOr("padded_length", 0), 16);
}

// Twice as many columns as above, in twice the time.
TEST_F(PaddingTest, AWarpHas32Lanes) {
  machine_.hardware.set_device_kind(proto::CUDA);
  const Numbers numbers = Measure("softmax", "rows=4096,cols=2/f32", 131'072);
  EXPECT_EQ(numbers.ValueOr("padded_length", 0), 32);
  EXPECT_NEAR(numbers.ValueOr("padded_share", 0), .8, .01);
  EXPECT_NEAR(numbers.ValueOr("padding_gain", 0), .875, .01);
}

// The mean of each row is an operand of one dimension, which no vector fills.
TEST_F(PaddingTest, AFewRowsAreNoContiguousDimension) {
  const Numbers numbers =
      Measure("layer_norm_backward", "rows=3,cols=4096/f32", 65'536);
  EXPECT_EQ(numbers.Find("padding_gain"), nullptr);
  EXPECT_EQ(numbers.WhyUnknown("padding_gain"), "");
  EXPECT_EQ(measured_, 0);
}

TEST_F(PaddingTest, AShapeThatIsNotTriedIsNotKnown) {
  const Numbers large = Measure("softmax", "rows=16777216,cols=2/f32", 65'536);
  EXPECT_EQ(large.WhyUnknown("padding_gain"),
            "whole vectors would move 2048 MiB, and 256 are the most");
  EXPECT_EQ(measured_, 0);
  const Numbers refused = Measure("softmax", "rows=4096,cols=2/f32", 0);
  EXPECT_EQ(refused.WhyUnknown("padding_gain"), "too narrow");
  EXPECT_EQ(measured_, 1);
}

// A GPU's kernel: a table of what each change leaves of the time.
class FakeGpu : public suites::Evaluator {
 public:
  std::vector<Evaluation> Measure(const std::vector<Contender>& contenders,
                                  const suites::EvaluationOptions&) override {
    std::vector<Evaluation> evaluations;
    for (const Contender& contender : contenders) {
      double ns = 10'000;
      if (contender.has_perturbation()) {
        const proto::Perturbation& change = contender.perturbation();
        const bool aliased = change.aliased_operands_size() > 0;
        if (aliased) ns *= 1 - memory_gain;
        if (change.concurrent_calls() == 2) ns *= 1 - overlap_gain;
        for (const std::string& option : change.compile_options()) {
          if (option == "--optrail-ablation=coalesced") {
            ns *= 1 - coalescing_gain;
          }
        }
      }
      evaluations.push_back(Taking(ns));
    }
    return evaluations;
  }
  Evaluation Profile(const proto::Config&, const std::vector<std::string>&,
                     const suites::EvaluationOptions&) override {
    Evaluation profile = Taking(10'000);
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, double>>{
             {"grid_blocks", blocks},
             {"block_threads", 256},
             {"resident_blocks", 8},
             {"multiprocessor_warps", 64},
             {"kernels", 1},
             {"empty_launch_ns", 1000}}) {
      proto::MetricSamples& metric =
          *profile.mutable_trial()->mutable_measurements(0)->add_metrics();
      metric.set_metric(name);
      metric.add_values(value);
    }
    return profile;
  }

  double memory_gain = 0, overlap_gain = 0, coalescing_gain = 0;
  double blocks = 1056;
};

class GpuExperimentsTest : public testing::Test {
 protected:
  GpuExperimentsTest() {
    subject_ = AddSubject();
    subject_.entry.backend =
        *subject_.entry.entry->FindBackend(proto::CUDA, "");
    subject_.entry.task.set_device_kind(proto::CUDA);
    subject_.entry.task.set_launch_mode(proto::STREAM);
    machine_.hardware.set_device_kind(proto::CUDA);
    machine_.hardware.set_cores(132);
  }
  Numbers Run() {
    auto numbers = RunExperiments(
        subject_, machine_,
        [&](const proto::Task& task) -> suites::Evaluator& { return gpu_; });
    EXPECT_TRUE(numbers.ok()) << numbers.status();
    return *numbers;
  }
  std::string FirstCause(const Numbers& numbers) {
    const auto causes = Judge(numbers);
    return causes.empty() ? "" : causes[0].chain().rbegin()->class_name();
  }

  FakeGpu gpu_;
  Subject subject_;
  Machine machine_;
};

TEST_F(GpuExperimentsTest, AKernelThatNothingChangesIsLeftAlone) {
  const Numbers numbers = Run();
  EXPECT_EQ(FirstCause(numbers), "");
  ASSERT_NE(LimitOf(numbers), nullptr);
  EXPECT_EQ(LimitOf(numbers)->name(), "compute");
  EXPECT_NEAR(numbers.ValueOr("launch_share", 0), .1, .001);
  EXPECT_NEAR(numbers.ValueOr("waves", 0), 1, .001);
}

TEST_F(GpuExperimentsTest, WhatGoesWhenOperandsAreInTheL2IsMemory) {
  gpu_.memory_gain = .7;
  const Numbers numbers = Run();
  EXPECT_NEAR(numbers.ValueOr("memory_gain", 0), .7, .01);
  EXPECT_EQ(LimitOf(numbers)->name(), "memory");
}

// 128 MiB and a cache of 64: the roofline takes half of them to be there, and
// the answer to what limits the kernel does not.
TEST_F(GpuExperimentsTest, WhatDoesNotFitIntoTheL2ComesFromMemory) {
  machine_.hardware.set_l2_bytes(64 << 20);
  machine_.ceilings.set_flop_per_s_one_thread(1e15);
  machine_.ceilings.set_flop_per_s_all_threads(1e15);
  machine_.ceilings.set_l2_read_bytes_per_s(8e15);
  machine_.ceilings.set_memory_read_bytes_per_s_one_thread(4e15);
  machine_.ceilings.set_memory_read_bytes_per_s_all_threads(4e15);
  subject_.entry.task.set_cache_mode(proto::HOT);
  const auto with_n = [&](int64_t n) {
    subject_.entry.task.mutable_shape()->mutable_dims(0)->set_value(n);
    return Run();
  };
  const Numbers large = with_n((128 << 20) / 12);
  const Number* const from_memory = large.Find("from_memory_share");
  ASSERT_NE(from_memory, nullptr);
  EXPECT_NEAR(from_memory->value / large.ValueOr("streaming_share", 0), 1 / .75,
              .01);
  EXPECT_LT(from_memory->low, large.ValueOr("streaming_share", 0));
  EXPECT_GT(from_memory->high, from_memory->value);
  EXPECT_EQ(with_n((32 << 20) / 12).Find("from_memory_share"), nullptr);
}

TEST_F(GpuExperimentsTest, WhatASecondCallFillsWasIdle) {
  gpu_.overlap_gain = .45;
  gpu_.blocks = 4;
  const Numbers numbers = Run();
  EXPECT_EQ(LimitOf(numbers)->name(), "device_idle");
  EXPECT_EQ(FirstCause(numbers), "few_blocks");
}

TEST_F(GpuExperimentsTest, WhatGoesWithOneSegmentAWarpIsUncoalesced) {
  gpu_.coalescing_gain = .5;
  EXPECT_EQ(FirstCause(Run()), "uncoalesced");
}

TEST(GainOfTest, DisturbedPairsAreLeftOut) {
  Evaluation base = Taking(1000), twin = Taking(500);
  for (int i = 0; i < 10; ++i) {
    twin.mutable_trial()->mutable_measurements(0)->set_sample_ns(i, 100'000);
    twin.mutable_trial()->mutable_measurements(0)->add_contended_samples(i);
  }
  EXPECT_NEAR(GainOf(base, twin).value, .5, .01);
}

}  // namespace
}  // namespace optrail::diagnosis
