#include "tracker/import/suite_name.h"

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

TEST(StableSuiteName, IsTheSameForTheFilesOfTwoCommits) {
  for (const char* file :
       {"sort_bench.json", "out/sort_bench-1a2b3c4d.json", "sort_bench-3.json",
        "sort_bench_20261120.json", "sort_bench-2026-11-20T10.json",
        "sort_bench.v1.2.json", "./sort_bench",
        "1a2b3c4d5e6f/sort_bench.txt.gz",
        "0007_8a4f9d0c3b2e1f0a9d8c7b6a5f4e3d2c1b0a9f8e_sort_bench.json",
        "sort_bench-run3.json", "sort_bench 2.json"}) {
    EXPECT_EQ(StableSuiteName(file), "sort_bench") << file;
  }
}

TEST(StableSuiteName, WordsAndNamesOfProgramsStay) {
  EXPECT_EQ(StableSuiteName("run12.json"), "run");
  EXPECT_EQ(StableSuiteName("decade.json"), "decade");
  EXPECT_EQ(StableSuiteName("facade-bench.json"), "facade-bench");
  EXPECT_EQ(StableSuiteName("bench.io.json"), "bench.io");
  EXPECT_EQ(StableSuiteName("build/sha256"), "sha256");
  EXPECT_EQ(StableSuiteName("bench_f32.json"), "bench_f32");
}

TEST(StableSuiteName, MayLeaveNothing) {
  EXPECT_EQ(StableSuiteName("1a2b3c4d5e.json"), "");
  EXPECT_EQ(StableSuiteName("0001_1a2b3c4d5e.json"), "");
  EXPECT_EQ(StableSuiteName(""), "");
}

TEST(HardwareIdPart, IsAnId) {
  EXPECT_EQ(HardwareIdPart("Intel(R) Xeon(R) CPU @ 2.20GHz"),
            "intel-xeon-cpu-2-20ghz");
  EXPECT_EQ(HardwareIdPart("AMD EPYC"), "amd-epyc");
  EXPECT_EQ(HardwareIdPart("\xff\n.."), "");
  EXPECT_LE(HardwareIdPart(std::string(500, 'x')).size(), 60u);
}

}  // namespace
}  // namespace optrail::tracker
