#include "reports/stored_series.h"

#include <sys/stat.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/random.h"
#include "base/testing/unprivileged.h"
#include "gtest/gtest.h"
#include "reports/build_report_data.h"
#include "reports/html_report.h"
#include "reports/testing/stored_pages.h"
#include "sqlite3.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/sqlite.h"
#include "tracker/history/retention.h"
#include "tracker/judge/judge.h"
#include "tracker/judge/testing/random_answer.h"
#include "tracker/series/series_key.h"
#include "tracker/triage/triage.h"

namespace optrail::reports {
namespace {

using tracker::History;
using tracker::HistoryIndex;

// Counts the queries that SQLite begins, in databases that are opened while
// this lives.
class QueryCounter {
 public:
  QueryCounter() { sqlite3_auto_extension(Entry()); }
  ~QueryCounter() { sqlite3_cancel_auto_extension(Entry()); }
  QueryCounter(const QueryCounter&) = delete;
  QueryCounter& operator=(const QueryCounter&) = delete;

  // Returns how many there were since it was last called.
  static int Take() { return std::exchange(queries_, 0); }

 private:
  static void (*Entry())() { return reinterpret_cast<void (*)()>(&Trace); }
  static int Trace(sqlite3* db, const char**, const void*) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, &Count, nullptr);
  }
  static int Count(unsigned, void*, void*, void* text) {
    queries_ += absl::StartsWith(static_cast<const char*>(text), "SELECT");
    return 0;
  }
  static int queries_;
};
int QueryCounter::queries_ = 0;

class StoredSeriesTest : public ::testing::Test, protected StoredPages {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/stored_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }

  // With oddities of every kind: failures, epochs, branches, unplaced runs.
  // Levels shift, and a benchmark comes, goes and has another name.
  static std::vector<proto::Run> MakeRuns(uint64_t seed, int commits) {
    tracker::GenerateOptions options;
    options.seed = seed;
    options.benchmarks = 6;
    options.hardware = 2;
    options.commits = commits;
    options.processes = 3;
    options.samples = 3;
    options.oddities = true;
    std::vector<proto::Run> runs;
    EXPECT_TRUE(
        tracker::GenerateRuns(options, [&](proto::Run run) -> absl::Status {
          const int commit =
              static_cast<int>(run.commit().first_parent_position());
          if (commit > 40 && commit < 70) Slow(5, &run);
          auto* const results = run.mutable_results();
          if (commit > commits / 2) {
            (*results)[1].mutable_key()->set_operator_name("conv2d_new");
          }
          if (commit < 20 || commit > commits - 4) results->RemoveLast();
          runs.push_back(std::move(run));
          return absl::OkStatus();
        }).ok());
    return runs;
  }

  static void Slow(int share, proto::Run* run) {
    for (proto::BenchmarkResult& result : *run->mutable_results()) {
      for (proto::Measurement& measurement : *result.mutable_measurements()) {
        for (auto& ns : *measurement.mutable_sample_ns()) ns += ns / share;
      }
    }
  }

  History Record(const std::string& name,
                 const std::vector<proto::Run>& runs) const {
    const History history = *History::Open(JoinPath(dir_, name));
    for (const proto::Run& run : runs) {
      EXPECT_TRUE(history.AppendRun(run).ok());
    }
    return history;
  }

  std::string dir_;
};

TEST_F(StoredSeriesTest, ThePageIsThatOfAllPointsWhateverHappens) {
  int64_t read = 0, spared = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    if (seed == 3) page_ = HtmlReportOptions();  // all points are drawn
    Rng rng(seed);
    const History history = *History::Open(JoinPath(dir_, absl::StrCat(seed)));
    std::vector<proto::Run> runs = MakeRuns(seed, 120);
    for (size_t i = 0; i + 1 < runs.size(); ++i) {
      if (rng.UniformInt(8) > 0) continue;
      std::swap(runs[i], runs[i + rng.UniformInt(runs.size() - i)]);
    }
    ASSERT_TRUE(history.AppendRun(runs[0]).ok());
    std::vector<proto::TriageRecord> answers;
    size_t next = 1;
    while (next < runs.size()) {
      std::string what;
      switch (rng.UniformInt(6)) {
        case 0:
          what = "answered";
          answers.push_back(tracker::RandomAnswer(
              runs, static_cast<int64_t>(answers.size()), kNowUnixNs, rng));
          break;
        case 1: {
          what = "thinned";
          tracker::RetentionPolicy policy;
          policy.keep_runs = 60;
          policy.keep_days = 0;
          policy.keep_every = 1 + static_cast<int>(rng.UniformInt(2));
          const auto plan = tracker::PlanRetention(history, policy, kNowUnixNs);
          ASSERT_TRUE(plan.ok()) << plan.status();
          ASSERT_TRUE(tracker::ApplyRetention(history, *plan, kNowUnixNs).ok());
          break;
        }
        case 2: {
          what = "replaced or removed";
          const tracker::RunList list = *history.ListRuns();
          const std::string id =
              list.runs[rng.UniformInt(list.runs.size())].id();
          if (rng.UniformInt(3) == 0 && list.runs.size() > 1) {
            ASSERT_TRUE(history.RemoveRun(id).ok());
            break;
          }
          proto::Run run = *history.ReadRun(id);
          Slow(9, &run);
          ASSERT_TRUE(history.ReplaceRun(run).ok());
          break;
        }
        default:
          what = "recorded";
          for (int i = 0; i < 20 && next < runs.size(); ++i) {
            ASSERT_TRUE(history.AppendRun(runs[next++]).ok());
          }
      }
      SCOPED_TRACE(absl::StrCat(what, ", ", next));
      const std::string fresh = Fresh(history, answers);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(Stored(history, answers), fresh));
      read += read_;
      // Nothing has happened since: what is left are renamed and missing ones.
      ASSERT_NO_FATAL_FAILURE(ExpectSame(Stored(history, answers), fresh));
      spared += series_ - read_;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(spared, 500);
}

TEST_F(StoredSeriesTest, ReadsWhatHasChangedAlone) {
  const History history = *History::Open(JoinPath(dir_, "h"));
  tracker::GenerateOptions options;
  options.benchmarks = 5;
  options.hardware = 2;
  options.commits = 60;
  options.samples = 2;
  std::vector<proto::Run> runs;
  ASSERT_TRUE(tracker::GenerateRuns(options, [&](proto::Run run) {
                runs.push_back(std::move(run));
                return absl::OkStatus();
              }).ok());
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    ASSERT_TRUE(history.AppendRun(runs[i]).ok());
  }
  const std::string page = Stored(history, {});
  EXPECT_EQ(read_, 10);
  ExpectSame(Stored(history, {}), page);
  EXPECT_EQ(read_, 0);
  // One more run of one machine.
  ASSERT_TRUE(history.AppendRun(runs.back()).ok());
  ExpectSame(Stored(history, {}), Fresh(history, {}));
  EXPECT_EQ(read_, 5);
  // An answer about one benchmark.
  proto::TriageRecord answer;
  answer.set_record_id("a");
  answer.set_kind(proto::NOTE);
  answer.set_text("noted");
  answer.set_series((*HistoryIndex::Open(history))->ListSeries()->at(3).text);
  *answer.mutable_commit() = runs[20].commit();
  ExpectSame(Stored(history, {answer}), Fresh(history, {answer}));
  EXPECT_EQ(read_, 1);
  // Another program may judge otherwise.
  ExpectSame(Stored(history, {answer}, "another"), Fresh(history, {answer}));
  EXPECT_EQ(read_, 10);
  // Nothing is kept of a program that is not known, and nothing used.
  ExpectSame(Stored(history, {answer}, ""), Fresh(history, {answer}));
  EXPECT_EQ(read_, 10);
}

// The smallest page shows processes of the newest points alone. A short series
// has all of its points there, and yet not what a larger page shows.
TEST_F(StoredSeriesTest, ALargerPageShowsAllProcessesOfShortSeries) {
  const History history = Record("h", MakeSlower(12, 8, "slower"));
  const HtmlReportOptions small = page_;
  for (const HtmlReportOptions& page : {small, HtmlReportOptions(), small}) {
    page_ = page;
    ExpectSame(Stored(history, {}), Fresh(history, {}));
    EXPECT_EQ(read_, 5);
  }
  ExpectSame(Stored(history, {}), Fresh(history, {}));
  EXPECT_EQ(read_, 0);
}

// A page of fifty thousand series must not ask fifty thousand times: the server
// of a shared history is another machine.
TEST_F(StoredSeriesTest, AsksTheIndexAsOftenForManySeriesAsForFew) {
  std::map<int, int> kept, read;  // queries by number of benchmarks
  for (const int benchmarks : {8, 400}) {
    SCOPED_TRACE(benchmarks);
    tracker::GenerateOptions options;
    options.benchmarks = benchmarks;
    options.hardware = 1;
    options.commits = 12;
    options.processes = 2;
    options.samples = 1;
    const History history =
        *History::Open(JoinPath(dir_, absl::StrCat(benchmarks)));
    ASSERT_TRUE(tracker::GenerateHistory(options, history).ok());
    const QueryCounter counter;
    const auto index = HistoryIndex::Open(history);
    ASSERT_TRUE(index.ok()) << index.status();
    counter.Take();
    const std::string page = StoredIn(**index, {}, "program");
    EXPECT_EQ(read_, benchmarks);
    read[benchmarks] = counter.Take();
    ExpectSame(StoredIn(**index, {}, "program"), page);
    EXPECT_EQ(read_, 0);
    kept[benchmarks] = counter.Take();
    EXPECT_GT(kept[benchmarks], 0);
  }
  EXPECT_EQ(kept[400], kept[8]);
  // Points are read a group of series at a time.
  EXPECT_LT(read[400] - read[8], 400 / 8);
}

// A text that is cut within a character is no UTF-8, and loses no series.
TEST_F(StoredSeriesTest, KeepsSeriesWhoseTextsAreNoUtf8) {
  const std::vector<proto::Run> runs = MakeSlower(60, 40, "release-1.0\u00e9");
  const History history = Record("h", runs);
  Stored(history, {});
  ASSERT_EQ(series_, 5);
  const auto answer = AnswerTo(data_, 2, proto::ACKNOWLEDGE, runs[40].commit());
  for (int report = 0; report < 2; ++report) {
    ExpectSame(Stored(history, {answer}), Fresh(history, {answer}));
    EXPECT_EQ(series_, 5);
    EXPECT_EQ(read_, report == 0 ? 1 : 0);
  }
  ASSERT_FALSE(data_.series[2].changes.empty());
  EXPECT_EQ(data_.changes.answered, 1);
}

TEST_F(StoredSeriesTest, FollowsAnswersThatEndOrAreTakenBack) {
  const std::vector<proto::Run> runs = MakeSlower(60, 40, "slower");
  const History history = Record("h", runs);
  const std::string unanswered = Stored(history, {});
  ExpectSame(unanswered, Fresh(history, {}));
  EXPECT_NE(unanswered.find("explained by "), std::string::npos);
  EXPECT_EQ(data_.changes.alerts, 5);

  proto::TriageRecord mute = AnswerTo(data_, 0, proto::MUTE, runs[40].commit());
  mute.set_until_unix_ns(kNowUnixNs + 1);
  std::vector<proto::TriageRecord> answers = {
      mute, AnswerTo(data_, 1, proto::ACKNOWLEDGE, runs[40].commit())};
  const auto expect = [&](int muted, int answered, int read) {
    SCOPED_TRACE(absl::StrCat(muted, " muted, ", answered, " answered"));
    ExpectSame(Stored(history, answers), Fresh(history, answers));
    EXPECT_EQ(read_, read);
    EXPECT_EQ(data_.changes.muted, muted);
    EXPECT_EQ(data_.changes.answered, answered);
    EXPECT_EQ(data_.changes.alerts, 5 - muted - answered);
  };
  expect(1, 1, 2);
  expect(1, 1, 0);
  now_unix_ns_ = kNowUnixNs + 1;  // the mute has ended
  expect(0, 1, 1);
  expect(0, 1, 0);
  proto::TriageRecord undo;
  undo.set_record_id("undo");
  undo.set_created_unix_ns(9);
  undo.set_kind(proto::UNDO);
  undo.set_supersedes("answer-1");
  answers.push_back(undo);
  expect(0, 0, 1);
  expect(0, 0, 0);
  undo.set_record_id("undo of the undo");
  undo.set_created_unix_ns(10);
  undo.set_supersedes("undo");
  answers.push_back(undo);
  expect(0, 1, 1);
  expect(0, 1, 0);
}

// By kind of answer, long ago and just now, and a gain of one point.
TEST_F(StoredSeriesTest, KeepsWhatAnswersAndGainsAskFor) {
  std::map<Verdict, int> seen;
  for (const int slow_from : {20, 65}) {
    SCOPED_TRACE(slow_from);
    std::vector<proto::Run> runs = MakeSlower(80, slow_from, "slower");
    proto::Run newest = runs.back();
    runs.pop_back();
    const History history = Record(absl::StrCat(slow_from), runs);
    Stored(history, {});
    for (proto::BenchmarkResult& result : *newest.mutable_results()) {
      if (tracker::DisplayName(result.key()) != data_.series[3].name) continue;
      for (auto& measurement : *result.mutable_measurements()) {
        for (auto& ns : *measurement.mutable_sample_ns()) ns -= ns / 3;
      }
    }
    ASSERT_TRUE(history.AppendRun(newest).ok());
    const proto::Commit& commit = runs[slow_from].commit();
    std::vector<proto::TriageRecord> answers = {
        AnswerTo(data_, 0, proto::ACKNOWLEDGE, commit),
        AnswerTo(data_, 1, proto::EXPECT, commit),
        AnswerTo(data_, 2, proto::MUTE, commit),
        AnswerTo(data_, 3, proto::ACKNOWLEDGE, commit)};
    answers[2].set_until_unix_ns(kNowUnixNs + 1);
    for (int report = 0; report < 2; ++report) {
      ExpectSame(Stored(history, answers), Fresh(history, answers));
      EXPECT_EQ(read_, report == 0 ? 5 : 0);
      EXPECT_EQ(data_.changes.muted, 1);
      EXPECT_GE(data_.changes.answered, 2);
      for (const SeriesView& series : data_.series) ++seen[series.verdict];
    }
  }
  for (const Verdict verdict :
       {Verdict::kAcknowledged, Verdict::kExpected, Verdict::kMuted,
        Verdict::kMaybeFaster, Verdict::kSlower}) {
    EXPECT_GT(seen[verdict], 0) << tracker::VerdictName(verdict);
  }
}

TEST_F(StoredSeriesTest, DistrustsWhatIsDamagedOrOfAnotherSeries) {
  const History history = *History::Open(JoinPath(dir_, "h"));
  for (const proto::Run& run : MakeRuns(7, 50)) {
    ASSERT_TRUE(history.AppendRun(run).ok());
  }
  const std::string page = Stored(history, {});
  ExpectSame(page, Fresh(history, {}));
  for (const char* harm :
       {"UPDATE digests SET bytes = x'00'",
        "UPDATE digests SET bytes = substr(bytes, 1, length(bytes) / 2)",
        "UPDATE digests SET bytes = substr(bytes, 1, 40) || x'07' || "
        "substr(bytes, 42)",
        "UPDATE digests SET bytes = (SELECT max(bytes) FROM digests)",
        "DELETE FROM digests"}) {
    SCOPED_TRACE(harm);
    {
      auto db = tracker::OpenSqlite(JoinPath(history.dir(), "index.sqlite"),
                                    SQLITE_OPEN_READWRITE);
      ASSERT_TRUE(db.ok());
      ASSERT_TRUE((*db)->Execute(harm).ok());
    }
    ExpectSame(Stored(history, {}), page);
    EXPECT_GT(read_, series_ / 2);
    ExpectSame(Stored(history, {}), page);
  }
}

// Then nothing can be kept, and the page is the same.
TEST_F(StoredSeriesTest, AnIndexThatCannotBeWrittenCostsTimeAlone) {
  const std::vector<proto::Run> runs = MakeSlower(40, 30, "slower");
  const History history = Record("h", {runs.begin(), runs.end() - 1});
  const std::string page = Fresh(history, {});
  const Unprivileged unprivileged;
  // There is no index: it is built in memory for each report.
  ASSERT_EQ(chmod(history.dir().c_str(), 0555), 0);
  for (int report = 0; report < 2; ++report) {
    EXPECT_EQ((*HistoryIndex::Open(history))->path(), "");
    ExpectSame(Stored(history, {}), page);
    EXPECT_EQ(read_, 5);
  }
  // One that lasts, with digests of an earlier report, is read.
  ASSERT_EQ(chmod(history.dir().c_str(), 0755), 0);
  ExpectSame(Stored(history, {}), page);
  EXPECT_EQ(read_, 5);
  ASSERT_EQ(chmod(history.dir().c_str(), 0555), 0);
  EXPECT_NE((*HistoryIndex::Open(history))->path(), "");
  ExpectSame(Stored(history, {}), page);
  EXPECT_EQ(read_, 0);
  // Digests that it lacks are read each time.
  const auto answer = AnswerTo(data_, 2, proto::ACKNOWLEDGE, runs[30].commit());
  for (int report = 0; report < 2; ++report) {
    ExpectSame(Stored(history, {answer}), Fresh(history, {answer}));
    EXPECT_EQ(read_, 1);
  }
  ASSERT_EQ(chmod(history.dir().c_str(), 0755), 0);
}

}  // namespace
}  // namespace optrail::reports
