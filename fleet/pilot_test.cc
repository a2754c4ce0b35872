// Pilots over a PostgreSQL server of their own. Tasks copy records that were
// made before, so that results are known.

#include "fleet/pilot.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/process/process_guard.h"
#include "base/process/subprocess.h"
#include "fleet/evaluation/fault_run.h"
#include "fleet/evaluation/fault_tasks.h"
#include "fleet/testing/fleet_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {
namespace {

using ::testing::HasSubstr;
using tracker::Postgres;

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
  const std::string script = Script(
      "for word; do case $word in --history=*) history=${word#--history=};; "
      "esac; done\n"
      "case $history in postgresql:*) exit 4;; esac\n"
      "echo \"records $(find $history -name '*.pb' | wc -l)\" "
      "cache=$OPTRAIL_COMPILE_CACHE\n"
      "touch $history/forged && exit 5\n"
      "exit 1\n");
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
  ASSERT_EQ(std::system(
                absl::StrCat("git init -q ", repository, " && cd ", repository,
                             " && git -c user.name=a -c user.email=a@b commit "
                             "-q --allow-empty -m 'the subject'")
                    .c_str()),
            0);
  const std::string script = Script(
      "git log -1 --format=%s || exit 4\n"
      "touch built || exit 5\n"
      "touch ../../planted && exit 6\n"
      "echo words $# cache=$OPTRAIL_COMPILE_CACHE is hidden\n");
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
  JobQueue queue = Open();
  JobRequest request = {"forged", {"bench a"}};
  request.most_attempts = 1;
  for (const char* forgery :
       {"touch $HOME/history", "ln -s history $HOME/history",
        "ln -s /dev/zero $HOME/history", "mkdir -m 0 $HOME/history"}) {
    ASSERT_TRUE(queue.Submit(request).ok());
    const PilotOptions options =
        Pilot({"sh", Script(absl::StrCat(forgery, "\n"))});
    std::ostringstream log;
    const auto report = RunPilot(options, log);
    ASSERT_TRUE(report.ok()) << forgery << ": " << report.status();
    EXPECT_EQ(report->done + report->failed, 1) << forgery;
    EXPECT_TRUE(ListDirectory(options.folder)->empty()) << forgery;
  }
}

// In a session of its own it is in nobody's process group.
TEST_F(FleetTest, WhatATaskLeavesRunningEndsWithIt) {
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  const std::string left = absl::StrCat("sleep ", 1'000'000 + getpid());
  const auto is_left = [&left] {
    return RunCommand({"pgrep", "--full", "--exact", left})->exit.ok();
  };
  PilotOptions options =
      Pilot({"sh", Script(absl::StrCat("setsid ", left,
                                       " >/dev/null 2>&1 &\n"
                                       "until pgrep --full --exact '",
                                       left, "'; do :; done\n"))});
  options.guard = "/proc/self/exe";
  std::ostringstream log;
  const auto report = RunPilot(options, log);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->done, 1) << *queue.Logs(1);
  EXPECT_FALSE(is_left());
}

// On a machine without room the next task would fail, too.
TEST_F(FleetTest, AFullDiskOfAPilotsMachineEndsThePilotAndKeepsTheAttempt) {
  if (geteuid() != 0) GTEST_SKIP() << "unsupported here: mounting needs root";
  const std::string disk = Folder() + "/disk";
  ASSERT_EQ(std::system(absl::StrCat("mkdir ", disk,
                                     " && mount -t tmpfs -o "
                                     "size=64k,nr_inodes=2 tmpfs ",
                                     disk)
                            .c_str()),
            0);
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  PilotOptions options = Pilot({"true"});
  options.folder = disk;
  std::ostringstream log;
  // The second file is the pilot's folder, and there is none for the task.
  const auto report = RunPilot(options, log);
  ASSERT_EQ(std::system(("umount " + disk).c_str()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  EXPECT_EQ(One("SELECT concat(state, attempt) FROM optrail.tasks"), "queued0");
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

// The result of a task whose lease ended meanwhile counts, since nobody else
// could take it.
TEST_F(FleetTest, AFullDiskDelaysAPilotAndCostsNoAttempt) {
  Sql("CREATE FUNCTION has_no_room() RETURNS trigger LANGUAGE plpgsql AS $$ "
      "BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = "
      "'disk_full'; END $$");
  const auto fill = [&](bool is_full) {
    for (const char* table : {"tasks", "pilots", "attempts"}) {
      Sql(absl::StrCat(is_full ? "CREATE" : "DROP", " TRIGGER is_full ",
                       is_full ? "BEFORE INSERT OR UPDATE " : "", "ON optrail.",
                       table,
                       is_full ? " EXECUTE FUNCTION has_no_room()" : ""));
    }
  };
  const std::string of_task =
      "SELECT concat(state, attempt, leases_lost) FROM optrail.tasks WHERE "
      "task = ";
  const auto ends_well = [](pid_t pilot) {
    int status = 0;
    return waitpid(pilot, &status, 0) == pilot && status == 0;
  };
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  pid_t pilot = StartPilot(Pilot({"sh", Script("exec sleep 1\n")}));
  WaitFor(of_task + "1", "leased10");
  fill(true);
  WaitFor("SELECT lease_until < now() - interval '1 s' FROM optrail.tasks",
          "t");
  EXPECT_EQ(waitpid(pilot, nullptr, WNOHANG), 0) << "it waits for room";
  fill(false);
  EXPECT_TRUE(ends_well(pilot));
  EXPECT_EQ(One(of_task + "1"), "done10");

  // One that is new waits, too.
  ASSERT_TRUE(queue.Submit({"job", {"bench b"}}).ok());
  fill(true);
  pilot = StartPilot(Pilot({"true"}));
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_EQ(waitpid(pilot, nullptr, WNOHANG), 0) << "it waits for room";
  fill(false);
  EXPECT_TRUE(ends_well(pilot));
  EXPECT_EQ(One(of_task + "2"), "done10");

  // A look for lost tasks that was refused does not put off the next one.
  ASSERT_TRUE(queue.Submit({"job", {"bench c"}}).ok());
  ASSERT_TRUE(queue.Claim(Named("gone"))->has_value());
  Sql("UPDATE optrail.tasks SET lease_until = now() - interval '1 s' WHERE "
      "state = 'leased'");
  JobQueue other = Open();
  fill(true);
  const absl::Status refused = other.TakeBackLost();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("next: make room"));
  fill(false);
  EXPECT_TRUE(other.TakeBackLost().ok());
  EXPECT_EQ(One(of_task + "3"), "queued11");
}

// Only the database's clock decides: neither is a task of theirs lost or late,
// nor does their own clock keep one that somebody else left.
TEST_F(FleetTest, PilotsWithWrongClocksKeepTheirLeasesAndNoLonger) {
  JobQueue queue = Open();
  JobRequest request = {"job", {"bench a", "bench b"}};
  request.deadline = absl::Hours(1);
  ASSERT_TRUE(queue.Submit(request).ok());
  // More than two leases.
  PilotOptions working = Pilot({"sh", Script("exec sleep 13\n")});
  working.lease = absl::Seconds(6);
  const pid_t pilots[] = {StartPilot(working, absl::Hours(5)),
                          StartPilot(working, -absl::Hours(5))};
  int64_t leased = 0;
  const absl::Time until = absl::Now() + absl::Minutes(2);
  while (One("SELECT count(*) FROM optrail.tasks WHERE state IN ('queued', "
             "'leased')") != "0") {
    ASSERT_LT(absl::Now(), until) << "the tasks do not end";
    leased +=
        One("SELECT count(*) FROM optrail.tasks WHERE state = 'leased'") == "2";
    // No lease is longer, nobody was heard of in the future, and nothing is
    // hours old. On a busy machine a lease may be over for a moment, and a
    // statement's now() is older than what its snapshot holds.
    EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks WHERE state = 'leased' "
                  "AND lease_until NOT BETWEEN now() - interval '1 minute' AND "
                  "clock_timestamp() + interval '6 s'"),
              "0");
    EXPECT_EQ(One("SELECT count(*) FROM optrail.pilots WHERE seen NOT BETWEEN "
                  "now() - interval '1 minute' AND clock_timestamp()"),
              "0");
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_GT(leased, 0) << "each pilot had a task";
  for (const pid_t pilot : pilots) {
    int status = 0;
    ASSERT_EQ(waitpid(pilot, &status, 0), pilot);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(One("SELECT string_agg(concat(state, attempt, leases_lost), ' ') "
                "FROM optrail.tasks"),
            "done10 done10");

  // One that dies keeps its task until the lease's end, and one whose clock
  // says that it is long over, or not for hours, takes it back then.
  for (const absl::Duration error : {absl::Hours(5), -absl::Hours(5)}) {
    const int64_t job = *queue.Submit({"job", {"bench c"}});
    PilotOptions options = Pilot({"sh", Script("exec sleep 600\n")});
    const pid_t dead = StartPilot(options, -error);
    const std::string of_job = absl::StrCat(
        " FROM optrail.tasks WHERE job = ", job, " AND state = 'leased'");
    WaitFor("SELECT count(*)" + of_job, "1");
    ASSERT_EQ(kill(dead, SIGKILL), 0);
    ASSERT_EQ(waitpid(dead, nullptr, 0), dead);
    const std::string ends = One("SELECT lease_until" + of_job);
    options = Pilot({"true"});
    options.until_idle = false;
    const pid_t successor = StartPilot(options, error);
    WaitFor(absl::StrCat("SELECT state FROM optrail.tasks WHERE job = ", job),
            "done");
    ASSERT_EQ(kill(successor, SIGTERM), 0);
    ASSERT_EQ(waitpid(successor, nullptr, 0), successor);
    EXPECT_EQ(
        One(absl::StrCat(
            "SELECT concat(state, attempt, leases_lost, started >= '", ends,
            "', started < timestamptz '", ends,
            "' + interval '1 minute') FROM optrail.tasks WHERE job = ", job)),
        "done21tt");
  }
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
  EXPECT_GT(report->wrong_clocks, 0);
}

TEST_F(FleetTest, APilotThatIsThereFirstWaitsForTheCompilersPilot) {
  JobQueue queue = Open();
  JobRequest request = {"job", {"tune a", "tune b"}};
  request.hardware_id = "gpu";
  request.first = {{"tune a", "compile ab"}, {"tune b", "compile ab"}};
  request.first_hardware_id = "cpu";
  ASSERT_TRUE(queue.Submit(request).ok());
  PilotOptions gpu = Pilot({"true"}), cpu = Pilot({"true"});
  gpu.info.hardware_id = "gpu";
  cpu.info.hardware_id = "cpu";
  const pid_t first = StartPilot(gpu);
  WaitFor("SELECT count(*) FROM optrail.pilots", "1");
  EXPECT_EQ(queue.Status()->jobs[0].done, 0);
  const pid_t second = StartPilot(cpu);
  for (const pid_t pilot : {first, second}) {
    int status = 0;
    ASSERT_EQ(waitpid(pilot, &status, 0), pilot);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(queue.Status()->jobs[0].done, 3) << *queue.Logs(1);
  EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks t JOIN optrail.tasks first "
                "ON first.task = t.waits_for WHERE t.started >= "
                "first.finished"),
            "2");
}

TEST_F(FleetTest, ACancelledTaskIsStoppedAndADrainedPilotEnds) {
  const std::string script = Script("exec sleep 600\n");
  JobQueue queue = Open();
  const int64_t job = *queue.Submit({"job", {"bench a"}});
  PilotOptions options = Pilot({"sh", script});
  options.until_idle = false;
  const pid_t pilot = StartPilot(options);
  WaitFor("SELECT state FROM optrail.tasks", "leased");
  EXPECT_EQ(*queue.Cancel(job), 1);
  EXPECT_EQ(*queue.Drain(""), 1);
  int status = 0;
  ASSERT_EQ(waitpid(pilot, &status, 0), pilot);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(queue.Status()->jobs[0].cancelled, 1);
}

TEST_F(FleetTest, APilotThatIsToldToEndPutsItsTaskBack) {
  const std::string script = Script("exec sleep 600\n");
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  const pid_t pilot = StartPilot(Pilot({"sh", script}));
  WaitFor("SELECT state FROM optrail.tasks", "leased");
  ASSERT_EQ(kill(pilot, SIGTERM), 0);
  ASSERT_EQ(waitpid(pilot, nullptr, 0), pilot);
  EXPECT_EQ(queue.Status()->jobs[0].queued, 1);
  EXPECT_EQ(One("SELECT attempt FROM optrail.tasks"), "0");
}

}  // namespace
}  // namespace optrail::fleet

// The guard of tasks is this program, too.
int main(int argc, char** argv) {
  if (optrail::IsProcessGuard(argc, argv)) {
    return optrail::RunProcessGuard(argc, argv);
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
