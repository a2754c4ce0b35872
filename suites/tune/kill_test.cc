// kill -9 at random moments, while tuning and while recording: what was
// acknowledged is never lost, at most the trial in flight is repeated, and no
// temporary file is taken for data.
//
// A child tunes one session after another with real worker processes and
// records each session and a run; it says on standard output what has been
// acknowledged. The parent kills it, looks at what the files hold, and starts
// it again.
//
//   ./bazelw run //suites/tune:kill_test -- --kills=200

#include <cstdio>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/journal.h"
#include "base/process/subprocess.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/tune_session.h"
#include "suites/worker/worker.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tracker/history/history.h"
#include "tuning/session/session_journal.h"

namespace optrail::suites {
namespace {

constexpr char kChildFlag[] = "--tune_and_record_in=";
constexpr int kTrialsPerSession = 6;
int g_kills = 25;

struct ChildTask {
  proto::Hardware hardware;
  TaskEntry entry;
  TaskSpace space;
};

ChildTask MakeTask() {
  ChildTask task;
  task.hardware = *ops::HardwareOf(proto::CPU);
  TaskSelection selection;
  selection.op_regex = "add";
  task.entry = (*SelectTasks(selection, task.hardware))[0];
  task.space = *BindTask(task.entry, task.hardware);
  return task;
}

TuneOptions OptionsFor(const std::string& folder, uint64_t seed) {
  TuneOptions options;
  options.strategy = "random";
  options.seed = seed;
  options.budget.set_trials(kTrialsPerSession);
  options.finalists = 1;
  options.rank_rounds = 1;
  options.proof.max_rounds = 5;
  options.sampling = DefaultSamplingOptions();
  options.sampling.set_max_time_ns(3'000'000);
  options.journal_directory = JoinPath(folder, "tuning");
  return options;
}

// An acknowledgement: one whole write, so that a kill never tears a line.
void Acknowledge(const std::string& line) {
  const std::string text = absl::StrCat(line, "\n");
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Tunes and records from the first seed without a recorded session on, until it
// is killed.
int RunChild(const std::string& folder) {
  DieWithParent();
  const ChildTask task = MakeTask();
  const auto history = tracker::History::Open(JoinPath(folder, "history"));
  const auto sessions = history->ListSessions();
  uint64_t seed = sessions->sessions.size() + 1;
  while (true) {
    TuneSetup setup;
    *setup.header.mutable_task() = task.entry.task;
    setup.header.set_started_unix_ns(Clock::Real()->WallNs());
    setup.header.set_session_id(
        tracker::NewRecordId(setup.header.started_unix_ns()));
    setup.space = task.space.bound.get();
    TuneOptions options = OptionsFor(folder, seed);
    options.on_progress = [&](const tuning::TuneProgress& progress) {
      if (progress.phase == "search") {
        Acknowledge(absl::StrCat("trial ", seed, " ", progress.trials));
      }
    };
    WorkerEvaluator evaluator(task.entry.task, WorkerOptions{});
    const auto session =
        RunTuneSession(setup, options, evaluator, *Clock::Real());
    if (!session.ok()) {
      std::cerr << session.status() << "\n";
      return 1;
    }
    const absl::Status appended = history->AppendSession(*session);
    if (!appended.ok() && !absl::IsAlreadyExists(appended)) return 1;
    Acknowledge(absl::StrCat("session ", session->session_id()));
    proto::Run run;
    run.set_started_unix_ns(Clock::Real()->WallNs());
    run.set_run_id(tracker::NewRecordId(run.started_unix_ns()));
    run.set_suite("kill_test");
    if (!history->AppendRun(run).ok()) return 1;
    Acknowledge(absl::StrCat("run ", run.run_id()));
    if (!RemoveTuneJournal(setup, options).ok()) return 1;
    ++seed;
  }
}

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = JoinPath(::testing::TempDir(), "kill_test");
    ASSERT_TRUE(CreateDirectories(folder_).ok());
  }

  // Starts the child, kills it after `delay`, and notes what it acknowledged.
  void RunAndKill(absl::Duration delay) {
    CommandOptions options;
    options.timeout = delay;
    const auto result = RunCommand(
        {"/proc/self/exe", absl::StrCat(kChildFlag, folder_)}, options);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->exit.kind, ExitInfo::Kind::kTimedOut)
        << "the child ended by itself: " << result->exit.ToString() << " "
        << result->stderr_text;
    for (const absl::string_view line :
         absl::StrSplit(result->stdout_text, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      int count = 0;
      if (words[0] == "trial" && words.size() == 3 &&
          absl::SimpleAtoi(words[2], &count)) {
        int& acknowledged = acknowledged_trials_[words[1]];
        // Only the trial in flight is repeated: a resumed child never says a
        // number again.
        EXPECT_GT(count, acknowledged) << "seed " << words[1];
        acknowledged = count;
      } else if (words.size() == 2) {
        acknowledged_ids_.insert(words[1]);
      }
    }
  }

  void CheckFiles() {
    const auto history = tracker::History::Open(JoinPath(folder_, "history"));
    ASSERT_TRUE(history.ok());
    const auto verified = history->Verify();
    ASSERT_TRUE(verified.ok()) << verified.status();
    for (const tracker::BadFile& bad : verified->bad_files) {
      ADD_FAILURE() << bad.path << ": " << bad.reason;
    }
    std::set<std::string> stored;
    std::set<uint64_t> recorded_seeds;
    const auto sessions = history->ListSessions();
    for (const auto& session : sessions->sessions) {
      stored.insert(session.id());
      recorded_seeds.insert(session.header.seed());
      EXPECT_EQ(session.trial_count, kTrialsPerSession);
    }
    const auto runs = history->ListRuns();
    for (const auto& run : runs->runs) stored.insert(run.id());
    for (const std::string& id : acknowledged_ids_) {
      EXPECT_TRUE(stored.count(id) == 1) << "lost: " << id;
    }
    // Trials of sessions that are not recorded yet are in their journals.
    for (const auto& [seed_text, count] : acknowledged_trials_) {
      uint64_t seed = 0;
      ASSERT_TRUE(absl::SimpleAtoi(seed_text, &seed));
      if (recorded_seeds.count(seed) == 1) continue;
      proto::Session header;
      *header.mutable_task() = task_.entry.task;
      header.set_strategy("random");
      header.set_seed(seed);
      const auto journal = ReadJournal(
          tuning::SessionJournal::Path(JoinPath(folder_, "tuning"), header));
      ASSERT_TRUE(journal.ok()) << journal.status();
      int trials = 0;
      for (const std::string& bytes : journal->records) {
        proto::TuneJournalRecord record;
        ASSERT_TRUE(record.ParseFromString(bytes));
        trials += record.has_trial();
      }
      EXPECT_GE(trials, count) << "lost trials of seed " << seed;
      EXPECT_LE(trials, count + 1) << "more than the one in flight";
    }
  }

  int AcknowledgedTrials() const {
    int trials = 0;
    for (const auto& [seed, count] : acknowledged_trials_) trials += count;
    return trials;
  }

  std::string folder_;
  const ChildTask task_ = MakeTask();
  std::map<std::string, int> acknowledged_trials_;
  std::set<std::string> acknowledged_ids_;
};

TEST_F(KillTest, NothingAcknowledgedIsLost) {
  constexpr uint64_t kSeed = 20261120;
  Rng rng(kSeed);
  double patience = 1;
  for (int i = 0; i < g_kills; ++i) {
    SCOPED_TRACE(absl::StrCat("kill ", i, ", seed ", kSeed));
    RunAndKill(patience * absl::Milliseconds(50 + rng.UniformInt(750)));
    CheckFiles();
    if (HasFailure()) return;
    // Where a life is too short to get anything done, longer ones follow.
    if (AcknowledgedTrials() <= i / 2) patience *= 1.3;
  }
  const int trials = AcknowledgedTrials();
  std::cout << g_kills << " kills; acknowledged and found: " << trials
            << " trials, " << acknowledged_ids_.size()
            << " sessions and runs\n";
  EXPECT_GT(trials, g_kills / 4) << "the child hardly got to work";
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  using optrail::suites::g_kills;
  using optrail::suites::kChildFlag;
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (absl::StartsWith(arg, kChildFlag)) {
      arg.remove_prefix(sizeof(kChildFlag) - 1);
      return optrail::suites::RunChild(std::string(arg));
    }
    if (absl::StartsWith(arg, "--kills=")) {
      arg.remove_prefix(8);
      if (!absl::SimpleAtoi(arg, &g_kills) || g_kills < 1) {
        std::cerr << "--kills: expected a positive number\n";
        return 2;
      }
    }
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
