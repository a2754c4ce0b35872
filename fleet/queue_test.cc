// The queue of jobs over a PostgreSQL server of its own.

#include "fleet/queue.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file/file.h"
#include "fleet/fleet_command.h"
#include "fleet/testing/fleet_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {
namespace {

using ::testing::HasSubstr;
using tracker::Postgres;

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
  EXPECT_TRUE(absl::IsNotFound(queue.Logs(99).status()));

  JobRequest late = {"late", {"bench b"}};
  late.deadline = absl::Seconds(-1);
  ASSERT_TRUE(queue.Submit(late).ok());
  JobQueue fresh = Open();
  EXPECT_FALSE(fresh.Claim(Named("p"))->has_value());
  EXPECT_EQ(fresh.Status()->jobs[0].failed, 1);
}

TEST_F(FleetTest, AReaderKnowsWhatIsLeftOfAJob) {
  JobQueue queue = Open();
  JobRequest request = {"job", {"bench a", "bench b", "bench c"}};
  request.hardware_id = "hw";
  request.most_attempts = 1;
  const int64_t job = *queue.Submit(request);
  const Task leased = **queue.Claim(Named("p"));
  const Task failed = **queue.Claim(Named("p"));
  EXPECT_TRUE(queue.Unfinished(job)->MayEnd());
  ASSERT_TRUE(queue.Finish(failed, {false, 2, ""}, {}).ok());
  Sql("DROP ROLE IF EXISTS reader_of_queue; "
      "CREATE ROLE reader_of_queue LOGIN IN ROLE optrail_reader");
  std::string url = url_;
  RE2::Replace(&url, "postgres@", "reader_of_queue@");
  auto reader = JobQueue::Open(url);
  ASSERT_TRUE(reader.ok()) << reader.status();
  UnfinishedTasks left = *reader->Unfinished(job);
  EXPECT_EQ(left.Text(job),
            "job 1: 3 of 3 tasks are not done: 1 failed on hw, 1 leased on hw, "
            "1 queued on hw");
  EXPECT_FALSE(left.MayEnd()) << "no verdict can come";
  ASSERT_TRUE(queue.Finish(leased, {true, 0, ""}, {}).ok());
  ASSERT_TRUE(queue.Finish(**queue.Claim(Named("p")), {true, 0, ""}, {}).ok());
  left = *reader->Unfinished(job);
  EXPECT_EQ(left.Text(job), "job 1: 1 of 3 tasks are not done: 1 failed on hw");
  EXPECT_FALSE(left.MayEnd());
  EXPECT_EQ(reader->Unfinished(99).status().code(),
            absl::StatusCode::kNotFound);
}

// The answer of the first time is lost.
TEST_F(FleetTest, AJobThatIsSubmittedTwiceIsThereOnce) {
  JobQueue queue = Open();
  JobRequest request = {"job", {"bench a", "bench b"}};
  request.token = NewToken();
  const int64_t job = *queue.Submit(request);
  EXPECT_EQ(*queue.Submit(request), job);
  // A connection that breaks is replaced.
  Sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
      "pg_backend_pid() AND datname = current_database()");
  EXPECT_EQ(*queue.Submit(request), job);
  EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks"), "2");
  request.token = NewToken();
  EXPECT_NE(*queue.Submit(request), job);
  EXPECT_NE(*queue.Submit({"job", {"bench a"}}), job);
}

TEST_F(FleetTest, WhatAPilotFailedAtIsLeftToAnotherThatIsThere) {
  JobQueue queue = Open();
  PilotInfo broken = Named("broken"), good = Named("good");
  for (PilotInfo* pilot : {&broken, &good}) {
    pilot->has_repository = true;
    ASSERT_TRUE(queue.IsDraining(*pilot).ok());
  }
  ASSERT_TRUE(queue.Submit({"job", {"bisect a b --run=c", "bench a"}}).ok());
  const auto fail = [&](const PilotInfo& pilot) {
    const Task task = **queue.Claim(pilot);
    ASSERT_EQ(task.command, "bisect a b --run=c");
    ASSERT_TRUE(queue.Finish(task, {false, 2, "no compiler"}, {}).ok());
  };
  fail(broken);
  // It goes on with what else there is.
  const Task other = **queue.Claim(broken);
  EXPECT_EQ(other.command, "bench a");
  ASSERT_TRUE(queue.Finish(other, {true, 0, ""}, {}).ok());
  EXPECT_FALSE(queue.Claim(broken)->has_value());
  // Nobody waits for one that ends, is away, or can't take the task.
  const auto takes = [&] {
    const auto task = *queue.Claim(broken);
    return task.has_value() && queue.Release(*task).ok();
  };
  for (const char* change :
       {"draining = true", "seen = now() - interval '1 hour'",
        "has_repository = false", "hardware_id = 'other'"}) {
    const std::string before =
        One("SELECT seen FROM optrail.pilots WHERE pilot = 'good'");
    Sql(absl::StrCat("UPDATE optrail.pilots SET ", change,
                     " WHERE pilot = 'good'; UPDATE optrail.tasks SET "
                     "hardware_id = 'hw'"));
    EXPECT_TRUE(takes()) << change;
    Sql(absl::StrCat("UPDATE optrail.pilots SET draining = false, seen = '",
                     before,
                     "', has_repository = true, hardware_id = 'hw' WHERE "
                     "pilot = 'good'"));
    EXPECT_FALSE(takes()) << change;
  }
  // Both have failed: either tries again.
  fail(good);
  EXPECT_TRUE(takes());
}

PilotInfo OnHardware(const std::string& id, const std::string& hardware) {
  return {id, "host", hardware, ""};
}

JobRequest CompiledElsewhere() {
  JobRequest request = {"job", {"tune a", "tune b", "bench c"}};
  request.hardware_id = "gpu";
  request.first = {{"tune a", "compile ab"}, {"tune b", "compile ab"}};
  request.first_hardware_id = "cpu";
  return request;
}

TEST_F(FleetTest, ATaskIsQueuedOnceTheOneBeforeItHasEnded) {
  for (const bool compiles : {true, false}) {
    JobQueue queue = Open();
    JobRequest request = CompiledElsewhere();
    request.most_attempts = 1;
    const int64_t job = *queue.Submit(request);
    const PilotInfo gpu = OnHardware("gpu-pilot", "gpu");
    // Only what waits for nothing.
    const Task free = **queue.Claim(gpu);
    EXPECT_EQ(free.command, "bench c");
    ASSERT_TRUE(queue.Finish(free, {true, 0, ""}, {}).ok());
    EXPECT_FALSE(queue.Claim(gpu)->has_value());
    EXPECT_EQ(queue.Results(job)->size(), 4);
    EXPECT_EQ(queue.Status()->jobs[0].queued, 3);
    const Task first = **queue.Claim(OnHardware("cpu-pilot", "cpu"));
    EXPECT_EQ(first.command, "compile ab");
    EXPECT_FALSE(queue.Claim(gpu)->has_value());
    // However it ends: what it lacks is compiled by the others.
    ASSERT_TRUE(queue.Finish(first, {compiles, compiles ? 0 : 2, ""}, {}).ok());
    EXPECT_EQ((**queue.Claim(gpu)).command, "tune a");
    EXPECT_EQ((**queue.Claim(gpu)).command, "tune b");
  }
}

TEST_F(FleetTest, WhatFailedToCompileAheadKeepsNoGateFromItsVerdict) {
  JobQueue queue = Open();
  JobRequest request = CompiledElsewhere();
  request.most_attempts = 1;
  const int64_t job = *queue.Submit(request);
  const PilotInfo gpu = OnHardware("gpu-pilot", "gpu");
  const Task first = **queue.Claim(OnHardware("cpu-pilot", "cpu"));
  EXPECT_EQ(queue.Unfinished(job)->all, 4);
  ASSERT_TRUE(queue.Finish(first, {false, 2, "no compiler"}, {}).ok());
  // The others compile themselves: a verdict may still come.
  EXPECT_TRUE(queue.Unfinished(job)->MayEnd());
  EXPECT_EQ(queue.Unfinished(job)->Text(job),
            "job 1: 3 of 3 tasks are not done: 3 queued on gpu");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(queue.Finish(**queue.Claim(gpu), {true, 0, ""}, {}).ok());
  }
  EXPECT_TRUE(queue.Unfinished(job)->MayEnd());
  // A task that cannot be compiled there either has failed.
  ASSERT_TRUE(queue.Finish(**queue.Claim(gpu), {false, 2, ""}, {}).ok());
  EXPECT_FALSE(queue.Unfinished(job)->MayEnd());
  EXPECT_EQ(queue.Unfinished(job)->Text(job),
            "job 1: 1 of 3 tasks are not done: 1 failed on gpu");
}

TEST_F(FleetTest, ACancelWhileItCompilesLeavesNothingToRun) {
  JobQueue queue = Open();
  const int64_t job = *queue.Submit(CompiledElsewhere());
  const PilotInfo cpu = OnHardware("cpu-pilot", "cpu");
  const Task first = **queue.Claim(cpu);
  EXPECT_EQ(*queue.Cancel(job), 4);
  EXPECT_FALSE(*queue.KeepAlive(first));
  EXPECT_TRUE(absl::IsAborted(queue.Finish(first, {true, 0, ""}, {})));
  ASSERT_TRUE(queue.Release(first).ok());
  EXPECT_FALSE(queue.Claim(cpu)->has_value());
  EXPECT_FALSE(queue.Claim(OnHardware("gpu-pilot", "gpu"))->has_value());
  EXPECT_EQ(queue.Status()->jobs[0].cancelled, 4);
  EXPECT_FALSE(queue.Unfinished(job)->MayEnd());
}

TEST_F(FleetTest, WhatWaitsIsCancelledAndFailsAtItsDeadlineToo) {
  JobQueue queue = Open();
  const int64_t job = *queue.Submit(CompiledElsewhere());
  EXPECT_EQ(*queue.Cancel(job), 4);
  EXPECT_EQ(queue.Status()->jobs[0].cancelled, 4);
  JobRequest late = CompiledElsewhere();
  late.deadline = absl::Seconds(-1);
  ASSERT_TRUE(queue.Submit(late).ok());
  JobQueue fresh = Open();
  EXPECT_FALSE(fresh.Claim(OnHardware("p", "gpu"))->has_value());
  EXPECT_EQ(fresh.Status()->jobs[0].failed, 4);
  EXPECT_FALSE(*fresh.MayGetTasks(OnHardware("p", "gpu"), true));
}

TEST_F(FleetTest, APilotMayGetWhatOthersAreThereToPrepare) {
  JobQueue queue = Open();
  const PilotInfo gpu = OnHardware("gpu-pilot", "gpu");
  const PilotInfo cpu = OnHardware("cpu-pilot", "cpu");
  EXPECT_FALSE(*queue.MayGetTasks(gpu, true));
  ASSERT_TRUE(queue.Submit(CompiledElsewhere()).ok());
  EXPECT_TRUE(*queue.MayGetTasks(gpu, false)) << "it may claim one now";
  ASSERT_TRUE(queue.Finish(**queue.Claim(gpu), {true, 0, ""}, {}).ok());
  // Nobody is there to compile, yet.
  EXPECT_TRUE(*queue.MayGetTasks(gpu, true));
  EXPECT_FALSE(*queue.MayGetTasks(gpu, false));
  EXPECT_FALSE(*queue.MayGetTasks(OnHardware("other", "other"), true));
  ASSERT_TRUE(queue.IsDraining(cpu).ok());
  EXPECT_TRUE(*queue.MayGetTasks(gpu, false));
  Sql("UPDATE optrail.pilots SET seen = now() - interval '10 min'");
  EXPECT_FALSE(*queue.MayGetTasks(gpu, false));
  const Task first = **queue.Claim(cpu);
  EXPECT_TRUE(*queue.MayGetTasks(gpu, false));
  ASSERT_TRUE(queue.Finish(first, {true, 0, ""}, {}).ok());
  EXPECT_TRUE(*queue.MayGetTasks(gpu, false)) << "it may claim them now";
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

// The statements of Grafana's dashboard with the names that its format asks
// for: "time" where the column is needed.
std::vector<std::pair<std::string, bool>> StatementsOf(
    const nlohmann::json& dashboard) {
  std::vector<std::pair<std::string, bool>> statements;
  for (const auto& each : dashboard["templating"]["list"]) {
    if (each["type"] == "query") statements.push_back({each["query"], false});
  }
  for (const auto& each : dashboard["annotations"]["list"]) {
    statements.push_back({each["rawQuery"], true});
  }
  for (const auto& panel : dashboard["panels"]) {
    for (const auto& target : panel["targets"]) {
      statements.push_back(
          {target["rawSql"], target["format"] == "time_series"});
    }
  }
  return statements;
}

// The test fills in macros and variables as Grafana does, for a user of the
// database who may read alone.
TEST_F(FleetTest, TheDatabaseAnswersTheDashboardOfAReader) {
  const std::string hostile = "it's \"100%\" $1; DROP TABLE x; --\n";
  const auto owner = *Postgres::Connect(url_);
  ASSERT_TRUE(owner
                  ->Query("INSERT INTO optrail.series (text, benchmark, "
                          "metric, unit, hardware_id, branch) VALUES ($1, '', "
                          "'time', 's', $1, 'main')",
                          {hostile})
                  .ok());
  Sql(AddRunSql(1, "10 minutes"));
  Sql("INSERT INTO optrail.judgements VALUES (1, 'slower', json_build_array("
      "json_build_object('started_unix_ns', (SELECT started_unix_ns FROM "
      "optrail.runs), 'commit_id', 'c', 'relative_change', 0.08, 'text', "
      "'+8%')))");
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
  ASSERT_TRUE(queue.Finish(**queue.Claim(Named("p")), {true, 0, ""}, {}).ok());

  const auto text = ReadFile("fleet/grafana_dashboard.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto statements = StatementsOf(nlohmann::json::parse(*text));
  EXPECT_EQ(statements.size(), 10);
  const auto reader = *Postgres::Connect(Url(NewRole("optrail_reader")));
  for (const auto& [written, needs_time] : statements) {
    std::string statement = written;
    RE2::GlobalReplace(&statement, R"(\$__unixEpochNanoFilter\((\w+)\))",
                       R"(\1 BETWEEN 0 AND 9e18)");
    RE2::GlobalReplace(&statement, R"(\$__timeFilter\((\w+)\))",
                       R"(\1 BETWEEN '2020-01-01' AND now())");
    // The format "sqlstring" quotes the value of a variable.
    const std::string quoted = absl::StrReplaceAll(hostile, {{"'", "''"}});
    statement = absl::StrReplaceAll(
        statement, {{"${series:sqlstring}", "'" + quoted + "'"},
                    {"${hardware:sqlstring}", "'" + quoted + "'"}});
    EXPECT_FALSE(RE2::PartialMatch(written, R"('\$)"))
        << "a value would not be quoted: " << written;
    const auto rows = reader->Query(
        needs_time
            ? absl::StrCat("SELECT \"time\", * FROM (", statement, ") AS panel")
            : statement,
        {});
    ASSERT_TRUE(rows.ok()) << statement << ": " << rows.status();
    EXPECT_EQ(rows->empty(), false) << statement;
  }
}

// Such names come from people and from machines that nobody looks after.
TEST_F(FleetTest, OddNamesArriveAsTheyWere) {
  JobQueue queue = Open();
  const std::string odd = "it's \"100%\" {a,b} \\ %s\n$1; DROP TABLE x; é";
  JobRequest request = {odd, {"bench '--benchmark_filter=a b%{},'"}};
  request.hardware_id = odd;
  const int64_t job = *queue.Submit(request);
  PilotInfo pilot = {odd, odd, odd, odd};
  ASSERT_TRUE(queue.IsDraining(pilot).ok());
  const auto task = queue.Claim(pilot);
  ASSERT_TRUE(task.ok()) << task.status();
  ASSERT_TRUE(task->has_value());
  EXPECT_EQ((*task)->command, request.commands[0]);
  EXPECT_TRUE(*queue.KeepAlive(**task));
  ASSERT_TRUE(
      queue.Finish(**task, {true, 0, odd + std::string("\0x", 2)}, {}).ok());
  EXPECT_EQ(queue.Status()->jobs[0].name, odd);
  EXPECT_EQ(queue.Status()->pilots[0].info.slurm_job, odd);
  EXPECT_EQ(queue.Results(job)->at(0).hardware_id, odd);
  EXPECT_THAT(*queue.Logs(job), HasSubstr(odd));
  EXPECT_EQ(*queue.Drain(odd), 1);
  // Bytes that are no text for PostgreSQL are refused, and nothing breaks.
  EXPECT_EQ(queue.Submit({"\xff", {"bench a"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(queue.Submit({"job", {"bench \xff"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
}

}  // namespace
}  // namespace optrail::fleet
