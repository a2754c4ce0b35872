// The commands of docs/guide/fleet.md as people type them, against a PostgreSQL
// server of their own: a pilot of this very program measures and records.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/postgres/testing/postgres_server.h"

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

TEST(FleetCommands, APilotRunsWhatWasSubmittedAndRecordsIt) {
  const auto server = tracker::PostgresServer::Start();
  if (absl::IsUnimplemented(server.status())) GTEST_SKIP() << server.status();
  ASSERT_TRUE(server.ok()) << server.status();
  history = (*server)->Url("postgres", "postgres");
  EXPECT_THAT(Fleet({"init"}), HasSubstr("ready"));
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

TEST(FleetCommands, UpRefusesWhatSlurmWouldShowAndWhatItWouldIgnore) {
  history = "postgresql://db/optrail";
  EXPECT_THAT(Fleet({"up", "--repository=https://user:token@host/r"}, 2),
              AllOf(HasSubstr("--repository"), Not(HasSubstr("token"))));
  EXPECT_THAT(Fleet({"up", "--pilots=5", "--machines_file=none"}, 2),
              HasSubstr("--machines_file"));
}

}  // namespace
}  // namespace optrail
