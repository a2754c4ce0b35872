// The commands of docs/guide/fleet.md as people type them, against a PostgreSQL
// server of their own: a pilot of this very program measures and records.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/postgres/testing/postgres_fixture.h"

namespace optrail {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string history;

// Returns what `optrail fleet WORDS...` prints on both streams.
std::string Fleet(std::vector<std::string> words, int code = 0) {
  words.insert(words.begin(), {"cli/optrail", "fleet"});
  words.push_back("--history=" + history);
  const auto result = RunCommand(words);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return "";
  std::string text = result->stdout_text + result->stderr_text;
  EXPECT_EQ(result->exit.code, code) << words[2] << ": " << text;
  return text;
}

// A test with a database, on a server that these tests share.
class FleetTest : public tracker::PostgresTest {
 protected:
  void SetUp() override {
    tracker::PostgresTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    history = Url();
    EXPECT_THAT(Fleet({"init"}), HasSubstr("ready"));
  }

  // The path of a folder of this test that nobody has made yet.
  std::string Folder(const std::string& name) const {
    return absl::StrCat(server_->folder(), "/", database_, "_", name);
  }
};

TEST_F(FleetTest, APilotRunsWhatWasSubmittedAndRecordsIt) {
  EXPECT_THAT(Fleet({"submit", "--job_name=nightly",
                     "bench --op=relu --shape=n=64/f32 --processes=1 --record "
                     "--quiet"}),
              HasSubstr("job 1: 1 tasks"));
  EXPECT_THAT(Fleet({"submit", "bench --op=no_such_operator"}),
              HasSubstr("job 2: 1 tasks"));
  // Each operator and shape of a workload is a task.
  EXPECT_THAT(Fleet({"submit", "tune --workload=smoke --trials=2"}),
              ContainsRegex("job 3: [2-9] tasks"));
  EXPECT_THAT(Fleet({"cancel", "3"}), ContainsRegex("[1-9][0-9]* tasks"));
  EXPECT_THAT(Fleet({"submit", "tune --workload=smoke --op=add"}),
              HasSubstr("job 4: 1 tasks"));
  EXPECT_THAT(Fleet({"cancel", "4"}), HasSubstr("1 tasks"));
  // However the flags are written, and with a backend that some layers lack.
  EXPECT_THAT(Fleet({"submit", "tune --workload=smoke -op=add",
                     "tune --workload=smoke --op add",
                     "tune --workload=smoke --backend=naive"}),
              HasSubstr("job 5: 3 tasks"));
  EXPECT_THAT(Fleet({"cancel", "5"}), HasSubstr("3 tasks"));
  // Another user may not be able to read this program.
  EXPECT_THAT(Fleet({"pilot", "--until_idle", "--run_as=root"}),
              HasSubstr("1 tasks done, 3 attempts failed, 0 lost"));
  EXPECT_THAT(Fleet({"status"}), HasSubstr("nightly"));
  const std::string log = Fleet({"logs", "1"});
  EXPECT_THAT(log, HasSubstr("recorded: run"));
  EXPECT_THAT(log, Not(HasSubstr("\\n")));
  EXPECT_THAT(Fleet({"logs", "2"}), HasSubstr("no_such_operator"));
  EXPECT_THAT(Fleet({"cancel", "1"}), HasSubstr("0 tasks cancelled"));
  EXPECT_THAT(Fleet({"cancel", "7"}, 2), HasSubstr("there is no job 7"));
  EXPECT_THAT(Fleet({"submit", "report"}, 2), HasSubstr("tune, bench, watch"));
  // One run is no evidence: the gate says so, which is a result.
  EXPECT_THAT(Fleet({"submit", "gate"}), HasSubstr("job 6: 1 tasks"));
  EXPECT_THAT(Fleet({"pilot", "--until_idle", "--run_as=root"}),
              HasSubstr("1 tasks done, 0 attempts failed"));
  EXPECT_THAT(Fleet({"logs", "6"}), HasSubstr("relu"));
  const auto runs = RunCommand({"cli/optrail", "log", "--history=" + history});
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(runs->exit.code, 0) << runs->stderr_text;
  EXPECT_THAT(runs->stdout_text, HasSubstr("relu"));
}

// A repository of nine commits, of which the sixth and what follows is 10%
// slower. `bench.sh` prints what its commit takes, with a little noise.
void MakeSlowedRepository(const std::string& folder) {
  const auto made = RunCommand(
      {"sh", "-ec", absl::StrCat("git init -q ", folder, "; cd ", folder, R"sh(
cat > bench.sh <<'END'
read ns < ns
ns=$((ns + $(od -An -N1 -tu1 /dev/urandom)))
echo "{\"context\":{},\"benchmarks\":[{\"name\":\"BM_x\",\"run_name\":\"BM_x\",
\"run_type\":\"iteration\",\"repetitions\":1,\"threads\":1,\"iterations\":1,
\"real_time\":$ns,\"cpu_time\":$ns,\"time_unit\":\"ns\"}]}"
END
for i in 0 1 2 3 4 5 6 7 8; do
  ns=100000
  test $i -lt 5 || ns=110000
  echo $((ns + i)) > ns
  git add .
  git -c user.name=a -c user.email=a@b commit -q -m "commit $i"
done)sh")});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(made->exit.ok()) << made->stderr_text;
}

TEST_F(FleetTest, PilotsBisectAsOneMachineDoes) {
  const std::string repository = Folder("repository");
  MakeSlowedRepository(repository);
  const std::string program = std::filesystem::absolute("cli/optrail");
  const auto bisect = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {program,       "bisect",
                                      "HEAD~8",      "HEAD",
                                      "--quiet",     "--run=sh bench.sh",
                                      "--format=csv"};
    words.insert(words.end(), more.begin(), more.end());
    CommandOptions there;
    there.working_directory = repository;
    const auto result = RunCommand(words, there);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->exit.ok()) << result->stderr_text;
    return result->stdout_text;
  };
  EXPECT_THAT(bisect({}), ContainsRegex("yes,[^\n]*commit 5"));
  std::vector<std::unique_ptr<Subprocess>> pilots;
  for (int i = 0; i < 2; ++i) {
    auto pilot = Subprocess::Start({program, "fleet", "pilot", "--run_as=root",
                                    "--repository=" + repository,
                                    "--history=" + history});
    ASSERT_TRUE(pilot.ok()) << pilot.status();
    pilots.push_back(*std::move(pilot));
  }
  EXPECT_THAT(bisect({"--nodes=2", "--history=" + history}),
              ContainsRegex("yes,[^\n]*commit 5"));
  Fleet({"drain"});
  for (const auto& pilot : pilots) {
    EXPECT_TRUE(pilot->Wait(absl::Minutes(1)).ok());
  }
  EXPECT_THAT(Fleet({"logs", "1"}), HasSubstr("\"slower\""));
}

// In a session of its own it is in nobody's process group.
TEST_F(FleetTest, WhatATaskLeavesRunningEndsWithIt) {
  const std::string repository = Folder("repository");
  MakeSlowedRepository(repository);
  const std::string left = absl::StrCat("sleep ", 1'000'000 + getpid());
  EXPECT_THAT(
      Fleet({"submit", absl::StrCat("watch HEAD --limit=1 --processes=1 "
                                    "'--run=setsid ",
                                    left,
                                    " >/dev/null 2>&1 & echo left; sh "
                                    "bench.sh'")}),
      HasSubstr("job 1: 1 tasks"));
  EXPECT_THAT(Fleet({"pilot", "--until_idle", "--run_as=root",
                     "--repository=" + repository}),
              HasSubstr("1 tasks done, 0 attempts failed"))
      << Fleet({"logs", "1"});
  const auto found = RunCommand({"pgrep", "--full", "--exact", left});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->stdout_text, "");
}

TEST(FleetCommands, SubmitRefusesADeadlineThatIsPast) {
  history = "postgresql://db/optrail";
  EXPECT_THAT(Fleet({"submit", "--deadline=-2h", "bench --op=relu"}, 2),
              AllOf(HasSubstr("--deadline=-2h"), HasSubstr("from now on")));
}

TEST(FleetCommands, PilotsRefusePasswordsThatMeasuredCodeCouldRead) {
  history = "postgresql://pilot:secret@db/optrail";
  for (const char* part : {"pilot", "up"}) {
    EXPECT_THAT(Fleet({part}, 2),
                AllOf(HasSubstr("~/.pgpass"), Not(HasSubstr("secret"))));
  }
  history = "postgresql://db/optrail?sslpassword=secret&password=secret";
  EXPECT_THAT(Fleet({"pilot"}, 2),
              AllOf(HasSubstr("~/.pgpass"), Not(HasSubstr("secret"))));
  history = "postgresql://db/optrail";
  EXPECT_THAT(Fleet({"pilot", "--repository=https://me:secret@git/r"}, 2),
              AllOf(HasSubstr("--repository"), Not(HasSubstr("secret"))));
}

TEST(FleetCommands, UpRefusesWhatSlurmWouldShowAndWhatItWouldIgnore) {
  history = "postgresql://db/optrail";
  EXPECT_THAT(Fleet({"up", "--repository=https://user:token@host/r"}, 2),
              AllOf(HasSubstr("--repository"), Not(HasSubstr("token"))));
  EXPECT_THAT(Fleet({"up", "--pilots=5", "--machines_file=none"}, 2),
              HasSubstr("--machines_file"));
  EXPECT_THAT(Fleet({"up", "--keep"}, 2),
              AllOf(HasSubstr("--keep"), HasSubstr("--machines_file")));
}

// A Slurm that starts each job at once, as a process of this machine.
TEST_F(FleetTest, UpStaysUntilItsPilotsHaveDoneAllTasks) {
  EXPECT_THAT(Fleet({"submit", "--hardware=here", "--task_time=5m",
                     "bench --op=relu --shape=n=64/f32 --processes=1 --quiet",
                     "bench --op=add --shape=n=64/f32 --processes=1 --quiet"}),
              HasSubstr("job 1: 2 tasks"));
  const std::string folder = Folder("slurm");
  const auto made =
      RunCommand({"sh", "-ec",
                  absl::StrCat(R"sh(
mkdir )sh",
                               folder, R"sh(; cd )sh", folder, R"sh(
cat > sbatch <<'END'
#!/bin/sh
cd )sh",
                               folder, R"sh(
for word; do case $word in --comment=*) mark=${word#*=};; esac; done
id=$(($(ls | grep -c '^script') + 1))
cat > script$id
SLURM_JOB_ID=$id setsid sh -c "echo > up$id; exec sh script$id" > out$id 2>&1 &
echo "$id|RUNNING|$mark" > job$!
# Processes that are still of this group end with it.
while [ ! -e up$id ]; do sleep .05; done
echo $id
END
cat > squeue <<'END'
#!/bin/sh
cd )sh",
                               folder, R"sh(
for job in job*; do kill -0 ${job#job} 2>/dev/null && cat $job; done
exit 0
END
chmod +x sbatch squeue
echo 'hardware { id: "here" pilots: 1 }' > machines.textproto)sh")});
  ASSERT_TRUE(made.ok() && made->exit.ok()) << made->stderr_text;
  const char* const path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  setenv("PATH", absl::StrCat(folder, ":", before).c_str(), 1);
  EXPECT_THAT(
      Fleet({"up", "--keep", "--lease=5s", "--run_as=root",
             absl::StrCat("--machines_file=", folder, "/machines.textproto")}),
      HasSubstr("Slurm job 1 on here"));
  setenv("PATH", before.c_str(), 1);
  EXPECT_THAT(Fleet({"status"}), HasSubstr("here"));
  EXPECT_THAT(Fleet({"cancel", "1"}), HasSubstr("0 tasks cancelled"));
  EXPECT_THAT(Fleet({"logs", "1"}),
              AllOf(HasSubstr("op=relu"), HasSubstr("op=add")));
}

TEST(FleetCommands, UpRefusesToKeepWhatItWouldNotFindAgain) {
  history = "postgresql://db/optrail";
  const std::string machines = ::testing::TempDir() + "/array.textproto";
  std::ofstream(machines) << "hardware { id: \"gpu\" sbatch: \"-a0-3\" }";
  EXPECT_THAT(Fleet({"up", "--keep", "--machines_file=" + machines}, 2),
              AllOf(HasSubstr("-a0-3"), HasSubstr("--array")));
}

}  // namespace
}  // namespace optrail
