#include "suites/observed/observed.h"

#include <sys/stat.h>

#include <sstream>
#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/core/tuned_kernel.h"
#include "suites/workload/workload.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tuning::ObservedKey;
using tuning::ObservedSource;

// The calls of a service, in a folder of its own.
class Observed : public testing::Test {
 protected:
  Observed() {
    const auto file = tuning::ObservedFile::Create(folder_);
    EXPECT_TRUE(file.ok()) << file.status();
    const auto call = [&](const std::string& op, const std::string& shape,
                          int runs, int64_t ns, int threads = 1) {
      ObservedKey key;
      key.op = op;
      key.shape = shape;
      key.device = "cpu";
      key.cache_mode = "hot";
      key.hardware_id = hardware_.id();
      key.threads = threads;
      for (int i = 0; i < runs; ++i) (*file)->CounterOf(key)->AddRun(ns);
    };
    call("softmax", "rows=6,cols=40/f32", 60, 1000);
    call("softmax", "rows=7,cols=4000/f32", 30, 2000);
    call("softmax", "rows=6,cols=40/f32", 5, 1000, /*threads=*/2);
    call("matmul", "m=8,n=8,k=8/f32", 10, 1000);
    call("our_own", "n=4/f32", 3, 1000);
  }

  ObserveCommand Observe() {
    ObserveCommand command;
    command.files = {folder_};
    command.format = OutputFormat::kCsv;
    return command;
  }
  CoverageCommand Coverage() {
    CoverageCommand command;
    command.files = {folder_};
    command.format = OutputFormat::kCsv;
    command.context.hardware = hardware_;
    command.context.store = store_;
    return command;
  }
  // softmax rows=6,cols=40 with its default, 1.25 times as fast as that.
  void Tune() {
    ops::KernelQuestion question;
    question.operator_name = "softmax";
    question.shape = *tuning::ParseShape("rows=6,cols=40/f32");
    const auto kernel = ops::ChooseKernel(question, hardware_, nullptr);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    proto::TunedConfig tuned;
    tuned.set_shape("rows=6,cols=40/f32");
    tuned.set_config(tuning::CanonicalText(kernel->config));
    tuned.set_threads(1);
    tuned.set_cache_mode(proto::HOT);
    tuned.set_time_ns(800);
    tuned.set_default_time_ns(1000);
    tuned.set_kernel_id(
        *kernel->backend->Id({proto::CPU, "native", hardware_}));
    ASSERT_TRUE(tuning::WriteOverlay(store_, "softmax", hardware_.id(),
                                     proto::CPU, tuned)
                    .ok());
  }

  const proto::Hardware hardware_ = *ops::HardwareOf(proto::CPU);
  const std::string name_ =
      testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string folder_ = testing::TempDir() + "/calls/" + name_;
  const std::string store_ = testing::TempDir() + "/store/" + name_;
  std::ostringstream out_, notes_;
};

TEST_F(Observed, BecomesAWorkloadWithCallsAsWeights) {
  ObserveCommand command = Observe();
  // The next step can be copied though a path has a space.
  command.out = testing::TempDir() + "/my dir/My-service.workload.textproto";
  ASSERT_TRUE(CreateDirectories(testing::TempDir() + "/my dir").ok());
  const auto code = RunObserve(command, out_, notes_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_THAT(out_.str(),
              HasSubstr("softmax,\"rows=6,cols=40/f32\",cpu,1,60,"));
  EXPECT_THAT(notes_.str(),
              AllOf(HasSubstr("3 calls of operator our_own"),
                    HasSubstr("5 calls of --device=cpu --threads=2"),
                    HasSubstr("--workload='" + command.out + "'"),
                    HasSubstr("--total_trials=150")));
  const auto workload = FindWorkload(command.out);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->name(), "my_service");
  EXPECT_EQ(workload->threads(0), 1);
  ASSERT_EQ(workload->layer_size(), 3);
  EXPECT_EQ(workload->layer(0).shape(), "rows=6,cols=40/f32");
  EXPECT_EQ(workload->layer(0).count(), 60);
  EXPECT_EQ(workload->layer(2).operator_name(), "matmul");
}

TEST_F(Observed, ColdCallsAreNoneOfAHotWorkload) {
  {
    const auto file = tuning::ObservedFile::Create(folder_);
    ASSERT_TRUE(file.ok()) << file.status();
    ObservedKey key;
    key.op = "softmax";
    key.shape = "rows=6,cols=40/f32";
    key.device = "cpu";
    key.cache_mode = "cold";
    key.hardware_id = hardware_.id();
    key.threads = 1;
    for (int i = 0; i < 2; ++i) (*file)->CounterOf(key)->AddRun();
  }
  ObserveCommand command = Observe();
  command.out = testing::TempDir() + "/hot.workload.textproto";
  const auto code = RunObserve(command, out_, notes_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(out_.str(),
              HasSubstr("softmax,\"rows=6,cols=40/f32\",\"cpu, cold\",1,2,"));
  EXPECT_THAT(notes_.str(),
              HasSubstr("2 calls of --device=cpu --threads=1 --cache=cold"));
  const auto workload = FindWorkload(command.out);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->layer(0).count(), 60);
}

TEST_F(Observed, OnlyAWorkloadIsReplaced) {
  ObserveCommand command = Observe();
  command.out = testing::TempDir() + "/service.py";
  ASSERT_TRUE(WriteFileAtomically(command.out, "import optrail\n").ok());
  EXPECT_THAT(std::string(RunObserve(command, out_, notes_).status().message()),
              AllOf(HasSubstr("service.py"), HasSubstr("another name")));
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(ReadFile(command.out).value_or(""), "import optrail\n");
  command.out = testing::TempDir() + "/again.workload.textproto";
  EXPECT_TRUE(RunObserve(command, out_, notes_).ok());
  EXPECT_TRUE(RunObserve(command, out_, notes_).ok());
}

TEST_F(Observed, WhatNeverEndsIsRefused) {
  const std::string pipe = JoinPath(folder_, "pipe.observed");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder_, std::string("/dev/zero")}) {
    ObserveCommand command = Observe();
    command.files = {path};
    EXPECT_THAT(
        std::string(RunObserve(command, out_, notes_).status().message()),
        HasSubstr("no regular file"));
  }
}

TEST_F(Observed, FlagsChooseTheCalls) {
  ObserveCommand command = Observe();
  command.out = testing::TempDir() + "/two.workload.textproto";
  command.threads = 2;
  ASSERT_TRUE(RunObserve(command, out_, notes_).ok());
  const auto workload = FindWorkload(command.out);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->threads(0), 2);
  EXPECT_EQ(workload->layer_size(), 1);
  command.threads = 3;
  EXPECT_THAT(std::string(RunObserve(command, out_, notes_).status().message()),
              HasSubstr("--threads=3"));
  command.op_regex = "conv.*";
  EXPECT_THAT(
      std::string(RunObserve(command, out_, notes_).status().message()),
      AllOf(HasSubstr("--op=conv.*"), HasSubstr("matmul, our_own, softmax")));
}

TEST_F(Observed, CoverageIsThatOfTodaysStore) {
  auto code = RunCoverage(Coverage(), out_, notes_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\ndefault,4,105,"),
                                HasSubstr("not built in here,1,3,"),
                                Not(HasSubstr("exact"))));
  EXPECT_THAT(notes_.str(),
              HasSubstr("nobody knows what tuning would bring: nothing"));
  Tune();
  out_.str("");
  notes_.str("");
  code = RunCoverage(Coverage(), out_, notes_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(out_.str(), HasSubstr("\nexact,1,60,"));
  EXPECT_THAT(notes_.str(),
              AllOf(HasSubstr("1.25x for 2 shapes that run the default"),
                    HasSubstr("1 more of operators without tuned shapes"),
                    HasSubstr("estimated")));
}

TEST_F(Observed, CallsOfOtherHardwareAreLeftOut) {
  CoverageCommand command = Coverage();
  command.context.hardware.set_id("acme-abacus-1c");
  const auto code = RunCoverage(command, out_, notes_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 3);
  EXPECT_THAT(notes_.str(), HasSubstr("no call was made on acme-abacus-1c"));
  EXPECT_THAT(notes_.str(), HasSubstr("calls on " + hardware_.id()));
}

}  // namespace
}  // namespace optrail::suites
