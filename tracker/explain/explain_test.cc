#include "tracker/explain/explain.h"

#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/explain/evaluation/planted_regressions.h"

namespace optrail::tracker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WhatChangedTest, NamesTheRightLineFirstInNineOfTen) {
  int right = 0, all = 0;
  for (const std::string& cause : PlantedCauses()) {
    for (int seed = 1; seed <= 40; ++seed) {
      ++all;
      right += IsExplained(PlantRegression(cause, seed));
    }
  }
  EXPECT_GE(right, .9 * all);
}

TEST(WhatChangedTest, ACauseByItsSizeComesFirstAndAConsequenceLast) {
  PlantedRegression planted = PlantRegression("code", 1);
  planted.time_ratio = 1.5;
  for (auto& each : *planted.after.mutable_results(0)->mutable_measurements()) {
    each.mutable_conditions()->set_clock_hz(2'100'000'000);
  }
  std::vector<std::string> lines = ExplanationOf(planted);
  EXPECT_THAT(lines.front(), HasSubstr("clock: "));
  EXPECT_THAT(lines.back(), HasSubstr("share of the roofline: 60% -> "));
  // A faster clock explains nothing that got slower.
  for (auto& each : *planted.after.mutable_results(0)->mutable_measurements()) {
    each.mutable_conditions()->set_clock_hz(4'000'000'000);
  }
  lines = ExplanationOf(planted);
  EXPECT_THAT(lines.front(), HasSubstr("kernel: "));
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find("clock"), std::string::npos) << line;
  }
}

TEST(WhatChangedTest, SaysThatNothingOnRecordDiffers) {
  PlantedRegression planted = PlantRegression("nothing", 1);
  planted.after = planted.before;
  planted.after.mutable_commit()->set_id("2abcdef0123456789");
  const std::vector<std::string> lines = ExplanationOf(planted);
  EXPECT_THAT(lines.front(), HasSubstr("nothing on record differs; the "
                                       "kernel's code is the same; the newest "
                                       "commit is 2abcdef01234: a subject"));
}

TEST(WhatChangedTest, NamesTheMachinesWhereTheyDiffer) {
  PlantedRegression planted = PlantRegression("nothing", 1);
  planted.after = planted.before;
  const auto on = [](const std::string& host, proto::Run* run) {
    for (auto& each : *run->mutable_results(0)->mutable_measurements()) {
      each.mutable_conditions()->set_host(host);
    }
  };
  on("gpu8", &planted.after);
  // Older records do not say.
  EXPECT_THAT(ExplanationOf(planted).front(), HasSubstr("nothing on record"));
  on("gpu7", &planted.before);
  EXPECT_THAT(ExplanationOf(planted), Contains("machine: gpu7 -> gpu8"));
}

TEST(ConfigDifferenceTest, ListsKnobsThatDiffer) {
  EXPECT_EQ(ConfigDifference("a=1,b=2", "b=2,a=1"), "");
  EXPECT_EQ(ConfigDifference("a=1,b=2", "a=1,b=4,c=x"), "b 2 -> 4, c - -> x");
  EXPECT_EQ(ConfigDifference("<script>", "a=1"), "<script> set -> -, a - -> 1");
  EXPECT_EQ(ConfigDifference("", "a=1"), "- -> a=1");
  std::string many;
  for (int i = 0; i < 30; ++i) many += "k" + std::to_string(i) + "=1,";
  EXPECT_THAT(ConfigDifference(many, "x=1"), HasSubstr(" and 19 more"));
}

class ExplainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    history_ = *History::Open(JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name()));
    planted_ = PlantRegression("nothing", 1);
    planted_.before.set_run_id("20261120T000000Z-00000000000a");
    planted_.after.set_run_id("20261121T000000Z-00000000000b");
  }

  std::vector<std::string> Explain() {
    const proto::BenchmarkKey key = planted_.before.results(0).key();
    Explainer explainer(*history_);
    return explainer.Lines({key, planted_.before.run_id(),
                            planted_.after.run_id(), planted_.time_ratio});
  }

  absl::optional<History> history_;
  PlantedRegression planted_;
};

// The facts of compiling are in the sessions, of the very kernel and config.
TEST_F(ExplainerTest, ReadsFactsOfTheSessions) {
  for (proto::Run* run : {&planted_.before, &planted_.after}) {
    const bool before = run == &planted_.before;
    proto::BenchmarkResult& result = *run->mutable_results(0);
    result.set_config(before ? "tile=64" : "tile=32");
    proto::Session session;
    session.set_session_id(before ? "20261120T000000Z-00000000000c"
                                  : "20261121T000000Z-00000000000d");
    session.mutable_task()->set_operator_name("op");
    session.mutable_task()->set_kernel_id(result.kernel_id());
    proto::Trial& trial = *session.add_trials();
    trial.set_outcome(proto::OK);
    proto::KnobValue& knob = *trial.mutable_config()->add_set();
    knob.set_knob("tile");
    knob.set_int_(before ? 64 : 32);
    proto::Fact& fact = *trial.add_facts();
    fact.set_name("spill_bytes");
    fact.set_value(before ? 0 : 176);
    result.set_tuning_session_id(session.session_id());
    ASSERT_TRUE(history_->AppendSession(session).ok());
    ASSERT_TRUE(history_->AppendRun(*run).ok());
  }
  const std::vector<std::string> lines = Explain();
  EXPECT_EQ(lines[0], "config: tile 64 -> 32");
  EXPECT_EQ(lines[1], "compiled: spill_bytes 0 -> 176");
}

TEST_F(ExplainerTest, ShowsTheDiagnosesOfBothSides) {
  for (proto::Run* run : {&planted_.before, &planted_.after}) {
    const bool before = run == &planted_.before;
    proto::BenchmarkResult& result = *run->mutable_results(0);
    result.set_kernel_id(before ? "former" : "present");
    result.set_config("tile=64");
    proto::Diagnosis diagnosis;
    diagnosis.set_created_unix_ns(before ? 1 : 2);
    diagnosis.set_diagnosis_id(before ? "20261120T000000Z-00000000000c"
                                      : "20261121T000000Z-00000000000d");
    proto::Task& task = *diagnosis.mutable_task();
    task.set_operator_name(result.key().operator_name());
    task.set_kernel_id(result.kernel_id());
    task.set_hardware_id(run->hardware().id());
    *task.mutable_shape() = result.key().shape();
    task.set_threads(result.key().threads());
    task.set_cache_mode(result.key().cache_mode());
    proto::KnobValue& knob = *diagnosis.mutable_config()->add_set();
    knob.set_knob("tile");
    knob.set_int_(64);
    if (!before) {
      proto::DiagnosisCause& cause = *diagnosis.add_causes();
      cause.add_chain()->set_class_name("compute");
      cause.add_chain()->set_class_name("spills");
      cause.set_recoverable(.31);
    }
    ASSERT_TRUE(history_->AppendRun(*run).ok());
    ASSERT_TRUE(history_->AppendDiagnosis(diagnosis).ok());
  }
  EXPECT_THAT(Explain(), Contains("diagnosis: no cause -> compute > spills "
                                  "(31%)"));
}

TEST_F(ExplainerTest, AnotherConfigsDiagnosisSaysNothing) {
  for (proto::Run* run : {&planted_.before, &planted_.after}) {
    proto::BenchmarkResult& result = *run->mutable_results(0);
    proto::Diagnosis diagnosis;
    diagnosis.set_diagnosis_id(run == &planted_.before
                                   ? "20261120T000000Z-00000000000c"
                                   : "20261121T000000Z-00000000000d");
    diagnosis.mutable_task()->set_operator_name(result.key().operator_name());
    diagnosis.mutable_task()->set_kernel_id(result.kernel_id());
    if (run == &planted_.after) {
      diagnosis.add_causes()->add_chain()->set_class_name("spills");
    }
    ASSERT_TRUE(history_->AppendRun(*run).ok());
    ASSERT_TRUE(history_->AppendDiagnosis(diagnosis).ok());
  }
  for (const std::string& line : Explain()) {
    EXPECT_EQ(line.find("diagnosis"), std::string::npos) << line;
  }
}

TEST_F(ExplainerTest, SaysWhatItCouldNotRead) {
  ASSERT_TRUE(history_->AppendRun(planted_.before).ok());
  EXPECT_THAT(Explain(), ElementsAre(HasSubstr("20261121T000000Z-00000000000b "
                                               "can't be read")));
  planted_.after.mutable_results(0)->mutable_key()->set_operator_name("other");
  ASSERT_TRUE(history_->AppendRun(planted_.after).ok());
  EXPECT_THAT(Explain(), ElementsAre(HasSubstr("lacks the benchmark")));
}

}  // namespace
}  // namespace optrail::tracker
