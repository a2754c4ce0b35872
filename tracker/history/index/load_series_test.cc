// What LoadSeries says is what the files say, whatever happened to them.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/sqlite.h"
#include "tracker/history/record.h"
#include "tracker/history/repair.h"
#include "tracker/history/retention.h"

namespace optrail::tracker {
namespace {

constexpr int64_t kHourNs = 3600LL * 1'000'000'000;
constexpr int64_t kNowUnixNs = 4'000'000'000LL * 1'000'000'000;

template <typename T>
std::string Exact(const absl::optional<T>& value) {
  return value ? absl::StrFormat("%a", *value) : "none";
}

std::string TextOf(const Point& point) {
  std::string text = absl::StrCat(
      point.runs->commit.ShortDebugString(), " ",
      point.runs->first_started_unix_ns, " ", point.outcome, " ", point.detail,
      " ", Exact(point.value), " ",
      absl::StrFormat("%a %a", point.low, point.high), " ",
      point.attributes->config, " ", point.attributes->config_source, " ",
      point.attributes->kernel_id, " ", point.attributes->tuning_session_id,
      " ", point.attributes->resolved_backend, " ", point.attributes->library,
      " ");
  absl::StrAppend(&text, Exact(point.attributes->flop), " ",
                  Exact(point.attributes->moved_bytes), " ",
                  Exact(point.roofline_fraction), " ", point.epoch, " ",
                  point.settings);
  for (const std::string& id : point.runs->ids) absl::StrAppend(&text, " ", id);
  for (const ProcessReading& process : point.processes) {
    absl::StrAppendFormat(&text, " %a/%a/%a/%d/%d", process.value,
                          process.fastest, process.relative_sample_spread,
                          process.samples, process.aggregate_only);
  }
  return text;
}

// Everything there is to know, a line each.
std::string TextOf(const LoadedSeries& loaded) {
  std::string text;
  for (const proto::Run& run : loaded.runs) {
    absl::StrAppend(&text, "run ", run.ShortDebugString(), "\n");
  }
  for (const BadFile& bad : loaded.bad_files) {
    absl::StrAppend(&text, "bad ", bad.path, ": ", bad.reason, "\n");
  }
  for (const Series& series : loaded.series) {
    absl::StrAppend(&text, "series ", series.text, " ", series.direction, " ",
                    series.key.benchmark.ShortDebugString(), " ",
                    series.key.metric, " ", series.key.unit, " ",
                    series.key.hardware_id, " ", series.key.branch, "\n");
    for (const Epoch& epoch : series.epochs) {
      absl::StrAppend(&text, " epoch ", epoch.toolchain.ShortDebugString(), " ",
                      epoch.change, "\n");
    }
    for (const auto& settings : series.settings) {
      absl::StrAppend(&text, " settings ", settings.ShortDebugString(), "\n");
    }
    for (const Point& point : series.points) {
      absl::StrAppend(&text, " ", TextOf(point), "\n");
    }
  }
  return text;
}

std::vector<SeriesQuery> Queries() {
  std::vector<SeriesQuery> queries(6);
  queries[1].runs.hardware_id = "intel-icelake-8c";
  queries[2].runs.branch = "topic";
  queries[3].runs.commit_prefix = "3";
  queries[4].wanted = [](const SeriesKey& key) {
    return key.metric != "time" || key.benchmark.operator_name() == "matmul";
  };
  queries[5].runs.suite = "no such suite";
  return queries;
}

class LoadSeriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/series_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }

  History Empty(const std::string& name) {
    return *History::Open(JoinPath(dir_, name));
  }

  // Of runs whose clocks go wrong now and then, which is when the order of
  // those without a position depends on all the others.
  static void Generate(uint64_t seed, int commits, const History& history) {
    GenerateOptions options;
    options.seed = seed;
    options.benchmarks = 4;
    options.hardware = 2;
    options.commits = commits;
    options.processes = 3;
    options.samples = 7;
    options.oddities = true;
    Rng rng(seed);
    const absl::Status status =
        GenerateRuns(options, [&](proto::Run run) -> absl::Status {
          if (rng.UniformInt(4) == 0) {
            run.set_started_unix_ns(
                run.started_unix_ns() +
                (static_cast<int64_t>(rng.UniformInt(13)) - 6) * kHourNs);
          }
          return history.AppendRun(run);
        });
    ASSERT_TRUE(status.ok()) << status;
  }

  static std::vector<std::string> Files(const History& history) {
    return *ListRecursively(JoinPath(history.dir(), "runs"), ".pb");
  }

  static void ExpectSame(const History& history, HistoryIndex& index) {
    ASSERT_TRUE(index.Update().ok());
    const auto fresh = HistoryIndex::Open(history);
    ASSERT_TRUE(fresh.ok()) << fresh.status();
    for (const SeriesQuery& query : Queries()) {
      const std::string files = TextOf(*LoadSeriesFromFiles(history, query));
      EXPECT_EQ(TextOf(*index.LoadSeries(query)), files);
      EXPECT_EQ(TextOf(*(*fresh)->LoadSeries(query)), files);
    }
    const LoadedSeries all = *LoadSeriesFromFiles(history);
    for (const Series& series : all.series) {
      LoadedSeries expected, found;
      expected.series = {series};
      found.series = {*index.ReadSeries(series.text)};
      EXPECT_EQ(TextOf(found), TextOf(expected));
    }
  }

  std::string dir_;
};

// Does one of the things that happen to histories; says which.
std::string Happen(const History& history, const History& pristine,
                   const std::vector<std::string>& files, Rng& rng) {
  const std::string& file = files[rng.UniformInt(files.size())];
  switch (rng.UniformInt(7)) {
    case 0:
      EXPECT_TRUE(history.MergeFrom(pristine).ok());
      return "merged";
    case 1: {
      RetentionPolicy policy;
      policy.keep_runs = 4;
      policy.keep_days = 0;
      policy.keep_every = 1 + static_cast<int>(rng.UniformInt(3));
      const auto plan = PlanRetention(history, policy, kNowUnixNs);
      EXPECT_TRUE(plan.ok()) << plan.status();
      EXPECT_TRUE(ApplyRetention(history, *plan, kNowUnixNs).ok());
      return "thinned, with tombstones";
    }
    case 2: {
      const std::string bytes = *ReadFile(file);
      EXPECT_TRUE(
          WriteFileAtomically(file, bytes.substr(0, bytes.size() / 2)).ok());
      return "cut off";
    }
    case 3: {
      const auto report = CheckHistory(history);
      EXPECT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(RepairHistory(history, *report).ok());
      return "repaired";
    }
    case 4: {
      const auto run = history.ReadRunFile(file);
      if (!run.ok()) return "nothing";
      proto::Run changed = *run;
      if (changed.results_size() > 0) {
        changed.mutable_results()->DeleteSubrange(0, 1);
      }
      EXPECT_TRUE(history.ReplaceRun(changed).ok());
      return "replaced";
    }
    case 5: {
      const auto run = history.ReadRunFile(file);
      if (!run.ok()) return "nothing";
      EXPECT_TRUE(history.RemoveRun(run->run_id()).ok());
      return "removed";
    }
    default:
      EXPECT_TRUE(
          WriteFileAtomically(JoinPath(history.dir(), "runs", "1999",
                                       absl::StrCat(rng.UniformInt(3), ".pb")),
                              *ReadFile(file))
              .ok());
      return "copied to where it does not belong";
  }
}

TEST_F(LoadSeriesTest, IsTheSameFromTheIndexAndFromTheFilesWhateverHappens) {
  std::set<std::string> happened;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const History history = Empty(absl::StrCat("h", seed));
    const History pristine = Empty(absl::StrCat("pristine", seed));
    Generate(seed, 12, history);
    Generate(seed, 16, pristine);
    ASSERT_TRUE(CreateDirectories(JoinPath(history.dir(), "runs/1999")).ok());
    const auto index = HistoryIndex::Open(history);
    ASSERT_TRUE(index.ok()) << index.status();
    ExpectSame(history, **index);
    Rng rng(seed);
    for (int i = 0; i < 12; ++i) {
      const std::string what = Happen(history, pristine, Files(history), rng);
      SCOPED_TRACE(what);
      happened.insert(what);
      ExpectSame(history, **index);
      if (HasFailure()) return;
    }
    EXPECT_TRUE((*index)->notices().empty());
  }
  happened.erase("nothing");
  EXPECT_EQ(happened.size(), 7);
}

TEST_F(LoadSeriesTest, MakesAnIndexOnceThereAreAHundredRuns) {
  const History history = Empty("h");
  const std::string index = JoinPath(history.dir(), "index.sqlite");
  Generate(1, 30, history);
  ASSERT_LT(Files(history).size(), 100);
  const std::string few = TextOf(*LoadSeries(history));
  EXPECT_EQ(few, TextOf(*LoadSeriesFromFiles(history)));
  EXPECT_FALSE(FileExists(index));

  Generate(2, 60, history);
  ASSERT_GE(Files(history).size(), 100);
  EXPECT_EQ(TextOf(*LoadSeries(history)),
            TextOf(*LoadSeriesFromFiles(history)));
  EXPECT_TRUE(FileExists(index));
}

TEST_F(LoadSeriesTest, TrustsNoIndexThatIsStaleDamagedOrOfAnotherVersion) {
  const History history = Empty("h");
  const std::string path = JoinPath(history.dir(), "index.sqlite");
  Generate(3, 10, history);
  { ASSERT_TRUE(HistoryIndex::Open(history).ok()); }
  // Stale.
  Generate(4, 10, history);
  const std::string files = TextOf(*LoadSeriesFromFiles(history));
  LoadedSeries loaded = *LoadSeries(history);
  EXPECT_EQ(TextOf(loaded), files);
  EXPECT_TRUE(loaded.notices.empty());
  // Damaged: a name in it is another one.
  {
    const auto db = *OpenSqlite(path, SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(
        db->Execute("UPDATE series SET branch = 'mian' WHERE series = 2").ok());
  }
  loaded = *LoadSeries(history);
  EXPECT_EQ(TextOf(loaded), files);
  ASSERT_EQ(loaded.notices.size(), 1);
  EXPECT_TRUE(absl::StrContains(loaded.notices[0], "key is not whole"));
  // Damaged: no database at all.
  ASSERT_TRUE(WriteFileAtomically(path, "this is no database").ok());
  loaded = *LoadSeries(history);
  EXPECT_EQ(TextOf(loaded), files);
  EXPECT_EQ(loaded.notices.size(), 1);
  // An index of another version.
  {
    const auto db = *OpenSqlite(path, SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(db->Execute("PRAGMA user_version = 1").ok());
  }
  loaded = *LoadSeries(history);
  EXPECT_EQ(TextOf(loaded), files);
  ASSERT_EQ(loaded.notices.size(), 1);
  EXPECT_TRUE(absl::StrContains(loaded.notices[0], "version 1, expected"));
  // A place where there can be no index: the files are read.
  ASSERT_TRUE(RemoveFile(path).ok());
  ASSERT_TRUE(CreateDirectories(path).ok());
  EXPECT_EQ(TextOf(*LoadSeries(history)), files);
}

TEST_F(LoadSeriesTest, SeesAFileThatWasWrittenOverInPlace) {
  const History history = Empty("h");
  Generate(5, 10, history);
  { ASSERT_TRUE(HistoryIndex::Open(history).ok()); }
  const std::string path = Files(history)[3];
  proto::Run run = *history.ReadRunFile(path);
  run.clear_checksum();
  ASSERT_FALSE(run.commit().subject().empty());
  (*run.mutable_commit()->mutable_subject())[0] ^= 1;
  struct stat before, after;
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      << EncodeRecord(run);
  // The clock of files may be too coarse to tell.
  const timespec times[2] = {{1, 0}, {before.st_mtim.tv_sec + 1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  ASSERT_EQ(before.st_ino, after.st_ino);
  ASSERT_EQ(before.st_size, after.st_size);
  EXPECT_EQ(TextOf(*LoadSeries(history)),
            TextOf(*LoadSeriesFromFiles(history)));
}

}  // namespace
}  // namespace optrail::tracker
