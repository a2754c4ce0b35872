#include "tuning/command/tune_command.h"

#include <sstream>
#include <string>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSpace[] = R"(
knob { name: "x" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
knob { name: "mode" variants: ["slow", "fast"] }
constraint { expr: "mode == 'fast' || x <= 6" why: "slow has six" }
default { set { knob: "x" int: 1 } set { knob: "mode" variant: "slow" } }
)";

// (x - 5)^2 + 1 seconds, twice that if slow; a note of every run is left in
// `runs`. x = 7 crashes, x = 8 prints no number.
constexpr char kCommand[] =
    "echo {x} {mode} >> RUNS; [ {x} = 7 ] && exit 9; [ {x} = 8 ] && exit 0; "
    "f=1; [ {mode} = slow ] && f=2; "
    "echo \"{\\\"time\\\": $(( f * (({x} - 5) * ({x} - 5) + 1) )), "
    "\\\"memory\\\": {x}}\"";

class TuneCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(CreateDirectories(folder_).ok());
    options_.space_file = JoinPath(folder_, "x.space.textproto");
    ASSERT_TRUE(WriteFileAtomically(options_.space_file, kSpace).ok());
    options_.command = kCommand;
    options_.command.replace(options_.command.find("RUNS"), 4, runs());
    options_.metrics = {"time:min"};
    options_.verify_runs = 0;
    options_.quiet = true;
  }

  std::string runs() const { return JoinPath(folder_, "runs"); }
  std::string RunsText() const {
    const auto text = ReadFile(runs());
    return text.ok() ? *text : "";
  }

  absl::StatusOr<int> Tune() {
    out_.str("");
    log_.str("");
    return RunTuneCommand(options_, out_, log_);
  }

  std::string folder_;
  TuneCommandOptions options_;
  std::ostringstream out_, log_;
};

TEST_F(TuneCommandTest, FindsTheBestOfASmallSpaceAndSaysWhyItStopped) {
  const auto code = Tune();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_THAT(out_.str(), HasSubstr("best: echo 5 fast"));
  EXPECT_THAT(log_.str(),
              HasSubstr("stopped after 14 trials: space exhausted"));
  EXPECT_THAT(log_.str(), HasSubstr("1 x CRASHED, first: mode=fast,x=7: "
                                    "exited with code 9"));
  EXPECT_THAT(log_.str(), HasSubstr("1 x WRONG_RESULT, first: mode=fast,x=8"));
}

TEST_F(TuneCommandTest, MaximisesWhatIsToBeMaximised) {
  options_.metrics = {"memory:max"};
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(out_.str(), HasSubstr("best: echo 6 "));
}

TEST_F(TuneCommandTest, StopsByTrialsAndByTarget) {
  options_.max_trials = 4;
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), HasSubstr("stopped after 4 trials: 4 trials"));
  options_.max_trials = 0;
  options_.target = 100;
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), HasSubstr("target of 100 reached"));
}

TEST_F(TuneCommandTest, GoesOnWhereItWasInterrupted) {
  options_.max_trials = 12;
  ASSERT_TRUE(Tune().ok());
  const std::string whole = RunsText();
  ASSERT_TRUE(RemoveFile(runs()).ok());
  options_.journal_directory = JoinPath(folder_, "journal");
  for (const int trials : {3, 8, 12}) {
    options_.max_trials = trials;
    ASSERT_TRUE(Tune().ok());
  }
  EXPECT_THAT(log_.str(), HasSubstr("resumed after 8 trials"));
  EXPECT_THAT(log_.str(),
              AllOf(HasSubstr("journal: " + options_.journal_directory),
                    HasSubstr("not in the history")));
  EXPECT_EQ(RunsText(), whole);
}

TEST_F(TuneCommandTest, AnotherCommandDoesNotTakeTheJournal) {
  options_.journal_directory = JoinPath(folder_, "journal");
  options_.max_trials = 3;
  ASSERT_TRUE(Tune().ok());
  options_.command += " # changed";
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), Not(HasSubstr("resumed")));
}

TEST_F(TuneCommandTest, ParallelRunsFindTheSameBest) {
  options_.parallel = 4;
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(out_.str(), HasSubstr("best: echo 5 fast"));
  EXPECT_THAT(log_.str(), HasSubstr("stopped after 14 trials"));
}

TEST_F(TuneCommandTest, FinalistsRunAgainAndOneThatThenFailsNeverWins) {
  // The second run of x = 5 fails.
  options_.command =
      "[ {x}{mode} = 5fast ] && [ -e DONE ] && exit 3; "
      "[ {x}{mode} = 5fast ] && : > DONE; " +
      options_.command;
  for (size_t at; (at = options_.command.find("DONE")) != std::string::npos;) {
    options_.command.replace(at, 4, JoinPath(folder_, "done"));
  }
  options_.verify_runs = 2;
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(out_.str(), Not(HasSubstr("mode=fast,x=5")));
  EXPECT_THAT(log_.str(),
              HasSubstr("mode=fast,x=5 failed when it was run again: exited"));
}

TEST_F(TuneCommandTest, PrintsTheFrontOfSeveralMetricsWithinTheirLimits) {
  options_.metrics = {"time:min", "memory:min<=4"};
  options_.format = OutputFormat::kCsv;
  ASSERT_TRUE(Tune().ok());
  // Fast ones with time falling as memory grows, up to the limit.
  EXPECT_EQ(out_.str(),
            "time,memory,runs,config\n"
            "2,4,1,\"mode=fast,x=4\"\n"
            "5,3,1,\"mode=fast,x=3\"\n"
            "10,2,1,\"mode=fast,x=2\"\n"
            "17,1,1,\"mode=fast,x=1\"\n");
}

TEST_F(TuneCommandTest, NothingThatWorksIsAFailedCheck) {
  options_.metrics = {"speed:max"};
  options_.max_trials = 3;
  const auto code = Tune();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 1);
  EXPECT_THAT(log_.str(), HasSubstr("3 x WRONG_RESULT"));
  EXPECT_THAT(log_.str(), HasSubstr("no config worked"));
}

TEST_F(TuneCommandTest, RejectsWrongOptionsBeforeAnythingRuns) {
  const auto message = [this] {
    return std::string(Tune().status().message());
  };
  options_.metrics = {};
  EXPECT_THAT(message(), HasSubstr("no metric"));
  options_.metrics = {"time:min", "time:max"};
  EXPECT_THAT(message(), HasSubstr("named twice"));
  options_.metrics = {"time:min"};
  options_.strategy = "luck";
  EXPECT_THAT(message(), HasSubstr("unknown strategy 'luck'"));
  options_.strategy = "default";
  options_.command = "f {x}";
  EXPECT_THAT(message(), HasSubstr("does not contain {mode}"));
  options_.space_file = "nowhere.textproto";
  EXPECT_THAT(message(), HasSubstr("nowhere.textproto"));
  EXPECT_EQ(RunsText(), "");
}

}  // namespace
}  // namespace optrail::tuning
