#include "tracker/series/shared_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Each run is of the same commit.
proto::Run MakeRun(int second, const std::string& suite,
                   const std::vector<int64_t>& process_ns) {
  proto::Run run;
  run.set_run_id("20261120T0000" + std::to_string(10 + second) + "Z-ab");
  run.set_started_unix_ns(second * 1'000'000'000LL);
  run.set_suite(suite);
  run.mutable_hardware()->set_id("cpu");
  run.mutable_commit()->set_id("c1");
  run.mutable_commit()->set_branch("main");
  run.mutable_commit()->set_first_parent_position(1);
  proto::BenchmarkResult* const result = run.add_results();
  result->mutable_key()->set_operator_name("BM");
  result->set_outcome(proto::OK);
  for (const int64_t ns : process_ns) {
    result->add_measurements()->set_median_ns(ns);
  }
  return run;
}

std::vector<SharedName> Find(const std::vector<proto::Run>& runs) {
  return FindSharedNames(runs, BuildSeries(runs));
}

TEST(SharedNames, AreNamedWhereTheMediansOfSuitesDiffer) {
  const auto names = Find({MakeRun(1, "old bench", {100, 101, 102}),
                           MakeRun(2, "new", {200, 201, 202})});
  ASSERT_THAT(names, SizeIs(1));
  EXPECT_EQ(names[0].benchmark, "BM");
  EXPECT_EQ(names[0].hardware_id, "cpu");
  EXPECT_THAT(names[0].suites, ElementsAre("new", "old bench"));
  EXPECT_THAT(SharedNamesText(names, " --history=x"),
              EndsWith("next: optrail changes --suite=new --history=x"));
  auto other = names;
  other[0].suites = {"old bench"};
  EXPECT_THAT(SharedNamesText(other, ""), EndsWith("--suite='old bench'"));
}

// A slow process of one suite says nothing about the other one.
TEST(SharedNames, AreNotNamedForTheNoiseOfProcesses) {
  EXPECT_THAT(Find({MakeRun(1, "one", {100, 101, 150}),
                    MakeRun(2, "two", {90, 101, 102})}),
              IsEmpty());
  EXPECT_THAT(Find({MakeRun(1, "one", {100}), MakeRun(2, "one", {200})}),
              IsEmpty());
  EXPECT_EQ(SharedNamesText({}, ""), "");
}

}  // namespace
}  // namespace optrail::tracker
