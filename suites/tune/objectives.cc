#include "suites/tune/objectives.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "suites/tune/session_evaluator.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/meter_window.h"
#include "tuning/session/objective.h"
#include "tuning/session/parse_objective.h"

namespace optrail::suites {
namespace {

constexpr char kEdp[] = "edp";
constexpr char kPerFlop[] = "joules_per_flop";
constexpr char kPerByte[] = "joules_per_byte";
constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kNsPerHour = 3.6e12;
constexpr double kCallsOfACost = 1e6;

proto::Objective Plain(const std::string& metric, const std::string& unit) {
  proto::Objective objective;
  objective.set_metric(metric);
  objective.set_unit(unit);
  objective.set_direction(proto::LOWER_IS_BETTER);
  return objective;
}

void AddTerm(double factor, const std::vector<std::string>& metrics,
             proto::Objective* objective) {
  proto::Objective::Term* term = objective->add_terms();
  term->set_factor(factor);
  for (const std::string& metric : metrics) term->add_metrics(metric);
}

proto::Objective CostObjective(const ObjectiveSource& source) {
  // The prices belong to the name: at others another config may win.
  proto::Objective cost =
      Plain(absl::StrCat("cost_", source.price_per_kwh, "_per_kwh_",
                         source.price_per_hour, "_per_hour"),
            "per 1e6 calls");
  if (source.price_per_kwh > 0) {
    AddTerm(kCallsOfACost * source.price_per_kwh / kJoulesPerKwh,
            {tuning::kJoules}, &cost);
  }
  if (source.price_per_hour > 0) {
    AddTerm(kCallsOfACost * source.price_per_hour / kNsPerHour,
            {tuning::kTimeMetric}, &cost);
  }
  return cost;
}

// All that there are here, by the name that selects each.
std::vector<std::pair<std::string, proto::Objective>> Offered(
    const ObjectiveSource& source) {
  std::vector<std::pair<std::string, proto::Objective>> offered = {
      {tuning::kTimeMetric, tuning::TimeObjective()},
      {kMemoryMetric, Plain(kMemoryMetric, "B")},
      {kErrorMetric, Plain(kErrorMetric, "tolerances")}};
  bool has_joules = source.meters_unknown;
  if (source.meters_unknown) {
    offered.emplace_back(tuning::kJoules, Plain(tuning::kJoules, "J"));
  }
  for (const ops::Meter* meter : source.meters) {
    const ops::MeterInfo& info = meter->info();
    if (info.estimated) continue;
    proto::Objective objective = Plain(info.metric, info.unit);
    objective.set_direction(info.direction);
    offered.emplace_back(info.metric, std::move(objective));
    has_joules |= info.metric == tuning::kJoules;
  }
  if (has_joules) {
    proto::Objective edp = Plain(kEdp, "J s");
    AddTerm(1e-9, {tuning::kJoules, tuning::kTimeMetric}, &edp);
    offered.emplace_back(kEdp, std::move(edp));
    for (const char* name : {kPerFlop, kPerByte}) {
      proto::Objective objective =
          Plain(name, name == kPerFlop ? "J/FLOP" : "J/B");
      AddTerm(1, {tuning::kJoules}, &objective);
      offered.emplace_back(name, std::move(objective));
    }
  }
  const bool has_cost =
      source.price_per_kwh > 0 ? has_joules : source.price_per_hour > 0;
  if (has_cost) offered.emplace_back("cost", CostObjective(source));
  return offered;
}

// Why there is no objective of that name.
absl::Status NotOffered(absl::string_view name, const ObjectiveSource& source) {
  for (const ops::Meter* meter : source.meters) {
    if (meter->info().metric == name && meter->info().estimated) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ": it is estimated here (", meter->info().source,
          "), and a model ranks configs as their times do; expected time"));
    }
  }
  std::vector<std::string> names;
  for (const auto& [offered, objective] : Offered(source)) {
    names.push_back(offered);
  }
  const bool needs_joules = name == tuning::kJoules || name == kEdp ||
                            name == kPerFlop || name == kPerByte ||
                            (name == "cost" && source.price_per_kwh > 0);
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": ", source.device, " has no such objective here, expected ",
      absl::StrJoin(names, ", "),
      name != "cost" ? ""
      : source.price_per_kwh > 0
          ? ", and cost with --price_per_hour alone: --price_per_kwh needs an "
            "energy meter"
          : ", and cost with --price_per_kwh or --price_per_hour",
      needs_joules && !source.no_joules.empty()
          ? absl::StrCat("; energy meter: ", source.no_joules)
          : "; next: optrail doctor says why"));
}

}  // namespace

absl::StatusOr<std::vector<proto::Objective>> ParseObjectives(
    absl::string_view text, absl::Span<const double> weights,
    const ObjectiveSource& source) {
  const auto offered = Offered(source);
  std::vector<proto::Objective> objectives;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    // The name first: what there is decides which way is better.
    const absl::string_view name = part.substr(0, part.find_first_of(":<>"));
    const auto found =
        std::find_if(offered.begin(), offered.end(),
                     [&](const auto& one) { return one.first == name; });
    if (found == offered.end()) return NotOffered(name, source);
    proto::Objective objective = found->second;
    OPTRAIL_ASSIGN_OR_RETURN(
        const proto::Objective parsed,
        tuning::ParseObjective(part, objective.direction()));
    if (parsed.has_limit()) objective.set_limit(parsed.limit());
    if (parsed.has_limit_over_best()) {
      objective.set_limit_over_best(parsed.limit_over_best());
    }
    objectives.push_back(std::move(objective));
  }
  OPTRAIL_RETURN_IF_ERROR(tuning::SetWeights(weights, objectives));
  return objectives;
}

std::vector<proto::Objective> ForTask(std::vector<proto::Objective> objectives,
                                      double flop, double bytes) {
  for (proto::Objective& objective : objectives) {
    const double work = objective.metric() == kPerFlop   ? flop
                        : objective.metric() == kPerByte ? bytes
                                                         : 0;
    if (work > 0) objective.mutable_terms(0)->set_factor(1 / work);
  }
  return objectives;
}

std::string ObjectiveKey(const std::vector<proto::Objective>& objectives) {
  if (objectives.empty()) return "";
  if (objectives.size() == 1 && !objectives[0].has_limit_over_best()) {
    const std::string& metric = objectives[0].metric();
    return metric == tuning::kTimeMetric ? "" : metric;
  }
  return tuning::ObjectivesText({objectives.begin(), objectives.end()});
}

}  // namespace optrail::suites
