#include "tracker/history/history.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <thread>

#include "base/file/file.h"
#include "base/testing/fault_injecting_file_system.h"
#include "base/testing/unprivileged.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kStart = 1795000000LL * 1000000000;
constexpr int64_t kMinute = 60LL * 1000000000;

class HistoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/history_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }

  History Open(const std::string& name = "h") {
    absl::StatusOr<History> history = History::Open(JoinPath(dir_, name));
    EXPECT_TRUE(history.ok()) << history.status();
    history->set_now_unix_ns(kStart + 1000 * kMinute);
    return *std::move(history);
  }

  std::string dir_;
};

proto::Run MakeRun(int64_t minute, const std::string& commit,
                   absl::optional<int64_t> position = {},
                   const std::string& branch = "main") {
  proto::Run run;
  run.set_started_unix_ns(kStart + minute * kMinute);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  run.set_suite("smoke");
  run.mutable_hardware()->set_id("amd-epyc-zen4-2c");
  run.mutable_commit()->set_id(commit);
  run.mutable_commit()->set_branch(branch);
  if (position) run.mutable_commit()->set_first_parent_position(*position);
  proto::BenchmarkResult* result = run.add_results();
  result->mutable_key()->set_operator_name("BM_Sort");
  proto::Measurement* measurement = result->add_measurements();
  measurement->set_calls_per_sample(1);
  measurement->add_sample_ns(1000 + minute);
  return run;
}

std::string PathOf(const History& history, const proto::Run& run) {
  return JoinPath(history.dir(), "runs", run.run_id().substr(0, 4),
                  run.run_id() + ".pb");
}

TEST_F(HistoryTest, ReturnsWhatWasRecorded) {
  const History history = Open();
  const proto::Run run = MakeRun(0, "aaaa");
  ASSERT_TRUE(history.AppendRun(run).ok());
  const auto read = history.ReadRun(run.run_id());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), run.SerializeAsString());

  proto::Session session;
  session.set_session_id(NewRecordId(kStart));
  session.set_strategy("random");
  session.add_trials();
  session.add_finalists();
  ASSERT_TRUE(history.AppendSession(session).ok());
  const auto sessions = history.ListSessions();
  ASSERT_TRUE(sessions.ok());
  ASSERT_EQ(sessions->sessions.size(), 1);
  EXPECT_EQ(sessions->sessions[0].trial_count, 1);
  EXPECT_EQ(sessions->sessions[0].header.finalists_size(), 0);
  EXPECT_EQ(history.ReadSession(session.session_id())->trials_size(), 1);
}

TEST_F(HistoryTest, AFolderThatDoesNotExistIsAnEmptyHistory) {
  const History history = Open("nowhere");
  EXPECT_TRUE(history.ListRuns()->runs.empty());
  EXPECT_TRUE(history.LoadRuns()->runs.empty());
  EXPECT_EQ(history.Verify()->runs, 0);
  EXPECT_EQ(history.ReadRun(NewRecordId(kStart)).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(FileExists(history.dir()));
}

TEST_F(HistoryTest, RefusesAFileInPlaceOfTheFolder) {
  const std::string path = JoinPath(dir_, "file");
  ASSERT_TRUE(WriteFileAtomically(path, "x").ok());
  EXPECT_THAT(std::string(History::Open(path).status().message()),
              HasSubstr("expected a folder"));
}

TEST_F(HistoryTest, NeverOverwritesARecord) {
  const History history = Open();
  proto::Run run = MakeRun(0, "aaaa");
  ASSERT_TRUE(history.AppendRun(run).ok());
  run.set_suite("other");
  EXPECT_EQ(history.AppendRun(run).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(history.ReadRun(run.run_id())->suite(), "smoke");
}

TEST_F(HistoryTest, RefusesRecordsThatCannotBeTrue) {
  const History history = Open();
  proto::Run run = MakeRun(0, "aaaa");
  run.set_run_id("../../etc/passwd");
  EXPECT_EQ(history.AppendRun(run).code(), absl::StatusCode::kInvalidArgument);
  run = MakeRun(0, "aaaa");
  run.mutable_results(0)->mutable_measurements(0)->set_sample_ns(0, -1);
  EXPECT_THAT(std::string(history.AppendRun(run).message()),
              HasSubstr("BM_Sort"));
  EXPECT_TRUE(history.ListRuns()->runs.empty());
}

TEST_F(HistoryTest, ANameIsOneLine) {
  const History history = Open();
  const auto append = [&](auto change) {
    proto::Run run = MakeRun(0, "aaaa");
    change(run);
    return std::string(history.AppendRun(run).message());
  };
  EXPECT_THAT(append([](proto::Run& run) { run.set_suite("a\nb"); }),
              HasSubstr("suite is 'a\\nb', expected a name in one line"));
  EXPECT_THAT(append([](proto::Run& run) {
                run.mutable_hardware()->set_id("a\x1b[2J");
              }),
              HasSubstr("hardware.id is 'a\\x1b[2J'"));
  EXPECT_THAT(
      append([](proto::Run& run) { run.mutable_commit()->set_branch("a\tb"); }),
      HasSubstr("commit.branch is"));
  EXPECT_EQ(append([](proto::Run& run) { run.set_suite("m\xc3\xa4h, \xff"); }),
            "");
}

TEST_F(HistoryTest, TwoWritersAtOnceLoseNothing) {
  constexpr int kRuns = 40;
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&] {
      const History history = Open();
      for (int i = 0; i < kRuns; ++i) {
        EXPECT_TRUE(history.AppendRun(MakeRun(i, "aaaa")).ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto loaded = Open().LoadRuns();
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->runs.size(), 2 * kRuns);
  EXPECT_TRUE(loaded->bad_files.empty());
}

TEST_F(HistoryTest, ReportsDamagedFilesAndReadsTheOthers) {
  const History history = Open();
  std::vector<proto::Run> runs;
  for (int i = 0; i < 6; ++i) {
    runs.push_back(MakeRun(i, "aaaa"));
    ASSERT_TRUE(history.AppendRun(runs.back()).ok());
  }
  const auto damage = [&](int i, auto change) {
    std::string bytes = *ReadFile(PathOf(history, runs[i]));
    change(bytes);
    ASSERT_TRUE(WriteFileAtomically(PathOf(history, runs[i]), bytes).ok());
  };
  damage(0, [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  damage(1, [](std::string& bytes) { bytes[7] ^= 4; });
  damage(2, [](std::string& bytes) { bytes.clear(); });
  damage(3, [&](std::string& bytes) {
    bytes = *ReadFile(PathOf(history, runs[4]));  // a duplicate run id
  });
  for (const std::vector<BadFile>& bad :
       {history.LoadRuns()->bad_files, history.ListRuns()->bad_files,
        history.Verify()->bad_files}) {
    ASSERT_EQ(bad.size(), 4);
    std::set<std::string> paths;
    for (const BadFile& file : bad) paths.insert(file.path);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(paths.count(PathOf(history, runs[i])), 1) << i;
    }
  }
  EXPECT_EQ(history.LoadRuns()->runs.size(), 2);
  const absl::Status status = history.ReadRun(runs[1].run_id()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(PathOf(history, runs[1])));
}

TEST_F(HistoryTest, OrdersByCommitEvenWhenAClockRanBackwards) {
  const History history = Open();
  ASSERT_TRUE(history.AppendRun(MakeRun(30, "c1", 1)).ok());
  ASSERT_TRUE(history.AppendRun(MakeRun(10, "c2", 2)).ok());
  ASSERT_TRUE(history.AppendRun(MakeRun(40, "c3", 3)).ok());
  ASSERT_TRUE(history.AppendRun(MakeRun(35, "unknown")).ok());
  std::vector<std::string> commits;
  const auto loaded = history.LoadRuns();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const proto::Run& run : loaded->runs) {
    commits.push_back(run.commit().id());
  }
  EXPECT_THAT(commits, ElementsAre("c1", "c2", "unknown", "c3"));
}

TEST_F(HistoryTest, Filters) {
  const History history = Open();
  ASSERT_TRUE(history.AppendRun(MakeRun(0, "aaaa", 1, "main")).ok());
  ASSERT_TRUE(history.AppendRun(MakeRun(1, "bbbb", 2, "topic")).ok());
  RunFilter filter;
  filter.branch = "topic";
  EXPECT_EQ(history.ListRuns(filter)->runs.size(), 1);
  filter = {};
  filter.commit_prefix = "aa";
  EXPECT_EQ(history.LoadRuns(filter)->runs.size(), 1);
  filter = {};
  filter.started_before_unix_ns = kStart + kMinute;
  EXPECT_EQ(history.ListRuns(filter)->runs.size(), 1);
  filter.suite = "bert";
  EXPECT_TRUE(history.ListRuns(filter)->runs.empty());
}

TEST_F(HistoryTest, ResolvesWhatPeopleType) {
  const History history = Open();
  proto::Run first = MakeRun(0, "c0ffee11"), again = MakeRun(5, "c0ffee11"),
             last = MakeRun(9, "deadbe77");
  first.set_run_id("20261120T090000Z-aaaa00000001");
  again.set_run_id("20261120T090500Z-aaaa00000002");
  last.set_run_id("20261120T090900Z-bbbb00000003");
  for (const proto::Run* run : {&first, &again, &last}) {
    ASSERT_TRUE(history.AppendRun(*run).ok());
  }
  const auto ids = [&](absl::string_view selector) {
    std::vector<std::string> ids;
    const auto runs = history.Resolve(selector);
    if (!runs.ok()) return std::vector<std::string>{"error"};
    for (const RunInfo& run : *runs) ids.push_back(run.id());
    return ids;
  };
  EXPECT_THAT(ids("latest"), ElementsAre(last.run_id()));
  EXPECT_THAT(ids("latest~1"), ElementsAre(again.run_id()));
  EXPECT_THAT(ids("bbbb"), ElementsAre(last.run_id()));
  EXPECT_THAT(ids("20261120T0905"), ElementsAre(again.run_id()));
  EXPECT_THAT(ids("c0ffee"), ElementsAre(first.run_id(), again.run_id()));
  EXPECT_THAT(ids("deadbe77"), ElementsAre(last.run_id()));

  EXPECT_THAT(std::string(history.Resolve("aaaa").status().message()),
              HasSubstr("could be any of"));
  EXPECT_THAT(std::string(history.Resolve("1234567").status().message()),
              HasSubstr("no run and no commit"));
  EXPECT_EQ(history.Resolve("latest~3").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(history.FindRun("c0ffee").ok());
  EXPECT_FALSE(history.Resolve("").ok());
}

TEST_F(HistoryTest, ADamagedRecordIsNotPassedOverForAnOlderOne) {
  const History history = Open();
  std::vector<proto::Run> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(MakeRun(i, absl::StrCat("c", i)));
    ASSERT_TRUE(history.AppendRun(runs.back()).ok());
  }
  const std::string damaged = PathOf(history, runs[2]);
  ASSERT_TRUE(WriteFileAtomically(damaged, "garbage").ok());
  EXPECT_EQ(history.FindRun("latest")->id(), runs[3].run_id());
  const auto names_it = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(damaged), HasSubstr("optrail history repair")));
  };
  names_it(history.FindRun("latest~1").status());
  names_it(history.FindRun(runs[2].run_id()).status());
  ASSERT_TRUE(WriteFileAtomically(PathOf(history, runs[3]), "garbage").ok());
  const absl::Status newest = history.FindRun("latest").status();
  EXPECT_EQ(newest.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(newest.message()), HasSubstr(runs[1].run_id()));
  EXPECT_EQ(history.FindRun("c1")->id(), runs[1].run_id());
  // The commit of a damaged record is not known: measured again, an older one
  // is not taken for newer.
  ASSERT_TRUE(history.AppendRun(MakeRun(9, "c1")).ok());
  names_it(history.FindRun("latest").status());
}

// Imported files have dates of a second, or of a day: commits decide, whatever
// the ids draw.
TEST_F(HistoryTest, OfDatesThatTieTheLatestIsOfTheLastCommit) {
  const History history = Open();
  for (const int position : {2, 5, 1, 4, 3}) {
    ASSERT_TRUE(
        history.AppendRun(MakeRun(0, absl::StrCat("c", position), position))
            .ok());
  }
  EXPECT_EQ(history.FindRun("latest")->header.commit().id(), "c5");
  EXPECT_EQ(history.FindRun("latest~1")->header.commit().id(), "c4");
  EXPECT_EQ(history.FindRun("latest~4")->header.commit().id(), "c1");
}

TEST_F(HistoryTest, MergesByCopyingWhatIsMissing) {
  const History a = Open("a"), b = Open("b");
  const proto::Run shared = MakeRun(0, "aaaa"), only_b = MakeRun(1, "bbbb"),
                   damaged = MakeRun(2, "cccc");
  ASSERT_TRUE(a.AppendRun(shared).ok());
  for (const proto::Run* run : {&shared, &only_b, &damaged}) {
    ASSERT_TRUE(b.AppendRun(*run).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(PathOf(b, damaged), "garbage").ok());
  const auto report = a.MergeFrom(b);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->copied, 1);
  EXPECT_EQ(report->already_there, 1);
  ASSERT_EQ(report->bad_files.size(), 1);
  EXPECT_EQ(report->bad_files[0].path, PathOf(b, damaged));
  EXPECT_EQ(a.LoadRuns()->runs.size(), 2);
  EXPECT_EQ(a.MergeFrom(b)->already_there, 2);
}

TEST_F(HistoryTest, AReadOnlyHistoryRefusesAndStaysReadable) {
  const Unprivileged unprivileged;
  const History history = Open();
  ASSERT_TRUE(history.AppendRun(MakeRun(0, "aaaa")).ok());
  const std::string folder = JoinPath(history.dir(), "runs", "2026");
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  const absl::Status status = history.AppendRun(MakeRun(1, "bbbb"));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder));
  EXPECT_EQ(history.LoadRuns()->runs.size(), 1);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
}

// Every system call fails once, in turn: the record is there whole or not at
// all, the one before stays, and the error says where.
TEST(HistoryFaults, AFullDiskOrReadOnlyFolderLeavesNothingBehind) {
  for (const int error : {ENOSPC, EROFS, EIO}) {
    const proto::Run before = MakeRun(0, "aaaa"), run = MakeRun(1, "bbbb");
    for (int64_t i = 0;; ++i) {
      FaultInjectingFileSystem fs;
      const History history = *History::Open("/h", &fs);
      ASSERT_TRUE(history.AppendRun(before).ok());
      const int64_t first = fs.operations();
      fs.FailAt(first + i, error);
      const absl::Status status = history.AppendRun(run);
      if (fs.operations() <= first + i) break;  // all have been visited
      const auto verified = history.Verify(1);
      ASSERT_TRUE(verified.ok());
      EXPECT_TRUE(verified->bad_files.empty());
      EXPECT_EQ(verified->runs, history.ReadRun(run.run_id()).ok() ? 2 : 1);
      if (status.ok()) {
        EXPECT_TRUE(history.ReadRun(run.run_id()).ok());
      } else {
        EXPECT_THAT(std::string(status.message()), HasSubstr("/h"));
        if (error == ENOSPC) {
          EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
        }
      }
      EXPECT_TRUE(history.ReadRun(before.run_id()).ok());
      EXPECT_EQ(fs.open_descriptors(), 0);
    }
  }
}

TEST(HistoryFaults, APowerLossLosesNoAcknowledgedRunAndTearsNone) {
  int losses = 0;
  for (const PowerLoss loss :
       {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames, PowerLoss::kTorn}) {
    for (int64_t i = 0;; ++i) {
      FaultInjectingFileSystem fs(17 + i);
      const History history = *History::Open("/h", &fs);
      fs.LosePowerAt(i);
      std::vector<std::string> acknowledged;
      for (int minute = 0; minute < 3; ++minute) {
        const proto::Run run = MakeRun(minute, "aaaa");
        if (history.AppendRun(run).ok()) acknowledged.push_back(run.run_id());
      }
      if (acknowledged.size() == 3) break;
      ++losses;
      fs.Restart(loss);
      const auto loaded = history.LoadRuns({}, 1);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_TRUE(loaded->bad_files.empty());
      for (const std::string& id : acknowledged) {
        EXPECT_TRUE(history.ReadRun(id).ok()) << id << " at operation " << i;
      }
      EXPECT_TRUE(history.AppendRun(MakeRun(9, "bbbb")).ok());
    }
  }
  EXPECT_GT(losses, 30);
}

// A merge that is cut short, or finds the disk full, at every system call: what
// is here stays, nothing is half, and the next merge completes it.
TEST(MergeFaults, APowerLossOrAFullDiskLosesNothing) {
  int faults = 0;
  const PowerLoss kLosses[] = {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames,
                               PowerLoss::kTorn};
  for (int kind = 0; kind < 4; ++kind) {
    for (int64_t i = 0;; ++i) {
      FaultInjectingFileSystem fs(31 + i);
      const History here = *History::Open("/h", &fs);
      const History there = *History::Open("/o", &fs);
      const proto::Run mine = MakeRun(0, "aaaa");
      ASSERT_TRUE(here.AppendRun(mine).ok());
      ASSERT_TRUE(there.AppendRun(MakeRun(1, "bbbb")).ok());
      proto::TriageRecord note;
      note.set_record_id(NewRecordId(kStart));
      ASSERT_TRUE(there.AppendTriage(note).ok());
      proto::Tombstones tombstones;
      tombstones.set_tombstones_id(NewRecordId(kStart));
      tombstones.add_tombstones()->set_run_id(NewRecordId(kStart));
      ASSERT_TRUE(there.AppendTombstones(tombstones).ok());
      if (kind < 3) {
        fs.LosePowerAt(fs.operations() + i);
      } else {
        fs.FailAt(fs.operations() + i, ENOSPC);
      }
      const auto merged = here.MergeFrom(there);
      const bool done = merged.ok();
      if (kind < 3) {
        if (done) break;
        fs.Restart(kLosses[kind]);
      } else if (i > 60) {
        break;
      }
      ++faults;
      EXPECT_TRUE(here.ReadRun(mine.run_id()).ok());
      for (const History& history : {here, there}) {
        EXPECT_TRUE(history.Verify(1)->bad_files.empty()) << i;
      }
      ASSERT_TRUE(here.MergeFrom(there).ok());
      EXPECT_EQ(here.ListRuns()->runs.size(), 2);
      EXPECT_EQ(here.LoadTriage()->records.size(), 1);
      EXPECT_EQ(here.Verify(1)->tombstone_files, 1);
      EXPECT_EQ(fs.open_descriptors(), 0);
    }
  }
  EXPECT_GT(faults, 60);
}

TEST(RecordId, SortsByTimeAndIsUnique) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewRecordId(kStart));
  EXPECT_EQ(ids.size(), 1000);
  EXPECT_TRUE(IsRecordId(*ids.begin()));
  EXPECT_LT(*ids.rbegin(), NewRecordId(kStart + 1000000000));
  for (const char* bad :
       {"", "latest", "20261120T090807Z-", "20261120T090807Z-XYZ",
        "20261120T090807Z-ab/c", "2026112T090807Z-abc"}) {
    EXPECT_FALSE(IsRecordId(bad)) << bad;
  }
}

}  // namespace
}  // namespace optrail::tracker
