// What a history holds may come from anybody (docs/reference/threats.md). Each
// test here is an attack that once worked.

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"
#include "tracker/history/repair.h"
#include "tracker/history/retention.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kDay = 86'400LL * 1'000'000'000;
constexpr int64_t kStart = 1'795'000'000LL * 1'000'000'000;
constexpr int64_t kNow = kStart + 40 * kDay;

proto::Run MakeRun(int day) {
  proto::Run run;
  run.set_started_unix_ns(kStart + day * kDay);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  run.set_suite("smoke");
  run.mutable_hardware()->set_id("amd-epyc-zen4-2c");
  run.mutable_commit()->set_id(absl::StrCat(day, "aaaaaaaaaaaa"));
  run.mutable_commit()->set_branch("main");
  proto::BenchmarkResult* result = run.add_results();
  result->mutable_key()->set_operator_name("BM_Sort");
  proto::Measurement* measurement = result->add_measurements();
  measurement->set_calls_per_sample(1);
  measurement->add_sample_ns(1000 + day);
  return run;
}

// Every path below `dir` with what is there; links are not followed.
void Snapshot(const std::string& dir, std::map<std::string, std::string>* all) {
  std::vector<std::string> names;
  if (FileSystem::Real()->List(dir, &names) != 0) return;
  for (const std::string& name : names) {
    const std::string path = JoinPath(dir, name);
    FileInfo info;
    ASSERT_EQ(FileSystem::Real()->LinkStat(path, &info), 0);
    (*all)[path] = info.is_directory             ? "folder"
                   : info.is_link                ? "link"
                   : info.size_bytes > (1 << 20) ? "large"
                   : info.is_regular             ? *ReadRegularFile(path)
                                                 : "special";
    if (info.is_directory) Snapshot(path, all);
  }
}

class HostileHistoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    google::protobuf::SetLogHandler(nullptr);
    std::string pattern = ::testing::TempDir() + "/hostile_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    top_ = pattern;
    dir_ = JoinPath(top_, "a/b/history");
    outside_ = JoinPath(top_, "outside");
    ASSERT_TRUE(CreateDirectories(JoinPath(dir_, "runs/2026")).ok());
    ASSERT_TRUE(CreateDirectories(outside_).ok());
    ASSERT_TRUE(
        WriteFileAtomically(JoinPath(outside_, "canary"), "alive").ok());
  }

  void TearDown() override {
    // Whatever the test did: nothing came or changed beside the history.
    std::map<std::string, std::string> all;
    Snapshot(top_, &all);
    for (const auto& [path, contents] : all) {
      if (absl::StartsWith(path, JoinPath(top_, "a")) ||
          absl::StartsWith(path, JoinPath(top_, "other"))) {
        continue;
      }
      EXPECT_TRUE(path == outside_ || path == JoinPath(outside_, "canary"))
          << path;
    }
    EXPECT_EQ(all[JoinPath(outside_, "canary")], "alive");
    EXPECT_EQ(all.count(JoinPath(top_, "a/b/evil")), 0);
    EXPECT_EQ(all.count(JoinPath(top_, "a/evil")), 0);
  }

  void Link(const std::string& to, const std::string& name) const {
    ASSERT_EQ(symlink(to.c_str(), JoinPath(dir_, name).c_str()), 0);
  }

  History Open() const { return *History::Open(dir_); }
  History Other() const { return *History::Open(JoinPath(top_, "other")); }

  void Record(const proto::Run& run) {
    const absl::Status status = Open().AppendRun(run);
    ASSERT_TRUE(status.ok()) << status;
  }

  // A file of the history with a checksum that is right.
  void Plant(const std::string& name,
             const google::protobuf::Message& message) {
    const std::string path = JoinPath(dir_, name);
    ASSERT_TRUE(CreateDirectories(DirectoryOf(path)).ok());
    ASSERT_TRUE(WriteFileAtomically(path, EncodeRecord(message)).ok());
  }

  CheckReport Check() const {
    CheckOptions options;
    options.now_unix_ns = kNow;
    const auto report = CheckHistory(Open(), options);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  // Repairs, and expects that nothing damaged is left among the records.
  std::vector<Repaired> Repair() const {
    const auto repaired = RepairHistory(Open(), Check());
    EXPECT_TRUE(repaired.ok()) << repaired.status();
    EXPECT_EQ(Check().CountDamaged(), 0);
    if (!repaired.ok()) return {};
    for (const Repaired& moved : *repaired) {
      EXPECT_TRUE(absl::StartsWith(moved.to, absl::StrCat(dir_, "/")))
          << moved.to;
      EXPECT_THAT(moved.to, Not(HasSubstr("..")));
    }
    return *repaired;
  }

  std::string top_, dir_, outside_;
};

TEST_F(HostileHistoryTest, IdsWithPathsInThemAreQuarantined) {
  const std::string evil = JoinPath(top_, "a/b/evil");
  const std::string ids[] = {
      "../../evil",
      evil,
      "20261120T090807Z-../../../evil",
      "20261120T090807Z-1a2b/../../../evil",
      absl::StrCat("20261120T090807Z-1a2b", std::string(1, '\0'), "/evil"),
      std::string(5000, 'a'),
      "CON",
      "20261120T090807Z-1a2b.pb:stream",
      absl::StrCat("20261120T090807Z-1a2b, whose place is ", evil),
      "",
  };
  int n = 0;
  for (const std::string& id : ids) {
    proto::Run run = MakeRun(1);
    run.set_run_id(id);
    EXPECT_FALSE(Open().AppendRun(run).ok());
    Plant(absl::StrCat("runs/2026/", n, ".pb"), run);
    proto::Session session;
    session.set_session_id(id);
    Plant(absl::StrCat("sessions/2026/", n, ".pb"), session);
    proto::TriageRecord triage;
    triage.set_record_id(id);
    Plant(absl::StrCat("triage/2026/", n, ".pb"), triage);
    proto::Tombstones tombstones;
    tombstones.set_tombstones_id(id);
    Plant(absl::StrCat("tombstones/2026/", n, ".pb"), tombstones);
    ++n;
  }
  EXPECT_EQ(Check().CountDamaged(), 4 * n);
  EXPECT_THAT(Repair(), SizeIs(4 * n));
}

TEST_F(HostileHistoryTest, WhatAReasonSaysIsNoPath) {
  // The reason of a refused record quotes names out of it.
  const std::string evil = JoinPath(top_, "a/b/evil");
  proto::Run run = MakeRun(1);
  run.mutable_results(0)->mutable_key()->set_operator_name(
      absl::StrCat("its id '' whose place is ", evil));
  run.mutable_results(0)->mutable_measurements(0)->set_sample_ns(0, -1);
  Plant(absl::StrCat("runs/2026/", run.run_id(), ".pb"), run);
  proto::Run metric = MakeRun(2);
  proto::MetricSamples* samples =
      metric.mutable_results(0)->mutable_measurements(0)->add_metrics();
  samples->set_metric(absl::StrCat("whose place is ", evil));
  samples->add_values(std::strtod("nan", nullptr));
  Plant(absl::StrCat("runs/2026/", metric.run_id(), ".pb"), metric);
  proto::Tombstones tombstones;
  tombstones.set_tombstones_id(NewRecordId(kStart));
  tombstones.add_tombstones()->set_run_id(
      absl::StrCat("whose place is ", evil));
  Plant(absl::StrCat("tombstones/2026/", tombstones.tombstones_id(), ".pb"),
        tombstones);
  const std::vector<Repaired> repaired = Repair();
  EXPECT_THAT(repaired, SizeIs(3));
  for (const Repaired& moved : repaired) {
    EXPECT_THAT(moved.to, HasSubstr("/quarantine/"));
    EXPECT_THAT(moved.reason, HasSubstr("impossible value"));
  }
  EXPECT_FALSE(FileExists(evil));
}

TEST_F(HostileHistoryTest, WhatCannotBeIsNotPutInItsPlace) {
  proto::Tombstones tombstones;
  tombstones.set_tombstones_id(NewRecordId(kStart));
  tombstones.add_tombstones()->set_run_id("no id");
  Plant("tombstones/2026/elsewhere.pb", tombstones);
  proto::Run run = MakeRun(1);
  run.mutable_results(0)->mutable_measurements(0)->set_sample_ns(0, -1);
  Plant("runs/2026/elsewhere.pb", run);
  EXPECT_THAT(Repair(), SizeIs(2));  // and finds nothing damaged then
}

TEST_F(HostileHistoryTest, LinksAreNeverFollowed) {
  Record(MakeRun(1));
  const proto::Run run = MakeRun(2);
  // Into the history: a file and a folder that lie outside.
  const std::string record = JoinPath(top_, "other.pb");
  ASSERT_TRUE(WriteFileAtomically(record, EncodeRecord(run)).ok());
  Link(record, absl::StrCat("runs/2026/", run.run_id(), ".pb"));
  Link(outside_, "runs/2025");
  Link(outside_, "triage");
  const RunList list = *Open().ListRuns();
  EXPECT_THAT(list.runs, SizeIs(1));
  EXPECT_THAT(list.bad_files, SizeIs(2));
  EXPECT_THAT(list.bad_files,
              Each(Field(&BadFile::reason, HasSubstr("symbolic link"))));
  EXPECT_FALSE(Open().ReadRun(run.run_id()).ok());

  // Out of it: a record and a repair that would land outside.
  proto::Run old = MakeRun(0);
  old.set_run_id("20250101T000000Z-1a2b");
  EXPECT_EQ(Open().AppendRun(old).code(),
            absl::StatusCode::kFailedPrecondition);
  proto::TriageRecord note;
  note.set_record_id("20250101T000000Z-1a2b");
  EXPECT_FALSE(Open().AppendTriage(note).ok());
  Link(outside_, "quarantine");
  EXPECT_FALSE(RepairHistory(Open(), Check()).ok());
  ASSERT_EQ(unlink(JoinPath(dir_, "quarantine").c_str()), 0);
  EXPECT_THAT(Repair(), SizeIs(3));
  ASSERT_EQ(unlink(record.c_str()), 0);
}

TEST_F(HostileHistoryTest, ALinkToItselfHangsNothing) {
  Record(MakeRun(1));
  for (const char* name : {"runs/a", "runs/b", "runs/c"}) Link(".", name);
  Link("loop.pb", "runs/2026/loop.pb");
  EXPECT_THAT(Open().ListRuns()->runs, SizeIs(1));
  EXPECT_THAT(Open().ListRuns()->bad_files, SizeIs(4));
  const auto merged = Other().MergeFrom(Open());
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->copied, 1);
  EXPECT_THAT(merged->bad_files, SizeIs(4));
  EXPECT_THAT(Repair(), SizeIs(4));
}

TEST_F(HostileHistoryTest, PipesDevicesSocketsAndFoldersAreNoRecords) {
  Record(MakeRun(1));
  const auto place = [&](absl::string_view name) {
    return JoinPath(dir_, "runs/2026", name);
  };
  ASSERT_EQ(mkfifo(place("20261120T090807Z-1a.pb").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(place("20261120T090807Z-2a.pb").c_str(), 0700), 0);
  const std::string folder = DirectoryOf(place("x"));
  const int here = open(".", O_RDONLY);
  ASSERT_EQ(chdir(folder.c_str()), 0);  // names of sockets are short
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, "20261120T090807Z-3a.pb");
  ASSERT_EQ(
      bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  ASSERT_EQ(fchdir(here), 0);
  close(here);
  close(listener);
  // /dev/zero itself; only root makes devices.
  const bool made_device = mknod(place("20261120T090807Z-4a.pb").c_str(),
                                 S_IFCHR | 0600, makedev(1, 5)) == 0;
  const int planted = 3 + made_device;
  const RunList list = *Open().ListRuns();
  EXPECT_THAT(list.runs, SizeIs(1));
  EXPECT_THAT(list.bad_files, SizeIs(planted));
  EXPECT_FALSE(Open().ReadRun("20261120T090807Z-1a").ok());
  EXPECT_FALSE(Open().ReadRun("20261120T090807Z-2a").ok());
  EXPECT_THAT(Open().LoadRuns()->bad_files, SizeIs(planted));
  EXPECT_THAT(Open().Verify()->bad_files, SizeIs(planted));
  EXPECT_THAT(Other().MergeFrom(Open())->bad_files, SizeIs(planted));
  EXPECT_THAT(Repair(), SizeIs(planted));
}

TEST_F(HostileHistoryTest, AHugeFileIsNotRead) {
  Record(MakeRun(1));
  const std::string sparse = JoinPath(dir_, "runs/2026/20261120T090807Z-1a.pb");
  const int fd = open(sparse.c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(ftruncate(fd, 5LL << 30), 0);
  close(fd);
  EXPECT_THAT(Open().ListRuns()->runs, SizeIs(1));
  EXPECT_THAT(Open().Verify()->bad_files[0].reason, HasSubstr("more than"));
  EXPECT_THAT(Repair(), SizeIs(1));
}

TEST_F(HostileHistoryTest, ASmallFileThatDecodesToGigabytesIsRefused) {
  // Each empty result is two bytes here and some hundred in memory.
  const proto::Run run = MakeRun(1);
  std::string body = run.SerializeAsString();
  const char empty_result[] = {'\x52', '\x00'};
  std::string many;
  for (int i = 0; i < (1 << 10); ++i) many.append(empty_result, 2);
  for (int i = 0; i < (12 << 10); ++i) body += many;
  const std::string bytes = WithChecksum(std::move(body));
  ASSERT_LT(bytes.size(), kMostRecordBytes);
  proto::Run decoded;
  EXPECT_THAT(std::string(DecodeRecord(bytes, &decoded).message()),
              HasSubstr("memory"));
}

TEST_F(HostileHistoryTest, FilesThatNestDeepAreNotSearchedForEver) {
  Record(MakeRun(1));
  std::string deep = JoinPath(dir_, "runs");
  for (int i = 0; i < 40; ++i) deep = JoinPath(deep, "d");
  ASSERT_TRUE(CreateDirectories(deep).ok());
  EXPECT_THAT(Open().ListRuns()->runs, SizeIs(1));
  EXPECT_THAT(Open().ListRuns()->bad_files, SizeIs(1));
  EXPECT_THAT(Repair(), SizeIs(1));
}

TEST_F(HostileHistoryTest, NamesTooLongToBeQuarantinedAreCut) {
  // A writer of ours could not even name its temporary file so.
  const auto rename_to = [&](const std::string& name) {
    const std::string folder = JoinPath(dir_, "runs/2026");
    ASSERT_EQ(FileSystem::Real()->Rename(JoinPath(folder, "short.pb"),
                                         JoinPath(folder, name)),
              0);
  };
  Plant("runs/2026/short.pb", MakeRun(1));
  rename_to(absl::StrCat(std::string(250, 'x'), ".pb"));
  proto::Run elsewhere = MakeRun(1);
  elsewhere.set_run_id("no id");
  Plant("runs/2026/short.pb", elsewhere);
  rename_to(absl::StrCat(std::string(251, 'y'), ".pb"));
  EXPECT_THAT(Repair(), SizeIs(2));
  EXPECT_THAT(Open().ListRuns()->runs, SizeIs(1));
}

// What is acknowledged can be read.

TEST_F(HostileHistoryTest, TextThatIsNoUtf8IsRecordedReadable) {
  proto::Run run = MakeRun(1);
  run.set_suite("suite \xff");
  run.mutable_commit()->set_branch("feature/\xe2\x82");
  run.mutable_commit()->set_subject(
      "Gr\xfc\xdf"
      "e");
  run.mutable_results(0)->set_detail("output cut \xf0\x9f\x98");
  Record(run);
  const auto read = Open().ReadRun(run.run_id());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->suite(), "suite \xef\xbf\xbd");
  EXPECT_EQ(read->commit().branch(), "feature/\xef\xbf\xbd");
  EXPECT_EQ(read->results(0).detail(), "output cut \xef\xbf\xbd");

  proto::Session session;
  session.set_session_id(NewRecordId(kStart));
  session.add_trials()->set_detail("stderr: \xff");
  ASSERT_TRUE(Open().AppendSession(session).ok());
  EXPECT_TRUE(Open().ReadSession(session.session_id()).ok());

  proto::TriageRecord note;
  note.set_record_id(NewRecordId(kStart));
  note.set_text("\xc3");
  ASSERT_TRUE(Open().AppendTriage(note).ok());
  EXPECT_THAT(Open().LoadTriage()->records, SizeIs(1));
  EXPECT_THAT(Open().Verify()->bad_files, IsEmpty());
}

TEST_F(HostileHistoryTest, WhatNoReaderTakesIsNotAcknowledged) {
  proto::Run run = MakeRun(1);
  run.set_suite(std::string(static_cast<size_t>(kMostRecordBytes), 'x'));
  EXPECT_EQ(Open().AppendRun(run).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Open().ListRuns()->runs, IsEmpty());
}

// A run of the year 2199 and tombstones from elsewhere.

TEST_F(HostileHistoryTest, ARunOfTheFutureIsListedAndNeverTheLatest) {
  for (int day = 1; day <= 3; ++day) Record(MakeRun(day));
  const std::string newest = Open().FindRun("latest")->id();
  proto::Run ahead = MakeRun(3);
  ahead.set_started_unix_ns(7'226'582'400LL * 1'000'000'000);  // 2199
  ahead.set_run_id(NewRecordId(ahead.started_unix_ns()));
  Record(ahead);
  History history = Open();
  history.set_now_unix_ns(kNow);
  EXPECT_THAT(history.ListRuns()->runs, SizeIs(4));
  std::vector<std::string> notes;
  const auto latest = history.FindRun("latest", {}, &notes);
  ASSERT_TRUE(latest.ok());
  EXPECT_EQ(latest->id(), newest);
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], AllOf(HasSubstr("1 run is dated in the future"),
                              HasSubstr("2199-01-01")));
  EXPECT_FALSE(history.FindRun("latest~3").ok());
  EXPECT_EQ(history.FindRun(ahead.run_id())->id(), ahead.run_id());
  // Hours ahead are a clock of another time zone.
  history.set_now_unix_ns(kStart + 3 * kDay - kDay / 2);
  EXPECT_EQ(history.FindRun("latest")->id(), newest);
}

TEST_F(HostileHistoryTest, MergedTombstonesTakeNothingAwayUnasked) {
  for (int day = 0; day < 30; ++day) Record(MakeRun(day));
  const RunList runs = *Open().ListRuns();
  proto::Tombstones tombstones;
  tombstones.set_tombstones_id(NewRecordId(kStart));
  for (const RunInfo& run : runs.runs) {
    proto::Tombstone* tombstone = tombstones.add_tombstones();
    tombstone->set_run_id(run.id());
    tombstone->set_kind(proto::REMOVED);
  }
  ASSERT_TRUE(Other().AppendTombstones(tombstones).ok());

  auto merged = Open().MergeFrom(Other());
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->copied, 0);
  ASSERT_THAT(merged->held_back, SizeIs(1));
  EXPECT_EQ(merged->held_back[0].removes, 30);
  EXPECT_THAT(Open().LoadTombstones()->by_run, IsEmpty());

  // Accepted, or brought by git: the rules of the policy still win.
  MergeOptions accept;
  accept.accept_removals = true;
  merged = Open().MergeFrom(Other(), accept);
  EXPECT_EQ(merged->copied, 1);
  EXPECT_THAT(merged->held_back, IsEmpty());
  RetentionPolicy policy;  // 50 runs, 90 days
  RetentionPlan plan = *PlanRetention(Open(), policy, kNow);
  EXPECT_EQ(plan.kept_whole, 30);
  EXPECT_THAT(plan.remove, IsEmpty());
  EXPECT_THAT(plan.thin, IsEmpty());

  policy.keep_runs = policy.keep_days = 0;
  policy.keep_commits = {runs.runs[7].header.commit().id()};
  plan = *PlanRetention(Open(), policy, kNow);
  EXPECT_THAT(plan.remove, IsEmpty());
  EXPECT_EQ(plan.buried_but_kept, 29);
  policy.accept_removals = true;
  plan = *PlanRetention(Open(), policy, kNow);
  EXPECT_THAT(plan.remove, SizeIs(29));
  EXPECT_EQ(plan.kept_whole, 1) << "the pinned one";
}

TEST_F(HostileHistoryTest, RunsOfTheFuturePushNoneOutOfRetention) {
  for (int day = 0; day < 5; ++day) Record(MakeRun(day));
  for (int i = 0; i < 60; ++i) {
    proto::Run ahead = MakeRun(0);
    ahead.set_started_unix_ns(7'226'582'400LL * 1'000'000'000 + i);
    ahead.set_run_id(NewRecordId(ahead.started_unix_ns()));
    Record(ahead);
  }
  RetentionPolicy policy;
  policy.keep_days = 0;
  EXPECT_EQ(PlanRetention(Open(), policy, kNow)->kept_whole, 65);
}

TEST_F(HostileHistoryTest, TimesAtTheEndsOfTheirRangeOverflowNothing) {
  for (const int64_t time : {std::numeric_limits<int64_t>::min(),
                             std::numeric_limits<int64_t>::max(), int64_t{0}}) {
    proto::Run run = MakeRun(1);
    run.set_run_id(NewRecordId(kStart));
    run.set_started_unix_ns(time);
    run.mutable_commit()->set_commit_unix_ns(-time / 2);
    run.mutable_commit()->set_first_parent_position(time);
    Record(run);
  }
  EXPECT_EQ(Check().CountDamaged(), 0);
  RetentionPolicy policy;
  policy.keep_runs = 0;
  policy.keep_every = 3;
  EXPECT_TRUE(PlanRetention(Open(), policy, kNow).ok());
  EXPECT_TRUE(Open().FindRun("latest").ok());
}

}  // namespace
}  // namespace optrail::tracker
