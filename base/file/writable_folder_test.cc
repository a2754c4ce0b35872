#include "base/file/writable_folder.h"

#include <errno.h>
#include <sys/stat.h>

#include <string>

#include "base/file/file.h"
#include "base/testing/fault_injecting_file_system.h"
#include "base/testing/unprivileged.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WritableFolder, IsMadeAndLeftEmpty) {
  FaultInjectingFileSystem fs;
  EXPECT_TRUE(CheckFolderIsWritable("/a/b", &fs).ok());
  EXPECT_THAT(*ListDirectory("/a/b", &fs), IsEmpty());
}

TEST(WritableFolder, AFullDiskIsFoundWhereverItFills) {
  FaultInjectingFileSystem whole;
  ASSERT_TRUE(CheckFolderIsWritable("/a/b", &whole).ok());
  for (int64_t i = 0; i < whole.operations(); ++i) {
    FaultInjectingFileSystem fs;
    fs.FailAt(i, ENOSPC, /*sticky=*/true);
    const absl::Status status = CheckFolderIsWritable("/a/b", &fs);
    EXPECT_FALSE(status.ok()) << "operation " << i;
    EXPECT_THAT(status.message(), HasSubstr("No space left on device"))
        << "operation " << i;
  }
}

TEST(WritableFolder, APermissionThatLacksIsNamed) {
  const std::string folder = JoinPath(::testing::TempDir(), "read_only");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  ASSERT_EQ(chmod(folder.c_str(), 0500), 0);
  const Unprivileged unprivileged;
  const absl::Status status = CheckFolderIsWritable(folder);
  EXPECT_THAT(status.message(), HasSubstr(folder));
  EXPECT_THAT(status.message(), HasSubstr("Permission denied"));
  EXPECT_THAT(CheckFolderIsWritable(JoinPath(folder, "below")).message(),
              HasSubstr("Permission denied"));
}

TEST(WritableFolder, AFileInItsPlaceIsNamed) {
  const std::string path = JoinPath(::testing::TempDir(), "file");
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_THAT(CheckFolderIsWritable(path).message(), HasSubstr(path));
}

TEST(WritableFolder, ResultsGoToAFolderWhoseParentIsThere) {
  const std::string folder = JoinPath(::testing::TempDir(), "results");
  const absl::Status status = CreateOutputFolder(JoinPath(folder, "below"));
  EXPECT_THAT(status.message(), HasSubstr("there is no folder " + folder));
  EXPECT_FALSE(FileExists(folder));
  EXPECT_TRUE(CreateOutputFolder(folder).ok());
  EXPECT_TRUE(CreateOutputFolder(JoinPath(folder, "below")).ok());
  EXPECT_TRUE(FileExists(JoinPath(folder, "below")));
}

}  // namespace
}  // namespace optrail
