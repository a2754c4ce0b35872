#include "tracker/import/collected.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/stats/statistics.h"
#include "tracker/import/suite_name.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

void AddSample(double time_ns, int64_t calls, proto::Measurement* measurement) {
  measurement->add_sample_ns(
      std::llround(time_ns * static_cast<double>(calls)));
}

// Samples are stored in whole nanoseconds. Where a file does not say how many
// calls a sample had, so many are assumed that rounding changes no sample by
// more than 0.005%.
int64_t CallsOf(const Collected& collected) {
  constexpr double kWantedNs = 1e4;
  constexpr double kMostCalls = 1e9;
  double shortest = kWantedNs, longest = 0;
  for (const double time_ns : collected.times_ns) {
    if (time_ns > 0) shortest = std::min(shortest, time_ns);
    longest = std::max(longest, time_ns);
  }
  const double calls =
      collected.calls_per_sample > 0
          ? static_cast<double>(collected.calls_per_sample)
          : std::min(kMostCalls, std::ceil(kWantedNs / shortest));
  return FitsStoredTime(longest, calls) ? static_cast<int64_t>(calls) : 1;
}

void AddMeasurement(Collected& collected, const proto::Conditions& conditions,
                    proto::BenchmarkResult* result) {
  const std::vector<double>& times = collected.times_ns;
  const bool is_aggregate = times.empty() && collected.aggregate_ns.has_value();
  if (times.empty() && !is_aggregate && collected.metrics.empty()) return;
  proto::Measurement* measurement = result->add_measurements();
  *measurement->mutable_conditions() = conditions;
  if (is_aggregate) {
    measurement->set_aggregate_only(true);
    measurement->set_median_ns(*collected.aggregate_ns);
    collected.labels.insert(absl::StrCat("aggregate: ", collected.aggregate));
    return;
  }
  if (!times.empty()) {
    const int64_t calls = CallsOf(collected);
    measurement->set_calls_per_sample(calls);
    for (const double time_ns : times) AddSample(time_ns, calls, measurement);
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

double NsOfUnit(absl::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "\u00b5s") return 1e3;
  if (unit == "ms") return 1e6;
  return unit == "s" ? 1e9 : 0;
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

Collected& CollectedResults::Of(const std::string& name, int64_t process) {
  const auto [found, is_new] = by_name_.try_emplace(name);
  if (is_new) order_.push_back(name);
  return found->second[process];
}

Collected& CollectedResults::First(const std::string& name) {
  return by_name_.at(name).begin()->second;
}

void CollectedResults::SkipTimesOfZero(absl::string_view detail) {
  for (auto& [name, processes] : by_name_) {
    for (auto& [process, collected] : processes) {
      if (collected.outcome == proto::OK && !collected.times_ns.empty() &&
          Median(collected.times_ns) == 0) {
        collected.outcome = proto::UNSUPPORTED;
        collected.detail = std::string(detail);
      }
    }
  }
}

absl::Status CollectedResults::CheckTimes(absl::string_view path) const {
  for (const std::string& name : order_) {
    for (const auto& [process, collected] : by_name_.at(name)) {
      if (collected.outcome != proto::OK &&
          collected.outcome != proto::OUTCOME_UNSPECIFIED) {
        continue;
      }
      // A coarse clock may read 0 now and then, which says nothing wrong.
      const absl::optional<double> time_ns =
          collected.times_ns.empty()
              ? collected.aggregate_ns
              : absl::make_optional(Median(collected.times_ns));
      if (!time_ns || *time_ns > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": benchmark '", name.substr(0, 100), "': its time is ",
          *time_ns,
          ", expected more than 0; next: leave it out, or report it "
          "as failed or skipped; a value that is no time needs a unit"));
    }
  }
  return absl::OkStatus();
}

void CollectedResults::MoveTo(proto::Run* run) {
  for (const std::string& name : order_) {
    std::map<int64_t, Collected>& processes = by_name_[name];
    proto::BenchmarkResult* result = run->add_results();
    result->mutable_key()->set_operator_name(name);
    result->set_outcome(proto::OK);
    for (const auto& [process, collected] : processes) {
      if (tuning::Severity(collected.outcome) <=
          tuning::Severity(result->outcome())) {
        continue;
      }
      result->set_outcome(collected.outcome);
      result->set_detail(collected.detail);
    }
    std::set<std::string> labels;
    for (auto& [process, collected] : processes) {
      if (result->outcome() == proto::OK) {
        AddMeasurement(collected, conditions, result);
      }
      labels.merge(collected.labels);
    }
    for (const std::string& label : labels) result->add_labels(label);
  }
  order_.clear();
  by_name_.clear();
}

void SetMachine(const std::string& model, absl::optional<int64_t> cores,
                proto::Run& run) {
  proto::Hardware& hardware = *run.mutable_hardware();
  hardware.set_model(model);
  std::string id = "imported";
  const std::string part = HardwareIdPart(model);
  if (!part.empty()) absl::StrAppend(&id, "-", part);
  constexpr int kMostCores = 1 << 20;
  if (cores.has_value() && *cores > 0 && *cores < kMostCores) {
    hardware.set_cores(static_cast<int32_t>(*cores));
    absl::StrAppend(&id, "-", *cores, "c");
  }
  hardware.set_id(id);
}

bool FitsStoredTime(double time_ns, double count) {
  constexpr double kMostNs = 9e18;
  return time_ns * count <= kMostNs && count <= kMostNs;
}

}  // namespace optrail::tracker
