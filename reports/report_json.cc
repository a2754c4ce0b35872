#include "reports/report_json.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "tuning/proto/canonical.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/session/node_calibration.h"

namespace optrail::reports {
namespace {

using tracker::SessionAnalysis;

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
Json ProofJson(const tracker::SessionAnalysis& session) {
  if (!session.header.has_proof()) return nullptr;
  const proto::Proof& proof = session.header.proof();
  // Absent are a gain without rounds and an interval of too few of them.
  const auto known = [](bool has, double value) {
    return has ? Number(value) : Json(nullptr);
  };
  return {{"metric", proof.metric()},
          {"gain", known(proof.has_gain(), proof.gain())},
          {"gain_low", known(proof.has_gain_low(), proof.gain_low())},
          {"gain_high", known(proof.has_gain_high(), proof.gain_high())},
          {"confidence", Number(proof.confidence())},
          {"rounds", proof.rounds()},
          {"claimed", proof.claimed()},
          {"text", session.proof_text}};
}

}  // namespace

Json Number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  const int digits =
      4 - static_cast<int>(std::floor(std::log10(std::fabs(value))));
  if (digits <= 0) {
    const double unit = std::pow(10.0, -digits);
    const double rounded = std::round(value / unit) * unit;
    if (std::fabs(rounded) < 1e15) return static_cast<int64_t>(rounded);
    return rounded;
  }
  if (digits > 300) return value;
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

Json Rounded(absl::optional<double> value) {
  return value ? Rounded(*value) : Json(nullptr);
}

Json AllRounded(Json json) {
  if (json.is_number_float()) return Rounded(json.get<double>());
  if (json.is_structured()) {
    for (Json& each : json) each = AllRounded(std::move(each));
  }
  return json;
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
  const proto::Ceilings& ceilings = hardware.ceilings;
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
          {"flop_per_s", ceilings.has_flop_per_s_all_threads()
                             ? Json(ceilings.flop_per_s_all_threads())
                             : Json(nullptr)},
          {"memory_bytes_per_s",
           ceilings.has_memory_read_bytes_per_s_all_threads()
               ? Json(ceilings.memory_read_bytes_per_s_all_threads())
               : Json(nullptr)}};
}

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

Json SideJson(const ProofSide& side) {
  return {{"metric", side.metric},
          {"unit", side.unit},
          {"baseline", Number(side.baseline)},
          {"chosen", Number(side.chosen)},
          {"rounds", side.rounds},
          {"ratio", Optional(side.ratio)},
          {"low", Optional(side.low)},
          {"high", Optional(side.high)},
          {"p_value", Optional(side.p_value)}};
}

Json NextCommandsJson(const AttentionRow& row) {
  return ListOf(row.commands, [](const NextCommand& command) -> Json {
    return {{"what", command.what}, {"command", command.text}};
  });
}

// The nodes of a session over several; empty for one.
Json NodesJson(const proto::Session& session) {
  return ListOf(session.nodes(), [](const proto::MeasuringNode& node) -> Json {
    const std::string lost = tuning::LostBecause(node);
    return {{"name", node.name()},
            {"host", node.host()},
            {"device_uuid", node.device_uuid()},
            {"searches", node.searches()},
            {"proves", node.proves()},
            {"lost", lost.empty() ? Json(nullptr) : Json(lost)},
            {"text", tuning::NodeText(node)}};
  });
}

Json SessionJson(const ReportData& data, const TuningSession& session) {
  const SessionAnalysis& of = session.of;
  return {
      {"id", of.id()},
      {"objectives", ObjectivesJson(of)},
      {"front_trials",
       ListOf(of.front, [](const auto& point) -> Json { return point.trial; })},
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
      {"proof", ProofJson(of)},
      {"sides", ListOf(session.sides, SideJson)},
      {"verified_speedup", Optional(of.speedup_over_default)},
      {"winners_curse", Optional(of.winners_curse)},
      {"metric", of.metric()},
      {"unit", of.unit()},
      {"best_value", Optional(of.best_value())},
      {"winner_value", Optional(of.winner_value)},
      {"best_ns", of.is_time() ? Optional(of.best_value()) : Json(nullptr)},
      {"warm_start_trials", of.warm_start_trials},
      {"trials_to_95_percent", Optional(of.trials_to_95_percent)},
      {"trials_to_99_percent", Optional(of.trials_to_99_percent)},
      {"outcomes", of.trials_by_outcome},
      {"findings", session.findings},
      {"nodes", NodesJson(of.header)},
      {"finalists", FinalistsJson(of)}};
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

}  // namespace optrail::reports
