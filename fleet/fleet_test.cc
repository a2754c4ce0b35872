// Jobs and pilots over a PostgreSQL server of their own. Pilots are processes
// of this program, so that they can be killed; tasks copy records that were
// made before, so that results are known.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "fleet/pilot.h"
#include "fleet/queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/postgres_server.h"

namespace optrail::fleet {
namespace {

using ::testing::HasSubstr;
using tracker::Postgres;
using tracker::PostgresServer;

class FleetTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = PostgresServer::Start();
    if (started.ok()) {
      server_ = started->release();
    } else {
      why_not_ = new absl::Status(started.status());
    }
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  void SetUp() override {
    if (server_ == nullptr) {
      if (absl::IsUnimplemented(*why_not_)) GTEST_SKIP() << *why_not_;
      FAIL() << *why_not_;
    }
    const std::string database = absl::StrCat("fleet", ++databases_);
    ASSERT_TRUE(
        (*Postgres::Connect(server_->Url("postgres", "postgres")))
            ->Execute(absl::StrCat("CREATE DATABASE ", database).c_str())
            .ok());
    url_ = server_->Url("postgres", database);
    const absl::Status ready = InitFleet(url_);
    ASSERT_TRUE(ready.ok()) << ready;
  }

  JobQueue Open(absl::Duration lease = absl::Seconds(60)) {
    auto queue = JobQueue::Open(url_, lease);
    EXPECT_TRUE(queue.ok()) << queue.status();
    return *std::move(queue);
  }
  static PilotInfo Named(const std::string& id) {
    return {id, "host", "hw", ""};
  }
  void Sql(const std::string& sql) {
    const absl::Status status =
        (*Postgres::Connect(url_))->Execute(sql.c_str());
    EXPECT_TRUE(status.ok()) << status;
  }
  std::string One(const std::string& sql) {
    const auto rows = (*Postgres::Connect(url_))->Query(sql, {});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && !rows->empty() ? (*rows)[0][0].value_or("NULL") : "";
  }

  // A folder that others may read, gone with the server's.
  std::string Folder() const { return server_->folder(); }

  // A history for each of `count` tasks, and a program which copies the one
  // that its first flag names to where --history says.
  std::vector<std::string> PrepareTasks(int count) {
    const std::string prepared =
        absl::StrCat(Folder(), "/prepared", databases_);
    tracker::GenerateOptions options;
    options.benchmarks = 2;
    options.hardware = 1;
    options.commits = count;
    int next = 0;
    EXPECT_TRUE(tracker::GenerateRuns(options, [&](proto::Run run) {
                  const auto history = tracker::History::Open(
                      absl::StrCat(prepared, "/", next++));
                  return history->AppendRun(run);
                }).ok());
    const std::string script = absl::StrCat(prepared, "/copy.sh");
    EXPECT_TRUE(
        WriteFileAtomically(
            script, absl::StrCat("env; id -u; sleep 0.05\n"
                                 "from=${2#--suite=}\n"
                                 "for a in \"$@\"; do case $a in\n"
                                 "--history=*) to=${a#*=};; esac; done\n"
                                 "cp -r ",
                                 prepared, "/$from \"$to\"\n"))
            .ok());
    EXPECT_EQ(std::system(absl::StrCat("chmod -R a+rX ", prepared).c_str()), 0);
    return {"sh", script};
  }
  static std::vector<std::string> Commands(int count) {
    std::vector<std::string> commands;
    for (int i = 0; i < count; ++i) {
      commands.push_back(absl::StrCat("bench --suite=", i));
    }
    return commands;
  }

  PilotOptions Pilot(const std::vector<std::string>& program) {
    PilotOptions options;
    options.url = url_;
    options.info = Named("");
    options.run_as = "nobody";
    options.folder = absl::StrCat(Folder(), "/pilot", ++pilots_);
    options.program = program;
    options.poll = absl::Milliseconds(50);
    options.lease = absl::Seconds(2);
    options.until_idle = true;
    return options;
  }
  // In a process of its own.
  static pid_t StartPilot(const PilotOptions& options) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    std::ostringstream log;
    const auto report = RunPilot(options, log);
    if (!report.ok()) std::cerr << report.status() << "\n";
    _exit(report.ok() ? 0 : 1);
  }

  static PostgresServer* server_;
  static const absl::Status* why_not_;
  static int databases_, pilots_;
  std::string url_;
};

PostgresServer* FleetTest::server_ = nullptr;
const absl::Status* FleetTest::why_not_ = nullptr;
int FleetTest::databases_ = 0;
int FleetTest::pilots_ = 0;

TEST_F(FleetTest, TasksGoByPriorityAndHardwareToOnePilotEach) {
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"low", {"bench a", "bench b"}}).ok());
  JobRequest urgent = {"urgent", {"bench c"}};
  urgent.priority = 5;
  ASSERT_TRUE(queue.Submit(urgent).ok());
  JobRequest other = {"other", {"bench d"}};
  other.priority = 9;
  other.hardware_id = "another";
  ASSERT_TRUE(queue.Submit(other).ok());
  std::vector<std::string> order;
  while (true) {
    const auto task = queue.Claim(Named("p"));
    ASSERT_TRUE(task.ok()) << task.status();
    if (!task->has_value()) break;
    order.push_back((*task)->command);
  }
  EXPECT_THAT(order, testing::ElementsAre("bench c", "bench a", "bench b"));
}

TEST_F(FleetTest, APilotThatWakesUpLateCannotWriteOverItsSuccessor) {
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  const Task frozen = **queue.Claim(Named("frozen"));
  Sql("UPDATE optrail.tasks SET lease_until = now() - interval '1s'");
  JobQueue other = Open();
  const Task successor = **other.Claim(Named("successor"));
  EXPECT_EQ(successor.task, frozen.task);
  EXPECT_EQ(successor.attempt, 2);
  EXPECT_FALSE(*queue.KeepAlive(frozen));
  // The records of the frozen pilot are not kept either.
  const std::vector<tracker::PlacedRecord> records = {
      {"triage", "20260101T000000Z-1", "x"}};
  EXPECT_TRUE(absl::IsAborted(queue.Finish(frozen, {true, 0, "old"}, records)));
  EXPECT_EQ(One("SELECT count(*) FROM optrail.records"), "0");
  EXPECT_TRUE(other.Finish(successor, {true, 0, "new"}, records).ok());
  EXPECT_EQ(One("SELECT count(*) FROM optrail.records"), "1");
  // Said twice, since the answer was lost, it counts once.
  EXPECT_TRUE(other.Finish(successor, {true, 0, "new"}, records).ok());
  EXPECT_EQ(One("SELECT count(*) FROM optrail.attempts"), "1");
  EXPECT_THAT(*queue.Logs(1), HasSubstr("new"));
}

TEST_F(FleetTest, AttemptsEndAndDeadlinesPass) {
  JobQueue queue = Open();
  JobRequest request = {"job", {"bench a"}};
  request.most_attempts = 2;
  const int64_t job = *queue.Submit(request);
  for (int i = 0; i < 2; ++i) {
    const Task task = **queue.Claim(Named("p"));
    ASSERT_TRUE(queue.Finish(task, {false, 139, "crashed"}, {}).ok());
  }
  EXPECT_FALSE(queue.Claim(Named("p"))->has_value());
  EXPECT_EQ(queue.Status()->jobs[0].failed, 1);
  EXPECT_EQ(*queue.Cancel(job), 0);
  EXPECT_TRUE(absl::IsNotFound(queue.Cancel(99).status()));

  JobRequest late = {"late", {"bench b"}};
  late.deadline = absl::Seconds(-1);
  ASSERT_TRUE(queue.Submit(late).ok());
  JobQueue fresh = Open();
  EXPECT_FALSE(fresh.Claim(Named("p"))->has_value());
  EXPECT_EQ(fresh.Status()->jobs[0].failed, 1);
}

TEST_F(FleetTest, PilotsRunAllTasksOnceAndShowThemNoCredentials) {
  constexpr int kTasks = 12;
  const std::vector<std::string> program = PrepareTasks(kTasks);
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", Commands(kTasks)}).ok());
  ASSERT_EQ(setenv("PGPASSWORD", "topsecret", 1), 0);
  std::vector<pid_t> pilots;
  for (int i = 0; i < 2; ++i) pilots.push_back(StartPilot(Pilot(program)));
  for (const pid_t pilot : pilots) {
    int status = 0;
    ASSERT_EQ(waitpid(pilot, &status, 0), pilot);
    EXPECT_EQ(status, 0);
  }
  ASSERT_EQ(unsetenv("PGPASSWORD"), 0);
  EXPECT_EQ(queue.Status()->jobs[0].done, kTasks);
  EXPECT_EQ(One("SELECT count(*) FROM optrail.runs"), absl::StrCat(kTasks));
  const std::string logs = *queue.Logs(1);
  EXPECT_THAT(logs, HasSubstr("HOME="));
  EXPECT_THAT(logs, testing::Not(HasSubstr("topsecret")));
  EXPECT_THAT(logs, testing::Not(HasSubstr("postgresql:")));
  if (geteuid() == 0) {
    EXPECT_THAT(logs, testing::Not(HasSubstr("\n0\n")));
  }
}

TEST_F(FleetTest, KilledPilotsAndServersLoseNothingAndDoubleNothing) {
  constexpr int kTasks = 30, kKills = 12;
  const std::vector<std::string> program = PrepareTasks(kTasks);
  JobQueue queue = Open();
  JobRequest request = {"job", Commands(kTasks)};
  request.most_attempts = 100;
  ASSERT_TRUE(queue.Submit(request).ok());
  std::vector<pid_t> pilots;
  PilotOptions options = Pilot(program);
  options.lease = absl::Seconds(1);
  options.until_idle = false;
  for (int i = 0; i < 3; ++i) {
    options.folder += "x";
    pilots.push_back(StartPilot(options));
  }
  uint64_t seed = 1;
  for (int kill_count = 0; kill_count < kKills; ++kill_count) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    absl::SleepFor(absl::Milliseconds(50 + (seed >> 33) % 400));
    pid_t& victim = pilots[(seed >> 20) % pilots.size()];
    kill(victim, SIGKILL);
    waitpid(victim, nullptr, 0);
    if (kill_count == kKills / 2) {
      ASSERT_TRUE(server_->Kill().ok());
      const absl::Status again = server_->Run();
      ASSERT_TRUE(again.ok()) << again;
    }
    options.folder += "x";
    victim = StartPilot(options);
  }
  const absl::Time until = absl::Now() + absl::Seconds(60);
  while (absl::Now() < until) {
    const auto status = queue.Status();
    if (status.ok() && status->jobs[0].done == kTasks) break;
    // One that met the dead server has ended; Slurm would start it again.
    for (pid_t& pilot : pilots) {
      if (waitpid(pilot, nullptr, WNOHANG) == pilot) {
        options.folder += "x";
        pilot = StartPilot(options);
      }
    }
    absl::SleepFor(absl::Milliseconds(100));
  }
  for (const pid_t pilot : pilots) {
    kill(pilot, SIGTERM);
    waitpid(pilot, nullptr, 0);
  }
  EXPECT_EQ(queue.Status()->jobs[0].done, kTasks);
  EXPECT_EQ(One("SELECT count(*) FROM optrail.records"), absl::StrCat(kTasks));
  EXPECT_EQ(One("SELECT count(*) FROM optrail.runs"), absl::StrCat(kTasks));
  EXPECT_EQ(One("SELECT count(*) FROM (SELECT task FROM optrail.attempts WHERE "
                "is_result GROUP BY task HAVING count(*) > 1) x"),
            "0");
}

TEST_F(FleetTest, ACancelledTaskIsStoppedAndADrainedPilotEnds) {
  const std::string script = Folder() + "/sleep.sh";
  ASSERT_TRUE(WriteFileAtomically(script, "exec sleep 600\n").ok());
  ASSERT_EQ(std::system(absl::StrCat("chmod a+r ", script).c_str()), 0);
  JobQueue queue = Open();
  const int64_t job = *queue.Submit({"job", {"bench a"}});
  PilotOptions options = Pilot({"sh", script});
  options.until_idle = false;
  const pid_t pilot = StartPilot(options);
  while (queue.Status()->jobs[0].running == 0) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(*queue.Cancel(job), 1);
  EXPECT_EQ(*queue.Drain(""), 1);
  int status = 0;
  ASSERT_EQ(waitpid(pilot, &status, 0), pilot);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(queue.Status()->jobs[0].cancelled, 1);
}

TEST_F(FleetTest, APilotThatIsToldToEndPutsItsTaskBack) {
  const std::string script = Folder() + "/sleep.sh";
  ASSERT_TRUE(WriteFileAtomically(script, "exec sleep 600\n").ok());
  ASSERT_EQ(std::system(absl::StrCat("chmod a+r ", script).c_str()), 0);
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  const pid_t pilot = StartPilot(Pilot({"sh", script}));
  while (queue.Status()->jobs[0].running == 0) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  ASSERT_EQ(kill(pilot, SIGTERM), 0);
  ASSERT_EQ(waitpid(pilot, nullptr, 0), pilot);
  EXPECT_EQ(queue.Status()->jobs[0].queued, 1);
  EXPECT_EQ(One("SELECT attempt FROM optrail.tasks"), "0");
}

TEST(WordsOfCommandTest, TakesWordsOfCommandsThatPilotsRun) {
  EXPECT_EQ(WordsOfCommand("tune --op=softmax  --seed=1")->size(), 3);
  for (const char* bad : {"", "gate", "bench --history=/x", "bench 'a b'",
                          "bench $(id)", "bench\n", "sh -c x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(WordsOfCommand(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace optrail::fleet
