// A change that several hardware judge together.

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/gate/gate_report.h"
#include "tracker/gate/gate_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTwoOfThree[] =
    "quorum { hardware { id: \"A\" } hardware { id: \"B\" } "
    "hardware { id: \"C\" } slower_on: 2 }";
constexpr char kAll[] =
    "quorum { hardware { id: \"A\" } hardware { id: \"B\" } "
    "hardware { id: \"C\" } }";

class QuorumTest : public GateTest {
 protected:
  void RecordOn(const std::string& hardware, int position, double ns) {
    proto::Run run = MakeRun(position, position > 6 ? "topic" : "main",
                             {{"a", ns}, {"b", 200}});
    run.mutable_hardware()->set_id(hardware);
    Record(run);
  }
  void RecordMains() {
    for (const char* hardware : {"A", "B", "C"}) {
      for (int i = 1; i <= 6; ++i) RecordOn(hardware, i, 100);
    }
  }
  // The candidate's time on each hardware.
  void RecordCandidate(const std::map<std::string, double>& times) {
    for (const auto& [hardware, ns] : times) RecordOn(hardware, 7, ns);
  }
  // It varies so much that nothing can be told.
  void RecordNoiseOn(const std::string& hardware) {
    proto::Run run = MakeRun(7, "topic", {{"b", 200}});
    run.mutable_hardware()->set_id(hardware);
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name("a");
    result->set_outcome(proto::OK);
    for (const double ns : {80., 120., 100., 140., 90.}) {
      result->add_measurements()->set_median_ns(ns);
    }
    Record(run);
  }
  GateReport JudgedBy(const std::string& policy) {
    GateOptions options;
    options.candidate = CommitId(7);
    return Judged(policy, options);
  }
};

TEST_F(QuorumTest, OneOfThreeIsNotEnough) {
  RecordMains();
  RecordCandidate({{"A", 150}, {"B", 100}, {"C", 100}});
  EXPECT_EQ(JudgedBy("").exit_code, 1);
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_THAT(GateText(report),
              AllOf(HasSubstr("slower on 1 of 3 hardware, the policy fails "
                              "from 2 on"),
                    HasSubstr("slower 1.5")));
}

TEST_F(QuorumTest, TwoOfThreeAreRed) {
  RecordMains();
  RecordCandidate({{"A", 150}, {"B", 150}, {"C", 100}});
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_THAT(report.notes,
              testing::Contains("a (time) is slower on 2 of 3 hardware: A, B"));
  EXPECT_THAT(GateMarkdown(report), HasSubstr("2 of 3 hardware: FAIL"));
  const auto json = nlohmann::json::parse(GateJson(report));
  ASSERT_EQ(json["matrix"].size(), 2);
  EXPECT_EQ(json["matrix"][0]["hardware"]["A"]["verdict"], "slower");
  EXPECT_EQ(json["matrix"][0]["hardware"]["C"]["verdict"], "unchanged");
  EXPECT_EQ(json["matrix"][0]["red"], true);
  EXPECT_EQ(json["matrix"][1]["red"], false);
  // All of them is what a quorum without a number asks for.
  EXPECT_EQ(JudgedBy(kAll).exit_code, 0);
}

TEST_F(QuorumTest, AllAreAll) {
  RecordMains();
  RecordCandidate({{"A", 150}, {"B", 150}, {"C", 150}});
  EXPECT_EQ(JudgedBy(kAll).exit_code, 1);
}

TEST_F(QuorumTest, WeightsCount) {
  RecordMains();
  RecordCandidate({{"A", 150}, {"B", 100}, {"C", 100}});
  const char kRest[] =
      " } hardware { id: \"B\" } hardware { id: \"C\" } slower_on: 2 }";
  EXPECT_EQ(
      JudgedBy(absl::StrCat("quorum { hardware { id: \"A\" weight: 2", kRest))
          .exit_code,
      1);
  EXPECT_EQ(
      JudgedBy(absl::StrCat("quorum { hardware { id: \"A\" weight: 1.5", kRest))
          .exit_code,
      0);
}

TEST_F(QuorumTest, HardwareThatIsMissingIsNamedAndNoVerdictIsReached) {
  RecordMains();
  RecordCandidate({{"A", 150}, {"B", 100}});
  GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 3) << GateText(report);
  EXPECT_TRUE(report.IsIncomplete());
  EXPECT_THAT(report.summary, HasSubstr("has no run on hardware C"));
  EXPECT_THAT(GateText(report), HasSubstr("not measured"));
  RecordOn("C", 7, 100);
  report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_FALSE(report.IsIncomplete());
}

// Also where none of what is there is slower: it was asked for.
TEST_F(QuorumTest, HardwareThatWasNeverMeasuredIsMissingToo) {
  for (const char* hardware : {"A", "B"}) {
    for (int i = 1; i <= 6; ++i) RecordOn(hardware, i, 100);
  }
  RecordCandidate({{"A", 100}, {"B", 100}});
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_THAT(report.missing, ElementsAre(HasSubstr("hardware C")));
}

// Whatever comes from C, two are slower.
TEST_F(QuorumTest, WhatIsDecidedIsRedThoughHardwareIsMissing) {
  RecordMains();
  RecordCandidate({{"A", 150}, {"B", 150}});
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_THAT(report.summary, HasSubstr("hardware C"));
  // Not of all three.
  EXPECT_EQ(JudgedBy(kAll).exit_code, 3);
}

TEST_F(QuorumTest, NoiseCountsOnlyWhereItCouldDecide) {
  RecordMains();
  RecordCandidate({{"A", 100}, {"B", 100}});
  RecordNoiseOn("C");
  EXPECT_EQ(JudgedBy("").exit_code, 3);
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
}

TEST_F(QuorumTest, NoiseThatCouldDecideIsNoPass) {
  RecordMains();
  RecordCandidate({{"A", 150}, {"B", 100}});
  RecordNoiseOn("C");
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 3) << GateText(report);
  EXPECT_EQ(report.CountRed(), 0);
}

TEST_F(QuorumTest, ACrashIsRedOnAnyHardware) {
  RecordMains();
  RecordCandidate({{"A", 100}, {"B", 100}});
  proto::Run run = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  run.mutable_hardware()->set_id("C");
  run.mutable_results(0)->set_outcome(proto::CRASHED);
  run.mutable_results(0)->clear_measurements();
  Record(run);
  EXPECT_EQ(JudgedBy(kTwoOfThree).exit_code, 1);
}

TEST_F(QuorumTest, OtherHardwareHasNoSay) {
  RecordMains();
  for (int i = 1; i <= 6; ++i) RecordOn("D", i, 100);
  RecordCandidate({{"A", 100}, {"B", 100}, {"C", 100}, {"D", 150}});
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_THAT(report.notes, testing::Contains(AllOf(
                                HasSubstr("hardware D"),
                                HasSubstr("not in the policy's quorum"))));
  GateOptions options;
  options.hardware_id = "A";
  EXPECT_THAT(std::string(Error(options, kTwoOfThree).message()),
              HasSubstr("--hardware=A"));
}

// A benchmark of GPUs alone is no benchmark of the others.
TEST_F(QuorumTest, HardwareThatNeverMeasuresABenchmarkIsNotCounted) {
  for (const char* hardware : {"A", "B", "C"}) {
    for (int i = 1; i <= 7; ++i) {
      proto::Run run = MakeRun(i, i > 6 ? "topic" : "main", {{"b", 200}});
      if (hardware[0] == 'C') {
        run = MakeRun(i, i > 6 ? "topic" : "main",
                      {{"b", 200}, {"gpu", i > 6 ? 150 : 100}});
      }
      run.mutable_hardware()->set_id(hardware);
      Record(run);
    }
  }
  const GateReport report = JudgedBy(kTwoOfThree);
  EXPECT_EQ(report.exit_code, 1) << GateText(report);
  EXPECT_THAT(report.notes,
              testing::Contains(HasSubstr("slower on 1 of 1 hardware: C")));
  EXPECT_THAT(GateText(report), Not(HasSubstr("of 3 hardware: FAIL")));
}

}  // namespace
}  // namespace optrail::tracker
