#include "nlohmann/json.hpp"
#include "tracker/compare/row_table.h"
#include "tracker/gate/gate_report.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const absl::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json RunsJson(const std::vector<RunInfo>& runs) {
  Json json = Json::array();
  for (const RunInfo& run : runs) {
    json.push_back({{"run_id", run.id()},
                    {"suite", run.header.suite()},
                    {"hardware", run.header.hardware().id()},
                    {"commit", run.header.commit().id()},
                    {"branch", run.header.commit().branch()},
                    {"dirty", run.header.commit().dirty()},
                    {"started_unix_ns", run.header.started_unix_ns()}});
  }
  return json;
}

Json SideJson(const Side& side) {
  return {{"commit", side.commit.id()},
          {"run_ids", side.run_ids},
          {"outcome", proto::Outcome_Name(side.outcome)},
          {"detail", side.detail},
          {"config", side.config},
          {"kernel_id", side.kernel_id},
          {"processes", side.processes},
          {"aggregate_only", side.aggregate_only},
          {"value", OrNull(side.value)}};
}

Json RatioJson(const Row& row) {
  if (!row.ratio) return nullptr;
  const Ratio& ratio = *row.ratio;
  return {{"ratio", ratio.ratio},
          {"low", ratio.low},
          {"high", ratio.high},
          {"baseline", ratio.baseline},
          {"candidate", ratio.candidate},
          {"of", ratio.of_fastest ? "fastest samples" : "medians"},
          {"machine", ratio.machine},
          {"worse_by", row.worse_by},
          {"p_greater", ratio.p_greater},
          {"p_less", ratio.p_less},
          {"adjusted_p_worse", row.adjusted_p},
          {"standard_error_log", ratio.standard_error},
          {"degrees_of_freedom", ratio.degrees_of_freedom},
          {"process_spread", ratio.process_spread},
          {"run_spread", ratio.run_spread},
          {"probability_above", ratio.probability_above},
          {"mann_whitney_p", ratio.mann_whitney_p}};
}

Json KnownCommit(const absl::optional<GateRow::Known>& known) {
  return known ? Json(known->commit.id()) : Json(nullptr);
}

Json RowJson(const GateRow& gate_row) {
  const Row& row = gate_row.row;
  return {{"benchmark", CanonicalText(row.key)},
          {"suite", gate_row.suite},
          {"hardware", gate_row.hardware_id},
          {"name", row.name},
          {"operator", row.key.operator_name()},
          {"shape", row.key.has_shape() ? tuning::CanonicalText(row.key.shape())
                                        : std::string()},
          {"metric", row.metric},
          {"unit", row.unit},
          {"direction", proto::Direction_Name(row.direction)},
          {"verdict", std::string(VerdictName(row.verdict))},
          {"action", ActionName(gate_row)},
          {"reason", row.reason},
          {"against", gate_row.baseline},
          {"rule", gate_row.rule.matched},
          {"exempted", gate_row.exempted},
          {"answer", gate_row.answer},
          {"muted_until", gate_row.muted_until},
          {"changed", gate_row.changed},
          {"suspect_good", KnownCommit(gate_row.good)},
          {"suspect_bad", KnownCommit(gate_row.bad)},
          {"renamed_from", row.renamed_from},
          {"measured_differently", row.measured_differently},
          {"min_effect", row.threshold.min_effect},
          {"detect_effect", row.threshold.detect_effect},
          {"minimum_detectable_effect", OrNull(row.minimum_detectable_effect)},
          {"worse_by_at_most", OrNull(row.worse_by_at_most)},
          {"processes_needed", OrNull(row.processes_needed)},
          {"ratio", RatioJson(row)},
          {"baseline", SideJson(row.baseline)},
          {"candidate", SideJson(row.candidate)}};
}

Json MatrixJson(const GateReport& report) {
  Json json = Json::array();
  for (const GateReport::MatrixRow& row : report.matrix) {
    Json cells = Json::object();
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const GateReport::MatrixCell& cell = row.cells[i];
      cells[report.hardware[i]] =
          cell.verdict.has_value()
              ? Json{{"verdict", std::string(VerdictName(*cell.verdict))},
                     {"ratio", OrNull(cell.ratio)}}
              : Json(nullptr);
    }
    json.push_back({{"suite", row.suite},
                    {"name", row.name},
                    {"metric", row.metric},
                    {"against", row.baseline},
                    {"slower_on", row.slower_on},
                    {"red", row.is_red},
                    {"hardware", cells}});
  }
  return json;
}

Json OpenChangesJson(const GateReport& report) {
  Json json = Json::array();
  for (const GateReport::OpenChange& change : report.open_changes) {
    json.push_back({{"series", CanonicalText(change.key)},
                    {"name", DisplayName(change.key.benchmark)},
                    {"state", change.state},
                    {"confirmed", change.is_confirmed},
                    {"is_baseline", change.is_norm},
                    {"relative_change", change.relative_change},
                    {"worse_by", change.worse_by},
                    {"last_commit_before", change.good},
                    {"first_commit_after", change.first},
                    {"points_since", change.points_since},
                    {"points_to_answer", OrNull(change.points_to_answer)},
                    {"suspects", change.suspects},
                    {"next", change.next}});
  }
  return json;
}

}  // namespace

std::string GateJson(const GateReport& report) {
  Json json = {{"exit_code", report.exit_code},
               {"reason", GateReasonName(report.reason)},
               {"summary", report.summary},
               {"candidate", report.candidate},
               {"missing", report.missing},
               {"run_false_alarm_rate", report.run_false_alarm_rate},
               {"red", report.CountRed()},
               {"cannot_tell", report.CountCannotTell()},
               {"candidate_runs", RunsJson(report.candidate_runs)},
               {"baselines", Json::array()},
               {"rows", Json::array()},
               {"matrix", MatrixJson(report)},
               {"open_changes", OpenChangesJson(report)},
               {"notes", report.notes},
               {"remeasure", nullptr}};
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    json["baselines"].push_back(
        {{"baseline", baseline.text},
         {"suite", baseline.suite},
         {"hardware", baseline.hardware_id},
         {"runs", RunsJson(baseline.runs)},
         {"problem", baseline.problem},
         {"measured_differently", baseline.measured_differently}});
  }
  for (const GateRow& row : report.rows) json["rows"].push_back(RowJson(row));
  if (const auto request = RemeasureRequest(report)) {
    json["remeasure"] = {
        {"benchmark_filter", request->filter},
        {"processes", request->processes},
        {"additional_processes", request->additional_processes}};
  }
  // Names need not be valid UTF-8; JSON must be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace optrail::tracker
