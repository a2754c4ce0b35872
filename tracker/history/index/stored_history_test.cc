// What earlier versions stored is read for ever: tracker/testdata/stored_*.

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

constexpr char kStored[] = "tracker/testdata/stored_2026_11";

class StoredHistoryTest : public ::testing::Test {
 protected:
  // A copy: runfiles are links, and indexes are written beside the records.
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/stored_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    const auto files = ListRecursively(JoinPath(kStored, "history"), ".pb");
    ASSERT_TRUE(files.ok()) << files.status();
    ASSERT_EQ(files->size(), 10);
    for (const std::string& file : *files) {
      const std::string copy =
          JoinPath(folder_, file.substr(std::string(kStored).size() + 1));
      ASSERT_TRUE(CreateDirectories(DirectoryOf(copy)).ok());
      ASSERT_TRUE(WriteFileAtomically(copy, *ReadFile(file)).ok());
    }
    auto history = History::Open(JoinPath(folder_, "history"));
    ASSERT_TRUE(history.ok()) << history.status();
    history_ = std::make_unique<History>(*std::move(history));
  }

  std::string folder_;
  std::unique_ptr<History> history_;
};

TEST_F(StoredHistoryTest, EveryRecordIsSound) {
  const auto report = history_->Verify();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->bad_files.empty());
  EXPECT_EQ(report->runs, 3);
  EXPECT_EQ(report->sessions, 3);
  EXPECT_EQ(report->triage_records, 3);
  EXPECT_EQ(report->tombstone_files, 1);
}

// Keys, order, values and attributes, as the writer's own export said.
TEST_F(StoredHistoryTest, SeriesReadAsTheirWriterReadThem) {
  const auto index = HistoryIndex::Open(*history_);
  ASSERT_TRUE(index.ok()) << index.status();
  const auto list = (*index)->ListSeries();
  ASSERT_TRUE(list.ok()) << list.status();
  std::string read;
  for (const SeriesInfo& info : *list) {
    const auto series = (*index)->ReadSeries(info.text);
    ASSERT_TRUE(series.ok()) << series.status();
    for (size_t t = 0; t < series->points.size(); ++t) {
      const Point& point = series->points[t];
      ASSERT_TRUE(point.value.has_value()) << info.text;
      absl::StrAppend(&read, series->text, "\t", t, "\t",
                      absl::StrFormat("%.17g", *point.value), "\t",
                      point.processes.size(), "\t",
                      tuning::OutcomeName(point.outcome), "\t",
                      point.runs->commit.id().substr(0, 12), "\t",
                      point.attributes->config, "\n");
    }
  }
  EXPECT_EQ(read, *ReadFile(JoinPath(kStored, "series.tsv")));
}

TEST_F(StoredHistoryTest, KeysOfSeriesParseBack) {
  const auto index = HistoryIndex::Open(*history_);
  ASSERT_TRUE(index.ok()) << index.status();
  const auto list = (*index)->ListSeries();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 13);
  for (const SeriesInfo& info : *list) {
    const auto key = ParseSeriesKey(info.text);
    ASSERT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(CanonicalText(*key), info.text);
  }
}

// A key that changed would void every trial there is.
TEST_F(StoredHistoryTest, TrialKeysOfSessionsAreTheSame) {
  const auto matmul = history_->ReadSession("20261121T180626Z-523e4d8ea62d");
  ASSERT_TRUE(matmul.ok()) << matmul.status();
  EXPECT_EQ(tuning::TaskText(matmul->task()),
            "matmul/cpu/m=64,n=48,k=32/f32/threads=1/hot");
  EXPECT_EQ(tuning::TrialKey(matmul->task(), matmul->trials(4).config()),
            "matmul/cpu/m=64,n=48,k=32/f32/threads=1/hot|754948d68a07b6be|"
            "amd-epyc-zen4-2c|k_unroll=1,kc=16,m_tiles=1,mr=8,n_tiles=1,"
            "nr_vectors=3,outer_loop=rows,pack_a=false,pack_b=false,"
            "prefetch_steps=16,stays_in_l1=b,tasks_per_thread=1,"
            "thread_split=rows");
  EXPECT_EQ(matmul->trials_size(), 5);
  EXPECT_EQ(matmul->trials(3).outcome(), proto::CENSORED);
  EXPECT_EQ(matmul->trials(4).time_ns(), 2561);

  const auto warm = history_->ReadSession("20261121T180627Z-a1e02163d47c");
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_EQ(warm->warm_start_trial_count(), 5);
  EXPECT_EQ(warm->trials(0).session_id(), "20261121T180625Z-c67c7f850181");
  EXPECT_EQ(tuning::CanonicalText(warm->winner()),
            "block_elements=1024,prefetch_bytes=1024,stores=cached,unroll=8");
}

TEST_F(StoredHistoryTest, TriageAndTombstonesSayWhatTheySaid) {
  const auto triage = history_->LoadTriage();
  ASSERT_TRUE(triage.ok()) << triage.status();
  std::vector<std::string> said;
  for (const proto::TriageRecord& record : triage->records) {
    said.push_back(record.text());
  }
  EXPECT_THAT(said, ::testing::UnorderedElementsAre("known", "new compiler",
                                                    "new disk"));
  const auto tombstones = history_->LoadTombstones();
  ASSERT_TRUE(tombstones.ok()) << tombstones.status();
  EXPECT_TRUE(tombstones->bad_files.empty());
  ASSERT_EQ(tombstones->by_run.size(), 1);
  EXPECT_EQ(tombstones->by_run.begin()->first, "20261121T180627Z-9c150d3199f9");
  EXPECT_EQ(tombstones->by_run.begin()->second, proto::THINNED);
}

}  // namespace
}  // namespace optrail::tracker
