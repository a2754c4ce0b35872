#include "suites/bench/backend_comparison.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

class BackendComparisonTest : public ::testing::Test {
 protected:
  // `times_ns` by round; 0: the round gave nothing.
  void Add(const std::string& backend, const std::vector<double>& times_ns,
           const std::string& shape = "m=8,n=8,k=8/f32") {
    proto::BenchmarkResult* result = run_.add_results();
    result->mutable_key()->set_operator_name("matmul");
    result->mutable_key()->set_device_kind(proto::CPU);
    result->mutable_key()->set_backend(backend);
    *result->mutable_key()->mutable_shape() = *tuning::ParseShape(shape);
    result->mutable_key()->set_selection(proto::TUNED);
    result->mutable_key()->set_threads(1);
    result->mutable_key()->set_cache_mode(proto::HOT);
    result->set_kernel_id("id of " + backend);
    result->set_config("x=1");
    result->set_outcome(proto::OK);
    for (size_t i = 0; i < times_ns.size(); ++i) {
      if (times_ns[i] == 0) continue;
      proto::Measurement* measurement = result->add_measurements();
      measurement->set_round(static_cast<int>(i) + 1);
      measurement->set_median_ns(times_ns[i]);
    }
  }

  proto::Run run_;
};

TEST_F(BackendComparisonTest, RatiosAreTakenWithinRounds) {
  // The machine slows down threefold on the way; openblas takes .8 throughout.
  Add("", {100, 150, 200, 300});
  Add("openblas", {80, 120, 160, 240});
  run_.set_run_id("run");
  const auto comparisons = CompareBackends(run_);
  ASSERT_EQ(comparisons.size(), 1);
  const BackendReading& first = comparisons[0].readings[0];
  EXPECT_EQ(first.result->key().backend(), "openblas");
  EXPECT_NEAR(first.ratio, .8, 1e-9);
  EXPECT_NEAR(first.ratio_low, .8, 1e-6);
  EXPECT_NEAR(first.ratio_high, .8, 1e-6);
  EXPECT_EQ(comparisons[0].readings[1].ratio, 1);

  const proto::BestBackend best = BestOf(comparisons[0], run_, "2026-11-21");
  ASSERT_EQ(best.entries_size(), 2);
  EXPECT_EQ(best.entries(0).backend(), "openblas");
  EXPECT_EQ(best.entries(0).id(), "id of openblas");
  EXPECT_EQ(best.entries(0).ratio(), 1);
  EXPECT_NEAR(best.entries(1).ratio(), 1.25, 1e-9);
  EXPECT_EQ(best.run_id(), "run");
  EXPECT_EQ(best.shape(), "m=8,n=8,k=8/f32");
}

TEST_F(BackendComparisonTest, OthersAreNamedWhereTheyAreFasterForSure) {
  Add("", {100, 150, 200, 300});
  Add("openblas", {80, 120, 160, 240});
  // Faster on the whole, and in some rounds slower.
  Add("", {100, 100, 100}, "m=9,n=8,k=8/f32");
  Add("openblas", {80, 120, 80}, "m=9,n=8,k=8/f32");
  Add("", {100, 100}, "m=7,n=8,k=8/f32");
  Add("openblas", {200, 200}, "m=7,n=8,k=8/f32");
  const std::string text = FasterThanOursText(CompareBackends(run_));
  EXPECT_THAT(text, HasSubstr("faster for 1 of 3:\n"));
  EXPECT_THAT(text, HasSubstr("m=8,n=8,k=8"));
  EXPECT_THAT(text, HasSubstr("openblas 25.0% faster (25.0 to 25.0%)"));
  run_.clear_results();
  EXPECT_EQ(FasterThanOursText(CompareBackends(run_)), "");
}

TEST_F(BackendComparisonTest, ARoundThatOneSideLacksCountsForNeither) {
  Add("", {100, 0, 900});
  Add("plain", {200, 200, 0});
  const auto comparisons = CompareBackends(run_);
  ASSERT_EQ(comparisons.size(), 1);
  EXPECT_NEAR(comparisons[0].readings[0].ratio, 2, 1e-9);
  EXPECT_EQ(comparisons[0].readings[0].ratio_low, 0) << "one pair only";
}

TEST_F(BackendComparisonTest, WhatCannotRunHereIsSaidAndComesLast) {
  Add("openblas", {});
  run_.mutable_results(0)->set_outcome(proto::UNSUPPORTED);
  run_.mutable_results(0)->set_detail("unsupported here: no library");
  Add("", {100, 100});
  const auto comparisons = CompareBackends(run_);
  ASSERT_EQ(comparisons.size(), 1);
  EXPECT_EQ(comparisons[0].readings[1].result->key().backend(), "openblas");
  EXPECT_THAT(ComparisonText(comparisons),
              HasSubstr("\nopenblas, 1 benchmark, matmul/cpu/m=8,n=8,k=8/f32/"
                        "tuned/threads=1/hot: unsupported here: no library\n"));
  EXPECT_EQ(BestOf(comparisons[0], run_, "").entries_size(), 1);
}

TEST_F(BackendComparisonTest, WhatHasNothingToTuneStandsBesideTunedOnes) {
  Add("", {100, 100});
  Add("openblas", {120, 120});
  Add("halide", {300, 300});
  for (proto::BenchmarkResult& result : *run_.mutable_results()) {
    result.mutable_key()->set_selection(proto::DEFAULT);
  }
  Add("", {80, 80});
  Add("halide", {160, 160});
  const auto comparisons = CompareBackends(run_);
  ASSERT_EQ(comparisons.size(), 2);
  EXPECT_EQ(comparisons[1].key.selection(), proto::TUNED);
  ASSERT_EQ(comparisons[1].readings.size(), 3);
  EXPECT_EQ(comparisons[1].readings[1].result->key().backend(), "openblas");
  EXPECT_NEAR(comparisons[1].readings[1].ratio, 1.5, 1e-9);
  EXPECT_NEAR(comparisons[1].readings[2].ratio, 2, 1e-9) << "as it was tuned";
}

TEST_F(BackendComparisonTest, WhatIsAbsentIsCountedOnce) {
  Add("", {100, 100});
  Add("openblas", {});
  for (proto::BenchmarkResult& result : *run_.mutable_results()) {
    result.mutable_key()->set_selection(proto::DEFAULT);
  }
  run_.mutable_results(1)->set_outcome(proto::UNSUPPORTED);
  run_.mutable_results(1)->set_detail("unsupported here: no library");
  Add("", {80, 80});
  EXPECT_THAT(ComparisonText(CompareBackends(run_)),
              HasSubstr("\nopenblas, 1 benchmark, "));
}

TEST_F(BackendComparisonTest, OneBackendIsNoComparison) {
  Add("", {100, 100});
  Add("", {100, 100}, "m=9,n=9,k=9/f32");
  EXPECT_TRUE(CompareBackends(run_).empty());
}

}  // namespace
}  // namespace optrail::suites
