#include "tracker/history/index/history_index.h"

#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "base/file/file.h"
#include "base/testing/unprivileged.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/index/sqlite.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

class HistoryIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/index_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }

  History Generate(uint64_t seed, const std::string& name = "h") {
    History history = *History::Open(JoinPath(dir_, name));
    EXPECT_TRUE(GenerateHistory(Options(seed), history).ok());
    return history;
  }

  static GenerateOptions Options(uint64_t seed) {
    GenerateOptions options;
    options.seed = seed;
    options.benchmarks = 4;
    options.hardware = 2;
    options.commits = 12;
    options.processes = 3;
    options.samples = 7;
    options.oddities = true;
    return options;
  }

  static std::unique_ptr<HistoryIndex> Open(const History& history) {
    auto index = HistoryIndex::Open(history);
    EXPECT_TRUE(index.ok()) << index.status();
    return *std::move(index);
  }

  static std::string IndexPath(const History& history) {
    return JoinPath(history.dir(), "index.sqlite");
  }

  std::string dir_;
};

void ExpectSame(const Point& a, const Point& b) {
  EXPECT_EQ(a.runs->commit.SerializeAsString(),
            b.runs->commit.SerializeAsString());
  EXPECT_EQ(a.runs->ids, b.runs->ids);
  EXPECT_EQ(a.runs->first_started_unix_ns, b.runs->first_started_unix_ns);
  ASSERT_EQ(a.processes.size(), b.processes.size());
  for (size_t i = 0; i < a.processes.size(); ++i) {
    EXPECT_EQ(a.processes[i].value, b.processes[i].value);
    EXPECT_EQ(a.processes[i].fastest, b.processes[i].fastest);
    EXPECT_EQ(a.processes[i].relative_sample_spread,
              b.processes[i].relative_sample_spread);
    EXPECT_EQ(a.processes[i].samples, b.processes[i].samples);
    EXPECT_EQ(a.processes[i].aggregate_only, b.processes[i].aggregate_only);
  }
  ASSERT_EQ(a.calibrations.size(), b.calibrations.size());
  for (size_t i = 0; i < a.calibrations.size(); ++i) {
    EXPECT_EQ(a.calibrations[i].loop, b.calibrations[i].loop);
    EXPECT_EQ(a.calibrations[i].log_ns, b.calibrations[i].log_ns);
    EXPECT_EQ(a.calibrations[i].processes, b.calibrations[i].processes);
  }
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.detail, b.detail);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_EQ(a.attributes->config, b.attributes->config);
  EXPECT_EQ(a.attributes->config_source, b.attributes->config_source);
  EXPECT_EQ(a.attributes->kernel_id, b.attributes->kernel_id);
  EXPECT_EQ(a.attributes->tuning_session_id, b.attributes->tuning_session_id);
  EXPECT_EQ(a.attributes->flop, b.attributes->flop);
  EXPECT_EQ(a.attributes->moved_bytes, b.attributes->moved_bytes);
  EXPECT_EQ(a.roofline_fraction, b.roofline_fraction);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.settings, b.settings);
}

// Everything the index says against what the files say.
void ExpectSameAsFiles(const History& history, HistoryIndex& index) {
  const LoadedRuns loaded = *history.LoadRuns();
  const std::vector<Series> scanned = BuildSeries(loaded.runs);
  const auto listed = index.ListSeries();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), scanned.size());
  for (size_t i = 0; i < scanned.size(); ++i) {
    ASSERT_EQ((*listed)[i].text, scanned[i].text);
    const auto read = index.ReadSeries(scanned[i].text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->text, scanned[i].text);
    EXPECT_EQ(read->direction, scanned[i].direction);
    ASSERT_EQ(read->epochs.size(), scanned[i].epochs.size());
    for (size_t e = 0; e < read->epochs.size(); ++e) {
      EXPECT_EQ(read->epochs[e].change, scanned[i].epochs[e].change);
    }
    ASSERT_EQ(read->points.size(), scanned[i].points.size());
    std::set<std::string> runs;
    for (size_t p = 0; p < read->points.size(); ++p) {
      ExpectSame(read->points[p], scanned[i].points[p]);
      for (const std::string& run : read->points[p].runs->ids) runs.insert(run);
    }
    EXPECT_EQ((*listed)[i].runs, runs.size());
  }
  const auto runs = index.ListRuns();
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->runs.size(), loaded.runs.size());
  for (size_t i = 0; i < loaded.runs.size(); ++i) {
    proto::Run header = loaded.runs[i];
    EXPECT_EQ(runs->runs[i].result_count, header.results_size());
    header.clear_results();
    header.clear_checksum();
    EXPECT_EQ(runs->runs[i].header.SerializeAsString(),
              header.SerializeAsString());
  }
  ASSERT_EQ(runs->bad_files.size(), loaded.bad_files.size());
  for (size_t i = 0; i < loaded.bad_files.size(); ++i) {
    EXPECT_EQ(runs->bad_files[i].path, loaded.bad_files[i].path);
  }
}

std::string PathOf(const History& history, const std::string& run_id) {
  return JoinPath(history.dir(), "runs", run_id.substr(0, 4), run_id + ".pb");
}

TEST_F(HistoryIndexTest, SaysWhatAScanOfTheFilesSays) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const History history = Generate(seed, "h" + std::to_string(seed));
    ExpectSameAsFiles(history, *Open(history));
  }
}

TEST_F(HistoryIndexTest, TakesInWhatChangedAndOnlyThat) {
  const History history = Generate(1);
  auto index = Open(history);
  const int64_t files = index->Update()->files;
  EXPECT_GT(files, 20);
  EXPECT_EQ(index->Update()->added, 0);

  const LoadedRuns loaded = *history.LoadRuns();
  // One vanishes, one is replaced, one is damaged, one is new.
  ASSERT_TRUE(history.RemoveRun(loaded.runs[2].run_id()).ok());
  proto::Run changed = loaded.runs[5];
  changed.mutable_results()->DeleteSubrange(0, 1);
  ASSERT_TRUE(history.ReplaceRun(changed).ok());
  ASSERT_TRUE(
      WriteFileAtomically(PathOf(history, loaded.runs[7].run_id()), "x").ok());
  proto::Run added = loaded.runs[2];
  added.set_run_id("20291120T090807Z-1a2b3c4d5e6f");
  ASSERT_TRUE(history.AppendRun(added).ok());

  const auto update = index->Update();
  ASSERT_TRUE(update.ok()) << update.status();
  EXPECT_EQ(update->files, files);
  EXPECT_EQ(update->added, 3);
  EXPECT_EQ(update->dropped, 3);
  ExpectSameAsFiles(history, *index);
  EXPECT_EQ(Open(history)->Update()->added, 0);
}

TEST_F(HistoryIndexTest, FiltersSeriesAndRuns) {
  const History history = Generate(2);
  auto index = Open(history);
  SeriesFilter filter;
  filter.metric = "time";
  filter.hardware_id = "intel-icelake-8c";
  filter.branch = "main";
  EXPECT_EQ(index->ListSeries(filter)->size(), 4);
  filter.pattern = "^softmax/";
  ASSERT_EQ(index->ListSeries(filter)->size(), 1);
  EXPECT_THAT(index->ListSeries(filter)->front().text,
              HasSubstr("|time|ns|intel-icelake-8c|main"));
  filter.pattern = "(";
  EXPECT_EQ(index->ListSeries(filter).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(index->ReadSeries("softmax|time|ns|none|main").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(index->ReadSeries("softmax").status().code(),
            absl::StatusCode::kInvalidArgument);
  RunFilter runs;
  runs.hardware_id = "intel-icelake-8c";
  EXPECT_EQ(index->ListRuns(runs)->runs.size(),
            history.ListRuns(runs)->runs.size());
}

TEST_F(HistoryIndexTest, IsBuiltAgainWhateverByteOfItIsDamaged) {
  const History history = Generate(3);
  { Open(history); }
  const std::string intact = *ReadFile(IndexPath(history));
  ASSERT_GT(intact.size(), 20000);
  int noticed = 0;
  const auto damage = [&](const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(IndexPath(history), bytes).ok());
    auto index = Open(history);
    ASSERT_NE(index, nullptr);
    ExpectSameAsFiles(history, *index);
    noticed += !index->notices().empty();
  };
  damage("this is no database");
  damage(intact.substr(0, intact.size() / 2));
  EXPECT_EQ(noticed, 2);
  // Whole pages of noise, and single pages of zeros.
  for (size_t page = 0; page + 4096 <= intact.size(); page += 8 * 4096) {
    std::string bytes = intact;
    for (size_t i = page; i < page + 4096; ++i) bytes[i] = '\x5a';
    damage(bytes);
  }
  EXPECT_GT(noticed, 2);
}

TEST_F(HistoryIndexTest, AnotherLayoutIsBuiltAgain) {
  const History history = Generate(4);
  { Open(history); }
  {
    const auto db = *OpenSqlite(IndexPath(history), SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(db->Execute("PRAGMA user_version = 999").ok());
  }
  auto index = Open(history);
  ASSERT_EQ(index->notices().size(), 1);
  EXPECT_THAT(index->notices()[0], HasSubstr("version 999"));
  ExpectSameAsFiles(history, *index);
}

TEST_F(HistoryIndexTest, SeveralAtOnceBuildOneIndex) {
  const History history = Generate(5);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto index = HistoryIndex::Open(history);
      ASSERT_TRUE(index.ok()) << index.status();
      EXPECT_TRUE((*index)->notices().empty());
      EXPECT_TRUE((*index)->ListSeries().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  auto index = Open(history);
  EXPECT_EQ(index->Update()->added, 0);
  ExpectSameAsFiles(history, *index);
}

TEST_F(HistoryIndexTest, AReadOnlyHistoryIsReadAllTheSame) {
  const Unprivileged unprivileged;
  const History history = Generate(6);
  ASSERT_EQ(chmod(history.dir().c_str(), 0555), 0);
  auto index = Open(history);
  EXPECT_EQ(index->path(), "");
  ASSERT_EQ(index->notices().size(), 1);
  EXPECT_THAT(index->notices()[0], HasSubstr("in memory"));
  ExpectSameAsFiles(history, *index);
  ASSERT_EQ(chmod(history.dir().c_str(), 0755), 0);
}

TEST_F(HistoryIndexTest, AReadOnlyIndexIsReadWhileItIsUpToDate) {
  const Unprivileged unprivileged;
  const History history = Generate(9);
  { Open(history); }
  ASSERT_EQ(chmod(history.dir().c_str(), 0555), 0);
  {
    auto index = Open(history);
    EXPECT_EQ(index->path(), IndexPath(history));
    EXPECT_TRUE(index->notices().empty());
    ExpectSameAsFiles(history, *index);
  }
  ASSERT_TRUE(history.RemoveRun(history.FindRun("latest")->id()).ok());
  {
    auto index = Open(history);
    EXPECT_EQ(index->path(), "");
    ASSERT_EQ(index->notices().size(), 1);
    EXPECT_THAT(index->notices()[0], HasSubstr("out of date"));
    ExpectSameAsFiles(history, *index);
  }
  ASSERT_EQ(chmod(history.dir().c_str(), 0755), 0);
}

TEST_F(HistoryIndexTest, AHistoryThatIsNotThereStaysSo) {
  const History history = *History::Open(JoinPath(dir_, "nowhere"));
  auto index = Open(history);
  EXPECT_TRUE(index->ListSeries()->empty());
  EXPECT_FALSE(FileExists(history.dir()));
}

TEST_F(HistoryIndexTest, AnIndexThatIsALinkIsLeftAlone) {
  const History history = Generate(7);
  const size_t runs = history.ListRuns()->runs.size();
  const std::string outside = JoinPath(dir_, "outside");
  ASSERT_TRUE(WriteFileAtomically(outside, "somebody else's").ok());
  for (const char* name : {"index.sqlite", "index.sqlite-wal", "index.lock"}) {
    const std::string link = JoinPath(history.dir(), name);
    unlink(link.c_str());
    ASSERT_EQ(symlink(outside.c_str(), link.c_str()), 0);
    auto index = Open(history);
    EXPECT_EQ(index->ListRuns()->runs.size(), runs) << name;
    EXPECT_FALSE(index->notices().empty());
    EXPECT_EQ(*ReadFile(outside), "somebody else's");
    ASSERT_EQ(unlink(link.c_str()), 0);
  }
}

TEST_F(HistoryIndexTest, TablesThatAreNotOursAreBuiltAgain) {
  const History history = Generate(7);
  const size_t before = Open(history)->ListSeries()->size();
  {
    auto db = OpenSqlite(JoinPath(history.dir(), "index.sqlite"),
                         SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(
        (*db)->Execute("DROP TABLE series; CREATE TABLE series (x)").ok());
  }
  EXPECT_EQ(Open(history)->ListSeries()->size(), before);
}

TEST_F(HistoryIndexTest, AnswersTheHistorysListOfRuns) {
  const History plain = Generate(7);
  const auto indexed = OpenIndexedHistory(plain.dir());
  ASSERT_TRUE(indexed.ok());
  const auto expect_same = [&] {
    const RunList a = *plain.ListRuns(), b = *indexed->ListRuns();
    ASSERT_EQ(a.runs.size(), b.runs.size());
    for (size_t i = 0; i < a.runs.size(); ++i) {
      EXPECT_EQ(a.runs[i].path, b.runs[i].path);
      EXPECT_EQ(a.runs[i].header.SerializeAsString(),
                b.runs[i].header.SerializeAsString());
    }
    EXPECT_EQ(plain.FindRun("latest")->id(), indexed->FindRun("latest")->id());
  };
  expect_same();
  EXPECT_FALSE(FileExists(IndexPath(plain))) << "not worth it for a few runs";
  { Open(plain); }
  // What the index says, not the file: it is asked.
  {
    const auto db = *OpenSqlite(IndexPath(plain), SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(db->Execute("UPDATE runs SET result_count = 77").ok());
  }
  EXPECT_EQ(indexed->FindRun("latest")->result_count, 77);
  expect_same();
  // It is asked each time, and so never behind.
  ASSERT_TRUE(plain.RemoveRun(plain.FindRun("latest")->id()).ok());
  expect_same();
}

TEST_F(HistoryIndexTest, MergeAndVerifyLeaveItAlone) {
  const History history = Generate(8);
  { Open(history); }
  EXPECT_TRUE(history.Verify()->bad_files.empty());
  const History other = *History::Open(JoinPath(dir_, "other"));
  ASSERT_TRUE(other.MergeFrom(history).ok());
  EXPECT_FALSE(FileExists(IndexPath(other)));
}

}  // namespace
}  // namespace optrail::tracker
