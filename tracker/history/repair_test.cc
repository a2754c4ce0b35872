#include "tracker/history/repair.h"

#include <cmath>
#include <limits>

#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/testing/fault_injecting_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/record.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kHourNs = 3600LL * 1'000'000'000;

class RepairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GenerateOptions options;
    options.benchmarks = 2;
    options.hardware = 1;
    options.commits = 12;
    options.processes = 2;
    options.samples = 3;
    ASSERT_TRUE(GenerateHistory(options, history_).ok());
    runs_ = history_.LoadRuns({}, 1)->runs;
  }

  std::string PathOf(int i) const {
    const std::string& id = runs_[i].run_id();
    return JoinPath(history_.dir(), "runs", id.substr(0, 4), id + ".pb");
  }

  // Writes what no reader would accept, with a checksum that is right.
  void Write(const std::string& path, proto::Run run) {
    run.clear_checksum();
    ASSERT_TRUE(WriteFileAtomically(path, EncodeRecord(run), &fs_).ok());
  }

  template <typename Change>
  void Damage(int i, Change change) {
    std::string bytes = *ReadFile(PathOf(i), &fs_);
    change(bytes);
    ASSERT_TRUE(WriteFileAtomically(PathOf(i), bytes, &fs_).ok());
  }

  CheckReport Check(CheckOptions options = {}) {
    options.threads = 1;  // as the file system wants it
    auto report = CheckHistory(history_, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return *std::move(report);
  }

  // The one finding, of that file.
  static void ExpectOnly(const CheckReport& report, HistoryProblem problem,
                         const std::string& path, const std::string& detail) {
    ASSERT_EQ(report.findings.size(), 1);
    EXPECT_EQ(HistoryProblemName(report.findings[0].problem),
              HistoryProblemName(problem));
    EXPECT_EQ(report.findings[0].path, path);
    EXPECT_THAT(report.findings[0].detail, HasSubstr(detail));
    EXPECT_EQ(report.CountDamaged(), IsDamage(problem) ? 1 : 0);
  }

  FaultInjectingFileSystem fs_;
  History history_ = *History::Open("/h", &fs_);
  std::vector<proto::Run> runs_;
};

TEST_F(RepairTest, FindsNothingInASoundHistory) {
  const CheckReport report = Check();
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.runs, 12);
  EXPECT_THAT(*RepairHistory(history_, report), IsEmpty());
}

TEST_F(RepairTest, NamesFilesThatWereCutOff) {
  Damage(3, [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  ExpectOnly(Check(), HistoryProblem::kTruncated, PathOf(3), "cut off");
  Damage(3, [](std::string& bytes) { bytes.clear(); });
  ExpectOnly(Check(), HistoryProblem::kTruncated, PathOf(3), "empty");
}

TEST_F(RepairTest, NamesFlippedBits) {
  Damage(3, [](std::string& bytes) { bytes[40] ^= 8; });
  ExpectOnly(Check(), HistoryProblem::kChanged, PathOf(3),
             "bytes were changed");
}

TEST_F(RepairTest, NamesWhatIsNoMessage) {
  // A length that points past the end, under a checksum that is right.
  proto::Run broken;
  broken.GetReflection()->MutableUnknownFields(&broken)->AddLengthDelimited(
      7, "\x0a\x7f");
  Write(PathOf(3), broken);
  ExpectOnly(Check(), HistoryProblem::kChanged, PathOf(3), "no valid");
}

TEST_F(RepairTest, NamesFieldsOfANewerVersionAndKeepsThem) {
  proto::Run run = runs_[3];
  proto::Measurement* measurement =
      run.mutable_results(0)->mutable_measurements(0);
  measurement->GetReflection()
      ->MutableUnknownFields(measurement)
      ->AddVarint(1234, 5);
  Write(PathOf(3), run);
  ExpectOnly(Check(), HistoryProblem::kNewerSchema, PathOf(3),
             "Measurement.1234");
  EXPECT_THAT(*RepairHistory(history_, Check()), IsEmpty());
  EXPECT_EQ(history_.LoadRuns({}, 1)->runs.size(), 12);
}

// Only newer code reads it; moving it away would lose what that code knows.
TEST_F(RepairTest, LeavesARecordOfANewerFormatWhereItIs) {
  Damage(3, [](std::string& bytes) {
    bytes.resize(bytes.size() - 6);
    bytes += "\xb5\x06";  // field 102: format 3
    const uint32_t checksum = Crc32c(bytes);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>(checksum >> shift & 0xff));
    }
  });
  ExpectOnly(Check(), HistoryProblem::kNewerSchema, PathOf(3),
             "newer Optrail: its format is 3");
  EXPECT_THAT(*RepairHistory(history_, Check()), IsEmpty());
  // No reader takes it for something else, and it is said.
  EXPECT_EQ(history_.LoadRuns({}, 1)->runs.size(), 11);
  EXPECT_EQ(history_.LoadRuns({}, 1)->bad_files.size(), 1);
}

TEST_F(RepairTest, NamesClocksThatRanBackwards) {
  proto::Run run = runs_[6];
  run.set_started_unix_ns(run.commit().commit_unix_ns() - kHourNs);
  Write(PathOf(6), run);
  const CheckReport report = Check();
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].problem, HistoryProblem::kClockBackwards);
  EXPECT_THAT(report.findings[0].detail, HasSubstr("before its commit"));

  run.mutable_commit()->clear_commit_unix_ns();
  run.set_started_unix_ns(runs_[5].started_unix_ns() - kHourNs);
  Write(PathOf(6), run);
  ExpectOnly(Check(), HistoryProblem::kClockBackwards, PathOf(6),
             "older commit");

  Write(PathOf(6), runs_[6]);
  CheckOptions options;
  options.now_unix_ns = runs_[10].started_unix_ns() + kHourNs / 2;
  ExpectOnly(Check(options), HistoryProblem::kClockBackwards, PathOf(11),
             "future");
}

TEST_F(RepairTest, NamesTheSecondFileOfARecord) {
  const std::string copy = "/h/runs/2026/20260101T000000Z-ab.pb";
  ASSERT_TRUE(CreateDirectories("/h/runs/2026", &fs_).ok());
  ASSERT_TRUE(WriteFileAtomically(copy, *ReadFile(PathOf(3), &fs_), &fs_).ok());
  ExpectOnly(Check(), HistoryProblem::kDuplicateId, copy, runs_[3].run_id());
}

TEST_F(RepairTest, PutsAMisplacedRecordInItsPlace) {
  const std::string elsewhere = "/h/runs/elsewhere.pb";
  ASSERT_EQ(fs_.Rename(PathOf(3), elsewhere), 0);
  ExpectOnly(Check(), HistoryProblem::kMisplaced, elsewhere, PathOf(3));
  const auto repaired = RepairHistory(history_, Check());
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  ASSERT_EQ(repaired->size(), 1);
  EXPECT_EQ((*repaired)[0].to, PathOf(3));
  EXPECT_THAT(Check().findings, IsEmpty());
  EXPECT_EQ(Check().runs, 12);
}

TEST_F(RepairTest, NamesTimesThatCannotBe) {
  for (const double value :
       {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
    proto::Run run = runs_[3];
    run.mutable_results(0)->mutable_measurements(0)->set_median_ns(value);
    Write(PathOf(3), run);
    ExpectOnly(Check(), HistoryProblem::kImpossibleValue, PathOf(3),
               "median_ns");
  }
  proto::Run run = runs_[3];
  run.mutable_results(1)->mutable_measurements(1)->set_sample_ns(2, -5);
  Write(PathOf(3), run);
  ExpectOnly(Check(), HistoryProblem::kImpossibleValue, PathOf(3),
             "sample_ns is -5");
}

TEST_F(RepairTest, NamesCommitsThatGitDoesNotKnow) {
  CheckOptions options;
  options.knows_commit = [&](const std::string& commit) {
    return commit != runs_[3].commit().id();
  };
  ExpectOnly(Check(options), HistoryProblem::kUnknownCommit, PathOf(3),
             "rewritten");
  int asked = 0;
  options.knows_commit = [&](const std::string&) -> absl::StatusOr<bool> {
    ++asked;
    return absl::UnavailableError("git is not installed");
  };
  const CheckReport report = Check(options);
  EXPECT_THAT(report.findings, IsEmpty());
  ASSERT_EQ(report.notes.size(), 1);
  EXPECT_THAT(report.notes[0], HasSubstr("git is not installed"));
  EXPECT_EQ(asked, 1);
}

TEST_F(RepairTest, NamesRemovedRecordsThatAreBack) {
  proto::Tombstones tombstones;
  tombstones.set_tombstones_id(NewRecordId(runs_[11].started_unix_ns()));
  proto::Tombstone* tombstone = tombstones.add_tombstones();
  tombstone->set_run_id(runs_[3].run_id());
  tombstone->set_kind(proto::REMOVED);
  ASSERT_TRUE(history_.AppendTombstones(tombstones).ok());
  ExpectOnly(Check(), HistoryProblem::kResurrected, PathOf(3), "history thin");
}

TEST_F(RepairTest, MovesDamageAwayAndDeletesNothing) {
  Damage(1, [](std::string& bytes) { bytes.resize(20); });
  Damage(4, [](std::string& bytes) { bytes[40] ^= 8; });
  const std::string damaged = *ReadFile(PathOf(4), &fs_);
  auto repaired = RepairHistory(history_, Check());
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  ASSERT_EQ(repaired->size(), 2);
  const Repaired moved = (*repaired)[1];
  EXPECT_EQ(moved.from, PathOf(4));
  EXPECT_THAT(moved.to, HasSubstr("/h/quarantine/runs/"));
  EXPECT_EQ(*ReadFile(moved.to, &fs_), damaged);
  EXPECT_THAT(*ReadFile(moved.to + ".reason", &fs_),
              HasSubstr("bytes changed"));
  EXPECT_THAT(Check().findings, IsEmpty());
  EXPECT_EQ(Check().runs, 10);

  // A sound copy can come back, and a second damage is kept beside the first.
  Write(PathOf(4), runs_[4]);
  EXPECT_EQ(Check().runs, 11);
  Damage(4, [](std::string& bytes) { bytes[41] ^= 8; });
  repaired = RepairHistory(history_, Check());
  ASSERT_EQ(repaired->size(), 1);
  EXPECT_EQ(*ReadFile(moved.to, &fs_), damaged);
  EXPECT_EQ((*repaired)[0].to, moved.to + ".1");
}

TEST(RepairFaults, APowerLossLosesNoFile) {
  int losses = 0;
  for (const PowerLoss loss :
       {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames, PowerLoss::kTorn}) {
    for (int64_t i = 0;; ++i) {
      FaultInjectingFileSystem fs(41 + i);
      const History history = *History::Open("/h", &fs);
      GenerateOptions options;
      options.benchmarks = 1;
      options.hardware = 1;
      options.commits = 3;
      options.processes = options.samples = 2;
      ASSERT_TRUE(GenerateHistory(options, history).ok());
      const std::string path = history.ListRuns()->runs[1].path;
      const std::string damaged = ReadFile(path, &fs)->substr(0, 30);
      ASSERT_TRUE(WriteFileAtomically(path, damaged, &fs).ok());
      CheckOptions one_thread;
      one_thread.threads = 1;
      const CheckReport report = *CheckHistory(history, one_thread);
      fs.LosePowerAt(fs.operations() + i);
      if (RepairHistory(history, report).ok()) break;
      ++losses;
      fs.Restart(loss);
      EXPECT_EQ(history.Verify(1)->runs, 2);
      int found = FileExists(path, &fs);
      const std::vector<std::string> quarantined =
          *ListRecursively("/h/quarantine", ".pb", &fs);
      for (const std::string& moved : quarantined) {
        EXPECT_EQ(*ReadFile(moved, &fs), damaged);
        ++found;
      }
      EXPECT_GE(found, 1) << "at operation " << i;
      ASSERT_TRUE(
          RepairHistory(history, *CheckHistory(history, one_thread)).ok());
      EXPECT_EQ(CheckHistory(history, one_thread)->CountDamaged(), 0);
    }
  }
  EXPECT_GT(losses, 15);
}

}  // namespace
}  // namespace optrail::tracker
