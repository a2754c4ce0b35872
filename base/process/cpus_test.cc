#include "base/process/cpus.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CpusTest, ReadsListsAsTheKernelWritesThem) {
  EXPECT_THAT(ParseCpuList("0\n"), ElementsAre(0));
  EXPECT_THAT(ParseCpuList("0,4-6\n"), ElementsAre(0, 4, 5, 6));
  EXPECT_THAT(ParseCpuList(""), IsEmpty());
  EXPECT_THAT(ParseCpuList("x,3-1,-2,1-2-3,99999999,7"), ElementsAre(7));
}

TEST(CpusTest, ACoreIsItsOwnSibling) {
  EXPECT_THAT(SiblingCpus(UsableCpus()[0]), Contains(UsableCpus()[0]));
  EXPECT_THAT(SiblingCpus(60000), ElementsAre(60000));
}

TEST(CpusTest, AThreadKeepsToItsCores) {
  const int last = UsableCpus().back();
  std::thread([last] {
    EXPECT_TRUE(UseCpus({last}).ok());
    EXPECT_THAT(UsableCpus(), ElementsAre(last));
    EXPECT_FALSE(UseCpus({}).ok());
  }).join();
}

}  // namespace
}  // namespace optrail
