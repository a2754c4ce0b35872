#include "tracker/series.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/statistics.h"
#include "tracker/history.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kTime = "time";

void Describe(absl::string_view what, const std::string& before,
              const std::string& after, std::vector<std::string>* changes) {
  if (before == after) return;
  changes->push_back(absl::StrCat(what, ": ", before.empty() ? "-" : before,
                                  " -> ", after.empty() ? "-" : after));
}

// Clean samples per call, in order.
std::vector<double> CleanSamplesNs(const proto::Measurement& measurement) {
  const double calls =
      static_cast<double>(std::max<int64_t>(1, measurement.calls_per_sample()));
  const std::set<int> contended(measurement.contended_samples().begin(),
                                measurement.contended_samples().end());
  std::vector<double> samples;
  samples.reserve(measurement.sample_ns_size());
  for (int i = 0; i < measurement.sample_ns_size(); ++i) {
    if (contended.empty() || contended.count(i) == 0) {
      samples.push_back(static_cast<double>(measurement.sample_ns(i)) / calls);
    }
  }
  return samples;
}

ProcessReading Summary(const std::vector<double>& samples) {
  ProcessReading reading;
  reading.value = Median(samples);
  reading.samples = static_cast<int>(samples.size());
  if (samples.size() > 1 && reading.value != 0) {
    reading.relative_sample_spread =
        MedianAbsoluteDeviation(samples) / std::abs(reading.value);
  }
  return reading;
}

const proto::MetricSamples* FindMetric(const proto::Measurement& measurement,
                                       absl::string_view metric) {
  for (const proto::MetricSamples& samples : measurement.metrics()) {
    if (samples.metric() == metric && samples.values_size() > 0) {
      return &samples;
    }
  }
  return nullptr;
}

// What makes two runs one point: the same code built the same way. Runs of no
// commit are a point each.
std::string PointIdentity(const proto::Run& run) {
  const proto::Commit& commit = run.commit();
  if (commit.id().empty()) return run.run_id();
  return absl::StrJoin(
      {commit.id(), std::string(commit.dirty() ? "dirty" : "clean"),
       run.toolchain().compiler(), run.toolchain().flags(),
       run.toolchain().compilation_mode(), run.toolchain().os(),
       run.toolchain().os_kernel(), run.toolchain().driver()},
      "\n");
}

// A series while it is assembled.
struct Building {
  Series series;
  std::vector<const proto::Toolchain*> toolchains;  // by point
  std::unordered_map<std::string, size_t> points;   // by identity
};

Point& PointFor(const proto::Run& run, const std::string& identity,
                Building& building) {
  Series& series = building.series;
  const auto [it, is_new] =
      building.points.emplace(identity, series.points.size());
  if (is_new) {
    series.points.emplace_back();
    Point& point = series.points.back();
    point.commit = run.commit();
    point.first_started_unix_ns = run.started_unix_ns();
    building.toolchains.push_back(&run.toolchain());
  }
  return series.points[it->second];
}

void AddObservation(const proto::Run& run, const Observation& observation,
                    Point& point) {
  point.run_ids.push_back(run.run_id());
  point.first_started_unix_ns =
      std::min(point.first_started_unix_ns, run.started_unix_ns());
  point.processes.insert(point.processes.end(), observation.processes.begin(),
                         observation.processes.end());
  if (point.outcome == proto::OUTCOME_UNSPECIFIED ||
      point.outcome == proto::OK) {
    point.outcome = observation.outcome;
    point.detail = observation.detail;
  }
  point.config = observation.config;
  point.config_source = observation.config_source;
  point.kernel_id = observation.kernel_id;
  point.tuning_session_id = observation.tuning_session_id;
  if (observation.flop) point.flop = observation.flop;
  if (observation.moved_bytes) point.moved_bytes = observation.moved_bytes;
  if (observation.roofline_fraction) {
    point.roofline_fraction = observation.roofline_fraction;
  }
}

void Finish(Building& building) {
  Series& series = building.series;
  for (size_t i = 0; i < series.points.size(); ++i) {
    Point& point = series.points[i];
    std::vector<double> values;
    for (const ProcessReading& process : point.processes) {
      values.push_back(process.value);
    }
    if (!values.empty()) {
      point.value = Median(values);
      point.low = *std::min_element(values.begin(), values.end());
      point.high = *std::max_element(values.begin(), values.end());
    }
    const proto::Toolchain& toolchain = *building.toolchains[i];
    const std::string change =
        series.epochs.empty() ? ""
                              : DescribeToolchainChange(
                                    series.epochs.back().toolchain, toolchain);
    if (series.epochs.empty() || !change.empty()) {
      series.epochs.push_back({toolchain, change});
    }
    point.epoch = static_cast<int>(series.epochs.size()) - 1;
  }
}

}  // namespace

absl::optional<ProcessReading> ReadingOf(const proto::Measurement& measurement,
                                         absl::string_view metric) {
  ProcessReading reading;
  if (metric == kTime) {
    const std::vector<double> samples = CleanSamplesNs(measurement);
    if (!samples.empty()) reading = Summary(samples);
    if (measurement.has_median_ns()) {
      reading.value = measurement.median_ns();
      reading.samples =
          std::max({1, reading.samples, measurement.clean_sample_count()});
    } else if (samples.empty()) {
      return absl::nullopt;
    }
  } else {
    const proto::MetricSamples* found = FindMetric(measurement, metric);
    if (found == nullptr) return absl::nullopt;
    reading = Summary({found->values().begin(), found->values().end()});
  }
  reading.aggregate_only = measurement.aggregate_only();
  return reading;
}

std::vector<MetricInfo> MetricsOf(const proto::BenchmarkResult& result) {
  std::vector<MetricInfo> metrics = {
      {std::string(kTime), "ns", proto::LOWER_IS_BETTER}};
  for (const proto::Measurement& measurement : result.measurements()) {
    for (const proto::MetricSamples& samples : measurement.metrics()) {
      const bool known = std::any_of(metrics.begin(), metrics.end(),
                                     [&](const MetricInfo& metric) {
                                       return metric.metric == samples.metric();
                                     });
      if (known) continue;
      metrics.push_back({samples.metric(), samples.unit(),
                         samples.direction() == proto::HIGHER_IS_BETTER
                             ? proto::HIGHER_IS_BETTER
                             : proto::LOWER_IS_BETTER});
    }
  }
  std::sort(metrics.begin() + 1, metrics.end(),
            [](const MetricInfo& a, const MetricInfo& b) {
              return a.metric < b.metric;
            });
  return metrics;
}

Observation Observe(const proto::BenchmarkResult& result, MetricInfo metric) {
  Observation observation;
  for (const proto::Measurement& measurement : result.measurements()) {
    if (const auto reading = ReadingOf(measurement, metric.metric)) {
      observation.processes.push_back(*reading);
    }
  }
  observation.metric = std::move(metric);
  observation.outcome = result.outcome();
  observation.detail = result.detail();
  observation.config = result.config();
  observation.config_source = result.config_source();
  observation.kernel_id = result.kernel_id();
  observation.tuning_session_id = result.tuning_session_id();
  if (result.has_flop()) observation.flop = result.flop();
  if (result.has_moved_bytes()) observation.moved_bytes = result.moved_bytes();
  if (result.has_roofline_fraction()) {
    observation.roofline_fraction = result.roofline_fraction();
  }
  return observation;
}

std::string DescribeToolchainChange(const proto::Toolchain& before,
                                    const proto::Toolchain& after) {
  std::vector<std::string> changes;
  Describe("compiler", before.compiler(), after.compiler(), &changes);
  Describe("flags", before.flags(), after.flags(), &changes);
  Describe("compilation mode", before.compilation_mode(),
           after.compilation_mode(), &changes);
  Describe("os", before.os(), after.os(), &changes);
  Describe("kernel", before.os_kernel(), after.os_kernel(), &changes);
  Describe("driver", before.driver(), after.driver(), &changes);
  return absl::StrJoin(changes, "; ");
}

std::vector<Series> BuildSeries(const std::vector<const proto::Run*>& runs) {
  std::vector<const proto::Run*> order = runs;
  SortInSeriesOrder(order);
  std::unordered_map<std::string, Building> buildings;
  for (const proto::Run* run : order) {
    const std::string identity = PointIdentity(*run);
    for (const proto::BenchmarkResult& result : run->results()) {
      for (const MetricInfo& metric : MetricsOf(result)) {
        SeriesKey key = {result.key(), metric.metric, metric.unit,
                         run->hardware().id(), run->commit().branch()};
        std::string text = CanonicalText(key);
        Building& building = buildings[text];
        if (building.series.text.empty()) {
          building.series.key = std::move(key);
          building.series.text = std::move(text);
          building.series.direction = metric.direction;
        }
        AddObservation(*run, Observe(result, metric),
                       PointFor(*run, identity, building));
      }
    }
  }
  std::vector<Series> all;
  all.reserve(buildings.size());
  for (auto& [text, building] : buildings) {
    Finish(building);
    all.push_back(std::move(building.series));
  }
  std::sort(all.begin(), all.end(),
            [](const Series& a, const Series& b) { return a.text < b.text; });
  return all;
}

Series BuildOneSeries(SeriesKey key,
                      const std::vector<RunObservation>& observations) {
  std::vector<const proto::Run*> order;
  // A run may hold a benchmark more than once.
  std::unordered_map<const proto::Run*, std::vector<const Observation*>> by_run;
  for (const RunObservation& observation : observations) {
    std::vector<const Observation*>& of_run = by_run[observation.run];
    if (of_run.empty()) order.push_back(observation.run);
    of_run.push_back(&observation.observation);
  }
  SortInSeriesOrder(order);
  Building building;
  building.series.text = CanonicalText(key);
  building.series.key = std::move(key);
  if (!order.empty()) {
    building.series.direction = by_run[order.front()].front()->metric.direction;
  }
  for (const proto::Run* run : order) {
    Point& point = PointFor(*run, PointIdentity(*run), building);
    for (const Observation* observation : by_run[run]) {
      AddObservation(*run, *observation, point);
    }
  }
  Finish(building);
  return std::move(building.series);
}

std::vector<Series> BuildSeries(const std::vector<proto::Run>& runs) {
  std::vector<const proto::Run*> pointers;
  pointers.reserve(runs.size());
  for (const proto::Run& run : runs) pointers.push_back(&run);
  return BuildSeries(pointers);
}

}  // namespace optrail::tracker
