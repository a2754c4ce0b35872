#include "suites/graph/graph_record.h"

#include <gtest/gtest.h>

#include "tracker/history/history.h"

namespace optrail::suites {
namespace {

TEST(GraphRecordTest, ARunOfAGraphIsKeptInTheHistory) {
  MeasuredGraph measured;
  measured.model = "tiny";
  measured.fuse = "rules";
  measured.started_unix_ns = 1'700'000'000'000'000'000;
  measured.whole.outcome = proto::OK;
  measured.whole.measurement.set_calls_per_sample(1);
  for (const int64_t ns : {100, 110, 105}) {
    measured.whole.measurement.add_sample_ns(ns);
  }
  measured.whole.measurement.set_median_ns(105);
  measured.kernels_ns = {{"linear", 80}, {"generated", 20}};
  measured.arena_bytes = 4096;
  RunContext context;
  context.hardware.set_id("some-cpu");
  context.hardware.set_device_kind(proto::CPU);
  const proto::Run run = RunOfGraph(measured, context);
  const auto history =
      tracker::History::Open(testing::TempDir() + "/graph_history");
  ASSERT_TRUE(history.ok()) << history.status();
  const absl::Status appended = history->AppendRun(run);
  ASSERT_TRUE(appended.ok()) << appended;
  const auto found = history->FindRun("latest");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->header.suite(), "graph/tiny");
  EXPECT_EQ(run.results(0).key().operator_name(), "graph/tiny/threads=1");
  EXPECT_EQ(run.results(0).measurements(0).metrics_size(), 3);
  measured.fuse = "none";
  EXPECT_EQ(RunOfGraph(measured, context).results(0).key().operator_name(),
            "graph/tiny/threads=1/fuse=none");
  measured.fuse = "rules";
  measured.served = "load=20,batch=4,workers=1,max_wait=1ms";
  measured.metrics = {MetricOf("requests_per_second", "requests/s", 20,
                               proto::HIGHER_IS_BETTER)};
  const proto::Run served = RunOfGraph(measured, context);
  EXPECT_EQ(
      served.results(0).key().operator_name(),
      "graph/tiny/threads=1/serve/load=20,batch=4,workers=1,max_wait=1ms");
  EXPECT_EQ(served.results(0).measurements(0).metrics(3).direction(),
            proto::HIGHER_IS_BETTER);
  measured.untuned = true;
  EXPECT_EQ(RunOfGraph(measured, context).results(0).key().operator_name(),
            "graph/tiny/threads=1/untuned/serve/"
            "load=20,batch=4,workers=1,max_wait=1ms");
}

}  // namespace
}  // namespace optrail::suites
