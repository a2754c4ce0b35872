#include "suites/graph/tune_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "tracker/history/history.h"
#include "tuning/space/space.h"

namespace optrail::suites {
namespace {

using Arguments = std::vector<std::string>;

bool Has(const Arguments& arguments, const std::string& flag) {
  for (const std::string& argument : arguments) {
    if (argument == flag) return true;
  }
  return false;
}

// A model of which each part of how it is served has a known factor.
class TuneGraphTest : public testing::Test {
 protected:
  void SetUp() override {
    command_.path = "models/tiny.onnx";
    command_.cores = 4;
    command_.folder = absl::StrCat(testing::TempDir(), "/tune_graph");
    command_.format = OutputFormat::kJson;
    tools_.run = [this](const Arguments& arguments) { return Run(arguments); };
    tools_.search = [this](const std::string& space,
                           const std::string& arguments) {
      const auto text = ReadFile(space);
      EXPECT_TRUE(text.ok());
      const auto parsed = tuning::Space::Parse(*text, space);
      EXPECT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_TRUE(absl::StrContains(
          arguments, "--batch={batch} --workers={workers} --threads={threads}"))
          << arguments;
      proto::Session session;
      for (const auto& [knob, value] : winner_) {
        proto::KnobValue& set = *session.mutable_winner()->add_set();
        set.set_knob(knob);
        set.set_int_(value);
      }
      return absl::StatusOr<proto::Session>(session);
    };
    tools_.record = [this](const std::vector<GraphStage>& stages) {
      stages_ = stages;
      return absl::OkStatus();
    };
  }

  absl::StatusOr<std::string> Run(const Arguments& arguments) {
    calls_.push_back(absl::StrJoin(arguments, " "));
    if (arguments[0] == "tune" || arguments[1] == "workload") return "";
    double requests = 1000;
    if (!Has(arguments, "--untuned")) requests *= operators_;
    if (Has(arguments, "--fuse=measured")) requests *= fusion_;
    if (Has(arguments, "--batch=64")) requests *= batch_;
    if (Has(arguments, "--workers=2")) requests *= workers_;
    // A reading varies by 0.1%.
    requests *= 1 + .001 * ((reading_++ * 7) % 3 - 1);
    return absl::StrCat("[\n  {\"requests_per_second\": ", requests,
                        ", \"latency_p99\": 4000000}\n]\n");
  }

  absl::StatusOr<ExitCode> Tune() {
    std::ostringstream log;
    return TuneGraph(command_, tools_, out_, log);
  }

  GraphTuneCommand command_;
  GraphTools tools_;
  double operators_ = 1.3, fusion_ = 1.1, batch_ = 2, workers_ = 1;
  std::vector<std::pair<std::string, int>> winner_ = {
      {"batch", 64}, {"workers", 2}, {"threads", 1}};
  int reading_ = 0;
  std::vector<std::string> calls_;
  std::vector<GraphStage> stages_;
  std::ostringstream out_;
};

TEST_F(TuneGraphTest, TheLedgerSaysWhatEachStageBrought) {
  const auto code = Tune();
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_EQ(stages_.size(), 4);
  // The search serves with all rules, so that it is without what measured
  // fusion brings, and the last stage has that again.
  const double gains[] = {.3, .1, 2 / 1.1 - 1, .1};
  for (size_t s = 0; s < 4; ++s) {
    const GraphStage& stage = stages_[s];
    EXPECT_TRUE(stage.kept) << stage.name;
    EXPECT_NEAR(stage.proof.gain(), gains[s], .01) << stage.name;
    EXPECT_LE(stage.proof.gain_low(), gains[s] + .005);
    EXPECT_GE(stage.proof.gain_high(), gains[s] - .005);
    EXPECT_GE(stage.proof.rounds(), 5);
    EXPECT_EQ(stage.latency_p99_ns, 4e6);
    if (s > 0) {
      EXPECT_NEAR(stage.before, stages_[s - 1].after, 3);
    }
  }
  EXPECT_EQ(stages_[3].as.batch, 64);
  EXPECT_EQ(stages_[3].as.workers, 2);
  EXPECT_NEAR(stages_[3].after, 1000 * 1.3 * 1.1 * 2, 10);
  EXPECT_TRUE(absl::StrContains(out_.str(), "requests_per_second_before"));
}

TEST_F(TuneGraphTest, EveryMachineAndStartHasASpace) {
  for (const int cores : {1, 3, 6, 12, 96}) {
    for (const int batch : {1, 48, 2000}) {
      command_.cores = cores;
      ServedAs as;
      as.batch = batch;
      as.threads = std::min(cores, 3);
      const std::string text = ServeSpace(command_, as);
      const auto space = tuning::Space::Parse(text, "space");
      ASSERT_TRUE(space.ok()) << space.status() << "\n" << text;
      EXPECT_TRUE(space->Bind({}, {}).ok()) << space->Bind({}, {}).status();
    }
  }
  command_.cores = 6;
  EXPECT_TRUE(absl::StrContains(ServeSpace(command_, {}), "[1, 2, 4, 6]"));
}

TEST_F(TuneGraphTest, AStartOutsideTheSpaceIsToldBeforeTheFirstStage) {
  command_.cores = 6;
  command_.batch = 48;
  command_.workers = 3;
  command_.threads = 2;
  EXPECT_TRUE(Tune().ok());
  command_.threads = 3;
  calls_.clear();
  EXPECT_FALSE(Tune().ok());
  EXPECT_TRUE(calls_.empty());
}

TEST_F(TuneGraphTest, ASecondOneOfTheModelIsRefused) {
  int refused = 0;
  const auto run = tools_.run;
  tools_.run = [&](const Arguments& arguments) {
    if (calls_.empty()) {
      std::ostringstream out, log;
      const auto second = TuneGraph(command_, tools_, out, log);
      refused += absl::StrContains(second.status().message(),
                                   "models/tiny.onnx: another graph tune of a "
                                   "model called tiny is under way in this "
                                   "folder");
    }
    return run(arguments);
  };
  std::ostringstream out, log;
  EXPECT_TRUE(TuneGraph(command_, tools_, out, log).ok());
  EXPECT_EQ(refused, 1);
  // The lock went with the first.
  EXPECT_TRUE(TuneGraph(command_, tools_, out, log).ok());
}

TEST_F(TuneGraphTest, ALockThatCannotBeMadeIsNoSecondOne) {
  command_.folder += "_without_lock";
  const std::string lock = JoinPath(command_.folder, "tiny.lock");
  ASSERT_TRUE(CreateDirectories(lock).ok());
  std::ostringstream out, log;
  const auto tuned = TuneGraph(command_, tools_, out, log);
  ASSERT_FALSE(tuned.ok());
  EXPECT_TRUE(absl::StrContains(tuned.status().message(), lock))
      << tuned.status();
  EXPECT_FALSE(absl::StrContains(tuned.status().message(), "under way"))
      << tuned.status();
}

TEST_F(TuneGraphTest, AStageThatIsSlowerIsNotKept) {
  fusion_ = .8;
  winner_ = {{"batch", 1}, {"workers", 1}, {"threads", 1}};
  ASSERT_TRUE(Tune().ok());
  ASSERT_EQ(stages_.size(), 3);  // nothing has another batch
  EXPECT_FALSE(stages_[1].kept);
  EXPECT_LT(stages_[1].proof.gain_high(), -.15);
  // Another batch has to bring something; that of the stage before stays.
  EXPECT_FALSE(stages_[2].kept);
  EXPECT_EQ(stages_[2].as.fuse, "none");
}

TEST_F(TuneGraphTest, OperatorsAreTunedForTheBatchOfTheirStage) {
  ASSERT_TRUE(Tune().ok());
  std::vector<std::string> workloads;
  for (const std::string& call : calls_) {
    if (absl::StartsWith(call, "graph workload")) workloads.push_back(call);
  }
  ASSERT_EQ(workloads.size(), 3);
  EXPECT_TRUE(absl::StrContains(workloads[0], "--fuse=none --batch=1"));
  EXPECT_TRUE(absl::StrContains(workloads[1], "--fuse=rules --batch=1"));
  EXPECT_TRUE(absl::StrContains(workloads[2], "--fuse=rules --batch=64"));
}

TEST_F(TuneGraphTest, AStageThatCannotBeServedIsToldAndLeft) {
  tools_.run =
      [this](const Arguments& arguments) -> absl::StatusOr<std::string> {
    if (Has(arguments, "--batch=64") && arguments[1] == "serve") {
      return absl::FailedPreconditionError("no load keeps it");
    }
    return Run(arguments);
  };
  ASSERT_TRUE(Tune().ok());
  ASSERT_EQ(stages_.size(), 3);
  EXPECT_FALSE(stages_[2].kept);
  EXPECT_TRUE(stages_[2].failed);
  EXPECT_TRUE(absl::StrContains(stages_[2].changed, "no load keeps it"));
}

TEST_F(TuneGraphTest, ALateErrorLeavesWhatIsProven) {
  tools_.search = [](const std::string&, const std::string&) {
    return absl::InternalError("the disk is full");
  };
  EXPECT_EQ(Tune().status().message(), "the disk is full");
  ASSERT_EQ(stages_.size(), 3);
  EXPECT_TRUE(stages_[1].kept);
  EXPECT_FALSE(stages_[1].failed);
  EXPECT_TRUE(stages_[2].failed);
  EXPECT_FALSE(stages_[2].kept);
  EXPECT_TRUE(absl::StrContains(out_.str(), "failed: the disk is full"));
  // A stage without readings is no crash.
  const proto::Run run = RunOfStages(command_, stages_, 1, {});
  ASSERT_EQ(run.results_size(), 4);
  for (const auto& result : run.results()) {
    EXPECT_EQ(result.outcome(), proto::OK);
  }
}

TEST_F(TuneGraphTest, RoundsBeforeAnErrorAreKept) {
  int readings = 0;
  tools_.run = [&](const Arguments& arguments) -> absl::StatusOr<std::string> {
    if (Has(arguments, "--batch=64") && arguments[1] == "serve" &&
        ++readings > 4) {
      return absl::InternalError("killed");
    }
    return Run(arguments);
  };
  EXPECT_EQ(Tune().status().message(), "killed");
  ASSERT_EQ(stages_.size(), 3);
  EXPECT_TRUE(stages_[2].failed);
  EXPECT_EQ(stages_[2].proof.candidate_measurements_size(), 3);
  EXPECT_GT(stages_[2].after, stages_[2].before);
}

TEST_F(TuneGraphTest, OtherWorkersLeaveFusionAsItWasProven) {
  winner_ = {{"batch", 1}, {"workers", 2}, {"threads", 1}};
  batch_ = 1;
  workers_ = 2;
  ASSERT_TRUE(Tune().ok());
  ASSERT_EQ(stages_.size(), 3);  // nothing has another batch
  EXPECT_TRUE(stages_[2].kept);
  EXPECT_EQ(stages_[2].as.fuse, "measured");
  EXPECT_NEAR(stages_[2].after, 1000 * 1.3 * 1.1 * 2, 10);
}

TEST_F(TuneGraphTest, AModelThatKeepsTheLimitAtNoLoadIsAnError) {
  tools_.run = [](const Arguments& arguments) -> absl::StatusOr<std::string> {
    if (arguments[1] != "serve") return "";
    return absl::FailedPreconditionError("no load keeps 5ms");
  };
  EXPECT_EQ(Tune().status().message(), "no load keeps 5ms");
  EXPECT_TRUE(stages_.empty());
}

TEST_F(TuneGraphTest, TheLedgerIsARunOfTheHistory) {
  ASSERT_TRUE(Tune().ok());
  RunContext context;
  context.hardware.set_id("some-cpu");
  context.hardware.set_device_kind(proto::CPU);
  const proto::Run run =
      RunOfStages(command_, stages_, 1'700'000'000'000'000'000, context);
  ASSERT_EQ(run.results_size(), 8);
  EXPECT_EQ(run.results(1).key().operator_name(),
            "graph/tiny/tune/p99_limit=5ms/operators/after");
  EXPECT_EQ(run.results(1).measurements_size(), stages_[0].proof.rounds());
  const auto history =
      tracker::History::Open(testing::TempDir() + "/tune_graph_history");
  ASSERT_TRUE(history.ok());
  EXPECT_TRUE(history->AppendRun(run).ok());
}

}  // namespace
}  // namespace optrail::suites
