#include <string>

#include "gtest/gtest.h"
#include "tuning/replay/recording.h"
#include "tuning/replay/replay_command.h"

namespace optrail::tuning {
namespace {

// A row of README.md.
struct Recorded {
  const char* name;
  int configs;
  int failed;

  std::string Path() const {
    return std::string("tuning/replay/recordings/data/") + name + ".json.xz";
  }
};

constexpr Recorded kRecorded[] = {
    {"convolution_1000x3000", 5544, 404},
    {"convolution_2048x2048", 5544, 404},
    {"convolution_4096x4096", 5544, 404},
    {"gemm_f16_1024x1024x4096", 5064, 8},
    {"gemm_f16_2048x2048x2048", 5064, 8},
    {"gemm_f16_8192x512x1024", 5064, 8},
    {"gemm_f32_1024x1024x1024", 10402, 0},
    {"gemm_f32_2048x2048x512", 10402, 0},
    {"gemm_f32_512x512x4096", 10402, 0},
    {"histogram_skewed_16M", 3150, 0},
    {"histogram_uniform_64M", 3150, 0},
    {"hotspot_1024x1024", 5382, 36},
    {"hotspot_4096x1024", 5382, 36},
    {"nbody_16384", 3264, 153},
    {"nbody_24576", 3264, 153},
    {"softmax_2048x8192", 4032, 576},
    {"softmax_32768x256", 4032, 0},
    {"softmax_8192x1024", 4032, 0},
    {"spmv_long_rows", 2475, 0},
    {"spmv_short_rows", 2475, 0},
    {"spmv_skewed_rows", 2475, 0},
    {"stencil3d_200x200x200", 2592, 0},
    {"stencil3d_512x512x64", 2592, 0},
    {"transpose_1000x6000", 3474, 0},
    {"transpose_16384x512", 3474, 0},
    {"transpose_4096x4096", 3474, 0},
};

class RecordingsTest : public ::testing::TestWithParam<Recorded> {};

TEST_P(RecordingsTest, HoldsEveryConfigWithItsRepeats) {
  const auto recording = ReadRecording(GetParam().Path());
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->configs.size(), GetParam().configs);
  int failed = 0;
  for (const RecordedConfig& config : recording->configs) {
    if (config.outcome != proto::OK) {
      ++failed;
      continue;
    }
    EXPECT_GT(config.time_ms, 0);
    EXPECT_TRUE(config.repeats_ms.size() == 7 || config.repeats_ms.size() == 1);
  }
  EXPECT_EQ(failed, GetParam().failed);
}

TEST_P(RecordingsTest, ReplayReadsIt) {
  ReplayCommand command;
  command.spaces = {GetParam().Path()};
  command.strategies = {"random"};
  command.budgets = {20};
  command.seeds = 2;
  command.jobs = 1;
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const ReplayRow& row : *rows) {
    EXPECT_GT(row.mean_fraction, 0);
    EXPECT_LE(row.mean_fraction, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordingsTest, ::testing::ValuesIn(kRecorded),
                         [](const ::testing::TestParamInfo<Recorded>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace optrail::tuning
