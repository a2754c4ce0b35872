// The number of pilots is kept, by a Slurm of three scripts.

#include "fleet/keep_pilots.h"

#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "fleet/testing/fleet_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
            "echo \"$number|PD|$mark\" >> jobs\n"
            "echo $number\n");
    Command("squeue", "[ ! -e jobs ] || cat jobs\n");
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

  // Slurm starts all jobs that wait.
  void StartJobs() const {
    const std::string jobs = *ReadFile(JoinPath(folder_, "jobs"));
    ASSERT_TRUE(
        WriteFileAtomically(JoinPath(folder_, "jobs"),
                            absl::StrJoin(absl::StrSplit(jobs, "|PD|"), "|R|"))
            .ok());
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

  std::string folder_, path_;
};

TEST_F(KeepPilotsTest, ReplacesWhatEndedAndWhatRunsInSlurmAlone) {
  JobQueue queue = Open();
  PilotKeeper keeper(&queue, Two(), absl::Milliseconds(1));
  EXPECT_THAT(*keeper.Look(), IsEmpty()) << "there are no tasks";
  ASSERT_TRUE(queue.Submit({"job", {"bench a", "bench b"}}).ok());
  EXPECT_THAT(*keeper.Look(), ElementsAre("Slurm job 1", "Slurm job 2"));
  EXPECT_THAT(*keeper.Look(), IsEmpty()) << "both may still start";
  StartJobs();
  EXPECT_THAT(*keeper.Look(), IsEmpty()) << "they have just started";
  // The pilot of one takes a task. Nobody hears of the other.
  PilotInfo pilot = Named("p");
  pilot.slurm_job = "1";
  ASSERT_TRUE(queue.IsDraining(pilot).ok());
  const auto task = queue.Claim(pilot);
  ASSERT_TRUE(task.ok() && task->has_value());
  const auto changes = keeper.Look();
  ASSERT_TRUE(changes.ok()) << changes.status();
  ASSERT_THAT(*changes, SizeIs(2));
  EXPECT_THAT((*changes)[0], HasSubstr("Slurm job 2 is cancelled"));
  EXPECT_EQ((*changes)[1], "Slurm job 3");
  EXPECT_THAT(Jobs(), ElementsAre("1|R", "3|PD"));
  // A job that ended is submitted again while a task waits, and not after.
  Command("squeue", "exit 0\n");
  EXPECT_THAT(*keeper.Look(), SizeIs(2));
  ASSERT_TRUE(queue.Claim(pilot)->has_value());
  EXPECT_THAT(*keeper.Look(), IsEmpty());
  EXPECT_TRUE(*queue.HasWork(pilot)) << "it runs";
  Sql("UPDATE optrail.tasks SET state = 'done'");
  EXPECT_FALSE(*queue.HasWork(pilot));
}

TEST_F(KeepPilotsTest, SilenceTellsNothingOfAServerThatHasJustStarted) {
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  PilotKeeper keeper(&queue, Two(), absl::Hours(1));
  EXPECT_FALSE(queue.HeardOf(absl::Hours(1))->is_complete);
  ASSERT_TRUE(keeper.Look().ok());
  StartJobs();
  EXPECT_THAT(*keeper.Look(), IsEmpty());
  EXPECT_THAT(Jobs(), ElementsAre("1|R", "2|R"));
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
