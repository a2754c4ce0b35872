#include "tracker/import/collected.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/statistics.h"

namespace optrail::tracker {
namespace {

void AddSample(double time_ns, int64_t calls, proto::Measurement* measurement) {
  measurement->add_sample_ns(
      std::llround(time_ns * static_cast<double>(calls)));
}

void AddMeasurements(Collected& collected, const proto::Conditions& conditions,
                     proto::BenchmarkResult* result) {
  const auto add = [&] {
    proto::Measurement* measurement = result->add_measurements();
    *measurement->mutable_conditions() = conditions;
    return measurement;
  };
  const std::vector<double>& times = collected.times_ns;
  if (times.empty() && collected.aggregate_ns.has_value()) {
    proto::Measurement* measurement = add();
    measurement->set_aggregate_only(true);
    measurement->set_median_ns(*collected.aggregate_ns);
    result->add_labels(absl::StrCat("aggregate: ", collected.aggregate));
    return;
  }
  if (collected.times_are_processes) {
    for (size_t i = 0; i < times.size(); ++i) {
      proto::Measurement* measurement = add();
      measurement->set_calls_per_sample(collected.calls_per_sample);
      AddSample(times[i], collected.calls_per_sample, measurement);
      measurement->set_median_ns(times[i]);
      measurement->set_clean_sample_count(1);
      // Metrics of which there is one value a process go with it.
      for (const auto& [name, samples] : collected.metrics) {
        if (samples.values_size() != static_cast<int>(times.size())) continue;
        proto::MetricSamples* one = measurement->add_metrics();
        *one = samples;
        one->clear_values();
        one->add_values(samples.values(static_cast<int>(i)));
      }
    }
    return;
  }
  if (times.empty() && collected.metrics.empty()) return;
  proto::Measurement* measurement = add();
  if (!times.empty()) {
    measurement->set_calls_per_sample(collected.calls_per_sample);
    for (const double time_ns : times) {
      AddSample(time_ns, collected.calls_per_sample, measurement);
    }
    measurement->set_median_ns(Median(times));
    measurement->set_clean_sample_count(static_cast<int>(times.size()));
  }
  for (auto& [name, samples] : collected.metrics) {
    *measurement->add_metrics() = std::move(samples);
  }
}

}  // namespace

proto::Direction DirectionOfName(absl::string_view metric) {
  for (const absl::string_view rate : {"per_second", "/s", "FLOPS", "flops"}) {
    if (absl::EndsWith(metric, rate)) return proto::HIGHER_IS_BETTER;
  }
  return proto::DIRECTION_UNSPECIFIED;
}

std::string UnitOfName(absl::string_view metric) {
  if (metric == "bytes_per_second") return "B/s";
  return absl::EndsWith(metric, "per_second") ? "1/s" : "";
}

void Collected::AddMetric(const std::string& name, double value) {
  AddMetric(name, UnitOfName(name), DirectionOfName(name), value);
}

void Collected::AddMetric(const std::string& name, const std::string& unit,
                          proto::Direction direction, double value) {
  proto::MetricSamples& samples = metrics[name];
  samples.set_metric(name);
  samples.set_unit(unit);
  samples.set_direction(direction);
  samples.add_values(value);
}

Collected& CollectedResults::Of(const std::string& name) {
  const auto [found, is_new] = by_name_.try_emplace(name);
  if (is_new) order_.push_back(name);
  return found->second;
}

void CollectedResults::MoveTo(proto::Run* run) {
  for (const std::string& name : order_) {
    Collected& collected = by_name_[name];
    proto::BenchmarkResult* result = run->add_results();
    result->mutable_key()->set_operator_name(name);
    result->set_outcome(collected.outcome);
    result->set_detail(collected.detail);
    if (collected.outcome == proto::OK) {
      AddMeasurements(collected, conditions, result);
    }
    for (const std::string& label : collected.labels) {
      result->add_labels(label);
    }
  }
  order_.clear();
  by_name_.clear();
}

bool FitsStoredTime(double time_ns, double count) {
  constexpr double kMostNs = 9e18;
  return time_ns * count <= kMostNs && count <= kMostNs;
}

}  // namespace optrail::tracker
