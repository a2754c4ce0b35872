#include "suites/graph/serve_graph.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "base/process/cpus.h"
#include "tracker/history/history.h"

namespace optrail::suites {
namespace {

constexpr double kMs = 1e6;

// Latencies of 1 to 2 ms, in an order without a trend.
ServedLoad Load(int requests) {
  ServedLoad served;
  for (int i = 0; i < requests; ++i) {
    served.latencies_ns.push_back(kMs * (1 + (i * 7919 % 1000) / 1000.0));
  }
  served.queue_mean = 3;
  served.achieved = 90;
  return served;
}

std::set<std::string> Metrics(const MeasuredGraph& measured) {
  std::set<std::string> names;
  for (const proto::MetricSamples& metric : measured.metrics) {
    names.insert(metric.metric());
  }
  return names;
}

TEST(ServeGraphTest, TheLimitNeedsEnoughRequests) {
  EXPECT_EQ(CodeOfServed(Load(5000), absl::Milliseconds(5)), ExitCode::kOk);
  EXPECT_EQ(CodeOfServed(Load(5000), absl::Milliseconds(1.5)),
            ExitCode::kCheckFailed);
  EXPECT_EQ(CodeOfServed(Load(100), absl::Milliseconds(5)),
            ExitCode::kNotEnoughData);
  // The lower bound alone is above the limit.
  EXPECT_EQ(CodeOfServed(Load(100), absl::Microseconds(10)),
            ExitCode::kCheckFailed);
  EXPECT_EQ(CodeOfServed(Load(100), absl::ZeroDuration()), ExitCode::kOk);
  ServedLoad overloaded = Load(100);
  overloaded.overloaded = true;
  EXPECT_EQ(CodeOfServed(overloaded, absl::ZeroDuration()),
            ExitCode::kCheckFailed);
}

TEST(ServeGraphTest, NoThreadsStandForAllCores) {
  GraphRunCommand command;
  command.device = "cpu";
  command.threads = 0;
  const auto device = DeviceOf(command);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(command.threads, static_cast<int>(UsableCpus().size()));
}

TEST(ServeGraphTest, ASearchedLoadIsRecordedByItsRate) {
  GraphServeCommand command;
  command.model.path = "models/tiny.onnx";
  command.p99_limit = absl::Milliseconds(5);
  MeasuredGraph searched = MeasuredOfServed(command, 100, Load(5000));
  EXPECT_EQ(Metrics(searched),
            (std::set<std::string>{"requests_per_second", "latency_p99"}));
  EXPECT_FALSE(searched.whole.measurement.has_median_ns());
  // A load that is held is answered as it arrives.
  EXPECT_EQ(searched.metrics[0].values(0), 100);
  searched.started_unix_ns = 1'700'000'000'000'000'000;
  RunContext context;
  context.hardware.set_id("some-cpu");
  context.hardware.set_device_kind(proto::CPU);
  const auto history =
      tracker::History::Open(testing::TempDir() + "/serve_history");
  ASSERT_TRUE(history.ok()) << history.status();
  const absl::Status appended =
      history->AppendRun(RunOfGraph(searched, context));
  EXPECT_TRUE(appended.ok()) << appended;

  command.load.load = 100;
  command.untuned = true;
  const MeasuredGraph held = MeasuredOfServed(command, 100, Load(5000));
  EXPECT_EQ(Metrics(held).count("queue_mean"), 1);
  EXPECT_NEAR(held.whole.measurement.median_ns(), 1.5 * kMs, .01 * kMs);
  EXPECT_TRUE(held.untuned);
}

// A request takes longer than a microsecond on any machine.
TEST(ServeGraphTest, ALimitThatNoLoadKeepsIsAFailedCheck) {
  GraphServeCommand command;
  command.model.path = "graph/testdata/tiny_dlrm.onnx";
  command.model.format = OutputFormat::kJson;
  command.load.duration = absl::Milliseconds(20);
  command.load.batch = 1;
  command.p99_limit = absl::Nanoseconds(1);
  std::ostringstream out;
  const auto code = ServeGraph(command, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kCheckFailed);
  EXPECT_TRUE(absl::StrContains(out.str(), "\"load\": 0")) << out.str();
  EXPECT_TRUE(absl::StrContains(out.str(), "\"latency_p99\": null"))
      << out.str();
}

}  // namespace
}  // namespace optrail::suites
