// PostgreSQL refuses what the roles of docs/reference/fleet.md may not do with
// the queue.

#include <string>

#include "absl/strings/str_cat.h"
#include "fleet/queue.h"
#include "fleet/testing/fleet_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "re2/re2.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {
namespace {

using ::testing::HasSubstr;
using tracker::Postgres;

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

TEST_F(FleetTest, TheDatabaseRefusesWhatASubmitterCouldForge) {
  Sql("DROP ROLE IF EXISTS submits_jobs; "
      "CREATE ROLE submits_jobs LOGIN IN ROLE optrail_submitter");
  std::string url = url_;
  RE2::Replace(&url, "postgres@", "submits_jobs@");
  auto queue = JobQueue::Open(url);
  ASSERT_TRUE(queue.ok()) << queue.status();
  JobRequest request = {"job", {"tune a", "tune b", "bench c"}};
  request.first = {{"tune a", "compile ab"}, {"tune b", "compile ab"}};
  const auto job = queue->Submit(request);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(One("SELECT submitted_by FROM optrail.jobs"), "submits_jobs");
  // A job of somebody else, with a task that failed.
  ASSERT_TRUE(Open().Submit({"other", {"bench a"}}).ok());
  Sql("UPDATE optrail.tasks SET state = 'failed' WHERE job = 2");
  const auto submitter = *Postgres::Connect(url);
  for (const char* attempt :
       // The gate of another would wait for this, and fail with it.
       {"INSERT INTO optrail.tasks (job, command, priority, hardware_id, "
        "most_attempts, time_limit_s) VALUES (2, 'gate', 9, '', 1, 1)",
        // A gate takes these for measured.
        "UPDATE optrail.tasks SET state = 'done'",
        "UPDATE optrail.tasks SET state = 'queued', finished = NULL",
        "UPDATE optrail.tasks SET most_attempts = 1000",
        "INSERT INTO optrail.tasks (job, command, priority, hardware_id, "
        "most_attempts, time_limit_s, state) "
        "VALUES (1, 'bench', 9, '', 1, 1, 'done')",
        "INSERT INTO optrail.tasks (job, command, priority, hardware_id, "
        "most_attempts, time_limit_s, pilot) "
        "VALUES (1, 'bench', 9, '', 1, 1, 'p')",
        "INSERT INTO optrail.jobs (name, priority, submitted_by) "
        "VALUES ('mine', 9, 'alice')",
        "INSERT INTO optrail.attempts (task, attempt, pilot, is_result, "
        "exit_code, log) VALUES (2, 1, 'p', true, 0, '')",
        "DELETE FROM optrail.records", "DELETE FROM optrail.tasks",
        "SELECT * FROM optrail.claim_task('x', 60, '', true)",
        "SELECT optrail.finish_task(1, 1, 'p', true, 0, '')",
        "SET ROLE optrail_pilot"}) {
    (void)submitter->Execute("ROLLBACK");
    ASSERT_TRUE(submitter->Execute("BEGIN").ok());
    const absl::Status status = submitter->Execute(attempt);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << attempt << ": " << status;
  }
  (void)submitter->Execute("ROLLBACK");
  const auto cancelled = queue->Cancel(*job);
  EXPECT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(*cancelled, 4);
  // A fork's role may not even cancel.
  Sql("DROP ROLE IF EXISTS fork_that_cancels; "
      "CREATE ROLE fork_that_cancels LOGIN IN ROLE optrail_reader");
  url = url_;
  RE2::Replace(&url, "postgres@", "fork_that_cancels@");
  EXPECT_TRUE(absl::IsPermissionDenied(
      (*Postgres::Connect(url))->Execute("SELECT optrail.cancel_job(1)")));
}

TEST_F(FleetTest, WhoSubmittedAJobOrMaintainsTheHistoryCancelsIt) {
  const auto queue_of = [&](const std::string& group) {
    auto queue = JobQueue::Open(Url(NewRole(group)));
    EXPECT_TRUE(queue.ok()) << queue.status();
    return *std::move(queue);
  };
  JobQueue alice = queue_of("optrail_submitter");
  JobQueue bob = queue_of("optrail_submitter");
  JobQueue maintainer = queue_of("optrail_maintainer");
  const int64_t first = *alice.Submit({"first", {"bench a", "bench b"}});
  const int64_t second = *alice.Submit({"second", {"bench c"}});
  const int64_t third = *alice.Submit({"third", {"bench d"}});
  const absl::Status refused = bob.Cancel(first).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr(absl::StrCat(
                  "job ", first, " was submitted by ",
                  One("SELECT submitted_by FROM optrail.jobs LIMIT 1"))));
  EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks WHERE state = 'queued'"),
            "4");
  // Neither under another name nor with another's rights.
  const auto forger = *Postgres::Connect(Url(NewRole("optrail_submitter")));
  for (const char* attempt :
       {"SET SESSION AUTHORIZATION postgres", "SET ROLE optrail_maintainer",
        "UPDATE optrail.jobs SET submitted_by = session_user",
        "UPDATE optrail.tasks SET state = 'cancelled'",
        "CREATE OR REPLACE FUNCTION optrail.cancel_job(the_job bigint) RETURNS "
        "bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "SELECT optrail.cancel_job(1)"}) {
    const absl::Status status = forger->Execute(attempt);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << attempt << ": " << status;
  }
  EXPECT_EQ(alice.Status()->jobs[0].submitted_by,
            One("SELECT submitted_by FROM optrail.jobs LIMIT 1"));
  EXPECT_EQ(*alice.Cancel(first), 2);
  const auto by_maintainer = maintainer.Cancel(second);
  ASSERT_TRUE(by_maintainer.ok()) << by_maintainer.status();
  EXPECT_EQ(*by_maintainer, 1);
  // The owner of the database.
  EXPECT_EQ(*Open().Cancel(third), 1);
  // Pilots may be told to end by both.
  ASSERT_TRUE(Open().IsDraining(Named("p")).ok());
  for (JobQueue* queue : {&bob, &maintainer}) {
    const auto drained = queue->Drain("");
    ASSERT_TRUE(drained.ok()) << drained.status();
    EXPECT_EQ(*drained, 1);
  }
}

// Else nothing would ever queue it, or it would hide a failure from a gate.
TEST_F(FleetTest, ATaskWaitsForOneOfItsJobThatHasNotEnded) {
  Sql("DROP ROLE IF EXISTS submits_waits; "
      "CREATE ROLE submits_waits LOGIN IN ROLE optrail_submitter");
  std::string url = url_;
  RE2::Replace(&url, "postgres@", "submits_waits@");
  JobQueue queue = Open();
  ASSERT_TRUE(queue.Submit({"other", {"bench a", "bench b"}}).ok());
  auto own = JobQueue::Open(url);
  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_TRUE(own->Submit({"own", {"bench c", "bench d"}}).ok());
  Sql("UPDATE optrail.tasks SET state = 'failed' WHERE task IN (2, 4)");
  const auto submitter = *Postgres::Connect(url);
  const auto add = [&](const std::string& state, const std::string& first) {
    return submitter->Execute(
        absl::StrCat("INSERT INTO optrail.tasks (job, command, priority, "
                     "hardware_id, most_attempts, time_limit_s, state, "
                     "waits_for) VALUES (2, 'bench', 0, '', 1, 1, '",
                     state, "', ", first, ")")
            .c_str());
  };
  for (const char* state : {"waiting", "queued"}) {
    for (const char* first : {"1", "2", "4", "99"}) {
      const absl::Status status = add(state, first);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << first << status;
      EXPECT_THAT(status.message(), HasSubstr("of job 2 that has not ended"));
    }
  }
  EXPECT_THAT(add("waiting", "NULL").message(), HasSubstr("waits for none"));
  EXPECT_TRUE(add("waiting", "3").ok());
  EXPECT_TRUE(add("queued", "NULL").ok());
  EXPECT_FALSE(queue.Unfinished(1)->MayEnd());
  // A task of another job, as of an earlier version, hides nothing.
  Sql("UPDATE optrail.tasks SET waits_for = 2 WHERE task = 3");
  EXPECT_FALSE(queue.Unfinished(1)->MayEnd());
}

}  // namespace
}  // namespace optrail::fleet
