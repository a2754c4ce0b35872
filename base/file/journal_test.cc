#include "base/file/journal.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/random.h"
#include "base/testing/fault_injecting_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPath[] = "/journal";
constexpr int kHeaderBytes = 16;
constexpr int kRecordHeaderBytes = 20;

std::unique_ptr<Journal> MustOpen(FileSystem* fs, const char* path = kPath) {
  absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(path, fs);
  EXPECT_TRUE(journal.ok()) << journal.status();
  return journal.ok() ? *std::move(journal) : nullptr;
}

// A journal of one record per batch, "record 0" ..., as bytes.
std::string JournalBytes(int records) {
  FaultInjectingFileSystem fs;
  const std::unique_ptr<Journal> journal = MustOpen(&fs);
  for (int i = 0; i < records; ++i) {
    EXPECT_TRUE(journal->AppendAndSync(absl::StrCat("record ", i)).ok());
  }
  return ReadFile(kPath, &fs).value();
}

int64_t OffsetOfRecord(int i) {
  return kHeaderBytes + i * (kRecordHeaderBytes + 8);
}

TEST(JournalTest, KeepsRecordsInOrder) {
  FaultInjectingFileSystem fs;
  const std::string large(100000, 'x'), binary("\0\n\xa5rec\xff", 7);
  {
    const std::unique_ptr<Journal> journal = MustOpen(&fs);
    EXPECT_THAT(journal->records(), IsEmpty());
    ASSERT_TRUE(journal->AppendAndSync("one").ok());
    ASSERT_TRUE(journal->Append("").ok());
    ASSERT_TRUE(journal->Append(large).ok());
    ASSERT_TRUE(journal->Sync().ok());
  }
  {
    const std::unique_ptr<Journal> journal = MustOpen(&fs);
    EXPECT_THAT(journal->records(), ElementsAre("one", "", large));
    ASSERT_TRUE(journal->AppendAndSync(binary).ok());
  }
  EXPECT_EQ(fs.open_descriptors(), 0);
  const JournalContents contents = ReadJournal(kPath, &fs).value();
  EXPECT_THAT(contents.records, ElementsAre("one", "", large, binary));
  EXPECT_EQ(contents.ignored_bytes, 0);
}

TEST(JournalTest, RecordsThatWereNotSyncedDoNotCount) {
  FaultInjectingFileSystem fs;
  ASSERT_TRUE(MustOpen(&fs)->Append("lost").ok());
  EXPECT_THAT(MustOpen(&fs)->records(), IsEmpty());
}

TEST(JournalTest, OneSyncServesManyRecords) {
  FaultInjectingFileSystem fs;
  const std::unique_ptr<Journal> journal = MustOpen(&fs);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(journal->Append("record").ok());
  ASSERT_TRUE(journal->Sync().ok());
  ASSERT_TRUE(journal->Sync().ok());
  EXPECT_EQ(journal->syncs(), 1);
}

TEST(JournalTest, FormatIsWhatTheHeaderDocuments) {
  const std::string bytes = JournalBytes(1);
  ASSERT_EQ(bytes.size(), kHeaderBytes + kRecordHeaderBytes + 8);
  EXPECT_EQ(bytes.substr(0, 12), std::string("optrailj\1\0\0\0", 12));
  EXPECT_EQ(bytes.substr(16, 16),
            std::string("\xa5rec\x08\0\0\0\x10\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(bytes.substr(36), "record 0");
  const uint32_t crc = Crc32c(std::string("\x10\0\0\0\0\0\0\0", 8) +
                              bytes.substr(20, 12) + "record 0");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<unsigned char>(bytes[32 + i]),
              (crc >> (8 * i)) & 0xff);
  }
}

TEST(JournalTest, SecondWriterIsToldWhoWrites) {
  const std::string path = JoinPath(testing::TempDir(), "two_writers.journal");
  absl::StatusOr<std::unique_ptr<Journal>> first = Journal::Open(path);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status status = Journal::Open(path).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(IsHeldByAnother(status));
  EXPECT_THAT(status.message(), HasSubstr(path));
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("process ", getpid())));
  EXPECT_TRUE(ReadJournal(path).ok());
  first->reset();
  EXPECT_TRUE(Journal::Open(path).ok());
}

TEST(JournalTest, RefusesFilesThatAreNoJournals) {
  FaultInjectingFileSystem fs;
  for (const std::string text : {"", "x", "a text that somebody wrote"}) {
    ASSERT_TRUE(WriteFileAtomically(kPath, text, &fs).ok());
    const absl::Status status = Journal::Open(kPath, &fs).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(kPath));
    EXPECT_EQ(ReadFile(kPath, &fs).value(), text);
  }
}

TEST(JournalTest, MissingJournalIsNotFoundForReaders) {
  FaultInjectingFileSystem fs;
  EXPECT_TRUE(absl::IsNotFound(ReadJournal(kPath, &fs).status()));
}

TEST(JournalTest, TornTailIsCutOffWhereverItIsTorn) {
  const std::string whole = JournalBytes(3);
  for (size_t size = kHeaderBytes; size <= whole.size(); ++size) {
    SCOPED_TRACE(absl::StrCat("size ", size));
    FaultInjectingFileSystem fs;
    ASSERT_TRUE(WriteFileAtomically(kPath, whole.substr(0, size), &fs).ok());
    const size_t records = (size - kHeaderBytes) / (kRecordHeaderBytes + 8);
    {
      const std::unique_ptr<Journal> journal = MustOpen(&fs);
      ASSERT_NE(journal, nullptr);
      EXPECT_EQ(journal->records().size(), records);
      EXPECT_EQ(journal->ignored_bytes(),
                size - OffsetOfRecord(static_cast<int>(records)));
      ASSERT_TRUE(journal->AppendAndSync("next").ok());
    }
    const std::unique_ptr<Journal> again = MustOpen(&fs);
    ASSERT_EQ(again->records().size(), records + 1);
    EXPECT_EQ(again->records().back(), "next");
    EXPECT_EQ(again->ignored_bytes(), 0);
  }
}

TEST(JournalTest, ZerosAfterTheEndAreATornTail) {
  FaultInjectingFileSystem fs;
  const std::string bytes = JournalBytes(2) + std::string(4096, '\0');
  ASSERT_TRUE(WriteFileAtomically(kPath, bytes, &fs).ok());
  const std::unique_ptr<Journal> journal = MustOpen(&fs);
  EXPECT_THAT(journal->records(), ElementsAre("record 0", "record 1"));
  EXPECT_EQ(journal->ignored_bytes(), 4096);
}

TEST(JournalTest, EveryDamagedByteInTheMiddleIsReportedAndNothingIsChanged) {
  const std::string whole = JournalBytes(3);
  for (int64_t i = 0; i < OffsetOfRecord(2); ++i) {
    SCOPED_TRACE(absl::StrCat("byte ", i));
    std::string damaged = whole;
    damaged[i] ^= 0x10;
    FaultInjectingFileSystem fs;
    ASSERT_TRUE(WriteFileAtomically(kPath, damaged, &fs).ok());
    const absl::Status status = Journal::Open(kPath, &fs).status();
    if (i < 8) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    }
    if (i >= kHeaderBytes) {
      const int64_t start = OffsetOfRecord(i < OffsetOfRecord(1) ? 0 : 1);
      EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("offset ", start)));
    }
    EXPECT_THAT(status.message(), HasSubstr(kPath));
    EXPECT_EQ(ReadFile(kPath, &fs).value(), damaged);
    EXPECT_EQ(fs.open_descriptors(), 0);
  }
}

// Disks may write the second block before the first one.
TEST(JournalTest, BatchWhoseBeginningIsMissingIsATornTail) {
  FaultInjectingFileSystem fs;
  {
    const std::unique_ptr<Journal> journal = MustOpen(&fs);
    ASSERT_TRUE(journal->AppendAndSync("record 0").ok());
    ASSERT_TRUE(journal->Append("record 1").ok());
    ASSERT_TRUE(journal->Append("record 2").ok());
    ASSERT_TRUE(journal->Sync().ok());
  }
  std::string bytes = ReadFile(kPath, &fs).value();
  bytes[OffsetOfRecord(1) + kRecordHeaderBytes] = '\0';
  ASSERT_TRUE(WriteFileAtomically(kPath, bytes, &fs).ok());
  EXPECT_THAT(MustOpen(&fs)->records(), ElementsAre("record 0"));
}

TEST(JournalTest, JournalQuotedInATornRecordIsNotTakenForOne) {
  FaultInjectingFileSystem fs;
  {
    const std::unique_ptr<Journal> journal = MustOpen(&fs);
    ASSERT_TRUE(journal->AppendAndSync("first").ok());
    ASSERT_TRUE(journal->AppendAndSync(JournalBytes(5)).ok());
  }
  std::string bytes = ReadFile(kPath, &fs).value();
  bytes.pop_back();
  ASSERT_TRUE(WriteFileAtomically(kPath, bytes, &fs).ok());
  EXPECT_THAT(MustOpen(&fs)->records(), ElementsAre("first"));
}

TEST(JournalTest, FullDiskKeepsTheJournalAndTheQueue) {
  for (const bool partly : {false, true}) {
    FaultInjectingFileSystem fs;
    const std::unique_ptr<Journal> journal = MustOpen(&fs);
    ASSERT_TRUE(journal->AppendAndSync("one").ok());
    ASSERT_TRUE(journal->Append("two").ok());
    if (partly) fs.WriteShortAt(fs.operations());
    fs.FailAt(fs.operations() + (partly ? 1 : 0), ENOSPC);
    const absl::Status status = journal->Sync();
    EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
    EXPECT_THAT(status.message(), HasSubstr(kPath));
    EXPECT_THAT(ReadJournal(kPath, &fs)->records, ElementsAre("one"));
    EXPECT_EQ(ReadJournal(kPath, &fs)->ignored_bytes, 0);
    ASSERT_TRUE(journal->Sync().ok());
    EXPECT_THAT(ReadJournal(kPath, &fs)->records, ElementsAre("one", "two"));
  }
}

TEST(JournalTest, FailedSyncIsFinalUntilOpenedAnew) {
  FaultInjectingFileSystem fs;
  std::unique_ptr<Journal> journal = MustOpen(&fs);
  ASSERT_TRUE(journal->AppendAndSync("one").ok());
  ASSERT_TRUE(journal->Append("two").ok());
  fs.FailAt(fs.operations() + 1, EIO);
  EXPECT_FALSE(journal->Sync().ok());
  EXPECT_FALSE(journal->Sync().ok());
  EXPECT_FALSE(journal->Append("three").ok());
  journal.reset();
  EXPECT_EQ(MustOpen(&fs)->records().front(), "one");
}

// Opens, appends batches of one to three records and syncs until something
// fails; twice, so that reopening is interrupted too. Adds what was
// acknowledged to `acknowledged` and what was ever appended to `appended`.
void Work(FileSystem* fs, std::vector<std::string>* acknowledged,
          std::vector<std::string>* appended) {
  for (int session = 0; session < 2; ++session) {
    absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(kPath, fs);
    if (!journal.ok()) return;
    for (int batch = 0; batch < 4; ++batch) {
      for (int i = 0; i <= batch % 3; ++i) {
        const std::string record =
            absl::StrCat("session ", session, " batch ", batch, " record ", i,
                         std::string(static_cast<size_t>(i) * 50, 'x'));
        if (!(*journal)->Append(record).ok()) return;
        appended->push_back(record);
      }
      if (!(*journal)->Sync().ok()) return;
      *acknowledged = *appended;
    }
  }
}

TEST(JournalTest, PowerLossAtEveryPointLosesNoAcknowledgedRecord) {
  for (const PowerLoss loss :
       {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames, PowerLoss::kTorn}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      for (int64_t i = 0;; ++i) {
        SCOPED_TRACE(absl::StrCat("operation ", i, " seed ", seed, " loss ",
                                  static_cast<int>(loss)));
        FaultInjectingFileSystem fs(seed);
        fs.LosePowerAt(i);
        std::vector<std::string> acknowledged, appended;
        Work(&fs, &acknowledged, &appended);
        const bool finished = fs.operations() <= i;
        fs.Restart(loss);
        std::unique_ptr<Journal> journal = MustOpen(&fs);
        ASSERT_NE(journal, nullptr);
        // All that was acknowledged, then perhaps more of what was appended.
        const std::vector<std::string> records = journal->records();
        ASSERT_GE(records.size(), acknowledged.size());
        ASSERT_LE(records.size(), appended.size());
        appended.resize(records.size());
        EXPECT_THAT(records, ElementsAreArray(appended));
        // And work goes on.
        ASSERT_TRUE(journal->AppendAndSync("next").ok());
        journal.reset();
        appended.push_back("next");
        EXPECT_THAT(MustOpen(&fs)->records(), ElementsAreArray(appended));
        const std::vector<std::string> names = ListDirectory("/", &fs).value();
        EXPECT_THAT(names, ElementsAre("journal"));
        if (finished) break;
      }
    }
  }
}

// A child appends and reports each acknowledged record through a pipe; the
// parent kills it at a random moment. fork without exec is safe here: the test
// has one thread.
TEST(JournalTest, KillingTheWriterLosesNoAcknowledgedRecord) {
  const std::string path = JoinPath(testing::TempDir(), "killed.journal");
  Rng rng(7);
  int64_t acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    int pipe_fds[2];
    ASSERT_EQ(pipe(pipe_fds), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(pipe_fds[0]);
      absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(path);
      if (!journal.ok()) _exit(1);
      for (size_t i = (*journal)->records().size();; ++i) {
        if (!(*journal)->AppendAndSync(absl::StrCat("record ", i)).ok() ||
            write(pipe_fds[1], "+", 1) != 1) {
          _exit(1);
        }
      }
    }
    close(pipe_fds[1]);
    // After so many acknowledgements, and then some instructions later.
    const int64_t wanted = rng.UniformInt(8);
    char byte;
    for (int64_t i = 0; i < wanted; ++i) {
      ASSERT_EQ(read(pipe_fds[0], &byte, 1), 1) << "round " << round;
      ++acknowledged;
    }
    for (volatile int64_t spin = rng.UniformInt(300000); spin > 0;) {
      spin = spin - 1;
    }
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round;
    while (read(pipe_fds[0], &byte, 1) == 1) ++acknowledged;
    close(pipe_fds[0]);

    const bool created = FileExists(path);
    ASSERT_TRUE(created || acknowledged == 0);
    if (!created) continue;
    const JournalContents contents = ReadJournal(path).value();
    ASSERT_GE(contents.records.size(), acknowledged);
    for (size_t i = 0; i < contents.records.size(); ++i) {
      ASSERT_EQ(contents.records[i], absl::StrCat("record ", i));
    }
    acknowledged = static_cast<int64_t>(contents.records.size());
  }
  EXPECT_GT(acknowledged, 20);
}

}  // namespace
}  // namespace optrail
