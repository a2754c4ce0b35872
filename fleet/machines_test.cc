#include "fleet/machines.h"

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Written(const std::string& text) {
  const std::string path = testing::TempDir() + "/machines.textproto";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

constexpr char kTwo[] =
    "sbatch: \"--account=ml\"\n"
    "hardware { id: \"gpu\" sbatch: [\"--gres=gpu:1\", \"--exclusive\"] "
    "pilots: 3 }\n"
    "hardware { id: \"cpu\" }\n";

TEST(ReadMachinesTest, GivesEachHardwareItsOptions) {
  const auto all = ReadMachines(Written(kTwo), "");
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 2);
  EXPECT_EQ((*all)[0].hardware_id, "gpu");
  EXPECT_EQ((*all)[0].count, 3);
  EXPECT_THAT((*all)[0].sbatch,
              ElementsAre("--account=ml", "--gres=gpu:1", "--exclusive"));
  EXPECT_EQ((*all)[1].count, 1);
  EXPECT_THAT((*all)[1].sbatch, ElementsAre("--account=ml"));
  const auto one = ReadMachines(Written(kTwo), "cpu");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->size(), 1);
}

TEST(ReadMachinesTest, SaysWhereTheFileIsWrong) {
  const auto told = [](const std::string& text, const std::string& hardware) {
    return std::string(
        ReadMachines(Written(text), hardware).status().message());
  };
  EXPECT_THAT(told("", ""), HasSubstr("no hardware, expected"));
  EXPECT_THAT(told(kTwo, "tpu"), HasSubstr("no hardware 'tpu'"));
  EXPECT_THAT(told("hardware { }", ""), HasSubstr(":1:1: hardware without"));
  EXPECT_THAT(told("hardware { id: \"a\" pilots: 0 }", ""),
              HasSubstr(":1:20: pilots is 0, expected 1 to"));
  EXPECT_THAT(told("hardware { id: \"a\" sbatch: \"gpu\" }", ""),
              HasSubstr("'gpu': expected an option of sbatch"));
  EXPECT_THAT(told("hardware { id: \"a\" }\nhardware { id: \"a\" }", ""),
              HasSubstr(":2:12: hardware 'a' is there twice"));
  EXPECT_THAT(told("hardwear { }", ""), HasSubstr("hardwear"));
}

}  // namespace
}  // namespace optrail::fleet
