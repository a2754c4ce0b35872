#include "reports/stored_series.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "reports/build_report_data.h"
#include "reports/html_report.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/sqlite.h"
#include "tracker/history/retention.h"
#include "tracker/triage/triage.h"

namespace optrail::reports {
namespace {

using tracker::History;
using tracker::HistoryIndex;

constexpr int64_t kNowUnixNs = 4'000'000'000LL * 1'000'000'000;

// A page of few bytes leaves out all points but the fewest.
HtmlReportOptions Small() {
  HtmlReportOptions options;
  options.max_bytes -= DataBytes("") - 600;
  return options;
}

class StoredSeriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/stored_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }

  // Of oddities every kind: failures, epochs, branches, unplaced runs. Levels
  // shift, and a benchmark comes, goes and has another name.
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

  static BuildOptions Build(const std::vector<proto::TriageRecord>& answers) {
    BuildOptions build;
    build.triage = answers;
    build.now_unix_ns = kNowUnixNs;
    return build;
  }

  // From all points.
  std::string Fresh(const History& history,
                    const std::vector<proto::TriageRecord>& answers) {
    auto loaded = tracker::LoadSeriesFromFiles(history);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return WriteHtmlReport(
        BuildReportData(loaded->runs, std::move(loaded->series), {},
                        Build(answers)),
        page_);
  }

  // From digests, which it keeps.
  std::string Stored(const History& history,
                     const std::vector<proto::TriageRecord>& answers,
                     const std::string& program = "this") {
    auto index = HistoryIndex::Open(history);
    EXPECT_TRUE(index.ok()) << index.status();
    const tracker::TriageBook book(answers, kNowUnixNs);
    StoredOptions options;
    options.book = &book;
    options.data_bytes = DataBytes("Optrail report", page_);
    options.program = program;
    auto stored = LoadStoredSeries(**index, options);
    EXPECT_TRUE(stored.ok()) << stored.status();
    read_ = stored->series_read;
    series_ = static_cast<int64_t>(stored->judged.all->size());
    KeepStoredSeries(**index, *stored);
    return WriteHtmlReport(
        BuildReportData(stored->runs, *stored->tables,
                        std::move(stored->judged), {}, Build(answers)),
        page_);
  }

  // The pages are long: where they part is enough.
  static void ExpectSame(const std::string& page, const std::string& fresh) {
    if (page == fresh) return;
    size_t i = 0;
    while (i < page.size() && i < fresh.size() && page[i] == fresh[i]) ++i;
    const size_t begin = i < 200 ? 0 : i - 200;
    ADD_FAILURE() << "at " << i << " expected\n"
                  << fresh.substr(begin, 400) << "\nbut it is\n"
                  << page.substr(begin, 400);
  }

  std::string dir_;
  HtmlReportOptions page_ = Small();
  int64_t read_ = 0, series_ = 0;
};

proto::TriageRecord RandomAnswer(const std::vector<proto::Run>& runs, int id,
                                 Rng& rng) {
  static constexpr proto::TriageKind kKinds[] = {
      proto::ACKNOWLEDGE, proto::EXPECT, proto::MUTE, proto::NOTE};
  proto::TriageRecord record;
  record.set_record_id(absl::StrCat("r", id));
  record.set_created_unix_ns(id);
  record.set_kind(kKinds[rng.UniformInt(4)]);
  record.set_pattern(rng.UniformInt(3) == 0 ? ".*" : "matmul.*");
  record.set_text(absl::StrCat("because ", id));
  *record.mutable_commit() = runs[rng.UniformInt(runs.size())].commit();
  if (record.kind() == proto::MUTE) record.set_until_unix_ns(kNowUnixNs + 1);
  if (record.kind() == proto::EXPECT) record.set_effect(.05);
  return record;
}

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
          answers.push_back(
              RandomAnswer(runs, static_cast<int>(answers.size()), rng));
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

}  // namespace
}  // namespace optrail::reports
