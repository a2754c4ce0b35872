#include "tuning/command/metric.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

Metric Named(const std::string& name) {
  Metric metric;
  metric.objective.set_metric(name);
  return metric;
}

Metric WithPattern(const std::string& pattern) {
  std::vector<Metric> metrics = {Named("t")};
  const absl::Status status = SetPattern("t=" + pattern, metrics);
  EXPECT_TRUE(status.ok()) << status;
  return metrics[0];
}

TEST(ReadMetricTest, ReadsTheLastJsonLine) {
  const std::string output =
      "starting\n{\"loss\": 3}\nepoch 2 {not json}\n"
      "{\"loss\": 2.5, \"run\": {\"throughput\": 120}}\nbye\n";
  EXPECT_EQ(*ReadMetric(Named("loss"), output), 2.5);
  EXPECT_EQ(*ReadMetric(Named("run.throughput"), output), 120);
}

TEST(ReadMetricTest, ReadsJsonOverSeveralLines) {
  EXPECT_EQ(*ReadMetric(Named("a"), "{\n  \"a\": 7\n}\n"), 7);
}

TEST(ReadMetricTest, ReadsTheLastMatchOfAPattern) {
  const Metric metric = WithPattern("images/s: ([0-9.e+]+)");
  EXPECT_EQ(*ReadMetric(metric, "images/s: 10\nimages/s: 1.5e+2\n"), 150);
}

TEST(ReadMetricTest, BytesThatAreNoUtf8HideNoNumber) {
  EXPECT_EQ(*ReadMetric(Named("t"), "{\"file\": \"caf\xe9\", \"t\": 3}\n"), 3);
  EXPECT_EQ(*ReadMetric(WithPattern("caf.: ([0-9]+)"), "caf\xe9: 3"), 3);
}

TEST(ReadMetricTest, NonsenseIsAnErrorThatSaysWhatWasFound) {
  const auto message = [](const Metric& metric, const std::string& output) {
    return Message(ReadMetric(metric, output).status());
  };
  EXPECT_THAT(message(Named("t"), ""), HasSubstr("no JSON object but nothing"));
  EXPECT_THAT(message(Named("t"), "done"),
              HasSubstr("no JSON object but 'done'"));
  EXPECT_THAT(message(Named("t"), "{\"u\": 1}"), HasSubstr("has no 't'"));
  EXPECT_THAT(message(Named("t"), "{\"t\": \"fast\"}"),
              HasSubstr("is \"fast\", expected a number"));
  EXPECT_THAT(message(Named("t"), "{\"t\": -2}"),
              HasSubstr("is -2, expected a positive, finite number"));
  EXPECT_THAT(message(Named("t"), "{\"t\": 1e999}"), HasSubstr("JSON"));
  EXPECT_THAT(message(Named("t"), "{\"t\": NaN}"), HasSubstr("JSON"));
  EXPECT_THAT(message(WithPattern("t=(.*)"), "t=nan"),
              HasSubstr("is nan, expected a positive, finite number"));
  EXPECT_THAT(message(WithPattern("t=(.*)"), "t=quick"),
              HasSubstr("is 'quick', expected a number"));
  EXPECT_THAT(message(WithPattern("t=(.*)"), "T=3"),
              HasSubstr("matches nothing in 'T=3'"));
}

TEST(ReadMetricTest, APatternThatMatchesNothingEnds) {
  EXPECT_FALSE(ReadMetric(WithPattern("(x*)"), "abc").ok());
}

TEST(SetPatternTest, RejectsWhatCannotWork) {
  std::vector<Metric> metrics = {Named("t")};
  EXPECT_THAT(Message(SetPattern("u=(.*)", metrics)),
              HasSubstr("expected NAME=REGEXP with the name of a metric"));
  EXPECT_THAT(Message(SetPattern("t=(", metrics)), HasSubstr("missing )"));
  EXPECT_THAT(Message(SetPattern("t=[0-9]+", metrics)),
              HasSubstr("expected a group around the number"));
}

}  // namespace
}  // namespace optrail::tuning
