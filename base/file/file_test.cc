#include "base/file/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file/failed_file.h"
#include "base/testing/fault_injecting_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TestPath(const std::string& name) {
  return JoinPath(
      testing::TempDir(),
      absl::StrCat(
          testing::UnitTest::GetInstance()->current_test_info()->name(), "-",
          name));
}

// All names in `dir`, temporaries included.
std::vector<std::string> AllNames(FileSystem* fs, const std::string& dir) {
  std::vector<std::string> names;
  EXPECT_EQ(fs->List(dir, &names), 0);
  return names;
}

TEST(FileTest, ReadsWhatWasWritten) {
  const std::string path = TestPath("file");
  std::string contents(100000, '\0');
  for (size_t i = 0; i < contents.size(); ++i)
    contents[i] = static_cast<char>(i);
  ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
  EXPECT_EQ(ReadFile(path).value(), contents);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(ReadFile(path).value(), "");
}

TEST(FileTest, ReadsFilesWhoseSizeIsNotKnown) {
  EXPECT_THAT(ReadFile("/proc/self/status").value(), HasSubstr("Name:"));
}

TEST(FileTest, AnEndlessFileIsRefused) {
  EXPECT_EQ(ReadFile("/dev/zero").status().code(),
            absl::StatusCode::kResourceExhausted);
  const std::string sparse = TestPath("sparse");
  ASSERT_TRUE(WriteFileAtomically(sparse, "").ok());
  ASSERT_EQ(truncate(sparse.c_str(), kMostFileBytes + 1), 0);
  EXPECT_THAT(ReadFile(sparse).status().message(), HasSubstr("more than"));
}

TEST(FileTest, OnlyRegularFilesAreReadFromStrangers) {
  const std::string path = TestPath("file");
  ASSERT_TRUE(WriteFileAtomically(path, "12345").ok());
  EXPECT_EQ(ReadRegularFile(path).value(), "12345");
  EXPECT_EQ(ReadRegularFile(path, 5).value(), "12345");
  EXPECT_EQ(ReadRegularFile(path, 4).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::IsNotFound(ReadRegularFile(TestPath("none")).status()));
  const std::string link = TestPath("link"), pipe = TestPath("pipe");
  unlink(link.c_str());
  unlink(pipe.c_str());
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& other :
       {link, pipe, testing::TempDir(), std::string("/dev/zero")}) {
    EXPECT_EQ(ReadRegularFile(other).status().code(),
              absl::StatusCode::kFailedPrecondition)
        << other;
  }
}

TEST(FileTest, LinksToThemselvesAreListedOnce) {
  const std::string dir = TestPath("dir");
  ASSERT_TRUE(CreateDirectories(dir).ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(dir, "a.txt"), "").ok());
  for (const char* name : {"x", "y", "z"}) {
    unlink(JoinPath(dir, name).c_str());
    ASSERT_EQ(symlink(".", JoinPath(dir, name).c_str()), 0);
  }
  EXPECT_EQ(ListRecursively(dir, ".txt")->size(), 1);
}

TEST(FileTest, OutputGoesIntoAStreamAsItIs) {
  const std::string pipe = TestPath("pipe");
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(WriteOutput(pipe, "hello").ok());
  char buffer[16];
  EXPECT_EQ(read(reader, buffer, sizeof(buffer)), 5);
  close(reader);
  EXPECT_TRUE(IsStream(pipe));
  EXPECT_TRUE(IsStream("/dev/stdout"));
  EXPECT_FALSE(IsStream(TestPath("new")));
  EXPECT_FALSE(IsStream("/dev/shm/new"));
}

TEST(FileTest, MissingFileIsNotFoundAndNamed) {
  const absl::Status status = ReadFile(TestPath("missing")).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(TestPath("missing")));
  EXPECT_THAT(status.message(), HasSubstr("No such file"));
}

TEST(FileTest, ErrorsTellTheirFile) {
  const std::string missing = TestPath("a name: No such file or directory");
  const auto failed = FailedFileOf(ReadFile(missing).status());
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->path, missing);
  EXPECT_EQ(failed->error_number, ENOENT);
  EXPECT_EQ(FailedFileOf(ReadFile(::testing::TempDir()).status())->error_number,
            EISDIR);
  EXPECT_FALSE(
      FailedFileOf(absl::NotFoundError("opening x: No such file or directory"))
          .has_value());
  EXPECT_FALSE(FailedFileOf(absl::OkStatus()).has_value());
}

TEST(FileTest, WritingIntoAMissingFolderNamesPathAndReason) {
  const absl::Status status =
      WriteFileAtomically(TestPath("missing/file"), "text");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr(TestPath("missing") + " to write to"));
}

TEST(FileTest, NewFileMustBeNew) {
  const std::string path = TestPath("file");
  ASSERT_TRUE(WriteNewFileAtomically(path, "first").ok());
  const absl::Status status = WriteNewFileAtomically(path, "second");
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(path));
  EXPECT_EQ(ReadFile(path).value(), "first");
}

TEST(FileTest, CreatesFoldersOnce) {
  const std::string dir = TestPath("a/b/c");
  ASSERT_TRUE(CreateDirectories(dir).ok());
  ASSERT_TRUE(CreateDirectories(dir).ok());
  EXPECT_TRUE(FileExists(dir));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(dir, "file"), "").ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(CreateDirectories(JoinPath(dir, "file"))));
}

TEST(FileTest, ListsSortedWithoutTemporaries) {
  FaultInjectingFileSystem fs;
  ASSERT_TRUE(CreateDirectories("/d/sub/deep", &fs).ok());
  for (const char* name : {"/d/b.pb", "/d/a.pb", "/d/a.txt", "/d/sub/deep/c.pb",
                           "/d/sub/.x.pb.tmp-12-9f"}) {
    ASSERT_TRUE(WriteFileAtomically(name, "", &fs).ok());
  }
  EXPECT_THAT(ListDirectory("/d", &fs).value(),
              ElementsAre("a.pb", "a.txt", "b.pb", "sub"));
  EXPECT_THAT(ListDirectory("/d/sub", &fs).value(), ElementsAre("deep"));
  EXPECT_THAT(ListRecursively("/d", ".pb", &fs).value(),
              ElementsAre("/d/a.pb", "/d/b.pb", "/d/sub/deep/c.pb"));
  EXPECT_THAT(
      ListRecursively("/d", "", &fs).value(),
      ElementsAre("/d/a.pb", "/d/a.txt", "/d/b.pb", "/d/sub/deep/c.pb"));
  EXPECT_THAT(ListRecursively("/nowhere", ".pb", &fs).value(), IsEmpty());
  // What cannot be looked at is no empty folder.
  EXPECT_FALSE(ListRecursively("/" + std::string(5000, 'x'), ".pb").ok());
  EXPECT_TRUE(absl::IsNotFound(ListDirectory("/nowhere", &fs).status()));
}

TEST(FileTest, RemovesFiles) {
  const std::string path = TestPath("file");
  ASSERT_TRUE(WriteFileAtomically(path, "text").ok());
  EXPECT_TRUE(RemoveFile(path).ok());
  EXPECT_FALSE(FileExists(path));
  EXPECT_TRUE(absl::IsNotFound(RemoveFile(path)));
}

TEST(FileTest, JoinsAndSplitsPaths) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", ""), "a");
  EXPECT_EQ(JoinPath("a", "b", "c"), "a/b/c");
  EXPECT_EQ(DirectoryOf("a/b/c"), "a/b");
  EXPECT_EQ(DirectoryOf("a/b/"), "a");
  EXPECT_EQ(DirectoryOf("c"), ".");
  EXPECT_EQ(DirectoryOf("/c"), "/");
  EXPECT_EQ(DirectoryOf("/"), "/");
  EXPECT_EQ(FileNameOf("a/b.c"), "b.c");
  EXPECT_EQ(FileNameOf("b.c"), "b.c");
}

TEST(FileTest, SecondLockNamesTheHolder) {
  const std::string path = TestPath("lock");
  absl::StatusOr<FileLock> first = FileLock::Try(path);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status status = FileLock::Try(path).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(path));
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("process ", getpid())));
  { const FileLock moved = *std::move(first); }
  EXPECT_TRUE(FileLock::Try(path).ok());
  EXPECT_TRUE(FileLock::Wait(path).ok());
}

TEST(FileFaultTest, EveryFailureKeepsTheOldFileAndLeavesNoTemporary) {
  for (const bool must_be_new : {false, true}) {
    const std::string path = must_be_new ? "/d/new" : "/d/old";
    for (int64_t i = 0;; ++i) {
      SCOPED_TRACE(absl::StrCat("operation ", i));
      FaultInjectingFileSystem fs;
      ASSERT_TRUE(CreateDirectories("/d", &fs).ok());
      ASSERT_TRUE(WriteFileAtomically("/d/old", "old", &fs).ok());
      const int64_t start = fs.operations();
      fs.FailAt(start + i, ENOSPC);
      const absl::Status status = must_be_new
                                      ? WriteNewFileAtomically(path, "new", &fs)
                                      : WriteFileAtomically(path, "new", &fs);
      if (fs.operations() <= start + i) break;
      EXPECT_EQ(fs.open_descriptors(), 0);
      if (status.ok()) {
        // Only the removal of a linked temporary may fail unnoticed: it is a
        // leftover, not data.
        EXPECT_TRUE(must_be_new);
        EXPECT_EQ(ReadFile(path, &fs).value(), "new");
        continue;
      }
      EXPECT_THAT(status.message(), HasSubstr("/d"));
      EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
      for (const std::string& name : AllNames(&fs, "/d")) {
        EXPECT_FALSE(IsTemporaryName(name)) << name;
      }
      EXPECT_THAT(ReadFile("/d/old", &fs).value(), AnyOf("old", "new"));
    }
  }
}

TEST(FileFaultTest, AFolderThatSomebodyMadeButDidNotSyncIsMadeToLast) {
  FaultInjectingFileSystem fs;
  ASSERT_EQ(fs.MakeDirectory("/d", 0777), 0);
  ASSERT_TRUE(CreateDirectories("/d", &fs).ok());
  ASSERT_TRUE(WriteNewFileAtomically("/d/f", "acknowledged", &fs).ok());
  fs.Restart(PowerLoss::kDropUnsynced);
  EXPECT_EQ(ReadFile("/d/f", &fs).value_or("lost"), "acknowledged");
}

TEST(FileFaultTest, AFolderWhoseEntryCannotBeSyncedIsNotReportedAsThere) {
  FaultInjectingFileSystem fs;
  ASSERT_EQ(fs.MakeDirectory("/d", 0777), 0);
  fs.FailAt(fs.operations(), EIO);
  EXPECT_THAT(std::string(CreateDirectories("/d", &fs).message()),
              HasSubstr("/d"));
  // What it may not sync it did not make: /home of somebody else.
  fs.FailAt(fs.operations(), EACCES);
  EXPECT_TRUE(CreateDirectories("/d", &fs).ok());
}

// FAT and some network file systems.
class FileSystemWithoutHardLinks : public FaultInjectingFileSystem {
 public:
  int Link(const std::string&, const std::string&) override {
    errno = EPERM;
    return -1;
  }
};

TEST(FileFaultTest, WithoutHardLinksANewFileIsStillNewAndDurable) {
  FileSystemWithoutHardLinks fs;
  ASSERT_TRUE(CreateDirectories("/d", &fs).ok());
  ASSERT_TRUE(WriteNewFileAtomically("/d/f", "first", &fs).ok());
  EXPECT_TRUE(
      absl::IsAlreadyExists(WriteNewFileAtomically("/d/f", "second", &fs)));
  EXPECT_THAT(ListDirectory("/d", &fs).value(), ElementsAre("f"));
  EXPECT_EQ(fs.open_descriptors(), 0) << "the lock is still held";
  fs.Restart(PowerLoss::kDropUnsynced);
  EXPECT_EQ(ReadFile("/d/f", &fs).value_or("lost"), "first");
}

TEST(FileFaultTest, WithoutHardLinksPowerLossLeavesTheWholeFileOrNone) {
  FileSystemWithoutHardLinks count;
  ASSERT_TRUE(CreateDirectories("/d", &count).ok());
  const int64_t first = count.operations();
  ASSERT_TRUE(WriteNewFileAtomically("/d/f", "contents", &count).ok());
  for (const PowerLoss loss :
       {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames, PowerLoss::kTorn}) {
    for (int64_t i = first; i < count.operations(); ++i) {
      SCOPED_TRACE(i);
      FileSystemWithoutHardLinks fs;
      ASSERT_TRUE(CreateDirectories("/d", &fs).ok());
      fs.LosePowerAt(i);
      const absl::Status status =
          WriteNewFileAtomically("/d/f", "contents", &fs);
      fs.Restart(loss);
      EXPECT_EQ(ReadFile("/d/f", &fs).value_or(status.ok() ? "" : "contents"),
                "contents");
    }
  }
}

TEST(FileFaultTest, ShortWritesAreContinued) {
  FaultInjectingFileSystem fs;
  fs.WriteShortAt(1);  // 0 creates the temporary
  ASSERT_TRUE(WriteFileAtomically("/file", "0123456789", &fs).ok());
  EXPECT_EQ(ReadFile("/file", &fs).value(), "0123456789");
}

TEST(FileFaultTest, ReadOnlyDiskIsSaid) {
  FaultInjectingFileSystem fs;
  fs.FailAt(0, EROFS, /*sticky=*/true);
  const absl::Status status = WriteFileAtomically("/file", "text", &fs);
  EXPECT_THAT(status.message(), HasSubstr("Read-only file system"));
}

// At every point where the power may fail, and for everything that may then be
// on the disk: readers find the old contents or the new ones, the new ones if
// the write was acknowledged, and take no temporary for data.
TEST(FileFaultTest, PowerLossAtEveryPointLeavesOldOrNewContents) {
  const std::string old_text(300, 'o'), new_text(500, 'n');
  for (const PowerLoss loss :
       {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames, PowerLoss::kTorn}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (int64_t i = 0;; ++i) {
        SCOPED_TRACE(absl::StrCat("operation ", i, " seed ", seed, " loss ",
                                  static_cast<int>(loss)));
        FaultInjectingFileSystem fs(seed);
        ASSERT_TRUE(CreateDirectories("/d", &fs).ok());
        ASSERT_TRUE(WriteFileAtomically("/d/a", old_text, &fs).ok());
        const int64_t start = fs.operations();
        fs.LosePowerAt(start + i);
        const bool replaced = WriteFileAtomically("/d/a", new_text, &fs).ok();
        const bool created = WriteNewFileAtomically("/d/b", new_text, &fs).ok();
        const bool finished = fs.operations() <= start + i;
        fs.Restart(loss);
        const std::string a = ReadFile("/d/a", &fs).value();
        if (replaced) {
          EXPECT_EQ(a, new_text);
        }
        EXPECT_THAT(a, AnyOf(old_text, new_text));
        if (created || FileExists("/d/b", &fs)) {
          EXPECT_EQ(ReadFile("/d/b", &fs).value(), new_text);
        }
        const std::vector<std::string> names = ListDirectory("/d", &fs).value();
        for (const std::string& name : names) {
          EXPECT_THAT(name, AnyOf("a", "b"));
        }
        if (finished) break;
      }
    }
  }
}

}  // namespace
}  // namespace optrail
