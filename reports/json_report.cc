#include "reports/json_report.h"

#include <utility>

#include "reports/inert_json.h"
#include "reports/knob_effects.h"
#include "reports/overview.h"
#include "reports/report_json.h"
#include "tracker/judge/evidence.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

using tracker::SessionAnalysis;

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
         {"recorded_unix_ns", point.runs->first_started_unix_ns},
         {"value", point.value ? Number(*point.value) : Json(nullptr)},
         {"process_medians", std::move(medians)},
         {"config", point.attributes->config.empty()
                        ? Json(nullptr)
                        : Json(point.attributes->config)},
         {"outcome", outcome.empty() ? "OK" : outcome},
         {"detail", outcome.empty() ? "" : point.detail}});
  }
  return points;
}

// null where no change decided the verdict.
Json EvidenceJson(const ReportData& data, const SeriesView& series) {
  if (!series.decided_by) return nullptr;
  const tracker::Change& change = *series.decided_by;
  const tracker::Evidence evidence = tracker::EvidenceOf(change);
  return {{"baseline",
           {{"value", Number(change.change.level_before)},
            {"commit", change.before == nullptr
                           ? Json(nullptr)
                           : Json(change.before->runs->commit.id())},
            {"run_ids", evidence.before.run_ids}}},
          {"newest",
           {{"value", Number(change.change.level_after)},
            {"commit", change.after().runs->commit.id()},
            {"run_ids", evidence.after.run_ids}}},
          {"suspects", tracker::SuspectsText(evidence)},
          {"narrow_with",
           tracker::NarrowingCommand(change, evidence, data.history_flag)},
          {"text", tracker::EvidenceText(change, evidence)},
          {"changed", series.changed}};
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
      {"known_points", series.known_points},
      {"needed_points", series.needed_points},
      {"main", series.main},
      {"evidence", EvidenceJson(data, series)},
      {"ratio", Optional(series.ratio)},
      {"ratio_low", Optional(series.ratio_low)},
      {"ratio_high", Optional(series.ratio_high)},
      {"minimum_detectable_effect", Optional(series.minimum_detectable_effect)},
      {"roofline_fraction", Optional(series.roofline_fraction)},
      {"change_points", std::move(changes)},
      {"epochs", std::move(epochs)},
      {"points", PointsJson(series)}};
}

// `series` and `commit` are places in the lists of the same names.
Json AttentionRowJson(const ReportData& data, const AttentionRow& row) {
  Json hardware = Json::array();
  for (const int i : row.hardware) hardware.push_back(data.hardware[i].id);
  return {{"verdict", std::string(tracker::VerdictName(row.verdict))},
          {"series", row.series},
          {"hardware", std::move(hardware)},
          {"relative_change_low", Optional(row.change_low)},
          {"relative_change_high", Optional(row.change_high)},
          {"suspects", row.range},
          {"suspect_count", Optional(row.suspect_count)},
          {"suspected_commits", row.suspects},
          {"text", row.text},
          {"commands", NextCommandsJson(row)}};
}

// Each row has a place in the list of series for each hardware, null where the
// benchmark is not measured there.
Json MatrixJson(const ReportData& data, const HardwareMatrix& matrix) {
  Json hardware = Json::array(), rows = Json::array();
  for (const int i : matrix.hardware) hardware.push_back(data.hardware[i].id);
  for (const HardwareMatrix::Row& row : matrix.rows) {
    Json series = Json::array();
    int known = HardwareMatrix::kNotThere;
    for (const int i : row.series) {
      const bool is_there = i != HardwareMatrix::kNotThere;
      series.push_back(is_there ? Json(i) : Json(nullptr));
      if (is_there) known = i;
    }
    rows.push_back({{"name", data.series[known].name},
                    {"branch", data.series[known].of->key.branch},
                    {"worst", std::string(tracker::VerdictName(row.worst))},
                    {"series", std::move(series)}});
  }
  return {{"hardware", std::move(hardware)},
          {"rows", std::move(rows)},
          {"without_news", matrix.quiet}};
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

Json WholeSessionJson(const ReportData& data, const TuningSession& session) {
  Json json = SessionJson(data, session);
  json["knobs"] = KnobsJson(session);
  json["schedule"] = ScheduleJson(session.schedule);
  json["trials"] = TrialsJson(session.of);
  return json;
}

}  // namespace

std::string WriteJsonReport(const ReportData& data) {
  const Overview overview = Summarize(data);
  Json verdicts = Json::object();
  for (const auto& [verdict, count] : overview.verdicts) {
    verdicts[std::string(tracker::VerdictName(verdict))] = count;
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
  const auto list = [&](const auto& range, const auto& to_json) {
    return ListOf(range, [&](const auto& each) { return to_json(data, each); });
  };
  const Json report = {
      {"schema", 1},
      {"title", data.title},
      {"source", data.source},
      {"synthetic", data.synthetic},
      {"runs", data.run_count},
      {"warnings", data.warnings},
      {"verdicts", std::move(verdicts)},
      {"changes",
       {{"new_for_the_worse", data.changes.alerts},
        {"all", data.changes.all},
        {"muted", data.changes.muted},
        {"answered", data.changes.answered}}},
      {"attention", list(overview.attention, AttentionRowJson)},
      {"commits", ListOf(data.commits, CommitJson)},
      {"hardware", ListOf(data.hardware, HardwareJson)},
      {"default_vs_tuned", std::move(pairs)},
      {"by_hardware", MatrixJson(data, overview.matrix)},
      {"series", list(data.series, SeriesJson)},
      {"sessions", list(data.sessions, WholeSessionJson)},
      {"workloads", list(data.workloads, WorkloadJson)}};
  return DumpInert(report, 1) + "\n";
}

}  // namespace optrail::reports
