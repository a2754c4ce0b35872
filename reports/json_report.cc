#include "reports/json_report.h"

#include <cmath>
#include <utility>

#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "reports/inert_json.h"
#include "reports/knob_effects.h"
#include "reports/overview.h"

namespace optrail::reports {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json Optional(const absl::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json Number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json CommitJson(const Commit& commit) {
  return {{"id", commit.id},
          {"branch", commit.branch},
          {"subject", commit.subject},
          {"first_parent_position", Optional(commit.position)},
          {"unix_ns", commit.unix_ns},
          {"dirty", commit.dirty}};
}

Json HardwareJson(const Hardware& hardware) {
  return {{"id", hardware.id},
          {"device", hardware.device},
          {"model", hardware.model},
          {"cores", Optional(hardware.cores)},
          {"memory_bytes", Optional(hardware.memory_bytes)},
          {"virtual_machine", hardware.virtual_machine},
          {"compiler", hardware.compiler},
          {"compiler_flags", hardware.compiler_flags},
          {"os", hardware.os},
          {"driver", hardware.driver},
          {"flop_per_s", Optional(hardware.flop_per_s)},
          {"memory_bytes_per_s", Optional(hardware.memory_bytes_per_s)}};
}

Json PointsJson(const SeriesView& series) {
  Json points = Json::array();
  for (size_t i = 0; i < series.points().size(); ++i) {
    const tracker::Point& point = series.points()[i];
    Json medians = Json::array();
    for (const tracker::ProcessReading& process : point.processes) {
      medians.push_back(Number(process.value));
    }
    const std::string outcome = OutcomeText(point);
    points.push_back(
        {{"commit", series.commits[i]},
         {"recorded_unix_ns", point.first_started_unix_ns},
         {"value", point.value ? Number(*point.value) : Json(nullptr)},
         {"process_medians", std::move(medians)},
         {"config", point.config.empty() ? Json(nullptr) : Json(point.config)},
         {"outcome", outcome.empty() ? "OK" : outcome},
         {"detail", outcome.empty() ? "" : point.detail}});
  }
  return points;
}

Json SeriesJson(const ReportData& data, const SeriesView& series) {
  const tracker::SeriesKey& key = series.of->key;
  Json changes = Json::array();
  for (const ChangeView& change : series.changes) {
    changes.push_back({{"point", change.point},
                       {"relative_change", change.relative_change},
                       {"low", Optional(change.relative_change_low)},
                       {"high", Optional(change.relative_change_high)},
                       {"confidence", Optional(change.confidence)},
                       {"provisional", change.provisional},
                       {"state", change.state},
                       {"for_the_worse", change.for_the_worse}});
  }
  Json epochs = Json::array();
  for (const int i : series.EpochStarts()) {
    const int epoch = series.points()[i].epoch;
    epochs.push_back({{"point", i}, {"what", series.of->epochs[epoch].change}});
  }
  return {
      {"name", series.name},
      {"operator", series.operator_name},
      {"shape", series.shape},
      {"selection", series.selection},
      {"variant", series.variant},
      {"hardware", data.hardware[series.hardware].id},
      {"branch", key.branch},
      {"metric", key.metric},
      {"unit", key.unit},
      {"lower_is_better", series.of->direction != proto::HIGHER_IS_BETTER},
      {"verdict", std::string(tracker::VerdictName(series.verdict))},
      {"verdict_detail", series.verdict_detail},
      {"ratio", Optional(series.ratio)},
      {"ratio_low", Optional(series.ratio_low)},
      {"ratio_high", Optional(series.ratio_high)},
      {"minimum_detectable_effect", Optional(series.minimum_detectable_effect)},
      {"roofline_fraction", Optional(series.roofline_fraction)},
      {"change_points", std::move(changes)},
      {"epochs", std::move(epochs)},
      {"points", PointsJson(series)}};
}

Json TrialsJson(const TuningSession& session) {
  Json trials = Json::array();
  for (const Trial& trial : session.trials) {
    trials.push_back({{"config", ConfigText(session, trial)},
                      {"outcome", trial.outcome},
                      {"time_ns", Number(trial.time_ns)},
                      {"elapsed_ns", trial.elapsed_ns},
                      {"detail", trial.detail}});
    for (size_t i = 0; i < trial.values.size(); ++i) {
      trials.back()["values"][session.objectives[i].metric] =
          Number(trial.values[i]);
    }
  }
  return trials;
}

// Of a session over schedules; null of others.
Json ScheduleJson(const absl::optional<ScheduleView>& view) {
  if (!view.has_value()) return nullptr;
  Json sketches = Json::array();
  for (const ScheduleView::Sketch& sketch : view->sketches) {
    sketches.push_back({{"sketch", sketch.text},
                        {"trials", sketch.trials},
                        {"failed", sketch.failed},
                        {"best_ns", Number(sketch.best_ns)},
                        {"median_ns", Number(sketch.median_ns)},
                        {"is_winner", sketch.of_winner}});
  }
  Json rules = Json::array();
  for (const ScheduleView::Rule& rule : view->rules) {
    rules.push_back({{"rule", rule.name},
                     {"decisions", rule.decisions},
                     {"estimated_importance", Optional(rule.importance)}});
  }
  Json decisions = Json::array();
  for (const ScheduleView::Decision& decision : view->decisions) {
    decisions.push_back(
        {{"decision", decision.name},
         {"stage", decision.stage},
         {"rule", decision.rule},
         {"value", decision.value},
         {"usual", Optional(decision.usual)},
         {"estimated_importance", Optional(decision.importance)}});
  }
  return {{"note", view->note},
          {"sketches", std::move(sketches)},
          {"rules", std::move(rules)},
          {"winner", {{"loops", view->loops}, {"decisions", decisions}}}};
}

Json SessionJson(const ReportData& data, const TuningSession& session) {
  const Convergence convergence = Converge(session);
  Json finalists = Json::array();
  for (const Finalist& finalist : session.finalists) {
    finalists.push_back(
        {{"config", finalist.config},
         {"first_time_ns", Number(finalist.first_time_ns)},
         {"verified_time_ns", Number(finalist.verified_time_ns)},
         {"outcome", finalist.outcome},
         {"is_default", finalist.is_default},
         {"is_winner", finalist.is_winner}});
  }
  Json knobs = Json::array();
  for (const KnobEffect& effect : KnobEffects(session)) {
    const Knob& knob = session.knobs[effect.knob];
    Json levels = Json::array();
    for (const LevelTimes& at : effect.levels) {
      levels.push_back({{"level", knob.levels[at.level]},
                        {"trials", at.count},
                        {"min_ns", at.min_ns},
                        {"lower_quartile_ns", at.lower_quartile_ns},
                        {"median_ns", at.median_ns},
                        {"upper_quartile_ns", at.upper_quartile_ns},
                        {"max_ns", at.max_ns}});
    }
    knobs.push_back({{"knob", knob.name},
                     {"estimated_importance", Optional(effect.importance)},
                     {"levels", std::move(levels)}});
  }
  Json outcomes = Json::object();
  for (const auto& [name, count] : convergence.outcomes) {
    outcomes[name] = count;
  }
  Json objectives = Json::array();
  for (const Objective& objective : session.objectives) {
    objectives.push_back({{"metric", objective.metric},
                          {"unit", objective.unit},
                          {"lower_is_better", objective.lower_is_better},
                          {"limit", Optional(objective.limit)}});
  }
  return {{"id", session.id},
          {"objectives", std::move(objectives)},
          {"front_trials", session.front},
          {"operator", session.operator_name},
          {"task", session.task},
          {"hardware", data.hardware[session.hardware].id},
          {"strategy", session.strategy},
          {"seed", session.seed},
          {"stop_reason", session.stop_reason},
          {"started_unix_ns", session.started_unix_ns},
          {"elapsed_ns", session.elapsed_ns},
          {"valid_config_count", Optional(session.valid_config_count)},
          {"commit", CommitJson(session.commit)},
          {"verified_speedup", Optional(VerifiedSpeedup(session))},
          {"winners_curse", Optional(WinnersCurse(session))},
          {"best_ns", Optional(convergence.best_ns)},
          {"trials_to_95_percent", Optional(convergence.trials_to_95_percent)},
          {"trials_to_99_percent", Optional(convergence.trials_to_99_percent)},
          {"outcomes", std::move(outcomes)},
          {"findings", session.findings},
          {"finalists", std::move(finalists)},
          {"knobs", std::move(knobs)},
          {"schedule", ScheduleJson(session.schedule)},
          {"trials", TrialsJson(session)}};
}

Json WorkloadJson(const ReportData& data, const WorkloadView& workload) {
  // 0 stands for a time that was not measured.
  const auto time_ns = [](double ns) { return ns > 0 ? Json(ns) : Json(); };
  const tracker::WorkloadTime& time = workload.time;
  Json layers = Json::array();
  for (const tracker::LayerTime& layer : time.layers) {
    layers.push_back({{"operator", layer.layer.operator_name()},
                      {"shape", layer.layer.shape()},
                      {"calls", layer.layer.count()},
                      {"doc", layer.layer.doc()},
                      {"part", layer.layer.part()},
                      {"way", layer.layer.way()},
                      {"counts", layer.counts},
                      {"default_ns", time_ns(layer.default_ns)},
                      {"tuned_ns", time_ns(layer.tuned_ns)},
                      {"best_ns", time_ns(layer.best_ns)},
                      {"best_backend", layer.best_backend},
                      {"limit_ns", time_ns(layer.limit_ns)},
                      {"share", Number(layer.share)}});
  }
  Json libraries = Json::array();
  for (const tracker::LibraryTime& library : time.libraries) {
    libraries.push_back({{"backend", library.backend},
                         {"library", library.library},
                         {"layers", library.layers},
                         {"time_ns", Number(library.time_ns)}});
  }
  Json parts = Json::array();
  for (const tracker::PartTime& part : time.parts) {
    Json ways = Json::array();
    for (const tracker::PartTime::Way& way : part.ways) {
      ways.push_back({{"way", way.way}, {"best_ns", Number(way.best_ns)}});
    }
    parts.push_back({{"part", part.part}, {"ways", std::move(ways)}});
  }
  return {{"name", time.name},
          {"hardware", data.hardware[workload.hardware].id},
          {"threads", time.threads},
          {"commit", CommitJson(workload.commit)},
          {"started_unix_ns", workload.started_unix_ns},
          {"layers_that_count", time.counted},
          {"layers_measured", time.measured},
          {"layers_tuned", time.tuned},
          {"default_ns", time_ns(time.default_ns)},
          {"tuned_ns", time_ns(time.tuned > 0 ? time.tuned_ns : 0)},
          {"best_ns", time_ns(time.best_ns)},
          {"limit_ns", time_ns(time.limit_ns)},
          {"libraries", std::move(libraries)},
          {"layers", std::move(layers)},
          {"parts", std::move(parts)},
          {"not_measured", time.missing}};
}

}  // namespace

std::string WriteJsonReport(const ReportData& data) {
  const Overview overview = Summarize(data);
  Json verdicts = Json::object();
  for (const auto& [verdict, count] : overview.verdicts) {
    verdicts[std::string(tracker::VerdictName(verdict))] = count;
  }
  Json commits = Json::array();
  for (const Commit& commit : data.commits) {
    commits.push_back(CommitJson(commit));
  }
  Json hardware = Json::array();
  for (const Hardware& each : data.hardware) {
    hardware.push_back(HardwareJson(each));
  }
  Json pairs = Json::array();
  for (const TunedPair& pair : overview.pairs) {
    pairs.push_back({{"default_series", pair.default_series},
                     {"tuned_series", pair.tuned_series},
                     {"default_ns", pair.default_ns},
                     {"tuned_ns", pair.tuned_ns},
                     {"speedup", pair.speedup},
                     {"same_config", pair.same_config}});
  }
  Json series = Json::array();
  for (const SeriesView& each : data.series) {
    series.push_back(SeriesJson(data, each));
  }
  Json sessions = Json::array();
  for (const TuningSession& session : data.sessions) {
    sessions.push_back(SessionJson(data, session));
  }
  Json workloads = Json::array();
  for (const WorkloadView& workload : data.workloads) {
    workloads.push_back(WorkloadJson(data, workload));
  }
  const Json report = {{"schema", 1},
                       {"title", data.title},
                       {"source", data.source},
                       {"synthetic", data.synthetic},
                       {"runs", data.run_count},
                       {"warnings", data.warnings},
                       {"verdicts", std::move(verdicts)},
                       {"commits", std::move(commits)},
                       {"hardware", std::move(hardware)},
                       {"default_vs_tuned", std::move(pairs)},
                       {"series", std::move(series)},
                       {"sessions", std::move(sessions)},
                       {"workloads", std::move(workloads)}};
  return DumpInert(report, 1) + "\n";
}

}  // namespace optrail::reports
