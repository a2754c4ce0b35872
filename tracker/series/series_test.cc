#include "tracker/series/series.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;

proto::Run MakeRun(int64_t second, const std::string& commit, int position,
                   std::vector<int64_t> process_ns) {
  proto::Run run;
  run.set_run_id("20261120T0000" + std::to_string(10 + second) + "Z-ab");
  run.set_started_unix_ns(second * 1000000000);
  run.mutable_hardware()->set_id("cpu");
  run.mutable_commit()->set_id(commit);
  run.mutable_commit()->set_branch("main");
  run.mutable_commit()->set_first_parent_position(position);
  run.mutable_toolchain()->set_compiler("g++ 12");
  proto::BenchmarkResult* result = run.add_results();
  result->mutable_key()->set_operator_name("BM");
  result->set_outcome(proto::OK);
  for (const int64_t ns : process_ns) {
    proto::Measurement* measurement = result->add_measurements();
    measurement->set_calls_per_sample(2);
    for (const int64_t offset : {-2, 0, 2}) {
      measurement->add_sample_ns(2 * ns + offset);
    }
  }
  return run;
}

TEST(ReadingOf, IsTheMedianOfCleanSamplesPerCall) {
  proto::Measurement measurement;
  measurement.set_calls_per_sample(10);
  for (const int64_t ns : {100, 120, 9000, 110}) measurement.add_sample_ns(ns);
  measurement.add_contended_samples(2);
  const auto reading = ReadingOf(measurement, "time");
  ASSERT_TRUE(reading.has_value());
  EXPECT_DOUBLE_EQ(reading->value, 11);
  EXPECT_EQ(reading->samples, 3);
  EXPECT_NEAR(reading->relative_sample_spread, 1.4826 / 11, 1e-4);
}

TEST(ReadingOf, HasNoneWithoutCleanSamples) {
  proto::Measurement measurement;
  measurement.set_calls_per_sample(1);
  measurement.add_sample_ns(100);
  measurement.add_contended_samples(0);
  EXPECT_FALSE(ReadingOf(measurement, "time").has_value());
  EXPECT_FALSE(ReadingOf(measurement, "joules").has_value());
}

// Five samples, of which all but `clean` waited for a core.
proto::Measurement Waited(int clean, std::vector<int64_t> unwaited_ns) {
  proto::Measurement measurement;
  measurement.set_calls_per_sample(10);
  for (int i = 0; i < clean; ++i) measurement.add_sample_ns(1000 + 10 * i);
  for (const int64_t ns : unwaited_ns) {
    measurement.add_contended_samples(measurement.sample_ns_size());
    measurement.add_sample_ns(9000);
    measurement.add_unwaited_ns(ns);
  }
  return measurement;
}

TEST(ReadingOf, TakesWaitingForACoreOutWhereHardlyASampleIsClean) {
  const auto reading =
      ReadingOf(Waited(2, {1100, 1080, 0, 1120, 1090}), "time");
  ASSERT_TRUE(reading.has_value());
  EXPECT_DOUBLE_EQ(reading->value, 108.5);
  EXPECT_DOUBLE_EQ(reading->fastest, 100);
  EXPECT_EQ(reading->samples, 6);
}

TEST(ReadingOf, OfCleanSamplesIsTheirMedianAndTheFastestOfAll) {
  proto::Measurement measurement = Waited(4, {990, 0, 1500});
  auto reading = ReadingOf(measurement, "time");
  ASSERT_TRUE(reading.has_value());
  EXPECT_DOUBLE_EQ(reading->value, 101.5);
  EXPECT_DOUBLE_EQ(reading->fastest, 99);
  EXPECT_EQ(reading->samples, 4);
  // The disturbance made it no faster.
  measurement.set_sample_ns(6, 980);
  EXPECT_DOUBLE_EQ(ReadingOf(measurement, "time")->fastest, 98);
  // The fastest of a few samples is fast by luck.
  EXPECT_DOUBLE_EQ(ReadingOf(Waited(4, {}), "time")->fastest, 101.5);
}

TEST(ReadingOf, IsWhatAMeterReadOfOneCall) {
  proto::Run run = MakeRun(1, "a", 1, {100, 100});
  for (proto::Measurement& measurement :
       *run.mutable_results(0)->mutable_measurements()) {
    proto::MeterWindow* window = measurement.add_windows();
    window->set_metric("joules");
    window->set_unit("J");
    window->set_direction(proto::LOWER_IS_BETTER);
    window->set_value(50);
    window->set_calls(200);
  }
  run.mutable_results(0)
      ->mutable_measurements(1)
      ->mutable_windows(0)
      ->set_calls(0);  // it saw none
  const proto::BenchmarkResult& result = run.results(0);
  const auto reading = ReadingOf(result.measurements(0), "joules");
  ASSERT_TRUE(reading.has_value());
  EXPECT_DOUBLE_EQ(reading->value, .25);
  EXPECT_DOUBLE_EQ(reading->fastest, .25);
  EXPECT_EQ(reading->samples, 1);
  EXPECT_FALSE(ReadingOf(result.measurements(1), "joules").has_value());
  const std::vector<Observation> observed = Observe(result);
  ASSERT_EQ(observed.size(), 2);
  EXPECT_EQ(observed[1].metric.metric, "joules");
  EXPECT_EQ(observed[1].metric.unit, "J");
  ASSERT_EQ(observed[1].processes.size(), 1);
  EXPECT_DOUBLE_EQ(observed[1].processes[0].value, .25);
}

TEST(ReadingOf, SurvivesThinnedSamples) {
  proto::Measurement measurement;
  measurement.set_median_ns(42);
  measurement.set_clean_sample_count(17);
  const auto reading = ReadingOf(measurement, "time");
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(reading->value, 42);
  EXPECT_EQ(reading->samples, 17);
}

TEST(BuildSeries, PoolsTheRunsOfACommitIntoOnePoint) {
  const std::vector<proto::Run> runs = {MakeRun(0, "a", 1, {10, 12}),
                                        MakeRun(1, "b", 2, {20}),
                                        MakeRun(2, "a", 1, {14})};
  const std::vector<Series> all = BuildSeries(runs);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].text, "BM|time|ns|cpu|main");
  ASSERT_EQ(all[0].points.size(), 2);
  const Point& a = all[0].points[0];
  EXPECT_EQ(a.runs->commit.id(), "a");
  EXPECT_EQ(a.processes.size(), 3);
  EXPECT_EQ(a.value, 12);
  EXPECT_EQ(a.low, 10);
  EXPECT_EQ(a.high, 14);
  EXPECT_THAT(a.runs->ids, ElementsAre(runs[0].run_id(), runs[2].run_id()));
  EXPECT_EQ(all[0].points[1].value, 20);
}

TEST(BuildSeries, OrdersByCommitWhateverTheClockSaid) {
  const std::vector<Series> all = BuildSeries(std::vector<proto::Run>{
      MakeRun(5, "a", 1, {10}), MakeRun(1, "c", 3, {30}),
      MakeRun(3, "b", 2, {20})});
  std::vector<std::string> commits;
  for (const Point& point : all[0].points)
    commits.push_back(point.runs->commit.id());
  EXPECT_THAT(commits, ElementsAre("a", "b", "c"));
}

// As an import may bring them; were each looked for among the others, this
// would not end.
TEST(BuildSeries, AHundredThousandCountersOfABenchmarkAreAsManySeries) {
  constexpr int kCounters = 100000;
  std::vector<proto::Run> runs;
  for (int i = 0; i < 3; ++i) {
    proto::Run run = MakeRun(i, std::string(1, 'a' + i), i + 1, {10});
    proto::Measurement* measurement =
        run.mutable_results(0)->mutable_measurements(0);
    for (int j = 0; j < kCounters; ++j) {
      proto::MeterWindow* window = measurement->add_windows();
      window->set_metric("counter_" + std::to_string(j));
      window->set_direction(proto::LOWER_IS_BETTER);
      window->set_value(j);
      window->set_calls(1);
    }
    runs.push_back(run);
  }
  const std::vector<Series> all = BuildSeries(runs);
  ASSERT_EQ(all.size(), kCounters + 1);
  for (const Series& series : all) EXPECT_EQ(series.points.size(), 3);
}

TEST(BuildSeries, SplitsByVersionHardwareAndBranchButNotByConfig) {
  proto::Run tuned = MakeRun(0, "a", 1, {10});
  tuned.mutable_results(0)->set_config("unroll=2");
  proto::Run retuned = MakeRun(1, "b", 2, {9});
  retuned.mutable_results(0)->set_config("unroll=4");
  proto::Run version = MakeRun(2, "c", 3, {9});
  version.mutable_results(0)->mutable_key()->set_version(2);
  proto::Run hardware = MakeRun(3, "c", 3, {9});
  hardware.mutable_hardware()->set_id("other");
  proto::Run branch = MakeRun(4, "c", 3, {9});
  branch.mutable_commit()->set_branch("topic");
  const std::vector<Series> all = BuildSeries(
      std::vector<proto::Run>{tuned, retuned, version, hardware, branch});
  std::vector<std::string> texts;
  for (const Series& series : all) texts.push_back(series.text);
  EXPECT_THAT(texts,
              ElementsAre("BM/v2|time|ns|cpu|main", "BM|time|ns|cpu|main",
                          "BM|time|ns|cpu|topic", "BM|time|ns|other|main"));
  ASSERT_EQ(all[1].points.size(), 2);
  EXPECT_EQ(all[1].points[0].attributes->config, "unroll=2");
  EXPECT_EQ(all[1].points[1].attributes->config, "unroll=4");
}

TEST(BuildSeries, OpensAnEpochWhenTheToolchainChanges) {
  proto::Run later = MakeRun(1, "b", 2, {20});
  later.mutable_toolchain()->set_compiler("g++ 13");
  const std::vector<Series> all = BuildSeries(std::vector<proto::Run>{
      MakeRun(0, "a", 1, {10}), later, MakeRun(2, "b", 2, {21})});
  ASSERT_EQ(all.size(), 1);
  ASSERT_EQ(all[0].points.size(), 3);  // built differently: not one point
  ASSERT_EQ(all[0].epochs.size(), 3);
  EXPECT_EQ(all[0].epochs[0].change, "");
  EXPECT_EQ(all[0].epochs[1].change, "compiler: g++ 12 -> g++ 13");
  EXPECT_EQ(all[0].points[1].epoch, 1);
}

proto::Run MeasuredRun(int64_t second, const std::string& commit, int position,
                       int64_t min_sample_ns) {
  proto::Run run = MakeRun(second, commit, position, {10});
  run.mutable_settings()->set_min_sample_ns(min_sample_ns);
  run.mutable_settings()->set_processes(5);
  return run;
}

TEST(BuildSeries, SettingsThatItHasNotSeenOpenAnEpoch) {
  const std::vector<Series> all = BuildSeries(std::vector<proto::Run>{
      MakeRun(0, "a", 1, {10}),  // an old record
      MeasuredRun(1, "b", 2, 100'000), MeasuredRun(2, "c", 3, 500'000),
      MeasuredRun(3, "d", 4, 500'000)});
  ASSERT_EQ(all.size(), 1);
  const Series& series = all[0];
  ASSERT_EQ(series.epochs.size(), 2);
  EXPECT_EQ(series.epochs[1].change,
            "measured differently: min sample 100 us -> 500 us");
  EXPECT_EQ(series.points[0].settings, Point::kUnknownSettings);
  EXPECT_EQ(series.points[1].epoch, 0);
  EXPECT_EQ(series.points[2].epoch, 1);
  EXPECT_EQ(series.points[3].epoch, 1);
  EXPECT_EQ(series.settings.size(), 2);
  EXPECT_EQ(DescribeSettingsChange(series, series.points[1], series.points[3]),
            "measured differently: min sample 100 us -> 500 us");
  EXPECT_EQ(DescribeSettingsChange(series, series.points[0], series.points[3]),
            "");
}

TEST(BuildSeries, TwoSuitesInTurnsDoNotCutASeriesToPieces) {
  std::vector<proto::Run> runs;
  for (int i = 1; i <= 8; ++i) {
    runs.push_back(MeasuredRun(i, std::string(1, static_cast<char>('a' + i)), i,
                               i % 2 == 0 ? 500'000 : 100'000));
  }
  const std::vector<Series> all = BuildSeries(runs);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].epochs.size(), 2);
  EXPECT_EQ(all[0].points.back().epoch, 1);
  EXPECT_NE(DescribeSettingsChange(all[0], all[0].points[6], all[0].points[7]),
            "");
}

// A config that is not instantiated any more makes the default run instead, six
// times slower: that is no regression of the tuned one.
TEST(BuildSeries, WhereNoTunedConfigCouldBeUsedTheSeriesSaysSo) {
  const auto tuned = [](int64_t second, int position, int64_t ns,
                        proto::ConfigSource source) {
    proto::Run run =
        MakeRun(second, absl::StrCat("c", position), position, {ns, ns + 2});
    run.mutable_results(0)->mutable_key()->set_selection(proto::TUNED);
    run.mutable_results(0)->set_config_source(source);
    return run;
  };
  const auto all = BuildSeries(std::vector<proto::Run>{
      tuned(0, 1, 100, proto::EXACT_SHAPE),
      tuned(1, 2, 680, proto::FALLBACK_TO_DEFAULT),
      tuned(2, 3, 682, proto::FALLBACK_TO_DEFAULT),
      tuned(3, 3, 102, proto::EXACT_SHAPE),  // the same commit, tuned again
      tuned(4, 3, 690, proto::FALLBACK_TO_DEFAULT),
      tuned(5, 4, 104, proto::NEAREST_SHAPE)});
  ASSERT_EQ(all.size(), 1);
  const Series& series = all[0];
  ASSERT_EQ(series.points.size(), 4);
  ASSERT_EQ(series.epochs.size(), 3);
  EXPECT_EQ(series.epochs[1].change,
            "no tuned config could be used: the default ran");
  EXPECT_EQ(series.epochs[2].change, "a tuned config is used again");
  EXPECT_EQ(series.points[1].epoch, 1);
  EXPECT_EQ(series.points[1].attributes->config_source,
            proto::FALLBACK_TO_DEFAULT);
  EXPECT_EQ(series.points[2].epoch, 2);
  // Nothing of the default's readings is pooled with the tuned config's.
  EXPECT_EQ(series.points[2].high, 104);
  EXPECT_EQ(series.points[2].attributes->config_source, proto::EXACT_SHAPE);
  EXPECT_EQ(series.points[3].epoch, 2);
}

TEST(BuildSeries, TheDefaultsOwnSeriesHasNoSuchEpochs) {
  std::vector<proto::Run> runs = {MakeRun(0, "a", 1, {10}),
                                  MakeRun(1, "b", 2, {10})};
  runs[0].mutable_results(0)->mutable_key()->set_selection(proto::DEFAULT);
  runs[1].mutable_results(0)->mutable_key()->set_selection(proto::DEFAULT);
  runs[1].mutable_results(0)->set_config_source(proto::FALLBACK_TO_DEFAULT);
  EXPECT_EQ(BuildSeries(runs)[0].epochs.size(), 1);
}

TEST(BuildSeries, WhichBackendWasBestIsAnAttribute) {
  std::vector<proto::Run> runs = {MakeRun(0, "a", 1, {10}),
                                  MakeRun(1, "b", 2, {10})};
  for (proto::Run& run : runs) {
    run.mutable_results(0)->mutable_key()->set_backend("best");
  }
  runs[1].mutable_results(0)->set_resolved_backend("openblas");
  const auto all = BuildSeries(runs);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].points[0].attributes->resolved_backend, "");
  EXPECT_EQ(all[0].points[1].attributes->resolved_backend, "openblas");
}

TEST(BuildSeries, APointIsOnlyOkIfAllItsRunsAre) {
  proto::Run crashed = MakeRun(1, "a", 1, {});
  crashed.mutable_results(0)->set_outcome(proto::CRASHED);
  crashed.mutable_results(0)->set_detail("signal 11");
  const std::vector<Series> all =
      BuildSeries(std::vector<proto::Run>{MakeRun(0, "a", 1, {10}), crashed});
  ASSERT_EQ(all[0].points.size(), 1);
  EXPECT_EQ(all[0].points[0].outcome, proto::CRASHED);
  EXPECT_EQ(all[0].points[0].detail, "signal 11");
  EXPECT_EQ(all[0].points[0].value, 10);
}

TEST(BuildSeries, MakesASeriesOfEachMetric) {
  proto::Run run = MakeRun(0, "a", 1, {10});
  proto::MetricSamples* metric =
      run.mutable_results(0)->mutable_measurements(0)->add_metrics();
  metric->set_metric("items_per_second");
  metric->set_unit("1/s");
  metric->set_direction(proto::HIGHER_IS_BETTER);
  metric->add_values(5);
  const std::vector<Series> all = BuildSeries(std::vector<proto::Run>{run});
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].text, "BM|items_per_second|1%2Fs|cpu|main");
  EXPECT_EQ(all[0].direction, proto::HIGHER_IS_BETTER);
  EXPECT_EQ(all[0].points[0].value, 5);
}

TEST(RooflineText, SaysWhereItIsNoBound) {
  EXPECT_EQ(RooflineText(.97), "97%");
  EXPECT_EQ(RooflineText(1.01), "101%") << "noise of two readings";
  EXPECT_EQ(RooflineText(1.5), "no bound");
}

}  // namespace
}  // namespace optrail::tracker
