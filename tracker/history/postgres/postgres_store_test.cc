// One server for all tests; each has a database of its own.

#include "tracker/history/postgres/postgres_store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/copy.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"
#include "tracker/history/index/export.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/postgres/testing/postgres_fixture.h"
#include "tracker/history/repair.h"
#include "tracker/history/retention.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PostgresStoreTest : public PostgresTest {
 protected:
  static std::shared_ptr<Postgres> Connect(const std::string& url) {
    auto db = Postgres::Connect(url);
    EXPECT_TRUE(db.ok()) << db.status();
    return *db;
  }
  void Init() {
    const absl::Status status = InitHistorySchema(*Connect(Url()));
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string FreshFolder(const std::string& name) const {
    return absl::StrCat(testing::TempDir(), "/", database_, "_", name);
  }
  static History Open(const std::string& name) {
    auto history = History::Open(name);
    EXPECT_TRUE(history.ok()) << history.status();
    return *history;
  }
  static std::string Csv(const History& history) {
    auto index = HistoryIndex::Open(history);
    EXPECT_TRUE(index.ok()) << index.status();
    std::ostringstream text;
    EXPECT_TRUE(ExportCsv(**index, {}, text).ok());
    return text.str();
  }
  static absl::Status Generate(const History& history, int commits) {
    GenerateOptions options;
    options.benchmarks = 6;
    options.hardware = 2;
    options.commits = commits;
    options.oddities = true;
    return GenerateHistory(options, history);
  }
};

TEST_F(PostgresStoreTest, AnswersAsTheFolderThatWasCopied) {
  Init();
  const History folder = Open(FreshFolder("from"));
  ASSERT_TRUE(Generate(folder, 20).ok());
  const History shared = Open(Url());
  auto copied = CopyHistory(folder, shared);
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_TRUE(copied->IsEqual());
  EXPECT_GT(copied->copied, 20);

  EXPECT_EQ(Csv(shared), Csv(folder));
  const auto runs = shared.ListRuns();
  const auto expected = folder.ListRuns();
  ASSERT_TRUE(runs.ok() && expected.ok());
  ASSERT_EQ(runs->runs.size(), expected->runs.size());
  for (size_t i = 0; i < runs->runs.size(); ++i) {
    EXPECT_EQ(runs->runs[i].id(), expected->runs[i].id());
  }
  const auto indexed = OpenIndexedHistory(Url());
  ASSERT_TRUE(indexed.ok());
  EXPECT_EQ(indexed->FindRun("latest")->id(), folder.FindRun("latest")->id());
  const auto report = CheckHistory(shared, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->CountDamaged(), 0);
  EXPECT_EQ(report->runs, static_cast<int64_t>(expected->runs.size()));

  // And back.
  const History back = Open(FreshFolder("back"));
  copied = CopyHistory(shared, back);
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_TRUE(copied->IsEqual());
  EXPECT_EQ(Csv(back), Csv(folder));
}

TEST_F(PostgresStoreTest, ACopyGoesOnWhereItWasInterruptedAndSeesDifferences) {
  Init();
  const History folder = Open(FreshFolder("from"));
  ASSERT_TRUE(Generate(folder, 5).ok());
  const History shared = Open(Url());
  ASSERT_TRUE(CopyHistory(folder, shared)->IsEqual());
  const std::string id = folder.FindRun("latest")->id();
  ASSERT_TRUE(shared.RemoveRun(id).ok());
  EXPECT_NE(Csv(shared), Csv(folder));
  const auto again = CopyHistory(folder, shared);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->copied, 1);
  EXPECT_TRUE(again->IsEqual());
  EXPECT_EQ(Csv(shared), Csv(folder));

  proto::Run changed = *shared.ReadRun(id);
  changed.set_suite("another");
  ASSERT_TRUE(shared.ReplaceRun(changed).ok());
  const auto unequal = CopyHistory(folder, shared);
  ASSERT_TRUE(unequal.ok());
  EXPECT_FALSE(unequal->IsEqual());
  ASSERT_EQ(unequal->unequal.size(), 1);
  EXPECT_THAT(unequal->unequal[0], HasSubstr(id));
}

TEST_F(PostgresStoreTest, ACopyThatIsKilledAgainAndAgainEndsEqual) {
  Init();
  const History folder = Open(FreshFolder("from"));
  ASSERT_TRUE(Generate(folder, 60).ok());
  const std::string back = FreshFolder("back");
  const std::pair<std::string, std::string> ways[] = {{folder.dir(), Url()},
                                                      {Url(), back}};
  for (const auto& [from, to] : ways) {
    const auto kept = [&to = to] {
      return Open(to).store().List("runs")->files.size();
    };
    int killed = 0;
    for (size_t more = 1; more < 8; ++more) {
      const size_t before = kept();
      const pid_t child = fork();
      if (child == 0) {
        const auto copied = CopyHistory(Open(from), Open(to));
        _exit(copied.ok() && copied->IsEqual() ? 0 : 1);
      }
      // In the midst of one that follows.
      while (kept() < before + more) std::this_thread::yield();
      ASSERT_EQ(kill(child, SIGKILL), 0);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      killed += WIFSIGNALED(status);
    }
    EXPECT_GT(killed, 0);
    const auto ended = CopyHistory(Open(from), Open(to));
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_TRUE(ended->IsEqual());
    EXPECT_GT(ended->already_there, 0) << "nothing was kept of the others";
    EXPECT_EQ(Csv(Open(to)), Csv(folder));
  }
}

TEST_F(PostgresStoreTest, ThinsAsAFolderDoes) {
  Init();
  const History folder = Open(FreshFolder("from"));
  ASSERT_TRUE(Generate(folder, 12).ok());
  const History shared = Open(Url());
  ASSERT_TRUE(CopyHistory(folder, shared)->IsEqual());
  RetentionPolicy policy;
  policy.keep_runs = 3;
  policy.keep_days = 0;
  policy.keep_every = 2;
  constexpr int64_t kNow = int64_t{4} << 60;
  for (const History* history : {&folder, &shared}) {
    const auto plan = PlanRetention(*history, policy, kNow);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_FALSE(plan->thin.empty());
    EXPECT_FALSE(plan->remove.empty());
    const absl::Status applied = ApplyRetention(*history, *plan, kNow);
    ASSERT_TRUE(applied.ok()) << applied;
  }
  EXPECT_EQ(Csv(shared), Csv(folder));
}

TEST_F(PostgresStoreTest, SaysWhatIsWrongAndWhatToDo) {
  const auto absent = History::Open(
      "postgresql://someone:secret@/x?host=/nowhere&connect_timeout=2");
  EXPECT_TRUE(absl::IsUnavailable(absent.status()));
  EXPECT_THAT(absent.status().message(),
              HasSubstr("next: check that the serv"));
  EXPECT_THAT(absent.status().message(), testing::Not(HasSubstr("secret")));

  // Not even libpq's message tells a part of it.
  for (const char* torn : {"se/cret", "se@cret", "se%cret"}) {
    const absl::Status status =
        History::Open(absl::StrCat("postgresql://me:", torn, "@h/d")).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), testing::Not(HasSubstr("cret")));
  }

  const auto empty = History::Open(Url());
  EXPECT_TRUE(absl::IsFailedPrecondition(empty.status())) << empty.status();
  EXPECT_THAT(empty.status().message(), HasSubstr("optrail history init"));

  Init();
  Sql("postgres", "CREATE ROLE guarded LOGIN PASSWORD 'right'");
  std::string url = Url("guarded:wrong");
  const auto wrong = History::Open(url);
  EXPECT_TRUE(absl::IsUnauthenticated(wrong.status())) << wrong.status();
  EXPECT_THAT(wrong.status().message(), testing::Not(HasSubstr("wrong@")));

  const History reader = Open(Url(NewRole("optrail_reader")));
  const absl::Status refused = reader.store().CheckIsWritable();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("GRANT optrail_recorder"));
  const absl::Status put = Generate(reader, 1);
  EXPECT_TRUE(absl::IsPermissionDenied(put)) << put;

  Sql(database_, "UPDATE optrail.schema_versions SET version = 99");
  const auto newer = History::Open(Url());
  EXPECT_TRUE(absl::IsFailedPrecondition(newer.status()));
  EXPECT_THAT(newer.status().message(), HasSubstr("version 99"));
  EXPECT_TRUE(absl::IsFailedPrecondition(InitHistorySchema(*Connect(Url()))));
}

TEST_F(PostgresStoreTest, ARecorderAppendsAndChangesNothing) {
  Init();
  const History recorder = Open(Url(NewRole("optrail_recorder")));
  ASSERT_TRUE(Generate(recorder, 2).ok());
  const std::string id = recorder.FindRun("latest")->id();
  EXPECT_TRUE(absl::IsPermissionDenied(recorder.RemoveRun(id)));
  EXPECT_TRUE(
      absl::IsPermissionDenied(recorder.ReplaceRun(*recorder.ReadRun(id))));
  EXPECT_TRUE(absl::IsAlreadyExists(recorder.AppendRun(*recorder.ReadRun(id))));
  const History maintainer = Open(Url(NewRole("optrail_maintainer")));
  EXPECT_TRUE(maintainer.RemoveRun(id).ok());
}

TEST_F(PostgresStoreTest, TheDatabaseRefusesWhatAForksRoleTries) {
  Init();
  ASSERT_TRUE(Generate(Open(Url()), 2).ok());
  const auto fork = Connect(Url(NewRole("optrail_reader")));
  ASSERT_TRUE(fork->Execute("SELECT count(*) FROM optrail.records").ok());
  const char* const kAttempts[] = {
      "INSERT INTO optrail.records (folder, id, bytes) VALUES ('runs', "
      "'20260101T000000Z-1', '')",
      "INSERT INTO optrail.documents (folder, name, bytes) VALUES ('x', 'y', "
      "'')",
      "INSERT INTO optrail.runs (path, result_count, started_unix_ns, "
      "commit_id, header) VALUES ('x', 1, 1, '', '')",
      "INSERT INTO optrail.series (text, benchmark, metric, unit, hardware_id, "
      "branch) VALUES ('', '', '', '', '', '')",
      "INSERT INTO optrail.attributes (bytes) VALUES ('')",
      "INSERT INTO optrail.observations VALUES (1, 1, 9, 1, 1, '')",
      "INSERT INTO optrail.points (value) VALUES (1)",
      "INSERT INTO optrail.folds VALUES (1, '')",
      "INSERT INTO optrail.digests VALUES (1, '')",
      "INSERT INTO optrail.schema_versions VALUES ('x', 1)",
      "UPDATE optrail.records SET bytes = ''",
      "UPDATE optrail.documents SET bytes = ''",
      "UPDATE optrail.runs SET position = 0",
      "UPDATE optrail.observations SET value = 0",
      "UPDATE optrail.folds SET bytes = ''",
      "UPDATE optrail.digests SET bytes = ''",
      "UPDATE optrail.schema_versions SET version = 0",
      "DELETE FROM optrail.records",
      "DELETE FROM optrail.documents",
      "DELETE FROM optrail.runs",
      "DELETE FROM optrail.series",
      "DELETE FROM optrail.observations",
      "TRUNCATE optrail.records",
      "TRUNCATE optrail.observations",
      "DROP TABLE optrail.records",
      "DROP SCHEMA optrail CASCADE",
      "DROP FUNCTION optrail.runs(optrail.series)",
      "ALTER TABLE optrail.records ADD COLUMN x int",
      "ALTER TABLE optrail.records DISABLE TRIGGER ALL",
      "ALTER ROLE postgres PASSWORD 'x'",
      "CREATE TABLE optrail.mine (x int)",
      "CREATE TABLE public.mine (x int)",
      "CREATE ROLE mine SUPERUSER",
      "GRANT optrail_maintainer TO CURRENT_USER",
      "SET ROLE optrail_recorder",
      "SELECT rolpassword FROM pg_authid",
      "SELECT * FROM optrail.quarantine",
      "SELECT pg_read_file('/etc/passwd')",
      "COPY optrail.records TO PROGRAM 'cat'",
      "COPY (SELECT 1) TO '/tmp/optrail_fork'",
      "LOCK TABLE optrail.records IN ACCESS EXCLUSIVE MODE",
      "CREATE RULE mine AS ON INSERT TO optrail.records DO INSTEAD NOTHING",
      "CREATE TRIGGER mine BEFORE INSERT ON optrail.records EXECUTE FUNCTION "
      "suppress_redundant_updates_trigger()",
      "SELECT lo_import('/etc/passwd')",
  };
  for (const char* attempt : kAttempts) {
    (void)fork->Execute("ROLLBACK");
    ASSERT_TRUE(fork->Execute("BEGIN").ok());
    const absl::Status status = fork->Execute(attempt);
    EXPECT_FALSE(status.ok()) << attempt;
    // A word that the server does not know would prove nothing.
    EXPECT_FALSE(absl::StrContains(status.message(), "syntax error")) << status;
  }
  // A grant without the right to grant is a warning, and grants nothing.
  (void)fork->Execute("ROLLBACK");
  (void)fork->Execute("GRANT INSERT ON optrail.records TO CURRENT_USER");
  const auto may = fork->Query(
      "SELECT has_table_privilege('optrail.records', 'INSERT')", {});
  ASSERT_TRUE(may.ok()) << may.status();
  EXPECT_EQ((*may)[0][0], "f");
}

TEST_F(PostgresStoreTest, DashboardsReadTheNewestJudgements) {
  Init();
  const History shared = Open(Url());
  ASSERT_TRUE(Generate(shared, 2).ok());
  const auto index = HistoryIndex::Open(shared);
  ASSERT_TRUE(index.ok());
  const auto series = (*index)->ListSeries();
  ASSERT_TRUE(series.ok() && series->size() > 1);
  const std::string one = (*series)[0].text, other = (*series)[1].text;
  const auto ask = [&](const std::string& sql) {
    const auto rows = Connect(Url())->Query(sql, {});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::string text;
    for (const Postgres::Row& row : *rows) {
      for (const Postgres::Value& value : row) {
        absl::StrAppend(&text, value.value_or("NULL"), ";");
      }
    }
    return text;
  };
  ASSERT_TRUE((*index)
                  ->KeepJudgements({{one,
                                     {"slower",
                                      R"([{"started_unix_ns": 86400000000000,
                         "commit_id": "abc", "relative_change": 0.08,
                         "text": "+8.0%, new"}])"}},
                                    {other, {"unchanged", "[]"}}})
                  .ok());
  EXPECT_EQ(ask("SELECT series, extract(epoch FROM started)::bigint, "
                "commit_id, relative_change, text FROM optrail.changes"),
            one + ";86400;abc;0.08;+8.0%, new;");
  EXPECT_EQ(ask("SELECT verdict FROM optrail.judgements ORDER BY 1"),
            "slower;unchanged;");
  // Text that the view could not take apart is refused when it is written.
  for (const char* bad : {"[", "{}"}) {
    EXPECT_FALSE((*index)->KeepJudgements({{other, {"unchanged", bad}}}).ok())
        << bad;
  }
  // A series that is gone has no judgement, and one without news is let alone.
  const std::string judged =
      ask("SELECT judged FROM optrail.judgements WHERE verdict = 'unchanged'");
  ASSERT_TRUE((*index)->KeepJudgements({{other, {"unchanged", "[]"}}}).ok());
  EXPECT_EQ(ask("SELECT judged FROM optrail.judgements"), judged);
}

TEST_F(PostgresStoreTest, TlsIsAskedForAndTheCertificateChecked) {
  Init();
  const auto open = [&](const std::string& parameters) {
    return History::Open(server_->TcpUrl("postgres", database_, parameters))
        .status();
  };
  EXPECT_TRUE(open(absl::StrCat("sslmode=verify-full&sslrootcert=",
                                server_->certificate()))
                  .ok());
  EXPECT_FALSE(open("sslmode=disable").ok());
  EXPECT_FALSE(open("sslmode=verify-full&sslrootcert=/nowhere").ok());
}

TEST_F(PostgresStoreTest, OneOfSeveralWritersOfOneIdIsAcknowledged) {
  Init();
  GenerateOptions options;
  options.benchmarks = 3;
  options.hardware = 1;
  options.commits = 15;
  std::vector<proto::Run> runs;
  ASSERT_TRUE(GenerateRuns(options, [&](proto::Run run) {
                runs.push_back(std::move(run));
                return absl::OkStatus();
              }).ok());
  std::atomic<int> acknowledged{0}, taken{0};
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      const History history = Open(Url());
      for (const proto::Run& run : runs) {
        const absl::Status status = history.AppendRun(run);
        EXPECT_TRUE(status.ok() || absl::IsAlreadyExists(status)) << status;
        ++(status.ok() ? acknowledged : taken);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(acknowledged, 15);
  EXPECT_EQ(taken, 45);
  const History folder = Open(FreshFolder("expected"));
  for (const proto::Run& run : runs) ASSERT_TRUE(folder.AppendRun(run).ok());
  EXPECT_EQ(Csv(Open(Url())), Csv(folder));
}

TEST_F(PostgresStoreTest, AWriterOutlivesARebuildByAnother) {
  Init();
  GenerateOptions options;
  options.benchmarks = 3;
  options.hardware = 1;
  options.commits = 6;
  const History folder = Open(FreshFolder("expected"));
  const History writer = Open(Url()), other = Open(Url());
  int recorded = 0;
  const absl::Status generated = GenerateRuns(options, [&](proto::Run run) {
    // The writer's connection remembers rows that a rebuild removes.
    if (++recorded % 2 == 0) {
      const absl::Status rebuilt = other.store().RebuildIndex();
      if (!rebuilt.ok()) return rebuilt;
    }
    const absl::Status status = folder.AppendRun(run);
    return status.ok() ? writer.AppendRun(run) : status;
  });
  ASSERT_TRUE(generated.ok()) << generated;
  ASSERT_EQ(recorded, 6);
  const auto shared = LoadSeries(other), files = LoadSeriesFromFiles(folder);
  ASSERT_TRUE(shared.ok() && files.ok()) << shared.status() << files.status();
  ASSERT_EQ(shared->series.size(), files->series.size());
  for (size_t i = 0; i < files->series.size(); ++i) {
    EXPECT_EQ(shared->series[i].points.size(), 6u) << files->series[i].text;
  }
  EXPECT_EQ(Csv(other), Csv(folder));
}

TEST_F(PostgresStoreTest, NothingAcknowledgedIsLostWhereTheServerIsKilled) {
  Init();
  GenerateOptions options;
  options.benchmarks = 3;
  options.hardware = 1;
  options.commits = 60;
  std::vector<proto::Run> runs;
  ASSERT_TRUE(GenerateRuns(options, [&](proto::Run run) {
                runs.push_back(std::move(run));
                return absl::OkStatus();
              }).ok());
  const History shared = Open(Url());
  std::set<std::string> acknowledged;
  std::atomic<int> written{0};
  std::thread writer([&] {
    for (const proto::Run& run : runs) {
      const absl::Status status = shared.AppendRun(run);
      if (status.ok()) acknowledged.insert(run.run_id());
      ++written;
    }
  });
  // Here, since the server ends with the thread that started it.
  for (const int after : {5, 20, 33}) {
    while (written < after) std::this_thread::yield();
    ASSERT_TRUE(server_->Kill().ok());
    const absl::Status again = server_->Run();
    ASSERT_TRUE(again.ok()) << again;
  }
  writer.join();
  // What was refused is sent again, as a caller would.
  for (const proto::Run& run : runs) {
    const absl::Status status = shared.AppendRun(run);
    if (acknowledged.count(run.run_id()) > 0) {
      EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    }
  }
  const History folder = Open(FreshFolder("expected"));
  for (const proto::Run& run : runs) ASSERT_TRUE(folder.AppendRun(run).ok());
  EXPECT_TRUE(CopyHistory(folder, shared)->IsEqual());
  EXPECT_EQ(Csv(shared), Csv(folder));
}

}  // namespace
}  // namespace optrail::tracker
