// `tune` and `bench` from their command lines, with real workers: what only
// their drivers and flags together can get wrong.

#include "suites/command/commands.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/built_from.h"
#include "suites/command/command_flags.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/worker.h"
#include "tracker/history/history.h"

namespace optrail::suites {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kWorkload[] = R"(
name: "tiny"
layer { operator_name: "add" shape: "n=64/f32" count: 1 }
layer { operator_name: "add" shape: "n=4096/f32" count: 100 }
layer { operator_name: "add" shape: "n=128/f32" count: 1 }
)";

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest()
      : folder_(JoinPath(
            ::testing::TempDir(),
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    setenv("BUILD_WORKSPACE_DIRECTORY", folder_.c_str(), /*overwrite=*/1);
    workload_ = JoinPath(folder_, "tiny.workload.textproto");
    EXPECT_TRUE(WriteFileAtomically(workload_, kWorkload).ok());
  }

  // The exit code; what was printed is in `out_` and `err_`.
  int Tune(const std::vector<std::string>& flags) {
    std::vector<std::string> args = {"tune",
                                     "--quiet",
                                     "--format=csv",
                                     "--processes=1",
                                     "--finalists=1",
                                     "--strategy=random",
                                     "--proof_time=50ms"};
    args.insert(args.end(), flags.begin(), flags.end());
    return Call(TuneCommand(""), args);
  }
  int Bench(const std::vector<std::string>& flags) {
    std::vector<std::string> args = {"bench", "--quiet", "--select=default"};
    args.insert(args.end(), flags.begin(), flags.end());
    return Call(BenchCommand(""), args);
  }

  int Call(const Command& command, std::vector<std::string> args) {
    absl::FlagSaver saver;
    args.push_back("--workload=" + workload_);
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(&arg[0]);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunSingleCommand(
        command.name, command, static_cast<int>(argv.size()), argv.data());
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  tracker::History History() const {
    return *tracker::History::Open(JoinPath(folder_, ".optrail/history"));
  }
  std::vector<tracker::SessionInfo> Sessions() const {
    return History().ListSessions()->sessions;
  }

  std::vector<std::string> Journals() const {
    const auto names =
        ListDirectory(JoinPath(folder_, ".optrail/state/tuning"));
    return names.value_or(std::vector<std::string>());
  }

  const std::string folder_;
  std::string workload_, out_, err_;
};

TEST_F(CommandsTest, ATotalIsDividedOverTheTasksAndRecorded) {
  Tune({"--total_trials=18"});
  int trials = 0;
  for (const tracker::SessionInfo& session : Sessions()) {
    trials += session.trial_count;
    EXPECT_EQ(session.header.budget().total_trials(), 18);
    EXPECT_FALSE(session.header.budget().has_time_ns());
  }
  EXPECT_THAT(Sessions(), SizeIs(3)) << err_;
  EXPECT_EQ(trials, 18);
  EXPECT_THAT(Journals(), IsEmpty());
  EXPECT_THAT(out_, HasSubstr("trials_spent"));
}

TEST_F(CommandsTest, WithoutATotalEachTaskHasItsBudget) {
  Tune({"--trials=5"});
  for (const tracker::SessionInfo& session : Sessions()) {
    EXPECT_EQ(session.trial_count, 5);
    EXPECT_FALSE(session.header.budget().has_total_trials());
  }
  EXPECT_THAT(Sessions(), SizeIs(3)) << err_;
}

TEST_F(CommandsTest, ATaskLearnsFromThoseTunedBeforeIt) {
  Tune({"--trials=16"});
  const std::vector<tracker::SessionInfo> sessions = Sessions();
  ASSERT_THAT(sessions, SizeIs(3)) << err_;
  const auto sources = [&](int i) {
    return sessions[i].header.source_session_ids();
  };
  // n = 64, 4096 and 128, in this order; the nearer ones first.
  EXPECT_THAT(sources(0), IsEmpty());
  EXPECT_THAT(sources(1), ElementsAre(sessions[0].id()));
  EXPECT_THAT(sources(2), ElementsAre(sessions[0].id(), sessions[1].id()));
  // Another call, told to forget.
  Tune({"--trials=16", "--retune", "--forget"});
  EXPECT_THAT(Sessions().back().header.source_session_ids(), IsEmpty());
}

TEST_F(CommandsTest, ASessionStartsWhenTheOneBeforeItHasEnded) {
  Tune({"--trials=3"});
  const std::vector<tracker::SessionInfo> sessions = Sessions();
  ASSERT_THAT(sessions, SizeIs(3)) << err_;
  for (size_t i = 0; i + 1 < sessions.size(); ++i) {
    const auto session = History().ReadSession(sessions[i].id());
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_GT(session->trials_size(), 0);
    for (const proto::Trial& trial : session->trials()) {
      EXPECT_LE(trial.started_unix_ns(),
                sessions[i + 1].header.started_unix_ns());
    }
  }
}

TEST_F(CommandsTest, ASessionRecordsHowItMeasured) {
  Tune({"--trials=3", "--config_deadline=7s", "--max_config_mib=512"});
  ASSERT_THAT(Sessions(), SizeIs(3)) << err_;
  const proto::MeasurementSettings settings = Sessions()[0].header.settings();
  EXPECT_EQ(settings.min_sample_ns(), DefaultSamplingOptions().min_sample_ns());
  EXPECT_EQ(settings.config_deadline_ns(), 7'000'000'000);
  EXPECT_EQ(settings.max_config_bytes(), int64_t{512} << 20);
  EXPECT_EQ(settings.processes(), 1);
  EXPECT_GT(settings.attempts_per_process(), 0);
  EXPECT_GT(settings.race_ratio(), 1);
  EXPECT_EQ(settings.binary_fingerprint().size(), 16);
}

TEST_F(CommandsTest, AWarmStartIsStoredWithoutTheSamples) {
  Tune({"--trials=16", "--shape=n=64/"});
  Tune({"--trials=16", "--shape=n=64/", "--retune"});
  const std::vector<tracker::SessionInfo> sessions = Sessions();
  ASSERT_THAT(sessions, SizeIs(2)) << err_;
  const auto second = History().ReadSession(sessions[1].id());
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_GT(second->warm_start_trial_count(), 0);
  for (int i = 0; i < second->trials_size(); ++i) {
    const proto::Trial& trial = second->trials(i);
    const bool warm = i < second->warm_start_trial_count();
    EXPECT_EQ(trial.session_id(), warm ? sessions[0].id() : "");
    if (warm) {
      EXPECT_THAT(trial.measurements(), IsEmpty());
    }
  }
}

TEST_F(CommandsTest, ARunRecordsHowItMeasured) {
  // A busy machine may leave it without a clean reading: recorded all the same.
  Bench({"--record", "--processes=2", "--benchmark_min_time=0.001"});
  const auto runs = History().ListRuns();
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(runs->runs, SizeIs(1)) << err_;
  const proto::MeasurementSettings& settings = runs->runs[0].header.settings();
  EXPECT_EQ(settings.max_sampling_ns(), 1'000'000);
  EXPECT_EQ(settings.target_half_width_fraction(), 0);
  EXPECT_EQ(settings.processes(), 2);
  EXPECT_GT(settings.attempts_per_process(), 0);
  EXPECT_FALSE(settings.has_race_ratio());
  EXPECT_EQ(settings.binary_fingerprint().size(), 16);
}

TEST_F(CommandsTest, RunsOfAPairingSayWhichAndEachProcessItsRound) {
  for (const char* round : {"1", "2"}) {
    for (int side = 0; side < 2; ++side) {
      Bench({"--record", "--processes=2", "--benchmark_min_time=0.001",
             "--pairing=job-7", absl::StrCat("--round=", round)});
    }
  }
  const auto runs = History().LoadRuns();
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(runs->runs, SizeIs(4)) << err_;
  std::map<int, int> processes;
  for (const proto::Run& run : runs->runs) {
    EXPECT_EQ(run.pairing_id(), "job-7");
    for (const proto::BenchmarkResult& result : run.results()) {
      for (const proto::Measurement& measurement : result.measurements()) {
        ++processes[measurement.round()];
      }
    }
  }
  // A busy machine may leave a process without a reading.
  for (const auto& [round, count] : processes) {
    EXPECT_THAT(round, AnyOf(1, 2));
    EXPECT_GT(count, 0);
  }
  EXPECT_FALSE(processes.empty());
}

TEST_F(CommandsTest, ATotalOfTimeEnds) {
  Tune({"--total_time=300ms"});
  EXPECT_THAT(Sessions(), SizeIs(3)) << err_;
}

TEST_F(CommandsTest, WhereResultsFindNoPlaceNothingIsTuned) {
  const std::string file = JoinPath(folder_, "file");
  ASSERT_TRUE(WriteFileAtomically(file, "").ok());
  for (const char* place : {"history", "store"}) {
    const std::string below = JoinPath(file, place);
    EXPECT_NE(Tune({absl::StrCat("--", place, "=", below)}), 0);
    EXPECT_THAT(err_, HasSubstr(below));
    EXPECT_THAT(Journals(), IsEmpty());
  }
}

TEST_F(CommandsTest, ATotalThatIsNoneIsRefusedAndNothingIsTuned) {
  const struct {
    const char* flag;
    const char* message;
  } cases[] = {
      {"--total_trials=-1", "--total_trials=-1: expected 0 to 100000000"},
      {"--total_trials=many", "--total_trials=many: expected a whole number"},
      {"--total_trials=2",
       "a total of 2 trials (--total_trials) for 3 tasks; expected at least "
       "one each"},
      {"--total_time=-5s", "--total_time=-5s: expected a duration such as 10m"},
      {"--total_time=inf", "expected a duration such as 10m"},
      {"--total_time=soon",
       "--total_time=soon: expected a duration such as 10m"},
      {"--proof_time=-1s", "--proof_time=-1s: expected a duration such as 30s"},
  };
  for (const auto& bad : cases) {
    EXPECT_EQ(Tune({bad.flag}), 2) << bad.flag;
    EXPECT_THAT(err_, HasSubstr(bad.message)) << bad.flag;
    EXPECT_THAT(Sessions(), IsEmpty());
    EXPECT_THAT(Journals(), IsEmpty());
  }
}

TEST_F(CommandsTest, ABinaryOlderThanItsSourcesIsNoticed) {
  const std::vector<std::string> flags = {
      "--processes=1", "--benchmark_min_time=0.001", "--record"};
  EXPECT_EQ(Bench(flags), 0);
  EXPECT_THAT(err_, Not(HasSubstr("other sources")));
  const auto& built_from = ops::BuiltFrom("add", "cpu");
  ASSERT_FALSE(built_from.empty());
  const std::string path = JoinPath(folder_, built_from[0].path);
  ASSERT_TRUE(CreateDirectories(DirectoryOf(path)).ok());
  ASSERT_TRUE(WriteFileAtomically(path, "// changed since").ok());
  EXPECT_EQ(Bench(flags), 0);
  EXPECT_THAT(err_, HasSubstr(absl::StrCat("other sources than those here: ",
                                           built_from[0].path, "; next:")));
  const auto runs = History().ListRuns();
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(runs->runs, SizeIs(2));
  EXPECT_FALSE(runs->runs[0].header.commit().dirty());
  EXPECT_TRUE(runs->runs[1].header.commit().dirty());
}

TEST(DivideTimeBudgetTest, ABudgetHoldsForTheWholeTask) {
  proto::Budget budget;
  tuning::ProofOptions proof;
  DivideTimeBudget(absl::ZeroDuration(), &budget, &proof);
  EXPECT_FALSE(budget.has_time_ns());
  DivideTimeBudget(absl::Seconds(30), &budget, &proof);
  EXPECT_LT(absl::Nanoseconds(budget.time_ns()) + *proof.max_time,
            absl::Seconds(30));
  proof.max_time = absl::Seconds(8);
  DivideTimeBudget(absl::Seconds(30), &budget, &proof);
  EXPECT_EQ(absl::Nanoseconds(budget.time_ns()), absl::Seconds(30))
      << "a proof with a time of its own comes on top";
  EXPECT_EQ(*proof.max_time, absl::Seconds(8));
}

TEST(CommandHelpTest, ExamplesOfOneOperatorTakeItsOwnFlags) {
  for (const Command& command : {TuneCommand("add"), BenchCommand("add")}) {
    EXPECT_THAT(command.details,
                HasSubstr(absl::StrCat("  add_", command.name, " --")));
    for (const absl::string_view word :
         absl::StrSplit(command.details, absl::ByAnyChar(" =.\n"))) {
      if (!absl::StartsWith(word, "--")) continue;
      EXPECT_THAT(command.flags, ::testing::Contains(word.substr(2)));
    }
  }
}

class PresetTest : public CommandsTest {
 protected:
  PresetTest() : preset_(JoinPath(folder_, "my.preset.textproto")) {}

  // Tunes with a preset of these lines, from the second line on; the workload
  // is the fixture's.
  int TuneWith(const std::string& lines, std::vector<std::string> flags) {
    EXPECT_TRUE(
        WriteFileAtomically(preset_, "name: \"my\"\n" + lines + "\n").ok());
    flags.push_back("--preset=" + preset_);
    return Tune(flags);
  }

  std::vector<int> TrialsOfSessions() const {
    std::vector<int> trials;
    for (const tracker::SessionInfo& session : Sessions()) {
      trials.push_back(session.trial_count);
    }
    return trials;
  }

  const std::string preset_;
};

TEST_F(PresetTest, ItsValuesHoldWhereTheCommandLineIsSilent) {
  EXPECT_EQ(TuneWith("total_trials: 12 seed: 7", {}), 0) << err_;
  EXPECT_THAT(Sessions(), SizeIs(3));
  for (const tracker::SessionInfo& session : Sessions()) {
    EXPECT_EQ(session.header.budget().total_trials(), 12);
    EXPECT_EQ(session.header.seed(), 7);
    EXPECT_FALSE(session.header.budget().has_operator_share());
  }
  EXPECT_THAT(err_, HasSubstr("preset my: --seed=7 --total_trials=12"));
}

TEST_F(PresetTest, AFlagWins) {
  EXPECT_EQ(TuneWith("total_trials: 12 seed: 7", {"--total_trials=9"}), 0)
      << err_;
  for (const tracker::SessionInfo& session : Sessions()) {
    EXPECT_EQ(session.header.budget().total_trials(), 9);
    EXPECT_EQ(session.header.seed(), 7);
  }
  EXPECT_THAT(err_, Not(HasSubstr("--total_trials=12")));
  // The price of an objective that the flag replaces is nobody's error.
  EXPECT_EQ(TuneWith("total_trials: 9 objective: \"cost\" price_per_kwh: .25",
                     {"--objective=time"}),
            0)
      << err_;
}

TEST_F(PresetTest, SharesAreRecordedAndHeld) {
  // The workload has three tasks of one operator: the share is of all three.
  EXPECT_EQ(TuneWith("total_trials: 15\n"
                     "share { operator_name: \"add\" fraction: .8 }",
                     {}),
            0)
      << err_;
  int trials = 0;
  for (const tracker::SessionInfo& session : Sessions()) {
    EXPECT_EQ(session.header.budget().operator_share(), .8);
    trials += session.trial_count;
  }
  // Nobody else wants what is left.
  EXPECT_EQ(trials, 15);
}

TEST_F(PresetTest, ErrorsAreWrongUseAndNameTheLine) {
  const auto error = [&](const std::string& lines,
                         const std::vector<std::string>& flags = {}) {
    EXPECT_EQ(TuneWith(lines, flags), 2) << lines << "\n" << err_;
    return err_;
  };
  EXPECT_THAT(error("total_trails: 4"),
              HasSubstr(preset_ + ":2:1: unknown field \"total_trails\""));
  EXPECT_THAT(error("total_trials: 5 patience: -3"),
              HasSubstr(preset_ + ":2: --patience=-3: expected 0 to"));
  EXPECT_THAT(error("\ntotal_time: \"5\""),
              HasSubstr(preset_ + ":3: total_time is \"5\": expected a "
                                  "duration"));
  EXPECT_THAT(error("numerics: \"exact\""),
              HasSubstr(preset_ + ":2: --numerics=exact: expected any"));
  EXPECT_THAT(error("total_trials: 9", {"--objective=joules"}),
              HasSubstr("; --total_trials is set in " + preset_ + ":2"));
  const std::string share = "share { operator_name: \"add\" fraction: ";
  EXPECT_THAT(error(share + ".5 }"),
              HasSubstr(preset_ + ":2: a share is a part of a total"));
  EXPECT_THAT(error(share + "1.2 }"), HasSubstr(preset_ + ":2:"));
  EXPECT_EQ(Tune({"--preset=recomender"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean recommender?"));
  EXPECT_THAT(Sessions(), IsEmpty());
}

TEST_F(PresetTest, ADryRunMeasuresAndWritesNothing) {
  EXPECT_EQ(TuneWith("total_trials: 12\nfinalists: 3\nprocesses: 0\n"
                     "share { operator_name: \"add\" fraction: 1 }",
                     {"--dry_run"}),
            0)
      << err_;
  EXPECT_FALSE(FileExists(JoinPath(folder_, ".optrail")));
  EXPECT_THAT(out_, HasSubstr("add n=4096/f32,100,1,to tune\n"));
  EXPECT_THAT(out_, HasSubstr("total_trials,12,0," + preset_ + ":2,yes\n"));
  // The fixture gives --finalists and --processes.
  EXPECT_THAT(
      out_, HasSubstr("finalists,1,4,command line (" + preset_ + ":3: 3),\n"));
  EXPECT_THAT(out_, HasSubstr("patience,0,0,default,\n"));
  EXPECT_THAT(out_, HasSubstr("threads,1,,workload tiny,\n"));
  EXPECT_THAT(err_, HasSubstr("changes total_trials=12\n"));
}

TEST_F(PresetTest, ADryRunKnowsWhatIsTunedAlready) {
  EXPECT_EQ(Tune({"--trials=2", "--shape=n=64/f32"}), 0) << err_;
  EXPECT_EQ(Tune({"--dry_run"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("add n=64/f32,1,tuned already\n"));
  EXPECT_THAT(out_, HasSubstr("add n=128/f32,1,to tune\n"));
  EXPECT_THAT(out_, HasSubstr("time_budget,20s of search per task,0,default"));
  EXPECT_EQ(Tune({"--dry_run", "--retune"}), 0) << err_;
  EXPECT_THAT(out_, Not(HasSubstr("tuned already")));
  // The errors of the command are those of its dry run.
  EXPECT_EQ(Tune({"--dry_run", "--shape=m=3"}), 2);
  EXPECT_THAT(err_, HasSubstr("no shape of any operator matches"));
  EXPECT_EQ(Tune({"--dry_run", "--total_trials=1"}), 2);
  EXPECT_THAT(err_, HasSubstr("a total of 1 trials (--total_trials) for 2"));
  EXPECT_EQ(Tune({"--dry_run", "--total_trials=2"}), 0) << err_;
}

TEST_F(PresetTest, ItIsReadOnce) {
  // Nobody can read a pipe twice.
  const std::string pipe = JoinPath(folder_, "pipe.preset.textproto");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream(pipe) << "name: \"piped\" total_trials: 12 seed: 7\n";
  });
  EXPECT_EQ(Tune({"--dry_run", "--preset=" + pipe}), 0) << err_;
  writer.join();
  EXPECT_THAT(err_, HasSubstr("preset piped"));
  EXPECT_THAT(err_, HasSubstr("total_trials=12"));
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
