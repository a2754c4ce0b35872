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
#include "tuning/proto/stop_reason.h"

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

// What a session over schedules tried; null of others.
Json ScheduleJson(const absl::optional<ScheduleView>& view) {
  if (!view.has_value()) return nullptr;
  constexpr size_t kMostSketches = 20;
  Json sketches = Json::array();
  for (const ScheduleView::Sketch& sketch : view->sketches) {
    if (sketches.size() >= kMostSketches && !sketch.of_winner) continue;
    sketches.push_back({sketch.text, sketch.trials, sketch.failed,
                        Rounded(sketch.best_ns), Rounded(sketch.median_ns),
                        sketch.of_winner ? 1 : 0});
  }
  Json rules = Json::array();
  for (const ScheduleView::Rule& rule : view->rules) {
    rules.push_back({rule.name, rule.decisions, Rounded(rule.importance)});
  }
  Json decisions = Json::array();
  for (const ScheduleView::Decision& decision : view->decisions) {
    decisions.push_back({decision.name, decision.stage, decision.rule,
                         decision.value,
                         decision.usual ? Json(*decision.usual) : Json(),
                         Rounded(decision.importance)});
  }
  return {{"note", view->note},
          {"of", view->sketches.size()},
          {"sketches", std::move(sketches)},
          {"rules", std::move(rules)},
          {"decisions", std::move(decisions)},
          {"loops", view->loops}};
}

Json ValuesJson(const tracker::Values& values) {
  Json out = Json::array();
  for (const absl::optional<double>& value : values) {
    out.push_back(Rounded(value));
  }
  return out;
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
    if (!session.of.is_time()) row.push_back(ValuesJson(trial.values));
    trials.push_back(std::move(row));
  }
  return trials;
}

Json FinalistsJson(const SessionAnalysis& session) {
  Json finalists = Json::array();
  for (const tracker::FinalistPoint& finalist : session.finalists) {
    finalists.push_back({finalist.config_text, Rounded(finalist.first_value),
                         Rounded(finalist.verified_value),
                         std::string(tuning::OutcomeName(finalist.outcome)),
                         finalist.is_default ? 1 : 0,
                         finalist.is_winner ? 1 : 0});
  }
  return finalists;
}

// Empty where time alone was optimised.
Json ObjectivesJson(const SessionAnalysis& session) {
  Json objectives = Json::array();
  if (session.is_time()) return objectives;
  for (const proto::Objective& objective : session.objectives) {
    objectives.push_back(
        {{"metric", objective.metric()},
         {"unit", objective.unit()},
         {"lower", objective.direction() != proto::HIGHER_IS_BETTER},
         {"limit",
          objective.has_limit() ? Rounded(objective.limit()) : Json(nullptr)}});
  }
  return objectives;
}

template <typename T>
Json Count(const absl::optional<T>& count) {
  return count ? Json(*count) : Json(nullptr);
}

}  // namespace

Json PageSessionJson(const TuningSession& session, int operator_index,
                     int limit) {
  const SessionAnalysis& of = session.of;
  Json knobs = Json::array();
  for (const Knob& knob : session.knobs) {
    knobs.push_back({{"n", knob.name}, {"l", knob.levels}});
  }
  std::vector<std::string> outcome_names;
  Json counts = Json::array();
  for (const auto& [name, count] : of.trials_by_outcome) {
    outcome_names.push_back(name);
    counts.push_back(count);
  }
  Json best = Json::array();
  for (const tracker::Improvement& step : of.improvements) {
    best.push_back({step.trial, Rounded(of.trials[step.trial].values[0])});
  }
  // Whole, also where trials are left out.
  Json front = Json::array();
  for (const int i : of.front) {
    front.push_back({i, session.levels[i], ValuesJson(of.trials[i].values)});
  }
  return {
      {"id", of.id()},
      {"objectives", ObjectivesJson(of)},
      {"metric", of.metric()},
      {"unit", of.unit()},
      {"lower", of.objectives[0].direction() != proto::HIGHER_IS_BETTER},
      {"front", std::move(front)},
      {"o", operator_index},
      {"task", of.task_text},
      {"h", session.hardware},
      {"strategy", of.header.strategy()},
      // A JavaScript number does not hold 64 bits.
      {"seed", std::to_string(of.header.seed())},
      {"stop", std::string(tuning::StopReasonName(of.header.stop_reason()))},
      {"start", of.header.started_unix_ns() / 1000000000},
      {"elapsed", of.header.elapsed_ns() / 1000000},
      {"valid", of.header.has_valid_config_count()
                    ? Json(of.header.valid_config_count())
                    : Json(nullptr)},
      {"commit", PageCommitJson(session.commit)},
      {"knobs", std::move(knobs)},
      {"effects", KnobsJson(session)},
      {"total", of.trial_count()},
      {"warm", of.warm_start_trials},
      {"trials", TrialsJson(session, outcome_names, limit)},
      {"outcomes", outcome_names},
      {"counts", std::move(counts)},
      {"best", std::move(best)},
      {"t95", Count(of.trials_to_95_percent)},
      {"t99", Count(of.trials_to_99_percent)},
      {"proven", of.header.has_proof()},
      {"speedup", Rounded(of.speedup_over_default)},
      {"winner", tracker::WinnerText(of)},
      {"curse", tracker::FinalistsText(of)},
      {"finalists", FinalistsJson(of)},
      {"findings", session.findings},
      {"schedule", ScheduleJson(session.schedule)},
  };
}

Json PageWorkloadJson(const WorkloadView& workload) {
  const tracker::WorkloadTime& time = workload.time;
  Json layers = Json::array();
  for (const tracker::LayerTime& layer : time.layers) {
    layers.push_back({layer.layer.operator_name(), layer.layer.shape(),
                      layer.layer.count(), Rounded(layer.default_ns),
                      Rounded(layer.tuned_ns), Rounded(layer.best_ns),
                      layer.best_backend, Rounded(layer.share),
                      layer.counts ? "" : layer.layer.part(),
                      layer.counts ? "" : layer.layer.way(),
                      layer.layer.doc().substr(0, 200)});
  }
  Json libraries = Json::array();
  for (const tracker::LibraryTime& library : time.libraries) {
    libraries.push_back(
        {library.library, library.layers, Rounded(library.time_ns)});
  }
  Json parts = Json::array();
  for (const tracker::PartTime& part : time.parts) {
    Json ways = Json::array();
    for (const tracker::PartTime::Way& way : part.ways) {
      ways.push_back({way.way, Rounded(way.best_ns)});
    }
    parts.push_back({part.part, std::move(ways)});
  }
  return {{"n", time.name},
          {"h", workload.hardware},
          {"threads", time.threads},
          {"start", workload.started_unix_ns / 1000000000},
          {"commit", PageCommitJson(workload.commit)},
          {"counted", time.counted},
          {"measured", time.measured},
          {"tuned", time.tuned},
          {"total",
           {Rounded(time.default_ns), Rounded(time.tuned_ns),
            Rounded(time.best_ns), Rounded(time.limit_ns)}},
          {"libraries", std::move(libraries)},
          {"layers", std::move(layers)},
          {"parts", std::move(parts)},
          {"missing", time.missing}};
}

}  // namespace optrail::reports
