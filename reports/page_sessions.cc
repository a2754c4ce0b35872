#include "reports/page_sessions.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/knob_effects.h"
#include "reports/pick_points.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

using tracker::SessionAnalysis;

Json KnobsJson(const TuningSession& session) {
  Json out = Json::array();
  for (const KnobEffect& effect : KnobEffects(session)) {
    Json levels = Json::array();
    for (const LevelValues& at : effect.levels) {
      levels.push_back({at.level, at.count, Rounded(at.min),
                        Rounded(at.lower_quartile), Rounded(at.median),
                        Rounded(at.upper_quartile), Rounded(at.max)});
    }
    out.push_back({{"k", effect.knob},
                   {"i", Rounded(effect.importance)},
                   {"l", std::move(levels)}});
  }
  return out;
}

// Trials that are drawn: every improvement, some of every failure, and the
// extremes of the rest.
std::vector<int> PickTrials(const SessionAnalysis& session, int limit) {
  std::vector<int> keep;
  for (const tracker::Improvement& step : session.improvements) {
    keep.push_back(step.trial);
  }
  std::vector<double> values;
  std::map<proto::Outcome, int> failures;
  for (int i = 0; i < session.trial_count(); ++i) {
    const tracker::TrialPoint& trial = session.trials[i];
    values.push_back(
        trial.values[0].value_or(std::numeric_limits<double>::quiet_NaN()));
    if (trial.outcome != proto::OK && ++failures[trial.outcome] <= 6) {
      keep.push_back(i);
    }
  }
  return PickPoints(values, keep, limit);
}

// The fastest sketches, and the winner's.
Json SomeOfSchedule(const absl::optional<ScheduleView>& view) {
  constexpr size_t kMostSketches = 20;
  Json schedule = AllRounded(ScheduleJson(view));
  if (schedule.is_null()) return schedule;
  schedule["of"] = view->sketches.size();
  Json& sketches = schedule["sketches"];
  for (size_t i = sketches.size(); i-- > kMostSketches;) {
    if (!sketches[i]["is_winner"].get<bool>()) sketches.erase(i);
  }
  return schedule;
}

Json RoundedValue(const absl::optional<double>& value) {
  return Rounded(value);
}

Json TrialsJson(const TuningSession& session,
                const std::vector<std::string>& outcome_names, int limit) {
  Json trials = Json::array();
  for (const int i : PickTrials(session.of, limit)) {
    const tracker::TrialPoint& trial = session.of.trials[i];
    const auto outcome =
        std::lower_bound(outcome_names.begin(), outcome_names.end(),
                         tuning::OutcomeName(trial.outcome));
    Json row = {i, outcome - outcome_names.begin(), Rounded(trial.values[0]),
                session.levels[i], trial.elapsed_ns / 1000000};
    row.push_back(trial.detail.substr(0, 200));
    if (!session.of.is_time()) {
      row.push_back(ListOf(trial.values, RoundedValue));
    }
    trials.push_back(std::move(row));
  }
  return trials;
}

}  // namespace

Json PageSessionJson(const ReportData& data, const TuningSession& session,
                     int operator_index, int limit) {
  const SessionAnalysis& of = session.of;
  Json json = AllRounded(SessionJson(data, session));
  // A JavaScript number does not hold 64 bits.
  json["seed"] = std::to_string(of.header.seed());
  json["o"] = operator_index;
  json["h"] = session.hardware;
  json["lower"] = of.objectives[0].direction() != proto::HIGHER_IS_BETTER;
  json["command"] = of.header.command().command();  // "" of an operator
  json["winner"] = tracker::WinnerText(of);
  json["curse"] = tracker::FinalistsText(of);
  json["schedule"] = SomeOfSchedule(session.schedule);
  json["effects"] = KnobsJson(session);
  json["total"] = of.trial_count();
  json["knobs"] = ListOf(session.knobs, [](const Knob& knob) -> Json {
    return {{"n", knob.name}, {"l", knob.levels}};
  });
  std::vector<std::string> outcome_names;
  Json counts = Json::array();
  for (const auto& [name, count] : of.trials_by_outcome) {
    outcome_names.push_back(name);
    counts.push_back(count);
  }
  json["outcomes"] = outcome_names;
  json["counts"] = std::move(counts);
  json["trials"] = TrialsJson(session, outcome_names, limit);
  json["best"] = ListOf(of.improvements, [&](const auto& step) -> Json {
    return {step.trial, Rounded(of.trials[step.trial].values[0])};
  });
  // Whole, also where trials are left out.
  json["front"] = ListOf(of.front, [&](const auto& point) -> Json {
    return {point.trial, session.levels[point.trial],
            ListOf(point.values, RoundedValue)};
  });
  return json;
}

Json PageWorkloadJson(const ReportData& data, const WorkloadView& workload) {
  Json json = AllRounded(WorkloadJson(data, workload));
  json["h"] = workload.hardware;
  return json;
}

}  // namespace optrail::reports
