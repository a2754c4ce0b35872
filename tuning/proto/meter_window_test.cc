#include "tuning/proto/meter_window.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using testing::ElementsAre;

proto::MeterWindow* AddWindow(double joules, int64_t calls,
                              proto::Measurement* measurement) {
  proto::MeterWindow* window = measurement->add_windows();
  window->set_metric("joules");
  window->set_unit("J");
  window->set_value(joules);
  window->set_calls(calls);
  window->set_duration_ns(2'000'000'000);
  return window;
}

TEST(MeterWindowTest, RepeatedWindowsCountByTheirMedian) {
  proto::Measurement measurement;
  AddWindow(100, 10, &measurement);
  AddWindow(300, 10, &measurement);
  AddWindow(120, 10, &measurement);
  EXPECT_EQ(MeteredPerCall(measurement, "joules"), 12);
  EXPECT_EQ(MeteredPerCall(measurement, "calories"), absl::nullopt);
}

TEST(MeterWindowTest, WhatTheDeviceTakesAtRestIsTakenOutInAMetricOfItsOwn) {
  proto::Measurement measurement;
  AddWindow(100, 10, &measurement)->set_idle_watts(30);
  const std::vector<MeteredMetric> metrics = MeteredMetrics(measurement);
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].metric, "joules");
  EXPECT_THAT(metrics[0].per_call, ElementsAre(10));
  EXPECT_EQ(metrics[1].metric, "joules_above_idle");
  EXPECT_THAT(metrics[1].per_call, ElementsAre(4));
  EXPECT_EQ(metrics[1].unit, "J");
}

TEST(MeterWindowTest, WindowsOfNoCallSayNothing) {
  proto::Measurement measurement;
  AddWindow(100, 0, &measurement);
  EXPECT_TRUE(MeteredMetrics(measurement).empty());
}

TEST(MeterWindowTest, EstimatesAreLabelled) {
  proto::Measurement measurement;
  proto::MeterWindow* window = AddWindow(100, 1, &measurement);
  window->set_estimated(true);
  window->set_source("model");
  EXPECT_TRUE(MeteredMetrics(measurement)[0].estimated);
  EXPECT_EQ(WindowText(*window), "estimated, model");
}

}  // namespace
}  // namespace optrail::tuning
