// Jobs and pilots over a PostgreSQL server of their own. Pilots are processes
// of this program, so that they can be killed; tasks copy records that were
// made before, so that results are known.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "fleet/evaluation/fault_run.h"
#include "fleet/fleet_command.h"
#include "fleet/pilot.h"
#include "fleet/queue.h"
#include "fleet/task_command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/testing/postgres_server.h"

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
  const auto program = PrepareTasks(Folder() + "/once", kTasks);
  ASSERT_TRUE(program.ok()) << program.status();
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", CommandsOf(0, kTasks)}).ok());
  ASSERT_EQ(setenv("PGPASSWORD", "topsecret", 1), 0);
  std::vector<pid_t> pilots;
  for (int i = 0; i < 2; ++i) pilots.push_back(StartPilot(Pilot(*program)));
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

// A gate reads what the database holds, and can neither change that nor the
// copy that it is given.
TEST_F(FleetTest, AGateGetsACopyOfTheHistoryWithoutCredentials) {
  const std::string script = Folder() + "/gate.sh";
  ASSERT_TRUE(
      WriteFileAtomically(script,
                          "for word; do case $word in --history=*) "
                          "history=${word#--history=};; esac; done\n"
                          "case $history in postgresql:*) exit 4;; esac\n"
                          "echo \"records $(find $history -name '*.pb' | wc "
                          "-l)\" cache=$OPTRAIL_COMPILE_CACHE\n"
                          "touch $history/forged && exit 5\n"
                          "exit 1\n")
          .ok());
  ASSERT_EQ(std::system(absl::StrCat("chmod a+r ", script).c_str()), 0);
  const auto program = PrepareTasks(Folder() + "/measured", 3);
  ASSERT_TRUE(program.ok()) << program.status();
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"measured", CommandsOf(0, 3)}).ok());
  std::ostringstream log;
  ASSERT_TRUE(RunPilot(Pilot(*program), log).ok());
  ASSERT_EQ(setenv("OPTRAIL_COMPILE_CACHE", "/shared", 1), 0);
  // The second one is after a record was removed: that is gone from the copy.
  const PilotOptions judging = Pilot({"sh", script});
  for (const int records : {3, 2}) {
    const int64_t job =
        *queue.Submit({"gate", {"gate --candidate=commit:abc"}});
    const auto report = RunPilot(judging, log);
    ASSERT_TRUE(report.ok()) << report.status();
    if (geteuid() == 0) {
      EXPECT_EQ(report->done, 1) << *queue.Logs(job);
    }
    EXPECT_THAT(*queue.Logs(job),
                HasSubstr(absl::StrCat("records ", records, " cache=/shared")));
    Sql("DELETE FROM optrail.runs WHERE path = (SELECT min(path) FROM "
        "optrail.runs)");
    Sql("DELETE FROM optrail.records WHERE id = (SELECT min(id) FROM "
        "optrail.records)");
  }
  ASSERT_EQ(unsetenv("OPTRAIL_COMPILE_CACHE"), 0);
  EXPECT_TRUE(ListDirectory(judging.folder)->empty());
}

TEST_F(FleetTest, AWatchRunsInACloneThatItsUserOwns) {
  const std::string repository = Folder() + "/repository";
  const std::string script = Folder() + "/watch.sh";
  ASSERT_EQ(std::system(
                absl::StrCat("git init -q ", repository, " && cd ", repository,
                             " && git -c user.name=a -c user.email=a@b commit "
                             "-q --allow-empty -m 'the subject'")
                    .c_str()),
            0);
  ASSERT_TRUE(WriteFileAtomically(script,
                                  "git log -1 --format=%s || exit 4\n"
                                  "touch built || exit 5\n"
                                  "touch ../../planted && exit 6\n"
                                  "echo words $# cache=$OPTRAIL_COMPILE_CACHE "
                                  "is hidden\n")
                  .ok());
  ASSERT_EQ(std::system(absl::StrCat("chmod a+r ", script).c_str()), 0);
  JobQueue queue = Open();
  const int64_t job = *queue.Submit({"watch", {"watch HEAD --run='a b'"}});
  PilotOptions options = Pilot({"sh", script});
  std::ostringstream log;
  // A pilot without a repository takes no such task, and no attempt of it.
  ASSERT_TRUE(RunPilot(options, log).ok());
  EXPECT_EQ(One("SELECT state || attempt FROM optrail.tasks"), "queued0");
  options.repository = repository;
  ASSERT_EQ(setenv("OPTRAIL_COMPILE_CACHE", "/shared", 1), 0);
  const auto report = RunPilot(options, log);
  ASSERT_EQ(unsetenv("OPTRAIL_COMPILE_CACHE"), 0);
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string logs = *queue.Logs(job);
  if (geteuid() == 0) {
    EXPECT_EQ(report->done, 1) << logs;
    EXPECT_THAT(logs, HasSubstr("the subject\n"));
    EXPECT_THAT(logs, HasSubstr("words 4 cache= is hidden\n"));
  }
}

TEST_F(FleetTest, NothingInPlaceOfATasksHistoryEndsThePilot) {
  const std::string script = Folder() + "/forge.sh";
  JobQueue queue = Open();
  JobRequest request = {"forged", {"bench a"}};
  request.most_attempts = 1;
  for (const char* forgery :
       {"touch $HOME/history", "ln -s history $HOME/history",
        "ln -s /dev/zero $HOME/history", "mkdir -m 0 $HOME/history"}) {
    ASSERT_TRUE(WriteFileAtomically(script, absl::StrCat(forgery, "\n")).ok());
    ASSERT_EQ(std::system(absl::StrCat("chmod a+r ", script).c_str()), 0);
    ASSERT_TRUE(queue.Submit(request).ok());
    const PilotOptions options = Pilot({"sh", script});
    std::ostringstream log;
    const auto report = RunPilot(options, log);
    ASSERT_TRUE(report.ok()) << forgery << ": " << report.status();
    EXPECT_EQ(report->done + report->failed, 1) << forgery;
    EXPECT_TRUE(ListDirectory(options.folder)->empty()) << forgery;
  }
}

TEST_F(FleetTest, ACopyThatHangsOrFailsFailsItsTaskAlone) {
  JobQueue queue = Open();
  JobRequest request = {"gate", {"gate"}};
  request.most_attempts = 1;
  request.time_limit = absl::Seconds(1);
  const PilotOptions options = Pilot({"true"});
  const auto logs_of_failure = [&] {
    const int64_t job = *queue.Submit(request);
    std::ostringstream log;
    const auto report = RunPilot(options, log);
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(queue.Status()->jobs[0].failed, 1);
    EXPECT_TRUE(ListDirectory(options.folder)->empty());
    return *queue.Logs(job);
  };
  {
    const auto db = *Postgres::Connect(url_);
    ASSERT_TRUE(db->Execute("BEGIN; LOCK TABLE optrail.records").ok());
    EXPECT_THAT(logs_of_failure(), HasSubstr("after the task's time"));
  }
  Sql("ALTER TABLE optrail.records RENAME TO gone");
  EXPECT_THAT(logs_of_failure(), HasSubstr("cannot be copied"));
}

TEST_F(FleetTest, KilledPilotsAndServersLoseNothingAndDoubleNothing) {
  // This seed draws every kind of fault.
  FaultOptions options;
  options.seed = 2;
  options.faults = 14;
  const auto report = RunWithFaults(*server_, url_, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->Problem(), "");
  EXPECT_GT(report->pilots_killed, 0);
  EXPECT_GT(report->pilots_frozen, 0);
  EXPECT_GT(report->servers_killed, 0);
  EXPECT_GT(report->submitters_killed, 0);
  EXPECT_GT(report->stalls, 0);
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

// A run of one result with a value and one without, begun so long ago.
std::string AddRunSql(int run, const std::string& ago) {
  return absl::StrCat(
      "INSERT INTO optrail.runs (path, result_count, started_unix_ns, "
      "commit_id, header) VALUES ('run",
      run, "', 2, 1e9 * extract(epoch FROM now() - interval '", ago,
      "'), 'c', ''); INSERT INTO optrail.observations (series, run, "
      "ordinal, attributes, value, outcome, bytes) SELECT 1, run, n, 1, "
      "CASE n WHEN 0 THEN 5 END, (ARRAY[1, 10, 5])[n + 1], '' FROM "
      "optrail.runs, generate_series(0, 2) n "
      "WHERE path = 'run",
      run, "'");
}

TEST_F(FleetTest, CountsTheMeasurementsOfTheLastHour) {
  JobQueue queue = Open();
  EXPECT_THAT(
      OpenMetricsText(*queue.Status()),
      HasSubstr("optrail_fleet_measurements_last_hour{value=\"no\"} 0"));
  Sql(AddRunSql(1, "2 hours"));
  Sql(AddRunSql(2, "10 minutes"));
  // Recorded late.
  Sql(AddRunSql(3, "3 hours"));
  Sql(AddRunSql(4, "20 minutes"));
  const FleetStatus status = *queue.Status();
  EXPECT_EQ(status.measured_last_hour, 2);
  EXPECT_EQ(status.without_value_last_hour, 4);
  EXPECT_EQ(status.disturbed_last_hour, 2);
  Sql("INSERT INTO optrail.judgements VALUES (1, 'slower', '[]')");
  const std::string text = OpenMetricsText(*queue.Status());
  EXPECT_THAT(text, HasSubstr("\noptrail_fleet_disturbed_share 0.333"));
  EXPECT_THAT(text, HasSubstr("optrail_fleet_verdicts{verdict=\"slower\"} 1"));
  EXPECT_THAT(
      text, HasSubstr("optrail_fleet_measurements_last_hour{value=\"yes\"} 2"));
  EXPECT_THAT(
      text, HasSubstr("optrail_fleet_measurements_last_hour{value=\"no\"} 4"));
}

// Every statement of Grafana's dashboard, with its macros filled in.
TEST_F(FleetTest, TheDatabaseAnswersTheDashboard) {
  Sql(AddRunSql(1, "10 minutes"));
  const auto text = ReadFile("fleet/grafana_dashboard.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const nlohmann::json dashboard = nlohmann::json::parse(*text);
  std::vector<std::string> statements;
  for (const auto& each : dashboard["templating"]["list"]) {
    if (each["type"] == "query") statements.push_back(each["query"]);
  }
  for (const auto& each : dashboard["annotations"]["list"]) {
    statements.push_back(each["rawQuery"]);
  }
  for (const auto& panel : dashboard["panels"]) {
    for (const auto& target : panel["targets"]) {
      statements.push_back(target["rawSql"]);
    }
  }
  EXPECT_EQ(statements.size(), 10);
  for (std::string& statement : statements) {
    RE2::GlobalReplace(&statement, R"(\$__unixEpochNanoFilter\((\w+)\))",
                       R"(\1 BETWEEN 0 AND 9e18)");
    RE2::GlobalReplace(&statement, R"(\$__timeFilter\((\w+)\))",
                       R"(\1 BETWEEN '2020-01-01' AND now())");
    const auto rows = (*Postgres::Connect(url_))->Query(statement, {});
    EXPECT_TRUE(rows.ok()) << statement << ": " << rows.status();
  }
}

TEST(PerCommitTest, AWatchIsOneTaskPerCommit) {
  EXPECT_THAT(*PerCommit({" watch --run='./bench -x'"}, {"c2", "c1"}),
              testing::ElementsAre("watch c2 --limit=1 --run='./bench -x'",
                                   "watch c1 --limit=1 --run='./bench -x'"));
  for (const char* bad :
       {"bench --op=add", "watch v1..v2", "watch --limit=3"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(PerCommit({bad}, {"c"}).status()))
        << bad;
  }
}

TEST_F(FleetTest, TheDatabaseRefusesWhatAForksRoleTriesWithTheQueue) {
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a", "bench b"}}).ok());
  const Task task = **queue.Claim(Named("p"));
  ASSERT_TRUE(queue.Finish(task, {true, 0, "a log"}, {}).ok());
  Sql("DROP ROLE IF EXISTS fork_of_queue; "
      "CREATE ROLE fork_of_queue LOGIN IN ROLE optrail_reader");
  std::string url = url_;
  RE2::Replace(&url, "postgres@", "fork_of_queue@");
  const auto fork = *Postgres::Connect(url);
  ASSERT_TRUE(fork->Execute("SELECT count(*) FROM optrail.points").ok());
  for (const char* attempt :
       {"INSERT INTO optrail.jobs (name, priority) VALUES ('mine', 9)",
        "INSERT INTO optrail.tasks (job, command, priority, hardware_id, "
        "most_attempts, time_limit_s) VALUES (1, 'bench', 9, '', 1, 1)",
        "INSERT INTO optrail.attempts (task, attempt, pilot, is_result, "
        "exit_code, log) VALUES (2, 1, 'p', true, 0, '')",
        "INSERT INTO optrail.pilots (pilot, host, hardware_id) VALUES ('x', "
        "'x', 'x')",
        "INSERT INTO optrail.judgements VALUES (1, 'faster', '[]')",
        "UPDATE optrail.tasks SET state = 'cancelled'",
        "UPDATE optrail.pilots SET draining = true",
        "UPDATE optrail.judgements SET verdict = 'faster'",
        "DELETE FROM optrail.attempts", "DELETE FROM optrail.tasks",
        "DELETE FROM optrail.judgements", "TRUNCATE optrail.jobs CASCADE",
        "DROP TABLE optrail.jobs CASCADE",
        "ALTER TABLE optrail.tasks DROP COLUMN command",
        "SELECT * FROM optrail.claim_task('x', 60, '', true)",
        "SELECT optrail.finish_task(1, 1, 'p', true, 0, '')",
        "SELECT optrail.take_back_lost_tasks()",
        "CREATE OR REPLACE FUNCTION optrail.take_back_lost_tasks() RETURNS "
        "void LANGUAGE sql AS 'SELECT'",
        // The secrets of others: what they submitted, and what it printed.
        "SELECT command FROM optrail.tasks", "SELECT log FROM optrail.attempts",
        "SELECT * FROM optrail.jobs", "SELECT * FROM optrail.pilots",
        "SET ROLE optrail_pilot", "SET ROLE optrail_submitter"}) {
    (void)fork->Execute("ROLLBACK");
    ASSERT_TRUE(fork->Execute("BEGIN").ok());
    const absl::Status status = fork->Execute(attempt);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << attempt << ": " << status;
  }
  EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks"), "2");
}

TEST(BuildsCommitsTest, WatchDoesAndAGateThatRuns) {
  EXPECT_TRUE(BuildsCommits({"watch"}));
  EXPECT_TRUE(BuildsCommits({"gate", "-run=a"}));
  EXPECT_TRUE(BuildsCommits({"gate", "--build", "a"}));
  EXPECT_FALSE(BuildsCommits({"gate", "--runs=3"}));
  EXPECT_FALSE(BuildsCommits({"bench", "--run=a"}));
}

TEST(WordsOfCommandTest, TakesWordsOfCommandsThatPilotsRun) {
  EXPECT_EQ(WordsOfCommand("tune --op=softmax  --seed=1")->size(), 3);
  EXPECT_EQ(WordsOfCommand("gate --candidate=commit:abc")->size(), 2);
  EXPECT_THAT(
      *WordsOfCommand("watch --build='make -s' --run='echo \"$x\"' a''"),
      testing::ElementsAre("watch", "--build=make -s", "--run=echo \"$x\"",
                           "a"));
  for (const char* bad : {"", "report", "bench --history=/x", "bench 'a b",
                          "bench $(id)", "bench\n", "sh -c x", "gate --wait=2h",
                          "gate -wait 2h", "bench -history=/x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(WordsOfCommand(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace optrail::fleet
