#include "tracker/gate_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/units.h"
#include "nlohmann/json.hpp"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::ordered_json;

std::string ShortCommit(const proto::Commit& commit) {
  if (commit.id().empty()) return "-";
  return absl::StrCat(commit.id().substr(0, 12), commit.dirty() ? "+" : "");
}

std::string RatioText(const Row& row) {
  return row.ratio ? absl::StrFormat("%.3f", row.ratio->ratio) : "";
}

std::string IntervalText(const Row& row) {
  return row.ratio
             ? absl::StrFormat("%.3f..%.3f", row.ratio->low, row.ratio->high)
             : "";
}

Cell NumberOrNone(absl::optional<double> value, std::string text) {
  return value ? Cell::Number(*value, std::move(text)) : Cell::None();
}

std::vector<Column> RowColumns() {
  return {{"verdict"},
          {"benchmark"},
          {"metric"},
          {"baseline", Align::kRight},
          {"candidate", Align::kRight},
          {"ratio", Align::kRight},
          {"interval", Align::kRight},
          {"detectable", Align::kRight},
          {"why"}};
}

std::vector<Cell> RowCells(const Row& row) {
  return {VerdictName(row.verdict),
          row.name,
          row.metric,
          NumberOrNone(row.baseline.value,
                       FormatValue(row.baseline.value, row.unit)),
          NumberOrNone(row.candidate.value,
                       FormatValue(row.candidate.value, row.unit)),
          NumberOrNone(
              row.ratio ? absl::make_optional(row.ratio->ratio) : absl::nullopt,
              RatioText(row)),
          IntervalText(row),
          NumberOrNone(row.minimum_detectable_effect,
                       row.minimum_detectable_effect
                           ? absl::StrFormat(
                                 "%.1f%%", 100 * *row.minimum_detectable_effect)
                           : ""),
          row.reason};
}

// What a row is judged against is only worth a column if there are several.
Table GateTable(const GateReport& report, bool only_notable) {
  const bool several = report.baselines.size() > 1;
  std::vector<Column> columns = {{"action"}};
  if (several) columns.push_back({"against"});
  for (Column& column : RowColumns()) columns.push_back(std::move(column));
  Table table(std::move(columns));
  for (const GateRow& row : report.rows) {
    if (only_notable && row.action == proto::IGNORE &&
        row.row.verdict == Verdict::kUnchanged) {
      continue;
    }
    std::vector<Cell> cells = {
        row.action == proto::IGNORE ? "" : ActionName(row.action)};
    if (several) cells.push_back(row.baseline);
    for (Cell& cell : RowCells(row.row)) cells.push_back(std::move(cell));
    if (!row.exempted.empty()) {
      cells.back().text = absl::StrCat(row.exempted, "; ", row.row.reason);
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

std::string ConfigText(const Side& side) {
  return side.config.empty() ? "-" : side.config;
}

std::string ShapeText(const Row& row) {
  return row.key.has_shape() ? tuning::CanonicalText(row.key.shape()) : "-";
}

// The evidence for a red row.
std::vector<std::string> Evidence(const Row& row) {
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(VerdictName(row.verdict), ": ", row.name, " (",
                               row.metric, ")"));
  if (row.ratio) {
    lines.push_back(absl::StrFormat(
        "  ratio %s, interval %s, %d and %d processes that vary by %.2g%%",
        RatioText(row), IntervalText(row), row.ratio->baseline_processes,
        row.ratio->candidate_processes, 100 * row.ratio->process_spread));
    lines.push_back(absl::StrFormat(
        "  a candidate process is above a baseline process with probability "
        "%.2f (Mann-Whitney p %.2g)",
        row.ratio->probability_above, row.ratio->mann_whitney_p));
  } else {
    lines.push_back(absl::StrCat("  ", row.reason));
  }
  lines.push_back(absl::StrCat("  operator ", row.key.operator_name(),
                               ", shape ", ShapeText(row)));
  for (const auto& [name, side] :
       {std::make_pair("baseline ", &row.baseline),
        std::make_pair("candidate", &row.candidate)}) {
    lines.push_back(absl::StrCat(
        "  ", name, " commit ", ShortCommit(side->commit), ", ",
        FormatValue(side->value, row.unit), ", config ", ConfigText(*side)));
  }
  return lines;
}

std::string RunsText(const std::vector<RunInfo>& runs) {
  std::vector<std::string> texts;
  for (const RunInfo& run : runs) {
    texts.push_back(
        absl::StrCat(run.id(), " at ", ShortCommit(run.header.commit())));
  }
  constexpr size_t kShown = 3;
  if (texts.size() > kShown) {
    const size_t hidden = texts.size() - kShown;
    texts.resize(kShown);
    texts.push_back(absl::StrCat("and ", hidden, " more"));
  }
  return absl::StrJoin(texts, ", ");
}

std::string HardwareText(const GateReport& report) {
  if (report.candidate_runs.empty()) return "-";
  return report.candidate_runs.back().header.hardware().id();
}

int HiddenRows(const GateReport& report) {
  int hidden = 0;
  for (const GateRow& row : report.rows) {
    hidden +=
        row.action == proto::IGNORE && row.row.verdict == Verdict::kUnchanged;
  }
  return hidden;
}

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

Json RowJson(const GateRow& gate_row) {
  const Row& row = gate_row.row;
  return {{"benchmark", CanonicalText(row.key)},
          {"name", row.name},
          {"operator", row.key.operator_name()},
          {"shape", row.key.has_shape() ? tuning::CanonicalText(row.key.shape())
                                        : std::string()},
          {"metric", row.metric},
          {"unit", row.unit},
          {"direction", proto::Direction_Name(row.direction)},
          {"verdict", std::string(VerdictName(row.verdict))},
          {"action", ActionName(gate_row.action)},
          {"reason", row.reason},
          {"against", gate_row.baseline},
          {"rule", gate_row.rule.matched},
          {"exempted", gate_row.exempted},
          {"renamed_from", row.renamed_from},
          {"min_effect", row.threshold.min_effect},
          {"detect_effect", row.threshold.detect_effect},
          {"minimum_detectable_effect", OrNull(row.minimum_detectable_effect)},
          {"processes_needed", OrNull(row.processes_needed)},
          {"ratio", RatioJson(row)},
          {"baseline", SideJson(row.baseline)},
          {"candidate", SideJson(row.candidate)}};
}

}  // namespace

std::string FormatValue(absl::optional<double> value, absl::string_view unit) {
  if (!value) return "-";
  if (unit == "ns") return FormatDurationNs(*value);
  return absl::StrCat(absl::StrFormat("%.4g", *value), unit.empty() ? "" : " ",
                      unit);
}

Table ComparisonTable(const Comparison& comparison, bool only_changes) {
  Table table(RowColumns());
  for (const Row& row : comparison.rows) {
    if (only_changes && row.verdict == Verdict::kUnchanged) continue;
    table.AddRow(RowCells(row));
  }
  return table;
}

std::string GateText(const GateReport& report, int width) {
  std::string text =
      absl::StrCat("gate: ", EscapeForTerminal(report.summary), "\n");
  absl::StrAppend(&text, "candidate ",
                  EscapeForTerminal(RunsText(report.candidate_runs)), " on ",
                  EscapeForTerminal(HardwareText(report)), "\n");
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    absl::StrAppend(
        &text, "baseline  ", EscapeForTerminal(baseline.text), ": ",
        EscapeForTerminal(baseline.problem.empty() ? RunsText(baseline.runs)
                                                   : baseline.problem),
        "\n");
  }
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "note: ", EscapeForTerminal(note), "\n");
  }
  const Table table = GateTable(report, /*only_notable=*/true);
  if (table.num_rows() > 0) {
    absl::StrAppend(&text, "\n", table.ToText(width));
  }
  if (const int hidden = HiddenRows(report); hidden > 0) {
    absl::StrAppend(&text, "\n", hidden, " unchanged\n");
  }
  for (const GateRow& row : report.rows) {
    if (row.action != proto::FAIL || row.row.verdict == Verdict::kCannotTell) {
      continue;
    }
    absl::StrAppend(&text, "\n");
    for (const std::string& line : Evidence(row.row)) {
      absl::StrAppend(&text, EscapeForTerminal(line), "\n");
    }
  }
  if (const auto request = RemeasureRequest(report)) {
    absl::StrAppend(&text, "\nto tell, measure again with ", request->processes,
                    " processes on each side:\n  --benchmark_filter='",
                    EscapeForTerminal(request->filter), "'\n");
  }
  return text;
}

std::string GateMarkdown(const GateReport& report) {
  std::string text = absl::StrCat(
      "### Performance gate: ", EscapeForMarkdown(report.summary), "\n\n");
  absl::StrAppend(&text, "Candidate ",
                  EscapeForMarkdown(RunsText(report.candidate_runs)), " on ",
                  EscapeForMarkdown(HardwareText(report)), ".\n");
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    absl::StrAppend(
        &text, "Baseline ", EscapeForMarkdown(baseline.text), ": ",
        EscapeForMarkdown(baseline.problem.empty() ? RunsText(baseline.runs)
                                                   : baseline.problem),
        ".\n");
  }
  absl::StrAppend(&text, "\n");
  const Table table = GateTable(report, /*only_notable=*/true);
  if (table.num_rows() > 0) absl::StrAppend(&text, table.ToMarkdown(), "\n");
  if (const int hidden = HiddenRows(report); hidden > 0) {
    absl::StrAppend(&text, hidden, " unchanged.\n");
  }
  for (const GateRow& row : report.rows) {
    if (row.action != proto::FAIL || row.row.verdict == Verdict::kCannotTell) {
      continue;
    }
    for (const std::string& line : Evidence(row.row)) {
      const bool head = line[0] != ' ';
      absl::StrAppend(&text, head ? "\n- " : "  ", EscapeForMarkdown(line),
                      "\n");
    }
  }
  if (!report.notes.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "Note: ", EscapeForMarkdown(note), "\n");
  }
  if (const auto request = RemeasureRequest(report)) {
    absl::StrAppend(&text, "\nTo tell, measure again with ", request->processes,
                    " processes on each side.\n");
  }
  return text;
}

std::string GateJson(const GateReport& report) {
  Json json = {{"exit_code", report.exit_code},
               {"summary", report.summary},
               {"run_false_alarm_rate", report.run_false_alarm_rate},
               {"red", report.CountRed()},
               {"cannot_tell", report.CountCannotTell()},
               {"candidate_runs", RunsJson(report.candidate_runs)},
               {"baselines", Json::array()},
               {"rows", Json::array()},
               {"notes", report.notes},
               {"remeasure", nullptr}};
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    json["baselines"].push_back({{"baseline", baseline.text},
                                 {"runs", RunsJson(baseline.runs)},
                                 {"problem", baseline.problem}});
  }
  for (const GateRow& row : report.rows) json["rows"].push_back(RowJson(row));
  if (const auto request = RemeasureRequest(report)) {
    json["remeasure"] = {{"benchmark_filter", request->filter},
                         {"processes", request->processes}};
  }
  // Names need not be valid UTF-8; JSON must be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string GateCsv(const GateReport& report) {
  return GateTable(report, /*only_notable=*/false).ToCsv();
}

std::string FormatGate(const GateReport& report, OutputFormat format,
                       int width) {
  switch (format) {
    case OutputFormat::kTable:
      return GateText(report, width);
    case OutputFormat::kJson:
      return GateJson(report);
    case OutputFormat::kCsv:
      return GateCsv(report);
    case OutputFormat::kMarkdown:
      return GateMarkdown(report);
  }
  return "";
}

}  // namespace optrail::tracker
