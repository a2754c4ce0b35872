#include "reports/roofline_view.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/build_report_data.h"
#include "reports/overview.h"
#include "reports/sample/sample_history.h"

namespace optrail::reports {
namespace {

using ::testing::HasSubstr;

// One hardware of two threads, one commit.
proto::Run OneRun() {
  proto::Run run;
  run.set_run_id("20261006T101112Z-0123456789ab");
  run.set_started_unix_ns(1);
  run.mutable_hardware()->set_id("test");
  run.mutable_hardware()->set_cores(2);
  proto::Ceilings& ceilings = *run.mutable_ceilings();
  ceilings.set_flop_per_s_one_thread(100e9);
  ceilings.set_flop_per_s_all_threads(200e9);
  ceilings.set_memory_read_bytes_per_s_one_thread(10e9);
  ceilings.set_memory_read_bytes_per_s_all_threads(20e9);
  return run;
}

proto::BenchmarkResult& Add(proto::Run& run, const std::string& name,
                            proto::ConfigSelection selection, double ns,
                            double flop, double bytes) {
  proto::BenchmarkResult& result = *run.add_results();
  proto::BenchmarkKey& key = *result.mutable_key();
  key.set_operator_name(name);
  key.set_device_kind(proto::CPU);
  key.mutable_shape()->add_data_types(proto::F32);
  key.set_selection(selection);
  key.set_threads(2);
  key.set_cache_mode(proto::COLD);
  result.set_outcome(proto::OK);
  result.set_flop(flop);
  result.set_moved_bytes(bytes);
  proto::Measurement& measurement = *result.add_measurements();
  measurement.set_median_ns(ns);
  measurement.set_clean_sample_count(10);
  return result;
}

RooflineView ViewOf(const proto::Run& run, const BuildOptions& options = {}) {
  const ReportData data = BuildReportData({run}, {}, options);
  return ViewRoofline(data, Summarize(data));
}

TEST(RooflineViewTest, JoinsDefaultAndTunedUnderTheCeilingsOfTheirThreads) {
  proto::Run run = OneRun();
  Add(run, "matmul", proto::DEFAULT, 1000, 80000, 1000);
  Add(run, "matmul", proto::TUNED, 500, 80000, 1000);
  Add(run, "add", proto::DEFAULT, 100, 100, 1000);
  const RooflineView view = ViewOf(run);
  EXPECT_TRUE(view.not_placed.empty());
  ASSERT_EQ(view.charts.size(), 1);
  const RooflineChart& chart = view.charts[0];
  EXPECT_DOUBLE_EQ(chart.ceilings.flop_per_s, 200e9);
  ASSERT_EQ(chart.ceilings.levels.size(), 1);
  EXPECT_DOUBLE_EQ(chart.ceilings.levels[0].bytes_per_s, 20e9);
  ASSERT_EQ(chart.points.size(), 2);
  EXPECT_DOUBLE_EQ(chart.points[0].flop_per_byte, 80);
  EXPECT_DOUBLE_EQ(*chart.points[0].default_flop_per_s, 80e9);
  EXPECT_DOUBLE_EQ(*chart.points[0].tuned_flop_per_s, 160e9);
  EXPECT_EQ(chart.points[0].limit, "arithmetic");
  EXPECT_EQ(chart.points[1].limit, "memory");
  EXPECT_EQ(chart.points[1].tuned_flop_per_s, absl::nullopt);
}

TEST(RooflineViewTest, SaysWhyASeriesHasNoPlace) {
  proto::Run run = OneRun();
  Add(run, "transpose", proto::DEFAULT, 1000, 0, 1000);
  Add(run, "uncounted", proto::DEFAULT, 1000, 1, 1).clear_flop();
  Add(run, "uncounted_too", proto::DEFAULT, 1000, 1, 1).clear_moved_bytes();
  proto::BenchmarkResult& foreign =
      Add(run, "BM_Sort/8", proto::DEFAULT, 1000, 1, 1);
  foreign.mutable_key()->Clear();
  foreign.mutable_key()->set_operator_name("BM_Sort/8");
  RooflineView view = ViewOf(run);
  EXPECT_TRUE(view.charts.empty());
  ASSERT_EQ(view.not_placed.size(), 3);
  int uncounted = 0, moves = 0, imported = 0;
  for (const NotPlaced& each : view.not_placed) {
    if (each.why.find("no FLOP or no bytes") != std::string::npos) {
      uncounted = each.series;
    }
    if (each.why.find("counts no FLOP") != std::string::npos) {
      moves = each.series;
    }
    if (each.why.find("other tools") != std::string::npos) {
      imported = each.series;
    }
  }
  EXPECT_EQ(uncounted, 2);
  EXPECT_EQ(moves, 1);
  EXPECT_EQ(imported, 1);

  proto::Run blind = OneRun();
  blind.clear_ceilings();
  Add(blind, "matmul", proto::DEFAULT, 1000, 80000, 1000);
  view = ViewOf(blind);
  ASSERT_EQ(view.not_placed.size(), 1);
  EXPECT_THAT(view.not_placed[0].why, HasSubstr("no run holds the ceilings"));
  EXPECT_THAT(view.not_placed[0].why, HasSubstr("next: "));
}

TEST(RooflineViewTest, LeadsToTheNewestDiagnosisOfTheSameTask) {
  SampleOptions options;
  options.commits = 3;
  options.shapes_per_operator = 1;
  options.sessions = 0;
  const SampleHistory sample = MakeSampleHistory(options);
  BuildOptions build;
  build.diagnoses = {sample.diagnoses[0], sample.diagnoses[0]};
  build.diagnoses[1].set_created_unix_ns(build.diagnoses[0].created_unix_ns() +
                                         1);
  build.diagnoses[1].set_verdict("newer");
  const ReportData data = BuildReportData(sample.runs, sample.sessions, build);
  EXPECT_EQ(data.diagnoses[0].verdict(), "newer");
  int led = 0;
  for (const RooflineChart& chart :
       ViewRoofline(data, Summarize(data)).charts) {
    for (const RooflinePoint& point : chart.points) {
      if (point.diagnosis < 0) continue;
      ++led;
      EXPECT_EQ(point.diagnosis, 0);
      EXPECT_EQ(data.series[point.default_series].operator_name, "softmax");
      EXPECT_EQ(data.hardware[chart.hardware].id, "amd-epyc-zen4-8c");
    }
  }
  EXPECT_EQ(led, 1);
}

TEST(RooflineViewTest, KeepsTheSlowestOfVeryMany) {
  proto::Run run = OneRun();
  for (int i = 0; i < kMostPoints + 7; ++i) {
    proto::BenchmarkResult& result =
        Add(run, "op", proto::DEFAULT, 1000 + i, 1000, 1000);
    proto::Dim* dim = result.mutable_key()->mutable_shape()->add_dims();
    dim->set_name("n");
    dim->set_value(i + 1);
  }
  const RooflineView view = ViewOf(run);
  ASSERT_EQ(view.charts.size(), 1);
  EXPECT_EQ(view.charts[0].points.size(), kMostPoints);
  EXPECT_EQ(view.charts[0].left_out, 7);
  EXPECT_DOUBLE_EQ(*view.charts[0].points[0].default_flop_per_s,
                   1000 / (1000. + kMostPoints + 6) * 1e9);
}

}  // namespace
}  // namespace optrail::reports
