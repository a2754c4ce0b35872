#include "base/file/read_file_or_link.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;

TEST(ReadFileOrLink, TakesFilesAndLinksAndNothingThatWaits) {
  const std::string folder = testing::TempDir();
  const std::string file = JoinPath(folder, "file");
  ASSERT_TRUE(WriteFileAtomically(file, "text").ok());
  EXPECT_EQ(ReadFileOrLink(file).value_or("none"), "text");
  const std::string link = JoinPath(folder, "link");
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  EXPECT_EQ(ReadFileOrLink(link).value_or("none"), "text");
  const std::string pipe = JoinPath(folder, "pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder, std::string("/dev/zero")}) {
    const auto read = ReadFileOrLink(path);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(read.status().message(), HasSubstr("no regular file"));
  }
  EXPECT_EQ(ReadFileOrLink(JoinPath(folder, "nothing")).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace optrail
