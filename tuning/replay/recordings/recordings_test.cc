#include <zlib.h>

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tuning/replay/recordings/spaces.h"
#include "tuning/replay/replay_command.h"

namespace optrail::tuning::recordings {
namespace {

struct Recorded {
  const Space* space;
  Size size;

  std::string Path() const {
    return "tuning/replay/recordings/data/" + space->name + "_" + size.name +
           ".json.gz";
  }
};

std::vector<Recorded> AllRecorded() {
  std::vector<Recorded> all;
  for (const Space& space : AllSpaces()) {
    for (const Size& size : space.sizes) all.push_back({&space, size});
  }
  return all;
}

std::string Unpack(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char buffer[1 << 16];
  for (int n; (n = gzread(file, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, n);
  }
  gzclose(file);
  return text;
}

class RecordingsTest : public ::testing::TestWithParam<Recorded> {};

TEST_P(RecordingsTest, HoldsEveryValidConfigOnce) {
  const Recorded& recorded = GetParam();
  const nlohmann::json root =
      nlohmann::json::parse(Unpack(recorded.Path()), nullptr, false);
  ASSERT_FALSE(root.is_discarded()) << recorded.Path();
  std::set<std::string> valid;
  for (const Config& config : ValidConfigs(*recorded.space)) {
    valid.insert(ConfigKey(config));
  }
  std::set<std::string> held;
  int succeeded = 0;
  for (const auto& item : root["cache"].items()) {
    held.insert(item.key());
    if (!item.value()["time"].is_number()) continue;
    ++succeeded;
    EXPECT_GT(item.value()["time"], 0);
    EXPECT_TRUE(item.value()["times"].size() == 7 ||
                item.value()["times"].size() == 1)
        << item.key();
  }
  EXPECT_EQ(held, valid);
  EXPECT_GT(succeeded, 1000);
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

INSTANTIATE_TEST_SUITE_P(All, RecordingsTest,
                         ::testing::ValuesIn(AllRecorded()),
                         [](const ::testing::TestParamInfo<Recorded>& info) {
                           return info.param.space->name + "_" +
                                  info.param.size.name;
                         });

}  // namespace
}  // namespace optrail::tuning::recordings
