// The number of pilots is kept, by a Slurm of three scripts.

#include "fleet/keep_pilots.h"

#include <sys/stat.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "fleet/testing/fleet_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Milliseconds(500);

class KeepPilotsTest : public FleetTest {
 protected:
  void SetUp() override {
    FleetTest::SetUp();
    if (IsSkipped()) return;
    std::string folder = ::testing::TempDir() + "/slurm_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    const char* const path = std::getenv("PATH");
    path_ = path == nullptr ? "" : path;
    setenv("PATH", absl::StrCat(folder_, ":", path_).c_str(), 1);
    Command("sbatch",
            "cat > script\n"
            "for word; do case $word in --comment=*) mark=${word#*=};; esac\n"
            "done\n"
            "number=$(($(cat number 2>/dev/null || echo 0) + 1))\n"
            "echo $number > number\n"
            "echo \"$number|PENDING|$mark\" >> jobs\n"
            "echo $number\n");
    Command("squeue",
            "[ \"$*\" = \"--me --noheader --format=%A|%T|%k\" ] || exit 2\n"
            "[ ! -e jobs ] || cat jobs\n");
    Command("scancel", "sed -i \"/^$1|/d\" jobs\n");
  }
  void TearDown() override {
    if (!path_.empty()) setenv("PATH", path_.c_str(), 1);
  }

  void Command(const std::string& name, const std::string& text) const {
    const std::string path = JoinPath(folder_, name);
    ASSERT_TRUE(WriteFileAtomically(
                    path, absl::StrCat("#!/bin/sh\ncd ", folder_, "\n", text))
                    .ok());
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }

  // All jobs of one state have another one now.
  void Change(const std::string& from, const std::string& to) const {
    const std::string jobs = *ReadFile(JoinPath(folder_, "jobs"));
    ASSERT_TRUE(
        WriteFileAtomically(
            JoinPath(folder_, "jobs"),
            absl::StrJoin(absl::StrSplit(jobs, absl::StrCat("|", from, "|")),
                          absl::StrCat("|", to, "|")))
            .ok());
  }
  void StartJobs() const { Change("PENDING", "RUNNING"); }
  void EndJob(const std::string& job) const {
    ASSERT_EQ(
        std::system(
            absl::StrCat("sed -i '/^", job, "|/d' ", folder_, "/jobs").c_str()),
        0);
  }

  std::vector<std::string> Jobs() const {
    std::vector<std::string> jobs;
    for (const absl::string_view line :
         absl::StrSplit(ReadFile(JoinPath(folder_, "jobs")).value_or(""), '\n',
                        absl::SkipEmpty())) {
      jobs.emplace_back(line.substr(0, line.rfind('|')));
    }
    return jobs;
  }

  static PilotsToKeep Two() {
    return {2, {"--partition=cpu"}, {"optrail", "fleet", "pilot"}, Named("")};
  }
  static PilotInfo PilotOf(const std::string& job) {
    PilotInfo pilot = Named("pilot of " + job);
    pilot.slurm_job = job;
    return pilot;
  }
  // Takes lost tasks back at every look.
  JobQueue OpenForKeeper() { return Open(absl::Milliseconds(4)); }

  // Looks often, for so long or until something changes, and returns that.
  static std::vector<std::string> LookFor(PilotKeeper& keeper,
                                          absl::Duration time) {
    const absl::Time until = absl::Now() + time;
    while (absl::Now() < until) {
      const auto changes = keeper.Look();
      EXPECT_TRUE(changes.ok()) << changes.status();
      if (!changes.ok() || !changes->empty()) return *changes;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return {};
  }

  // The server stays, as it does where a network or a pool of connections ends.
  void AllowConnections(bool are_allowed) const {
    const auto db =
        *tracker::Postgres::Connect(server_->Url("postgres", "postgres"));
    absl::Status changed = db->Execute(
        absl::StrCat("ALTER DATABASE ", database_, " ALLOW_CONNECTIONS ",
                     are_allowed ? "true" : "false")
            .c_str());
    if (changed.ok() && !are_allowed) {
      changed = db->Execute(
          absl::StrCat("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                       "WHERE datname = '",
                       database_, "'")
              .c_str());
    }
    ASSERT_TRUE(changed.ok()) << changed;
  }

  std::string folder_, path_;
};

TEST_F(KeepPilotsTest, ReplacesWhatEndedAndWhatRunsInSlurmAlone) {
  JobQueue queue = OpenForKeeper(), pilots = Open();
  PilotKeeper keeper(&queue, Two(), kPatience);
  EXPECT_THAT(*keeper.Look(), IsEmpty()) << "there are no tasks";
  ASSERT_TRUE(queue.Submit({"job", {"bench a", "bench b"}}).ok());
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 1", "Slurm job 2"));
  EXPECT_THAT(LookFor(keeper, 2 * kPatience), IsEmpty()) << "both may start";
  StartJobs();
  EXPECT_THAT(*keeper.Look(), IsEmpty()) << "they have just started";
  // The pilot of one takes a task. Nobody hears of the other.
  ASSERT_FALSE(*pilots.IsDraining(PilotOf("1")));
  ASSERT_TRUE(pilots.Claim(PilotOf("1"))->has_value());
  const auto changes = LookFor(keeper, absl::Seconds(20));
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_THAT(changes[0], HasSubstr("Slurm job 2 is cancelled"));
  EXPECT_EQ(changes[1], "Slurm job 3");
  EXPECT_THAT(Jobs(), ElementsAre("1|RUNNING", "3|PENDING"));
  // A job that ended is submitted again while a task waits, and not after.
  EndJob("1");
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 4"));
  ASSERT_TRUE(pilots.Claim(PilotOf("4"))->has_value());
  EndJob("3");
  EXPECT_THAT(*keeper.Look(), IsEmpty());
  EXPECT_TRUE(*queue.HasWork(Named(""))) << "it runs";
  Sql("UPDATE optrail.tasks SET state = 'done'");
  EXPECT_FALSE(*queue.HasWork(Named("")));
}

// Nobody else is there to take it back.
TEST_F(KeepPilotsTest, TheLastTaskIsTakenBackWithoutAPilot) {
  JobQueue queue = OpenForKeeper(), pilots = Open();
  PilotsToKeep one = Two();
  one.count = 1;
  PilotKeeper keeper(&queue, one, absl::Minutes(1));
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 1"));
  StartJobs();
  ASSERT_TRUE(pilots.Claim(PilotOf("1"))->has_value());
  EndJob("1");
  EXPECT_THAT(*keeper.Look(), IsEmpty()) << "its lease has not ended";
  Sql("UPDATE optrail.tasks SET lease_until = now() - interval '1s'");
  EXPECT_THAT(LookFor(keeper, absl::Seconds(20)), ElementsAre("Slurm job 2"));
  // A task that nobody begins before its deadline has failed.
  EXPECT_TRUE(*queue.HasWork(Named("")));
  Sql("UPDATE optrail.tasks SET deadline = now() - interval '1s'");
  EXPECT_FALSE(*queue.HasWork(Named("")));
  EXPECT_THAT(LookFor(keeper, absl::Milliseconds(50)), IsEmpty());
  EXPECT_EQ(One("SELECT state FROM optrail.tasks"), "failed");
}

TEST_F(KeepPilotsTest, SilenceTellsNothingAfterTheDatabaseWasAway) {
  JobQueue queue = OpenForKeeper();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  PilotKeeper keeper(&queue, Two(), kPatience);
  ASSERT_THAT(*keeper.Look(), SizeIs(2));
  StartJobs();
  const absl::Time until = absl::Now() + 2 * kPatience;
  while (absl::Now() < until) {
    for (const char* job : {"1", "2"}) {
      ASSERT_TRUE(queue.IsDraining(PilotOf(job)).ok());
    }
    EXPECT_THAT(*keeper.Look(), IsEmpty());
    absl::SleepFor(absl::Milliseconds(20));
  }
  AllowConnections(false);
  EXPECT_TRUE(absl::IsUnavailable(keeper.Look().status()));
  absl::SleepFor(2 * kPatience);
  AllowConnections(true);
  // It is the first to come back.
  EXPECT_THAT(*keeper.Look(), IsEmpty());
  // Nor does it after a pause of the keeper, which may not have seen why.
  absl::SleepFor(2 * kPatience);
  EXPECT_THAT(*keeper.Look(), IsEmpty());
  EXPECT_THAT(Jobs(), ElementsAre("1|RUNNING", "2|RUNNING"));
  EXPECT_THAT(LookFor(keeper, absl::Seconds(20)), SizeIs(4));
}

TEST_F(KeepPilotsTest, WaitsWhereJobsEndBeforeTheirPilotsAreHeardOf) {
  JobQueue queue = OpenForKeeper();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  PilotKeeper keeper(&queue, Two(), kPatience);
  Command("squeue", "exit 0\n");
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 1", "Slurm job 2"));
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 3", "Slurm job 4"));
  EXPECT_THAT(*keeper.Look(), ElementsAre(HasSubstr("the last 4 jobs ended")));
  EXPECT_THAT(LookFor(keeper, kPatience / 2), IsEmpty());
  EXPECT_THAT(LookFor(keeper, absl::Seconds(20)),
              ElementsAre("Slurm job 5", "Slurm job 6"));
  const auto longer = keeper.Look();
  ASSERT_THAT(*longer, ElementsAre(HasSubstr("the last 6 jobs ended")));
  EXPECT_THAT((*longer)[0], HasSubstr(absl::StrCat(
                                "for ", absl::FormatDuration(2 * kPatience))));
  EXPECT_THAT(LookFor(keeper, absl::Seconds(20)),
              ElementsAre("Slurm job 7", "Slurm job 8"));
  // One that was heard of ends the wait.
  ASSERT_TRUE(queue.IsDraining(PilotOf("8")).ok());
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 9", "Slurm job 10"));
}

TEST_F(KeepPilotsTest, WhatCannotBeCancelledEndsNothing) {
  JobQueue queue = OpenForKeeper();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  PilotKeeper keeper(&queue, Two(), kPatience);
  ASSERT_THAT(*keeper.Look(), SizeIs(2));
  StartJobs();
  Command("scancel",
          "[ $1 = 2 ] && exit 0\n"
          "echo 'scancel: error: Invalid job id specified' >&2\nexit 1\n");
  const auto changes = LookFor(keeper, absl::Seconds(20));
  EXPECT_THAT(changes, ElementsAre(HasSubstr("Invalid job id"),
                                   HasSubstr("Slurm job 2 is cancelled"),
                                   "Slurm job 3"));
  // Job 2 stays listed until its node answers, and is not cancelled again.
  EXPECT_THAT(*keeper.Look(), IsEmpty());
  EndJob("1");
  Change("RUNNING", "COMPLETING");
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 4"));
  EXPECT_THAT(LookFor(keeper, 2 * kPatience), IsEmpty());
  // Slurm forgot that.
  Change("COMPLETING", "RUNNING");
  EXPECT_THAT(LookFor(keeper, absl::Seconds(20)),
              ElementsAre(HasSubstr("Slurm job 2 is cancelled")));
}

TEST_F(KeepPilotsTest, AJobThatIsRequeuedWhileItCompletesIsThere) {
  JobQueue queue = OpenForKeeper();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  PilotKeeper keeper(&queue, Two(), absl::Minutes(1));
  ASSERT_THAT(*keeper.Look(), SizeIs(2));
  Change("PENDING", "COMPLETING");
  EXPECT_THAT(*keeper.Look(), IsEmpty());
  Change("COMPLETING", "NODE_FAIL");
  EXPECT_THAT(*keeper.Look(), SizeIs(2));
}

// `optrail fleet up --keep` runs this.
TEST_F(KeepPilotsTest, StaysUntilAllTasksAreDone) {
  JobQueue pilots = Open();
  ASSERT_TRUE(pilots.Submit({"job", {"bench a"}}).ok());
  PilotsToKeep one = Two();
  one.count = 1;
  std::ostringstream out, log;
  absl::Status ended;
  std::thread keeps([&] {
    JobQueue queue = OpenForKeeper();
    ended = KeepPilots(queue, {one}, {absl::Minutes(1), absl::Milliseconds(20)},
                       out, log);
  });
  const auto wait_for = [&](const std::string& job) {
    const absl::Time until = absl::Now() + absl::Seconds(30);
    while (absl::Now() < until && Jobs() != std::vector<std::string>{job}) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_THAT(Jobs(), ElementsAre(job));
  };
  // The pilot is killed, and the database goes away for a moment.
  wait_for("1|PENDING");
  EXPECT_TRUE(pilots.Claim(PilotOf("1"))->has_value());
  EndJob("1");
  AllowConnections(false);
  absl::SleepFor(absl::Milliseconds(300));
  AllowConnections(true);
  Sql("UPDATE optrail.tasks SET lease_until = now() - interval '1s'");
  wait_for("2|PENDING");
  const auto task = pilots.Claim(PilotOf("2"));
  EXPECT_TRUE(task.ok() && task->has_value()) << task.status();
  if (task.ok() && task->has_value()) {
    EXPECT_TRUE(pilots.Finish(**task, {true, 0, ""}, {}).ok());
  }
  Sql("UPDATE optrail.tasks SET state = 'done'");
  keeps.join();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(out.str(), "Slurm job 1 on hw\nSlurm job 2 on hw\n");
  EXPECT_THAT(log.str(), HasSubstr("; trying again"));
}

TEST_F(KeepPilotsTest, RefusesOptionsThatHideItsJobs) {
  JobQueue queue = Open();
  for (const char* option : {"--array=0-3", "--arr=0-3", "-a0-3", "-M",
                             "--clusters=other", "--comment=mine"}) {
    PilotsToKeep pilots = Two();
    pilots.options.emplace_back(option);
    std::ostringstream out;
    const absl::Status status = KeepPilots(queue, {pilots}, {}, out, out);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << option << status;
    EXPECT_THAT(status.message(), HasSubstr(option));
  }
  EXPECT_TRUE(CheckOptionsToKeep({"--job-name=mine", "-J", "mine", "-Aml",
                                  "--account=ml", "--constraint=a100"})
                  .ok());
}

TEST_F(KeepPilotsTest, JobsOfOtherWordsAreNotItsOwn) {
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  PilotKeeper keeper(&queue, Two(), absl::Minutes(1));
  PilotsToKeep gpu = Two();
  gpu.options = {"--partition=gpu"};
  PilotKeeper other(&queue, gpu, absl::Minutes(1));
  EXPECT_THAT(*keeper.Look(), SizeIs(2));
  EXPECT_THAT(*other.Look(), SizeIs(2));
  EXPECT_THAT(*PilotKeeper(&queue, Two(), absl::Minutes(1)).Look(), IsEmpty());
}

TEST_F(KeepPilotsTest, SaysWhereSlurmIsAway) {
  JobQueue queue = Open();
  Command("squeue",
          "echo 'slurm_load_jobs error: Unable to contact slurm controller "
          "(connect failure)' >&2\nexit 1\n");
  EXPECT_TRUE(absl::IsUnavailable(
      PilotKeeper(&queue, Two(), absl::Minutes(1)).Look().status()));
  Command("squeue", "echo 'squeue: error: no such option' >&2\nexit 1\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      PilotKeeper(&queue, Two(), absl::Minutes(1)).Look().status()));
}

}  // namespace
}  // namespace optrail::fleet
