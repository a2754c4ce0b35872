#include "tuning/replay/recordings/kernel_tuner_cache.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace optrail::tuning::recordings {
namespace {

// Three of the four combinations are valid.
Space SmallSpace() {
  Space space;
  space.name = "scale";
  space.knobs = {{"block", {32, 64}}, {"vec", {1, 4}}};
  space.sizes = {{"100", {100, 0, 0}}, {"200", {200, 0, 0}}};
  space.valid = [](const NamedConfig& c) {
    return c["block"] == 64 || c["vec"] == 1;
  };
  space.launch = [](const NamedConfig&, const Size&) { return Launch(); };
  return space;
}

LogEntry Entry(const std::string& config, const std::string& size) {
  LogEntry entry;
  entry.space = "scale";
  entry.config = config;
  entry.size = size;
  entry.compile_ms = 7;
  entry.times_ms = {1, 2};
  return entry;
}

TEST(KernelTunerCacheTest, HoldsTheEntriesOfOneSize) {
  std::vector<LogEntry> entries = {Entry("32,1", "100"), Entry("64,1", "100"),
                                   Entry("64,4", "200"), Entry("64,4", "100")};
  entries[1].outcome = kCompilationFailed;
  entries[1].times_ms.clear();
  entries[3].times_ms = {0.5, 0.25};

  const Space space = SmallSpace();
  int missing = -1;
  const nlohmann::json cache = nlohmann::json::parse(
      ToKernelTunerCache(space, space.sizes[0], entries, "GPU", missing));

  EXPECT_EQ(missing, 0);
  EXPECT_EQ(cache, nlohmann::json::parse(R"({
    "device_name": "GPU", "kernel_name": "scale", "problem_size": "100",
    "tune_params_keys": ["block", "vec"],
    "tune_params": {"block": [32, 64], "vec": [1, 4]}, "objective": "time",
    "cache": {
      "32,1": {"block": 32, "vec": 1, "time": 1.5, "times": [1, 2],
               "compile_time": 7},
      "64,1": {"block": 64, "vec": 1, "time": "CompilationFailedConfig",
               "compile_time": 7},
      "64,4": {"block": 64, "vec": 4, "time": 0.375, "times": [0.5, 0.25],
               "compile_time": 7}}})"));
}

TEST(KernelTunerCacheTest, CountsTheValidConfigsWithoutAnEntry) {
  const Space space = SmallSpace();
  int missing = -1;
  const nlohmann::json cache = nlohmann::json::parse(ToKernelTunerCache(
      space, space.sizes[1], {Entry("64,4", "200"), Entry("32,1", "100")},
      "GPU", missing));
  EXPECT_EQ(missing, 2);
  EXPECT_EQ(cache["cache"].size(), 1);
  EXPECT_TRUE(cache["cache"].contains("64,4"));
}

TEST(KernelTunerCacheTest, TheLastOfSeveralEntriesCounts) {
  const Space space = SmallSpace();
  LogEntry again = Entry("64,4", "200");
  again.times_ms = {8};
  int missing = -1;
  const nlohmann::json cache = nlohmann::json::parse(ToKernelTunerCache(
      space, space.sizes[1], {Entry("64,4", "200"), again}, "GPU", missing));
  EXPECT_EQ(cache["cache"]["64,4"]["time"], 8);
}

}  // namespace
}  // namespace optrail::tuning::recordings
