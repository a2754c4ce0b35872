// Two pilots that Slurm runs on its two nodes tune a workload of 12 tasks with
// the real program:
//
//   bazel test //cli:two_slurm_pilots_test --test_output=all
//
// Programs with scripted answers stand for what is measured: they sleep as long
// as a measurement takes and print a number that depends on the config alone.
// So the sessions of two pilots, of one, and of no fleet at all must be equal,
// and the time of two pilots against one is that of the fleet.
//
// It needs Slurm, PostgreSQL and root, and takes some minutes: it is no part of
// `bazel test //...`.

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "fleet/evaluation/slurm_cluster.h"
#include "gtest/gtest.h"
#include "tracker/history/history.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/testing/postgres_server.h"
#include "tuning/proto/canonical.h"

namespace optrail {
namespace {

using tracker::Postgres;

constexpr int kTasks = 12;
constexpr int kConfigs = 8;  // of each task
constexpr uint64_t kSeed = 35;
constexpr absl::Duration kAnswerTime = absl::Milliseconds(200);
constexpr absl::Duration kPatience = absl::Minutes(10);

absl::StatusOr<std::string> Output(const std::vector<std::string>& argv) {
  OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result, RunCommand(argv));
  if (result.exit.ok()) return result.stdout_text;
  return absl::InternalError(
      absl::StrCat(absl::StrJoin(argv, " "), ": ", result.exit.ToString(), ": ",
                   result.stdout_text, result.stderr_text));
}

// Writes a program for each config of each task, and returns the commands of
// the tasks. TuneHere splits them at spaces, so no word has one.
absl::StatusOr<std::vector<std::string>> MakeWorkload(
    const std::string& folder) {
  std::string space = "knob { name: \"x\" ints: [0";
  for (int x = 1; x < kConfigs; ++x) absl::StrAppend(&space, ", ", x);
  absl::StrAppend(&space, "] }\ndefault { set { knob: \"x\" int: 0 } }\n");
  const std::string space_file = JoinPath(folder, "x.space.textproto");
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(space_file, space));
  Rng rng(kSeed);
  std::vector<std::string> commands;
  for (int task = 0; task < kTasks; ++task) {
    const std::string programs = absl::StrCat(folder, "/task-", task);
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(programs));
    for (int x = 0; x < kConfigs; ++x) {
      OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
          absl::StrCat(programs, "/config-", x),
          absl::StrCat("#!/bin/sh\nsleep ", absl::ToDoubleSeconds(kAnswerTime),
                       "\necho '{\"throughput\": ", 100 + rng.UniformInt(900),
                       "}'\n")));
    }
    commands.push_back(absl::StrCat(
        "tune --space=", space_file, " --command=", programs,
        "/config-{x} --metric=throughput:max --seed=", kSeed + task));
  }
  OPTRAIL_RETURN_IF_ERROR(Output({"chmod", "-R", "a+rX", folder}).status());
  OPTRAIL_RETURN_IF_ERROR(Output({"find", folder, "-name", "config-*", "-exec",
                                  "chmod", "a+x", "{}", "+"})
                              .status());
  return commands;
}

// Returns for each task the configs that were tried, in order, with their
// answers, and the winner.
absl::StatusOr<std::map<std::string, std::string>> Sessions(
    const tracker::History& history) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList listed,
                           history.ListSessions());
  std::map<std::string, std::string> sessions;
  for (const tracker::SessionInfo& info : listed.sessions) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                             history.ReadSession(info.id()));
    std::string text;
    for (const proto::Trial& trial : session.trials()) {
      absl::StrAppend(&text, tuning::CanonicalText(trial.config()), ":");
      for (const proto::MetricSamples& objective : trial.objectives()) {
        absl::StrAppend(&text, " ", absl::StrJoin(objective.values(), ","));
      }
      absl::StrAppend(&text, "\n");
    }
    absl::StrAppend(&text, "winner ", tuning::CanonicalText(session.winner()),
                    ", gain ", session.proof().gain());
    if (!sessions.emplace(session.command().command(), text).second) {
      return absl::InternalError(absl::StrCat(session.command().command(),
                                              " was tuned more than once"));
    }
  }
  return sessions;
}

class TwoSlurmPilotsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = tracker::PostgresServer::Start();
    if (absl::IsUnimplemented(server.status())) {
      GTEST_SKIP() << server.status();
    }
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto slurm = fleet::SlurmCluster::Start();
    if (absl::IsUnimplemented(slurm.status())) GTEST_SKIP() << slurm.status();
    ASSERT_TRUE(slurm.ok()) << slurm.status();
    slurm_ = *std::move(slurm);
    // Bazel's folders are closed to the user of the tasks.
    program_ = JoinPath(server_->folder(), "optrail");
    const auto copied = Output({"cp", "-L", "cli/optrail", program_});
    ASSERT_TRUE(copied.ok()) << copied.status();
    const auto commands = MakeWorkload(server_->folder() + "/workload");
    ASSERT_TRUE(commands.ok()) << commands.status();
    commands_ = *commands;
    tasks_file_ = JoinPath(server_->folder(), "tasks");
    ASSERT_TRUE(
        WriteFileAtomically(tasks_file_,
                            absl::StrCat(absl::StrJoin(commands_, "\n"), "\n"))
            .ok());
  }

  // Tunes the workload with so many pilots; returns the sessions.
  absl::StatusOr<std::map<std::string, std::string>> TuneWith(int pilots,
                                                              double* seconds) {
    const std::string database = absl::StrCat("fleet", ++databases_);
    {
      OPTRAIL_ASSIGN_OR_RETURN(const auto db, Postgres::Connect(server_->Url(
                                                  "postgres", "postgres")));
      OPTRAIL_RETURN_IF_ERROR(
          db->Execute(absl::StrCat("CREATE DATABASE ", database).c_str()));
    }
    const std::string url = server_->Url("postgres", database);
    const std::string history = "--history=" + url;
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{
             {"init"},
             {"submit", "--job_name=workload", "--tasks=" + tasks_file_},
             {"up", absl::StrCat("--pilots=", pilots),
              absl::StrCat("--sbatch=--output=", slurm_->folder(),
                           "/pilot-%j.log")}}) {
      std::vector<std::string> argv = {program_, "fleet"};
      argv.insert(argv.end(), words.begin(), words.end());
      argv.push_back(history);
      OPTRAIL_RETURN_IF_ERROR(Output(argv).status());
    }
    OPTRAIL_ASSIGN_OR_RETURN(*seconds, WaitUntilDone(url));
    OPTRAIL_ASSIGN_OR_RETURN(const tracker::History tuned,
                             tracker::History::Open(url));
    return Sessions(tuned);
  }

  // Returns the seconds from the start of the first task to the last end.
  absl::StatusOr<double> WaitUntilDone(const std::string& url) const {
    OPTRAIL_ASSIGN_OR_RETURN(const auto db, Postgres::Connect(url));
    const absl::Time until = absl::Now() + kPatience;
    while (absl::Now() < until) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const auto rows,
          db->Query("SELECT count(*) FILTER (WHERE state = 'done'), count(*) "
                    "FILTER (WHERE state = 'failed' OR attempt > 1), "
                    "extract(epoch FROM max(finished) - min(started)) "
                    "FROM optrail.tasks",
                    {}));
      if (rows[0][1] != "0") {
        OPTRAIL_ASSIGN_OR_RETURN(
            const std::string logs,
            Output({program_, "fleet", "logs", "1", "--history=" + url}));
        return absl::InternalError("a task failed: " + logs);
      }
      double seconds = 0;
      if (rows[0][0] == absl::StrCat(kTasks) &&
          absl::SimpleAtod(rows[0][2].value_or(""), &seconds)) {
        return seconds;
      }
      absl::SleepFor(absl::Milliseconds(200));
    }
    return absl::DeadlineExceededError("not all tasks were done in time");
  }

  // Without a fleet, one command after another.
  absl::StatusOr<std::map<std::string, std::string>> TuneHere() const {
    const std::string folder = JoinPath(server_->folder(), "here");
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
    for (const std::string& command : commands_) {
      std::vector<std::string> argv = absl::StrSplit(command, ' ');
      argv.insert(argv.begin(), program_);
      argv.push_back("--history=" + JoinPath(folder, "history"));
      CommandOptions options;
      options.working_directory = folder;
      OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result,
                               RunCommand(argv, options));
      if (!result.exit.ok()) return absl::InternalError(result.stderr_text);
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const tracker::History history,
        tracker::History::Open(JoinPath(folder, "history")));
    return Sessions(history);
  }

  std::unique_ptr<tracker::PostgresServer> server_;
  std::unique_ptr<fleet::SlurmCluster> slurm_;
  int databases_ = 0;
  std::string program_, tasks_file_;
  std::vector<std::string> commands_;
};

TEST_F(TwoSlurmPilotsTest, TuneAsOneMachineDoesInHalfTheTime) {
  // Other work of the machine may change meanwhile: two before and after one,
  // and the slower counts.
  double before_s = 0, one_s = 0, after_s = 0;
  const auto two = TuneWith(2, &before_s);
  ASSERT_TRUE(two.ok()) << two.status();
  const auto one = TuneWith(1, &one_s);
  ASSERT_TRUE(one.ok()) << one.status();
  const auto again = TuneWith(2, &after_s);
  ASSERT_TRUE(again.ok()) << again.status();
  const double two_s = std::max(before_s, after_s);
  std::cout << kTasks << " tasks: " << one_s << " s by one pilot, " << before_s
            << " and " << after_s << " s by two, ratio " << one_s / two_s
            << std::endl;
  EXPECT_EQ(one->size(), kTasks);
  EXPECT_EQ(*two, *one);
  EXPECT_EQ(*two, *again);
  const auto here = TuneHere();
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(*two, *here);
  EXPECT_GE(one_s / two_s, 1.8);
}

}  // namespace
}  // namespace optrail
