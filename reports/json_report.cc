#include "reports/json_report.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "reports/inert_json.h"
#include "reports/knob_effects.h"
#include "reports/overview.h"
#include "tracker/judge/evidence.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/stop_reason.h"

namespace optrail::reports {
namespace {

using Json = nlohmann::ordered_json;
using tracker::SessionAnalysis;

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

// null where no change decided the verdict.
Json EvidenceJson(const SeriesView& series) {
  if (!series.decided_by) return nullptr;
  const tracker::Change& change = *series.decided_by;
  const tracker::Evidence evidence = tracker::EvidenceOf(change);
  return {
      {"baseline",
       {{"value", Number(change.change.level_before)},
        {"commit", change.before == nullptr ? Json(nullptr)
                                            : Json(change.before->commit.id())},
        {"run_ids", evidence.before.run_ids}}},
      {"newest",
       {{"value", Number(change.change.level_after)},
        {"commit", change.after().commit.id()},
        {"run_ids", evidence.after.run_ids}}},
      {"suspects", tracker::SuspectsText(evidence)},
      {"narrow_with", tracker::NarrowingCommand(change, evidence)},
      {"text", tracker::EvidenceText(change, evidence)}};
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
      {"main", series.main},
      {"evidence", EvidenceJson(series)},
      {"ratio", Optional(series.ratio)},
      {"ratio_low", Optional(series.ratio_low)},
      {"ratio_high", Optional(series.ratio_high)},
      {"minimum_detectable_effect", Optional(series.minimum_detectable_effect)},
      {"roofline_fraction", Optional(series.roofline_fraction)},
      {"change_points", std::move(changes)},
      {"epochs", std::move(epochs)},
      {"points", PointsJson(series)}};
}

Json TrialsJson(const SessionAnalysis& session) {
  Json trials = Json::array();
  for (const tracker::TrialPoint& trial : session.trials) {
    Json row = {{"config", trial.config_text},
                {"outcome", std::string(tuning::OutcomeName(trial.outcome))}};
    if (session.is_time()) {
      row["time_ns"] = Optional(trial.values[0]);
    } else {
      row["time_ns"] = nullptr;
      for (size_t k = 0; k < session.objectives.size(); ++k) {
        row["values"][session.objectives[k].metric()] =
            Optional(trial.values[k]);
      }
    }
    row["elapsed_ns"] = trial.elapsed_ns;
    row["detail"] = trial.detail;
    trials.push_back(std::move(row));
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

Json FinalistsJson(const SessionAnalysis& session) {
  Json finalists = Json::array();
  for (const tracker::FinalistPoint& finalist : session.finalists) {
    const bool is_time = session.is_time();
    finalists.push_back(
        {{"config", finalist.config_text},
         {"first_time_ns",
          is_time ? Optional(finalist.first_value) : Json(nullptr)},
         {"verified_time_ns",
          is_time ? Optional(finalist.verified_value) : Json(nullptr)},
         {"first_value", Optional(finalist.first_value)},
         {"verified_value", Optional(finalist.verified_value)},
         {"outcome", std::string(tuning::OutcomeName(finalist.outcome))},
         {"is_default", finalist.is_default},
         {"is_winner", finalist.is_winner}});
  }
  return finalists;
}

// Levels are told in ns of time, or in the unit of the first metric.
Json KnobsJson(const TuningSession& session) {
  const std::string unit = session.of.is_time() ? "_ns" : "";
  Json knobs = Json::array();
  for (const KnobEffect& effect : KnobEffects(session)) {
    const Knob& knob = session.knobs[effect.knob];
    Json levels = Json::array();
    for (const LevelValues& at : effect.levels) {
      levels.push_back({{"level", knob.levels[at.level]},
                        {"trials", at.count},
                        {"min" + unit, at.min},
                        {"lower_quartile" + unit, at.lower_quartile},
                        {"median" + unit, at.median},
                        {"upper_quartile" + unit, at.upper_quartile},
                        {"max" + unit, at.max}});
    }
    knobs.push_back({{"knob", knob.name},
                     {"estimated_importance", Optional(effect.importance)},
                     {"levels", std::move(levels)}});
  }
  return knobs;
}

// Empty where time alone was optimised.
Json ObjectivesJson(const SessionAnalysis& session) {
  Json objectives = Json::array();
  if (session.is_time()) return objectives;
  for (const proto::Objective& objective : session.objectives) {
    objectives.push_back(
        {{"metric", objective.metric()},
         {"unit", objective.unit()},
         {"lower_is_better", objective.direction() != proto::HIGHER_IS_BETTER},
         {"limit",
          objective.has_limit() ? Json(objective.limit()) : Json(nullptr)}});
  }
  return objectives;
}

// null of a session without one.
Json ProofJson(const proto::Session& session) {
  if (!session.has_proof()) return nullptr;
  const proto::Proof& proof = session.proof();
  return {{"metric", proof.metric()},
          {"gain", Number(proof.gain())},
          {"gain_low", Number(proof.gain_low())},
          {"gain_high", Number(proof.gain_high())},
          {"confidence", Number(proof.confidence())},
          {"rounds", proof.rounds()},
          {"claimed", proof.claimed()},
          {"text", tuning::ProofText(proof)}};
}

Json SessionJson(const ReportData& data, const TuningSession& session) {
  const SessionAnalysis& of = session.of;
  return {{"id", of.id()},
          {"objectives", ObjectivesJson(of)},
          {"front_trials", of.front},
          {"operator", of.header.task().operator_name()},
          {"task", of.task_text},
          {"hardware", data.hardware[session.hardware].id},
          {"strategy", of.header.strategy()},
          {"seed", of.header.seed()},
          {"stop_reason",
           std::string(tuning::StopReasonName(of.header.stop_reason()))},
          {"started_unix_ns", of.header.started_unix_ns()},
          {"elapsed_ns", of.header.elapsed_ns()},
          {"valid_config_count", of.header.has_valid_config_count()
                                     ? Json(of.header.valid_config_count())
                                     : Json(nullptr)},
          {"commit", CommitJson(session.commit)},
          {"winner", of.header.has_winner()
                         ? Json(tuning::CanonicalText(of.header.winner()))
                         : Json(nullptr)},
          {"proof", ProofJson(of.header)},
          {"verified_speedup", Optional(of.speedup_over_default)},
          {"winners_curse", Optional(of.winners_curse)},
          {"metric", of.metric()},
          {"unit", of.unit()},
          {"best_value", Optional(of.best_value())},
          {"best_ns", of.is_time() ? Optional(of.best_value()) : Json(nullptr)},
          {"warm_start_trials", of.warm_start_trials},
          {"trials_to_95_percent", Optional(of.trials_to_95_percent)},
          {"trials_to_99_percent", Optional(of.trials_to_99_percent)},
          {"outcomes", of.trials_by_outcome},
          {"findings", session.findings},
          {"finalists", FinalistsJson(of)},
          {"knobs", KnobsJson(session)},
          {"schedule", ScheduleJson(session.schedule)},
          {"trials", TrialsJson(of)}};
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
