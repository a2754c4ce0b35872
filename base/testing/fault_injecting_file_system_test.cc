#include "base/testing/fault_injecting_file_system.h"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

int Create(FileSystem& fs, const std::string& path, const std::string& text) {
  const int fd = fs.Open(path, O_WRONLY | O_CREAT, 0666);
  EXPECT_EQ(fs.Write(fd, text.data(), text.size()), text.size());
  return fd;
}

std::vector<std::string> Names(FileSystem& fs) {
  std::vector<std::string> names;
  EXPECT_EQ(fs.List("/", &names), 0);
  return names;
}

void SyncRoot(FileSystem& fs) {
  const int fd = fs.Open("/", O_RDONLY, 0);
  EXPECT_EQ(fs.Sync(fd), 0);
  EXPECT_EQ(fs.Close(fd), 0);
}

int64_t SizeOf(FileSystem& fs, const std::string& path) {
  FileInfo info;
  return fs.Stat(path, &info) == 0 ? info.size_bytes : -1;
}

TEST(FaultInjectingFileSystemTest, PowerLossDropsNamesThatWereNotSynced) {
  FaultInjectingFileSystem fs;
  EXPECT_EQ(fs.Sync(Create(fs, "/file", "text")), 0);
  fs.Restart(PowerLoss::kDropUnsynced);
  EXPECT_THAT(Names(fs), IsEmpty());
}

TEST(FaultInjectingFileSystemTest, PowerLossDropsContentsThatWereNotSynced) {
  FaultInjectingFileSystem fs;
  Create(fs, "/file", "text");
  SyncRoot(fs);
  fs.Restart(PowerLoss::kDropUnsynced);
  EXPECT_EQ(SizeOf(fs, "/file"), 0);
}

TEST(FaultInjectingFileSystemTest, PowerLossUndoesUnsyncedRenames) {
  FaultInjectingFileSystem fs;
  EXPECT_EQ(fs.Sync(Create(fs, "/from", "text")), 0);
  SyncRoot(fs);
  ASSERT_EQ(fs.Rename("/from", "/to"), 0);
  EXPECT_THAT(Names(fs), ElementsAre("to"));
  fs.Restart(PowerLoss::kDropUnsynced);
  EXPECT_THAT(Names(fs), ElementsAre("from"));
  EXPECT_EQ(SizeOf(fs, "/from"), 4);
}

TEST(FaultInjectingFileSystemTest, PowerLossKeepsWhatWasSynced) {
  for (const PowerLoss loss :
       {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames, PowerLoss::kTorn}) {
    FaultInjectingFileSystem fs;
    EXPECT_EQ(fs.Sync(Create(fs, "/file", "text")), 0);
    SyncRoot(fs);
    fs.Restart(loss);
    EXPECT_EQ(SizeOf(fs, "/file"), 4);
    EXPECT_EQ(fs.open_descriptors(), 0);
  }
}

TEST(FaultInjectingFileSystemTest, WithoutPowerEverythingFails) {
  FaultInjectingFileSystem fs;
  const int fd = Create(fs, "/file", "text");
  fs.LosePowerAt(fs.operations());
  EXPECT_EQ(fs.Sync(fd), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(fs.Open("/file", O_RDONLY, 0), -1);
  EXPECT_EQ(fs.Unlink("/file"), -1);
}

TEST(FaultInjectingFileSystemTest, LocksExcludeAndEndWithTheDescriptor) {
  FaultInjectingFileSystem fs;
  const int first = Create(fs, "/file", "");
  const int second = fs.Open("/file", O_RDWR, 0);
  EXPECT_EQ(fs.Lock(first, false), 0);
  EXPECT_EQ(fs.Lock(second, false), -1);
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_EQ(fs.Close(first), 0);
  EXPECT_EQ(fs.Lock(second, false), 0);
}

}  // namespace
}  // namespace optrail
