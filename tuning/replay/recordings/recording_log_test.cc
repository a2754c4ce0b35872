#include "tuning/replay/recordings/recording_log.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning::recordings {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string WriteLog(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/recording.log";
  std::ofstream(path) << text;
  return path;
}

TEST(RecordingLogTest, ReadsWhatItWrites) {
  LogEntry entry;
  entry.space = "gemm";
  entry.config = "64,8";
  entry.size = "32x32";
  entry.compile_ms = 123.4567;
  entry.times_ms = {0.0123456, 2};
  EXPECT_EQ(ToLine(entry), "gemm;64,8;32x32;ok;123.46;0.012346 2\n");

  const std::vector<LogEntry> entries = ReadLog(WriteLog(ToLine(entry)));
  ASSERT_EQ(entries.size(), 1);
  EXPECT_EQ(entries[0].space, "gemm");
  EXPECT_EQ(entries[0].config, "64,8");
  EXPECT_EQ(entries[0].size, "32x32");
  EXPECT_EQ(entries[0].outcome, kOk);
  EXPECT_EQ(entries[0].compile_ms, 123.46);
  EXPECT_THAT(entries[0].times_ms, ElementsAre(0.012346, 2));
}

TEST(RecordingLogTest, AFailureHasNoTimes) {
  const std::vector<LogEntry> entries =
      ReadLog(WriteLog("gemm;64,8;32x32;RuntimeFailedConfig;12;\n"));
  ASSERT_EQ(entries.size(), 1);
  EXPECT_EQ(entries[0].outcome, kRuntimeFailed);
  EXPECT_EQ(entries[0].compile_ms, 12);
  EXPECT_THAT(entries[0].times_ms, IsEmpty());
}

TEST(RecordingLogTest, LeavesOutTheLineAtWhichTheWriterWasStopped) {
  const std::string line = "gemm;64,8;32x32;ok;12;0.25 0.75\n";
  EXPECT_EQ(ReadLog(WriteLog(line + line)).size(), 2);
  for (size_t length = 0; length < line.size(); ++length) {
    EXPECT_EQ(ReadLog(WriteLog(line + line.substr(0, length))).size(), 1)
        << length;
  }
}

TEST(RecordingLogTest, NoFileIsAnEmptyLog) {
  EXPECT_THAT(ReadLog(::testing::TempDir() + "/no_such.log"), IsEmpty());
}

}  // namespace
}  // namespace optrail::tuning::recordings
