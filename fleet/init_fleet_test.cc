// Databases of one server are prepared at the same moment.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fleet/queue.h"
#include "fleet/schema.h"
#include "gtest/gtest.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/postgres/testing/postgres_server.h"

namespace optrail::fleet {
namespace {

using tracker::Postgres;
using tracker::PostgresServer;

constexpr int kDatabases = 3;
constexpr int kAtOnce = 3;  // in each database

void Sql(const PostgresServer& server, const std::string& sql) {
  const auto db = Postgres::Connect(server.Url("postgres", "postgres"));
  ASSERT_TRUE(db.ok()) << db.status();
  const absl::Status status = (*db)->Execute(sql.c_str());
  ASSERT_TRUE(status.ok()) << sql << ": " << status;
}

TEST(InitFleetTest, SeveralAtOnceInSeveralDatabasesAllSucceed) {
  const auto server = PostgresServer::Start();
  if (absl::IsUnimplemented(server.status())) GTEST_SKIP() << server.status();
  ASSERT_TRUE(server.ok()) << server.status();
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kDatabases; ++i) {
      Sql(**server, absl::StrCat("CREATE DATABASE db", i));
    }
    std::atomic<bool> may_start{false};
    std::vector<absl::Status> ended(kDatabases * kAtOnce);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ended.size(); ++i) {
      threads.emplace_back([&, i] {
        const std::string url = (*server)->Url(
            "postgres", absl::StrCat("db", static_cast<int>(i) % kDatabases));
        while (!may_start) std::this_thread::yield();
        ended[i] = InitFleet(url);
      });
    }
    may_start = true;
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : ended) {
      EXPECT_TRUE(status.ok()) << "round " << round << ": " << status;
    }
    for (int i = 0; i < kDatabases; ++i) {
      auto queue =
          JobQueue::Open((*server)->Url("postgres", absl::StrCat("db", i)));
      ASSERT_TRUE(queue.ok()) << queue.status();
      EXPECT_TRUE(queue->Submit({"job", {"bench a"}}).ok());
    }
    const auto db = Postgres::Connect((*server)->Url("postgres", "postgres"));
    ASSERT_TRUE(db.ok()) << db.status();
    const auto members = (*db)->Query(
        "SELECT count(*) FROM pg_auth_members WHERE roleid::regrole::text LIKE "
        "'optrail_%'",
        {});
    ASSERT_TRUE(members.ok()) << members.status();
    EXPECT_EQ((*members)[0][0], "2");
    // The next round makes the roles anew.
    for (int i = 0; i < kDatabases; ++i) {
      Sql(**server, absl::StrCat("DROP DATABASE db", i, " WITH (FORCE)"));
    }
    Sql(**server,
        "DROP ROLE optrail_reader, optrail_recorder, optrail_maintainer, "
        "optrail_submitter, optrail_pilot");
  }
}

// Jobs of a version before stay, and their tasks are done.
TEST(InitFleetTest, AnUpdateOfEachVersionKeepsItsJobs) {
  const auto server = PostgresServer::Start();
  if (absl::IsUnimplemented(server.status())) GTEST_SKIP() << server.status();
  ASSERT_TRUE(server.ok()) << server.status();
  const size_t newest = FleetComponent().migrations.size();
  for (size_t version = 1; version < newest; ++version) {
    const std::string name = absl::StrCat("version", version);
    Sql(**server, "CREATE DATABASE " + name);
    const std::string url = (*server)->Url("postgres", name);
    const auto db = *Postgres::Connect(url);
    tracker::SchemaComponent before = FleetComponent();
    before.migrations.resize(version);
    ASSERT_TRUE(tracker::InitHistorySchema(*db).ok());
    const absl::Status made = tracker::InitSchema(*db, before, "SELECT 1");
    ASSERT_TRUE(made.ok()) << version << ": " << made;
    const absl::Status added = db->Execute(
        "INSERT INTO optrail.jobs (name, priority) VALUES ('old', 0);"
        "INSERT INTO optrail.tasks (job, command, priority, hardware_id, "
        "most_attempts, time_limit_s) VALUES (1, 'bench a', 0, '', 3, 60)");
    ASSERT_TRUE(added.ok()) << version << ": " << added;
    EXPECT_TRUE(absl::IsFailedPrecondition(JobQueue::Open(url).status()));
    const absl::Status ready = InitFleet(url);
    ASSERT_TRUE(ready.ok()) << version << ": " << ready;
    auto queue = JobQueue::Open(url);
    ASSERT_TRUE(queue.ok()) << queue.status();
    const auto task = queue->Claim({"p", "host", "hw", ""});
    ASSERT_TRUE(task.ok() && task->has_value()) << version << task.status();
    EXPECT_EQ((*task)->command, "bench a");
    EXPECT_TRUE(queue->Finish(**task, {true, 0, ""}, {}).ok());
    EXPECT_EQ(queue->Unfinished(1)->Text(1), "");
  }
}

}  // namespace
}  // namespace optrail::fleet
