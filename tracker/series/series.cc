#include "tracker/series/series.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/history/history.h"
#include "tracker/series/samples.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/measurement_settings_text.h"
#include "tuning/proto/meter_window.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kTime = "time";
// A stranger's run may name thousands.
constexpr size_t kMostLoops = 16;

void Describe(absl::string_view what, const std::string& before,
              const std::string& after, std::vector<std::string>* changes) {
  if (before == after) return;
  changes->push_back(absl::StrCat(what, ": ", before.empty() ? "-" : before,
                                  " -> ", after.empty() ? "-" : after));
}

ProcessReading Summary(const std::vector<double>& samples) {
  ProcessReading reading;
  reading.value = reading.fastest = Median(samples);
  reading.samples = static_cast<int>(samples.size());
  if (samples.size() > 1 && reading.value != 0) {
    reading.relative_sample_spread =
        MedianAbsoluteDeviation(samples) / std::abs(reading.value);
  }
  return reading;
}

ProcessReading ReadingOf(const proto::MetricSamples& samples,
                         const proto::Measurement& measurement) {
  ProcessReading reading =
      Summary({samples.values().begin(), samples.values().end()});
  reading.aggregate_only = measurement.aggregate_only();
  return reading;
}

// The reading of a meter for one call, by the windows of a process.
ProcessReading ReadingOf(const tuning::MeteredMetric& metered,
                         const proto::Measurement& measurement) {
  ProcessReading reading = Summary(metered.per_call);
  reading.aggregate_only = measurement.aggregate_only();
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

std::shared_ptr<const ResultAttributes> AttributesOf(
    const proto::BenchmarkResult& result) {
  ResultAttributes attributes;
  attributes.config = result.config();
  attributes.config_source = result.config_source();
  attributes.kernel_id = result.kernel_id();
  attributes.tuning_session_id = result.tuning_session_id();
  attributes.resolved_backend = result.resolved_backend();
  attributes.library = result.library();
  if (result.has_flop()) attributes.flop = result.flop();
  if (result.has_moved_bytes()) attributes.moved_bytes = result.moved_bytes();
  return std::make_shared<const ResultAttributes>(std::move(attributes));
}

// Two runs are one point if this is equal: the same code built the same way.
// Runs of no commit are a point each.
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

// Tells what is new about how `point` was measured, against the last point
// before it that tells and all others; "" if the series has seen it.
std::string NewSettings(const Series& series, const Point& point, int last,
                        const std::set<int>& seen) {
  if (point.settings == Point::kUnknownSettings ||
      seen.count(point.settings) > 0) {
    return "";
  }
  for (const int other : seen) {
    if (MeasuredDifferently(series.settings[other],
                            series.settings[point.settings])
            .empty()) {
      return "";
    }
  }
  return seen.empty() ? ""
                      : MeasuredDifferently(series.settings[last],
                                            series.settings[point.settings]);
}

// Adds what was read beside some processes to what was beside others.
void AddReadings(const std::vector<LoopReading>& more,
                 std::vector<LoopReading>& all) {
  for (const LoopReading& reading : more) {
    const auto at =
        std::lower_bound(all.begin(), all.end(), reading,
                         [](const LoopReading& a, const LoopReading& b) {
                           return a.loop < b.loop;
                         });
    if (at == all.end() || at->loop != reading.loop) {
      if (all.size() < kMostLoops) all.insert(at, reading);
      continue;
    }
    const int processes = at->processes + reading.processes;
    at->log_ns =
        (at->log_ns * at->processes + reading.log_ns * reading.processes) /
        processes;
    at->processes = processes;
  }
}

// No tuned config could be used, so that the default ran in its place.
bool FellBack(const SeriesKey& key, const ResultAttributes& attributes) {
  return key.benchmark.selection() == proto::TUNED &&
         attributes.config_source == proto::FALLBACK_TO_DEFAULT;
}

}  // namespace

absl::optional<ProcessReading> ReadingOf(const proto::Measurement& measurement,
                                         absl::string_view metric) {
  ProcessReading reading;
  if (metric == kTime) {
    const std::vector<double> samples = UsableSamplesNs(measurement);
    if (!samples.empty()) reading = Summary(samples);
    if (measurement.has_median_ns()) {
      reading.value = measurement.median_ns();
      reading.samples =
          std::max({1, reading.samples, measurement.clean_sample_count()});
    } else if (samples.empty()) {
      return absl::nullopt;
    }
    reading.fastest = reading.value;
    // By the median that is recorded, which may be all that is left.
    if (measurement.sample_ns_size() >= kFewestForFastest && !samples.empty() &&
        Median(samples) > 0) {
      reading.fastest *= FastestSampleNs(measurement) / Median(samples);
    }
  } else {
    const proto::MetricSamples* found = FindMetric(measurement, metric);
    if (found != nullptr) return ReadingOf(*found, measurement);
    for (const auto& metered : tuning::MeteredMetrics(measurement)) {
      if (metered.metric == metric) return ReadingOf(metered, measurement);
    }
    return absl::nullopt;
  }
  reading.aggregate_only = measurement.aggregate_only();
  return reading;
}

std::vector<MetricInfo> MetricsOf(const proto::BenchmarkResult& result) {
  std::vector<MetricInfo> metrics = {
      {std::string(kTime), "ns", proto::LOWER_IS_BETTER}};
  std::set<std::string> known = {std::string(kTime)};
  const auto add = [&](const std::string& metric, const std::string& unit,
                       proto::Direction direction) {
    if (!known.insert(metric).second) return;
    metrics.push_back({metric, unit,
                       direction == proto::HIGHER_IS_BETTER
                           ? proto::HIGHER_IS_BETTER
                           : proto::LOWER_IS_BETTER});
  };
  for (const proto::Measurement& measurement : result.measurements()) {
    for (const auto& samples : measurement.metrics()) {
      add(samples.metric(), samples.unit(), samples.direction());
    }
    for (const auto& metered : tuning::MeteredMetrics(measurement)) {
      add(metered.metric, metered.unit, metered.direction);
    }
  }
  std::sort(metrics.begin() + 1, metrics.end(),
            [](const MetricInfo& a, const MetricInfo& b) {
              return a.metric < b.metric;
            });
  return metrics;
}

std::vector<Observation> Observe(const proto::BenchmarkResult& result) {
  Observation shared;
  shared.outcome = result.outcome();
  shared.detail = result.detail();
  shared.attributes = AttributesOf(result);
  if (result.has_roofline_fraction()) {
    shared.roofline_fraction = result.roofline_fraction();
  }
  for (const proto::Measurement& measurement : result.measurements()) {
    std::vector<LoopReading> beside;
    for (const proto::Calibration& loop :
         measurement.conditions().calibrations()) {
      if (loop.time_ns() > 0 && std::isfinite(loop.time_ns())) {
        AddReadings({{loop.loop(), std::log(loop.time_ns()), 1}}, beside);
      }
    }
    AddReadings(beside, shared.calibrations);
  }
  std::vector<Observation> observations;
  std::unordered_map<std::string, size_t> places;
  for (MetricInfo& metric : MetricsOf(result)) {
    places[metric.metric] = observations.size();
    observations.push_back(shared);
    observations.back().metric = std::move(metric);
  }
  // One look at each metric of a process: a benchmark may have 100,000.
  std::vector<int> read_in(observations.size(), -1);
  for (int i = 0; i < result.measurements_size(); ++i) {
    const proto::Measurement& measurement = result.measurements(i);
    if (const auto reading = ReadingOf(measurement, kTime)) {
      observations[0].processes.push_back(*reading);
    }
    read_in[0] = i;
    for (const proto::MetricSamples& samples : measurement.metrics()) {
      const size_t place = places.at(samples.metric());
      if (samples.values_size() == 0 || read_in[place] == i) continue;
      read_in[place] = i;
      observations[place].processes.push_back(ReadingOf(samples, measurement));
    }
    for (const auto& metered : tuning::MeteredMetrics(measurement)) {
      const size_t place = places.at(metered.metric);
      if (read_in[place] == i) continue;
      read_in[place] = i;
      observations[place].processes.push_back(ReadingOf(metered, measurement));
    }
  }
  return observations;
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

std::string MeasuredDifferently(const proto::MeasurementSettings& before,
                                const proto::MeasurementSettings& after) {
  const std::string change = tuning::DescribeSettingsChange(before, after);
  return change.empty() ? "" : absl::StrCat("measured differently: ", change);
}

std::string DescribeSettingsChange(const Series& series, const Point& before,
                                   const Point& after) {
  if (before.settings == after.settings ||
      before.settings == Point::kUnknownSettings ||
      after.settings == Point::kUnknownSettings) {
    return "";
  }
  return MeasuredDifferently(series.settings[before.settings],
                             series.settings[after.settings]);
}

OrderedRuns::OrderedRuns(std::vector<const proto::Run*> runs)
    : runs_(std::move(runs)) {
  SortInSeriesOrder(runs_);
  std::unordered_map<std::string, int> points, settings, toolchains;
  const auto number = [](std::unordered_map<std::string, int>& known,
                         std::string text) {
    const int next = static_cast<int>(known.size());
    return known.emplace(std::move(text), next).first->second;
  };
  for (const proto::Run* run : runs_) {
    points_.push_back(number(points, PointIdentity(*run)));
    std::string key = tuning::SettingsKey(run->settings());
    settings_.push_back(key.empty() ? Point::kUnknownSettings
                                    : number(settings, std::move(key)));
    toolchains_.push_back(
        number(toolchains, run->toolchain().SerializeAsString()));
    alone_.push_back(std::make_shared<const PointRuns>(
        PointRuns{run->commit(), {run->run_id()}, run->started_unix_ns()}));
  }
}

int SeriesBuilder::Numbers::Find(int known) const {
  return known < static_cast<int>(own_.size()) ? own_[known] : kNone;
}

void SeriesBuilder::Numbers::Set(int known, int own) {
  if (known >= static_cast<int>(own_.size())) own_.resize(known + 1, kNone);
  own_[known] = own;
}

SeriesBuilder::SeriesBuilder(SeriesKey key, std::string text,
                             size_t observations) {
  series_.points.reserve(observations);
  toolchains_.reserve(observations);
  series_.key = std::move(key);
  series_.text = std::move(text);
}

Point& SeriesBuilder::PointOf(const OrderedRuns& runs, int place) {
  const proto::Run& run = runs.run(place);
  int index = points_.Find(runs.point(place));
  if (index == Numbers::kNone) {
    index = static_cast<int>(series_.points.size());
    points_.Set(runs.point(place), index);
    series_.points.emplace_back();
    series_.points.back().runs = runs.alone(place);
    toolchains_.push_back({runs.toolchain(place), &run.toolchain()});
  } else {
    PointRuns all = *series_.points[index].runs;
    all.ids.push_back(run.run_id());
    all.first_started_unix_ns =
        std::min(all.first_started_unix_ns, run.started_unix_ns());
    series_.points[index].runs = std::make_shared<const PointRuns>(all);
  }
  Point& point = series_.points[index];
  const int settings = runs.settings(place);
  if (settings != Point::kUnknownSettings) {
    point.settings = settings_.Find(settings);
    if (point.settings == Numbers::kNone) {
      point.settings = static_cast<int>(series_.settings.size());
      settings_.Set(settings, point.settings);
      series_.settings.push_back(run.settings());
    }
  }
  return point;
}

void SeriesBuilder::Add(const OrderedRuns& runs, int place,
                        const Observation& observation) {
  if (series_.points.empty()) {
    series_.direction = observation.metric.direction;
  }
  Point& point = PointOf(runs, place);
  if (!point.processes.empty() &&
      FellBack(series_.key, *point.attributes) !=
          FellBack(series_.key, *observation.attributes)) {
    // At one commit a tuned config counts, and not the default that stood in
    // for it.
    if (!FellBack(series_.key, *point.attributes)) return;
    point.processes.clear();
    point.calibrations.clear();
  }
  AddReadings(observation.calibrations, point.calibrations);
  for (ProcessReading process : observation.processes) {
    process.run = static_cast<uint16_t>(
        std::min<size_t>(point.runs->ids.size() - 1, UINT16_MAX));
    point.processes.push_back(process);
  }
  if (tuning::Severity(observation.outcome) > tuning::Severity(point.outcome)) {
    point.outcome = observation.outcome;
    point.detail = observation.detail;
  }
  point.attributes = observation.attributes;
  if (observation.roofline_fraction) {
    point.roofline_fraction = observation.roofline_fraction;
  }
}

Series SeriesBuilder::Take() {
  Series& series = series_;
  std::set<int> settings_seen;
  int last_settings = Point::kUnknownSettings;
  bool last_fell_back = false;
  std::vector<double> values;
  for (size_t i = 0; i < series.points.size(); ++i) {
    Point& point = series.points[i];
    values.clear();
    for (const ProcessReading& process : point.processes) {
      values.push_back(process.value);
    }
    if (!values.empty()) {
      point.value = Median(values);
      point.low = *std::min_element(values.begin(), values.end());
      point.high = *std::max_element(values.begin(), values.end());
    }
    const bool fell_back = FellBack(series.key, *point.attributes);
    if (i == 0) {
      series.epochs.push_back({*toolchains_[i].of, ""});
    } else if (toolchains_[i].number != toolchains_[i - 1].number ||
               fell_back != last_fell_back || point.settings != last_settings) {
      std::vector<std::string> changes = {
          DescribeToolchainChange(series.epochs.back().toolchain,
                                  *toolchains_[i].of),
          NewSettings(series, point, last_settings, settings_seen),
          fell_back == last_fell_back ? ""
          : fell_back ? "no tuned config could be used: the default ran"
                      : "a tuned config is used again"};
      changes.erase(std::remove(changes.begin(), changes.end(), ""),
                    changes.end());
      if (!changes.empty()) {
        series.epochs.push_back({*toolchains_[i].of,
                                 absl::StrJoin(changes, "; "),
                                 fell_back != last_fell_back});
      }
    }
    if (point.settings != Point::kUnknownSettings) {
      last_settings = point.settings;
      settings_seen.insert(point.settings);
    }
    last_fell_back = fell_back;
    point.epoch = static_cast<int>(series.epochs.size()) - 1;
  }
  return std::move(series_);
}

std::vector<Series> BuildSeries(const std::vector<const proto::Run*>& runs) {
  const OrderedRuns order(runs);
  std::unordered_map<std::string, SeriesBuilder> builders;
  for (int place = 0; place < order.size(); ++place) {
    const proto::Run& run = order.run(place);
    for (const proto::BenchmarkResult& result : run.results()) {
      for (const Observation& observation : Observe(result)) {
        SeriesKey key = {result.key(), observation.metric.metric,
                         observation.metric.unit, run.hardware().id(),
                         run.commit().branch()};
        const std::string text = CanonicalText(key);
        const auto [builder, is_new] =
            builders.try_emplace(text, std::move(key), text);
        builder->second.Add(order, place, observation);
      }
    }
  }
  std::vector<Series> all;
  all.reserve(builders.size());
  for (auto& [text, builder] : builders) all.push_back(builder.Take());
  std::sort(all.begin(), all.end(),
            [](const Series& a, const Series& b) { return a.text < b.text; });
  return all;
}

std::vector<Series> BuildSeries(const std::vector<proto::Run>& runs) {
  std::vector<const proto::Run*> pointers;
  pointers.reserve(runs.size());
  for (const proto::Run& run : runs) pointers.push_back(&run);
  return BuildSeries(pointers);
}

bool IsBoundByRoofline(double fraction) { return fraction <= 1.02; }

std::string RooflineText(double fraction) {
  if (!IsBoundByRoofline(fraction)) return "no bound";
  return FormatPercent(fraction, 0);
}

}  // namespace optrail::tracker
