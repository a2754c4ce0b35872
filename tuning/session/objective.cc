#include "tuning/session/objective.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "base/stats/statistics.h"
#include "tuning/proto/meter_window.h"

namespace optrail::tuning {
namespace {

absl::optional<double> MedianOf(
    const google::protobuf::RepeatedPtrField<proto::MetricSamples>& metrics,
    absl::string_view metric) {
  for (const proto::MetricSamples& samples : metrics) {
    if (samples.metric() != metric || samples.values().empty()) continue;
    return Median(
        std::vector<double>(samples.values().begin(), samples.values().end()));
  }
  return absl::nullopt;
}

bool Weighted(const std::vector<proto::Objective>& objectives) {
  return std::any_of(
      objectives.begin(), objectives.end(),
      [](const auto& objective) { return objective.has_weight(); });
}

}  // namespace

proto::Objective TimeObjective() {
  proto::Objective objective;
  objective.set_metric(kTimeMetric);
  objective.set_unit("ns");
  objective.set_direction(proto::LOWER_IS_BETTER);
  return objective;
}

std::vector<proto::Objective> ObjectivesOf(const proto::Session& session) {
  if (session.objectives().empty()) return {TimeObjective()};
  return {session.objectives().begin(), session.objectives().end()};
}

std::vector<std::string> MetricsOf(
    const std::vector<proto::Objective>& objectives) {
  std::vector<std::string> metrics;
  const auto add = [&metrics](const std::string& metric) {
    if (!absl::c_linear_search(metrics, metric)) metrics.push_back(metric);
  };
  for (const proto::Objective& objective : objectives) {
    if (objective.terms().empty()) add(objective.metric());
    for (const proto::Objective::Term& term : objective.terms()) {
      for (const std::string& metric : term.metrics()) add(metric);
    }
  }
  return metrics;
}

absl::optional<double> ValueOf(const proto::Trial& trial,
                               absl::string_view metric) {
  if (metric == kTimeMetric && trial.has_time_ns()) return trial.time_ns();
  if (const auto value = MedianOf(trial.objectives(), metric)) return value;
  // What a meter read, or what was sampled beside time.
  for (const proto::Measurement& measurement : trial.measurements()) {
    if (metric == kTimeMetric) break;
    if (const auto value = ValueOf(measurement, metric)) return value;
  }
  return absl::nullopt;
}

absl::optional<double> ValueOf(const proto::Measurement& measurement,
                               absl::string_view metric) {
  if (metric == kTimeMetric && measurement.has_median_ns()) {
    return measurement.median_ns();
  }
  if (const auto metered = MeteredPerCall(measurement, metric)) return metered;
  return MedianOf(measurement.metrics(), metric);
}

absl::optional<double> ValueOf(const proto::Finalist& finalist,
                               absl::string_view metric) {
  if (metric == kTimeMetric && finalist.has_time_ns()) {
    return finalist.time_ns();
  }
  return MedianOf(finalist.objectives(), metric);
}

double CostOf(const proto::Objective& objective, double value) {
  return objective.direction() == proto::HIGHER_IS_BETTER ? 1 / value : value;
}

bool WithinLimit(const proto::Objective& objective, double value) {
  if (!objective.has_limit()) return true;
  return CostOf(objective, value) <= CostOf(objective, objective.limit());
}

bool NamesWinner(const std::vector<proto::Objective>& objectives) {
  if (objectives.size() == 1 || Weighted(objectives)) return true;
  return std::all_of(
      objectives.begin() + 1, objectives.end(), [](const auto& objective) {
        return objective.has_limit() || objective.has_limit_over_best();
      });
}

absl::optional<double> Cost(const std::vector<proto::Objective>& objectives,
                            const std::vector<absl::optional<double>>& values) {
  const bool weighted = Weighted(objectives);
  double log_cost = 0;
  for (size_t i = 0; i < (weighted ? objectives.size() : 1); ++i) {
    if (!values[i].has_value() || !(*values[i] > 0)) return absl::nullopt;
    const double weight =
        weighted && objectives[i].has_weight() ? objectives[i].weight() : 1;
    log_cost += weight * std::log(CostOf(objectives[i], *values[i]));
  }
  return std::exp(log_cost);
}

bool WithinLimits(const std::vector<proto::Objective>& objectives,
                  const std::vector<absl::optional<double>>& values) {
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (values[i].has_value() && !WithinLimit(objectives[i], *values[i])) {
      return false;
    }
  }
  return true;
}

bool TightenLimits(const std::vector<absl::optional<double>>& values,
                   std::vector<proto::Objective>& objectives) {
  bool changed = false;
  for (size_t i = 0; i < objectives.size(); ++i) {
    proto::Objective& objective = objectives[i];
    if (!objective.has_limit_over_best() || !values[i] || !(*values[i] > 0)) {
      continue;
    }
    const double limit = *values[i] * objective.limit_over_best();
    if (objective.has_limit() &&
        CostOf(objective, limit) >= CostOf(objective, objective.limit())) {
      continue;
    }
    objective.set_limit(limit);
    changed = true;
  }
  return changed;
}

double GainOf(const std::vector<proto::Objective>& objectives,
              double cost_ratio) {
  const bool higher = objectives[0].direction() == proto::HIGHER_IS_BETTER &&
                      !Weighted(objectives);
  return higher ? 1 / cost_ratio - 1 : 1 - cost_ratio;
}

}  // namespace optrail::tuning
