// Digests of an index that several processes share.

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "reports/stored_series.h"
#include "reports/testing/stored_pages.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/postgres/testing/postgres_fixture.h"

namespace optrail::reports {
namespace {

using tracker::History;
using tracker::HistoryIndex;
using tracker::Postgres;

constexpr int kSeries = 5;

class StoredSeriesPostgresTest : public tracker::PostgresTest,
                                 protected StoredPages {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(tracker::InitHistorySchema(**Postgres::Connect(Url())).ok());
    runs_ = MakeSlower(60, 40, "slower");
    const History history = Open();
    for (size_t i = 0; i < 50; ++i) {
      ASSERT_TRUE(history.AppendRun(runs_[i]).ok());
    }
  }

  History Open(const std::string& user = "postgres") const {
    auto history = History::Open(Url(user));
    EXPECT_TRUE(history.ok()) << history.status();
    return *history;
  }
  std::string Count(const std::string& table) const {
    return (*Postgres::Connect(Url("postgres")))
        ->Query("SELECT count(*) FROM optrail." + table, {})
        ->at(0)[0]
        .value_or("");
  }
  // By a process that knows nothing of the others.
  void Rebuild() const {
    auto index = HistoryIndex::Open(Open());
    ASSERT_TRUE(index.ok()) << index.status();
    ASSERT_TRUE((*index)->Rebuild().ok());
  }

  std::vector<proto::Run> runs_;
};

TEST_F(StoredSeriesPostgresTest, AReaderSeesThePageAndKeepsNothing) {
  const History owner = Open();
  const History reader = Open(NewRole("optrail_reader"));
  const std::string page = Fresh(owner, {});
  for (int report = 0; report < 2; ++report) {
    ExpectSame(Stored(reader, {}), page);
    EXPECT_EQ(read_, kSeries);
    EXPECT_EQ(Count("digests"), "0");
    EXPECT_EQ(Count("folds"), "0");
  }
  // It uses what others kept.
  ExpectSame(Stored(Open(NewRole("optrail_recorder")), {}), page);
  EXPECT_EQ(read_, kSeries);
  EXPECT_EQ(Count("digests"), absl::StrCat(kSeries));
  ExpectSame(Stored(reader, {}), page);
  EXPECT_EQ(read_, 0);
}

TEST_F(StoredSeriesPostgresTest, WhatHappensBetweenScanAndKeepIsSeenNextTime) {
  const History history = Open();
  size_t next = 50;
  const std::vector<std::function<void()>> changes = {
      [&] { Rebuild(); },
      [&] { ASSERT_TRUE(Open().AppendRun(runs_[next++]).ok()); },
      // Rows of other runs, under other numbers.
      [&] {
        const std::string id = runs_[7].run_id();
        ASSERT_TRUE(Open().RemoveRun(id).ok());
        Rebuild();
      },
      [&] {
        proto::Run run = runs_[45];
        for (auto& result : *run.mutable_results()) {
          for (auto& measurement : *result.mutable_measurements()) {
            for (auto& ns : *measurement.mutable_sample_ns()) ns += ns / 9;
          }
        }
        ASSERT_TRUE(Open().ReplaceRun(run).ok());
      }};
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    const std::string before = Fresh(history, {});
    {
      auto index = HistoryIndex::Open(history);
      ASSERT_TRUE(index.ok()) << index.status();
      ExpectSame(StoredIn(**index, {}, "this", changes[i]), before);
    }
    const std::string after = Fresh(history, {});
    ExpectSame(Stored(history, {}), after);
    EXPECT_EQ(read_, kSeries) << "what was kept was of another state";
    ExpectSame(Stored(history, {}), after);
    EXPECT_EQ(read_, 0);
  }
}

TEST_F(StoredSeriesPostgresTest, TwoWritersLeaveWhatOneOfThemKept) {
  const History history = Open();
  const std::string page = Fresh(history, {});
  // One answers an alert, so that their digests of a series differ.
  ExpectSame(Stored(history, {}), page);
  const std::vector<proto::TriageRecord> answers = {
      AnswerTo(data_, 2, proto::ACKNOWLEDGE, runs_[40].commit())};
  const std::string answered = Fresh(history, answers);
  Sql(database_, "DELETE FROM optrail.digests; DELETE FROM optrail.folds");
  struct Writer : StoredPages {
    using StoredPages::ExpectSame;
    using StoredPages::Stored;
  };
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      Writer pages;
      const History own = Open();
      for (int report = 0; report < 4; ++report) {
        Writer::ExpectSame(
            pages.Stored(own, writer == 0 ? std::vector<proto::TriageRecord>()
                                          : answers),
            writer == 0 ? page : answered);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Count("digests"), absl::StrCat(kSeries));
  ExpectSame(Stored(history, {}), page);
  EXPECT_LE(read_, 1) << "all but the series that was answered are the same";
  ExpectSame(Stored(history, answers), answered);
  EXPECT_EQ(read_, 1);
}

}  // namespace
}  // namespace optrail::reports
