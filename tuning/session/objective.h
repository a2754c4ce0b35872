#ifndef OPTRAIL_TUNING_SESSION_OBJECTIVE_H_
#define OPTRAIL_TUNING_SESSION_OBJECTIVE_H_

// What a session optimises, and the one place where its value is read from what
// is stored: the objective `time` is time_ns (or median_ns of a measurement),
// all others stand under their names. Nothing is stored twice.
//
//   const std::vector<proto::Objective> objectives = ObjectivesOf(session);
//   if (const auto ns = ValueOf(trial, kTimeMetric)) ...
//   if (const auto cost = Cost(objectives, ValuesOf(objectives, trial))) ...
//
// An objective may be computed from metrics ("edp": joules times time); its
// value is derived when it is asked for, from what was read.
//
// A value that is absent is unknown; that is never a failure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

inline constexpr char kTimeMetric[] = "time";

// Time in ns, lower is better.
proto::Objective TimeObjective();

// Those of the session; time alone if it names none.
std::vector<proto::Objective> ObjectivesOf(const proto::Session& session);

// The metrics that have to be read for them, each once, in order.
std::vector<std::string> MetricsOf(
    const std::vector<proto::Objective>& objectives);

absl::optional<double> ValueOf(const proto::Trial& trial,
                               absl::string_view metric);
// Of one process: a median of samples, a window's value per call.
absl::optional<double> ValueOf(const proto::Measurement& measurement,
                               absl::string_view metric);
// Verified.
absl::optional<double> ValueOf(const proto::Finalist& finalist,
                               absl::string_view metric);

// Computes an objective: its metric, or the sum of its terms.
template <typename Stored>
absl::optional<double> ValueOf(const Stored& stored,
                               const proto::Objective& objective) {
  if (objective.terms().empty()) return ValueOf(stored, objective.metric());
  double sum = 0;
  for (const proto::Objective::Term& term : objective.terms()) {
    double product = term.factor();
    for (const std::string& metric : term.metrics()) {
      const absl::optional<double> value = ValueOf(stored, metric);
      if (!value.has_value()) return absl::nullopt;
      product *= *value;
    }
    sum += product;
  }
  return sum;
}

// To be minimised: the value, or one over it.
double CostOf(const proto::Objective& objective, double value);
bool WithinLimit(const proto::Objective& objective, double value);

// Several objectives have a winner if weights make one number of them or limits
// bound all but the first; else there is a front and no winner.
bool NamesWinner(const std::vector<proto::Objective>& objectives);

// That number, to be minimised: the weighted product of the costs, or the cost
// of the first. nullopt if a value is unknown or not positive.
absl::optional<double> Cost(const std::vector<proto::Objective>& objectives,
                            const std::vector<absl::optional<double>>& values);

// Whether every known value is within its limit.
bool WithinLimits(const std::vector<proto::Objective>& objectives,
                  const std::vector<absl::optional<double>>& values);

// Sets the limits that depend on the best value, where `values` are better than
// those that set them; true if one of them changed.
bool TightenLimits(const std::vector<absl::optional<double>>& values,
                   std::vector<proto::Objective>& objectives);

// One value per objective.
template <typename Stored>
std::vector<absl::optional<double>> ValuesOf(
    const std::vector<proto::Objective>& objectives, const Stored& stored) {
  std::vector<absl::optional<double>> values;
  for (const proto::Objective& objective : objectives) {
    values.push_back(ValueOf(stored, objective));
  }
  return values;
}

// How much better `cost_ratio`, a cost over the default's, is: the fraction of
// time saved, or of throughput gained. Positive is better.
double GainOf(const std::vector<proto::Objective>& objectives,
              double cost_ratio);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_OBJECTIVE_H_
