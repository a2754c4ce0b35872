#include "tuning/command/tune_command.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "base/file/file.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

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
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<TuneCommand> command,
                             TuneCommand::Prepare(options_));
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                             command->Run({}, log_));
    return command->Print(session, out_, log_);
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
              HasSubstr("stopped after 14 trials: space_exhausted"));
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
  options_.budget.set_trials(4);
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), HasSubstr("stopped after 4 trials: trials_spent"));
  options_.budget.Clear();
  options_.budget.set_target(100);
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), HasSubstr("target_reached"));
}

// Killed in the middle: what was journaled is not run again.
TEST_F(TuneCommandTest, GoesOnWhereItWasInterrupted) {
  options_.budget.set_trials(12);
  ASSERT_TRUE(Tune().ok());
  const std::string whole = out_.str();
  ASSERT_TRUE(RemoveFile(runs()).ok());
  options_.journal_directory = JoinPath(folder_, "journal");
  // The ninth run kills its grandparent, which tunes, unless a file is there.
  const std::string spared = JoinPath(folder_, "spared");
  options_.command = "[ -e " + spared + " ] || { echo >> " + spared +
                     "s; [ $(wc -l < " + spared +
                     "s) -lt 9 ] || kill -9 $PPID; }; " + options_.command;
  EXPECT_EXIT((void)Tune(), ::testing::KilledBySignal(9), "");
  ASSERT_TRUE(WriteFileAtomically(spared, "").ok());
  const std::string killed_after = RunsText();
  const auto runs_before =
      std::count(killed_after.begin(), killed_after.end(), '\n');
  EXPECT_GE(runs_before, 8);
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), HasSubstr("goes on with the journal"));
  EXPECT_THAT(log_.str(), HasSubstr("stopped after 12 trials"));
  EXPECT_EQ(out_.str().substr(0, out_.str().find("best:")),
            whole.substr(0, whole.find("best:")));
}

TEST_F(TuneCommandTest, AChangedProgramIsAnotherTask) {
  const std::string program = JoinPath(folder_, "train.sh");
  const auto prepare = [&] {
    auto command = TuneCommand::Prepare(options_);
    EXPECT_TRUE(command.ok()) << command.status();
    return (*command)->task();
  };
  ASSERT_TRUE(WriteFileAtomically(program, "exit 0").ok());
  options_.command = "sh " + program + " {x} {mode}";
  const proto::Task before = prepare();
  EXPECT_EQ(before.operator_name(), "command_train_sh");
  EXPECT_EQ(prepare().kernel_id(), before.kernel_id());
  ASSERT_TRUE(WriteFileAtomically(program, "exit 1").ok());
  EXPECT_NE(prepare().kernel_id(), before.kernel_id());
  options_.command = "f {x} {mode}";
  options_.programs = {"nowhere"};
  EXPECT_EQ(TuneCommand::Prepare(options_).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(TuneCommandTest, AWinnerIsProvenAgainstTheDefault) {
  auto command = TuneCommand::Prepare(options_);
  ASSERT_TRUE(command.ok()) << command.status();
  const auto session = (*command)->Run({}, log_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->proof().claimed());
  EXPECT_NEAR(session->proof().gain(), 1 - 1 / 34., 1e-3);
  EXPECT_EQ(session->command().command(), options_.command);
  EXPECT_EQ(session->objectives(0).metric(), "time");
  // What the session knows is not measured again.
  const std::string runs_before = RunsText();
  std::vector<proto::Trial> known(session->trials().begin(),
                                  session->trials().end());
  const auto again = (*command)->Run(known, log_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->warm_start_trial_count(), 14);
  EXPECT_EQ(again->trials_size(), 14);
}

// Invalid UTF-8, also cut inside a character, and deep nesting.
TEST_F(TuneCommandTest, WhateverIsPrintedTheJournalCanBeRead) {
  options_.journal_directory = JoinPath(folder_, "journal");
  options_.budget.set_trials(14);
  for (const std::string& garbage :
       {std::string("printf '\\377\\376{\\001'"),
        std::string("head -c 300 /dev/zero | tr '\\0' '\\303'; exit 3"),
        std::string("printf '%0.s\\342\\202\\254' $(seq 200) >&2; exit 3"),
        std::string("printf '%0.s[' $(seq 100000)"),
        std::string("printf '{\"time\":%0.s' $(seq 100000)")}) {
    options_.command = "true {x} {mode}; " + garbage;
    for (int sitting = 0; sitting < 2; ++sitting) {
      const auto code = Tune();
      ASSERT_TRUE(code.ok()) << garbage << ": " << code.status();
      EXPECT_EQ(*code, 1);
    }
    EXPECT_THAT(log_.str(), HasSubstr("goes on with the journal")) << garbage;
  }
}

TEST_F(TuneCommandTest, AnotherCommandDoesNotTakeTheJournal) {
  options_.journal_directory = JoinPath(folder_, "journal");
  options_.budget.set_trials(3);
  ASSERT_TRUE(Tune().ok());
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), HasSubstr("goes on with the journal"));
  options_.command += " # changed";
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(log_.str(), Not(HasSubstr("goes on")));
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
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(out_.str(), Not(HasSubstr("mode=fast,x=5")));
  EXPECT_THAT(log_.str(),
              HasSubstr("mode=fast,x=5 failed when it was run again: CRASHED"));
}

// A session with one objective whose finalists, x=1 and x=2, could not be read
// again; x=3 was no finalist.
proto::Session WithoutAWinner(proto::Outcome of_finalists) {
  proto::Session session;
  session.add_objectives()->set_metric("time");
  for (const char* config : {"x=1", "x=2", "x=3"}) {
    proto::Trial& trial = *session.add_trials();
    *trial.mutable_config() = *ParseConfig(config);
    trial.set_outcome(proto::OK);
    proto::MetricSamples& samples = *trial.add_objectives();
    samples.set_metric("time");
    samples.add_values(1);
    if (session.finalists_size() == 2) continue;
    proto::Finalist& finalist = *session.add_finalists();
    *finalist.mutable_config() = trial.config();
    finalist.set_outcome(of_finalists);
  }
  return session;
}

TEST_F(TuneCommandTest, WithoutAWinnerTheLogSaysWhyAndTheCodeWhatIsKnown) {
  const auto command = TuneCommand::Prepare(options_);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ((*command)->Print(WithoutAWinner(proto::CRASHED), out_, log_), 1);
  EXPECT_THAT(out_.str(), HasSubstr("x=3"));
  EXPECT_THAT(log_.str(),
              HasSubstr("no config that was run again worked: x=1 failed when "
                        "it was run again: CRASHED; x=2 failed"));
  log_.str("");
  EXPECT_EQ((*command)->Print(WithoutAWinner(proto::CONTENDED), out_, log_), 3);
  EXPECT_THAT(log_.str(), HasSubstr("the machine was too busy to measure x=1"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("failed")));
}

TEST_F(TuneCommandTest, PrintsTheFrontOfSeveralMetricsWithinTheirLimits) {
  options_.metrics = {"time:min<=20", "memory:min"};
  options_.format = OutputFormat::kCsv;
  ASSERT_TRUE(Tune().ok());
  // Fast ones with time falling as memory grows, all within the limit.
  EXPECT_EQ(out_.str(),
            "time,memory,runs,config\n"
            "1,5,1,\"mode=fast,x=5\"\n"
            "2,4,1,\"mode=fast,x=4\"\n"
            "5,3,1,\"mode=fast,x=3\"\n"
            "10,2,1,\"mode=fast,x=2\"\n"
            "17,1,1,\"mode=fast,x=1\"\n");
}

TEST_F(TuneCommandTest, NothingThatWorksIsAFailedCheck) {
  options_.metrics = {"speed:max"};
  options_.budget.set_trials(3);
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
