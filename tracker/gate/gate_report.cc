#include "tracker/gate/gate_report.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/markdown.h"
#include "base/quote.h"
#include "base/units.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

std::string ShortCommit(const proto::Commit& commit) {
  if (commit.id().empty()) return "unknown";
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

// What `show` and `bench` print of the side's runs. The ratio is of the fastest
// samples, with the machine taken out.
absl::optional<double> BaselineValue(const Row& row) {
  return row.baseline.value;
}

absl::optional<double> CandidateValue(const Row& row) {
  return row.candidate.value;
}

Cell NumberOrNone(absl::optional<double> value, std::string text) {
  return value ? Cell::Number(*value, std::move(text)) : Cell::None();
}

std::string DetectableText(const Row& row) {
  return row.minimum_detectable_effect
             ? FormatPercent(*row.minimum_detectable_effect)
             : "";
}

// What a row asks for: its action, but to measure again where that would tell.
std::string ActionText(const GateRow& row) {
  if (row.action == proto::IGNORE) return "";
  if (row.row.verdict == Verdict::kCannotTell) {
    return row.row.processes_needed.has_value() ? "RERUN" : "UNCLEAR";
  }
  return ActionName(row.action);
}

std::string ReasonText(const GateRow& row) {
  return row.exempted.empty()
             ? row.row.reason
             : absl::StrCat(row.exempted, "; ", row.row.reason);
}

// A full hash is more than people read.
std::string BaselineName(absl::string_view text) {
  constexpr absl::string_view kCommit = "commit:";
  constexpr size_t kShown = 12;
  if (!absl::StartsWith(text, kCommit)) return std::string(text);
  return std::string(text.substr(0, kCommit.size() + kShown));
}

// A column of the tables below and what it shows of a row.
enum class Field {
  kAction,
  kAgainst,
  kVerdict,
  kBenchmark,
  kMetric,
  kBaseline,
  kCandidate,
  kRatio,
  kInterval,
  kDetectable,
  kWhy,
  kMeasuredDifferently,
};

Column ColumnOf(Field field) {
  switch (field) {
    case Field::kAction:
      return {"action"};
    case Field::kAgainst:
      return {"against", Align::kLeft, "", Clip::kNever};
    case Field::kVerdict:
      return {"verdict"};
    case Field::kBenchmark:
      return {"benchmark", Align::kLeft, "", Clip::kNever};
    case Field::kMetric:
      return {"metric"};
    case Field::kBaseline:
      return {"baseline", Align::kRight};
    case Field::kCandidate:
      return {"candidate", Align::kRight};
    case Field::kRatio:
      return {"ratio", Align::kRight};
    case Field::kInterval:
      return {"interval", Align::kRight};
    case Field::kDetectable:
      return {"detectable", Align::kRight};
    case Field::kWhy:
      return {"why"};
    case Field::kMeasuredDifferently:
      return {"measured_differently"};
  }
  return {""};
}

Cell CellOf(Field field, const GateRow& gate_row) {
  const Row& row = gate_row.row;
  switch (field) {
    case Field::kAction:
      return ActionText(gate_row);
    case Field::kAgainst:
      return BaselineName(gate_row.baseline);
    case Field::kVerdict:
      return VerdictName(row.verdict);
    case Field::kBenchmark:
      return row.name;
    case Field::kMetric:
      return row.metric;
    case Field::kBaseline:
      return NumberOrNone(BaselineValue(row),
                          FormatValue(BaselineValue(row), row.unit));
    case Field::kCandidate:
      return NumberOrNone(CandidateValue(row),
                          FormatValue(CandidateValue(row), row.unit));
    case Field::kRatio:
      return NumberOrNone(
          row.ratio ? absl::make_optional(row.ratio->ratio) : absl::nullopt,
          RatioText(row));
    case Field::kInterval:
      return IntervalText(row);
    case Field::kDetectable:
      return NumberOrNone(row.minimum_detectable_effect, DetectableText(row));
    case Field::kWhy:
      return ReasonText(gate_row);
    case Field::kMeasuredDifferently:
      return row.measured_differently;
  }
  return Cell::None();
}

using Rows = std::vector<const GateRow*>;

Table BuildTable(const std::vector<Field>& fields, const Rows& rows) {
  std::vector<Column> columns;
  for (const Field field : fields) columns.push_back(ColumnOf(field));
  Table table(std::move(columns));
  for (const GateRow* row : rows) {
    std::vector<Cell> cells;
    for (const Field field : fields) cells.push_back(CellOf(field, *row));
    table.AddRow(std::move(cells));
  }
  return table;
}

// Every field that rows of this kind can fill. What a row is judged against is
// only worth a column if there are several, the metric if it is not the time.
std::vector<Field> AllFields() {
  return {Field::kVerdict,  Field::kBenchmark,  Field::kMetric,
          Field::kBaseline, Field::kCandidate,  Field::kRatio,
          Field::kInterval, Field::kDetectable, Field::kWhy};
}

void Remove(Field field, std::vector<Field>* fields) {
  fields->erase(std::remove(fields->begin(), fields->end(), field),
                fields->end());
}

bool AllAreTimes(const Rows& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const GateRow* row) {
    return row->row.metric == "time";
  });
}

int WidthOf(absl::string_view text) {
  int width = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    width = std::max(width, DisplayWidth(line));
  }
  return width;
}

// The table with the fields that fit `width`: names come before numbers that
// the ratio already tells. Names that leave no room for anything are not cut
// but come last, where the terminal wraps them.
std::string FittingTable(std::vector<Field> fields, const Rows& rows,
                         int width) {
  if (AllAreTimes(rows)) Remove(Field::kMetric, &fields);
  std::vector<Field> names_last = fields;
  Remove(Field::kBenchmark, &names_last);
  names_last.push_back(Field::kBenchmark);
  const std::vector<std::vector<Field>> droppable = {
      {Field::kDetectable},
      {Field::kBaseline, Field::kCandidate},
      {Field::kInterval}};
  for (const std::vector<Field>& group : droppable) {
    const std::string text = BuildTable(fields, rows).ToText();
    if (width == 0 || WidthOf(text) <= width) return text;
    for (const Field field : group) Remove(field, &fields);
  }
  const std::string text = BuildTable(fields, rows).ToText(width);
  if (WidthOf(text) <= width) return text;
  return BuildTable(names_last, rows).ToText(width);
}

std::vector<Field> GateFields(const GateReport& report) {
  std::vector<Field> fields = {Field::kAction};
  if (report.baselines.size() > 1) fields.push_back(Field::kAgainst);
  for (const Field field : AllFields()) fields.push_back(field);
  return fields;
}

bool IsRed(const GateRow& row) {
  return row.action == proto::FAIL && row.row.verdict != Verdict::kCannotTell;
}

bool IsNotable(const GateRow& row) {
  return row.action != proto::IGNORE || row.row.verdict != Verdict::kUnchanged;
}

Rows Pointers(const std::vector<GateRow>& rows) {
  Rows pointers;
  for (const GateRow& row : rows) pointers.push_back(&row);
  return pointers;
}

std::vector<GateRow> RowsOf(const Comparison& comparison, bool only_changes) {
  std::vector<GateRow> rows;
  for (const Row& row : comparison.rows) {
    if (only_changes && row.verdict == Verdict::kUnchanged) continue;
    rows.emplace_back();
    rows.back().row = row;
  }
  return rows;
}

Rows NotableRows(const GateReport& report) {
  Rows rows;
  for (const GateRow& row : report.rows) {
    if (IsNotable(row)) rows.push_back(&row);
  }
  return rows;
}

// Configs longer than this are shown by their differences.
constexpr size_t kLongConfig = 60;

std::string ConfigOrNone(const Side& side) {
  return side.config.empty() ? "-" : side.config;
}

std::vector<std::string> Knobs(const std::string& config) {
  return absl::StrSplit(config, ',', absl::SkipEmpty());
}

// The knobs of `a` that `b` does not have with the same value.
std::vector<std::string> KnobsOnlyIn(const std::string& a,
                                     const std::string& b) {
  const std::vector<std::string> others = Knobs(b);
  std::vector<std::string> only;
  for (std::string& knob : Knobs(a)) {
    if (std::find(others.begin(), others.end(), knob) == others.end()) {
      only.push_back(std::move(knob));
    }
  }
  return only;
}

// "config of both: ...", or one line per side; of long ones what differs.
std::vector<std::string> ConfigLines(const Side& baseline,
                                     const Side& candidate) {
  if (baseline.config == candidate.config) {
    return {absl::StrCat("config of both: ", ConfigOrNone(candidate))};
  }
  if (std::max(baseline.config.size(), candidate.config.size()) <=
          kLongConfig ||
      baseline.config.empty() || candidate.config.empty()) {
    return {absl::StrCat("baseline config:  ", ConfigOrNone(baseline)),
            absl::StrCat("candidate config: ", ConfigOrNone(candidate))};
  }
  const auto before = KnobsOnlyIn(baseline.config, candidate.config);
  const auto after = KnobsOnlyIn(candidate.config, baseline.config);
  const size_t knobs =
      std::max(Knobs(baseline.config).size(), Knobs(candidate.config).size());
  return {
      absl::StrCat("configs differ in ", std::max(before.size(), after.size()),
                   " of ", knobs, " knobs (--format=json shows all):"),
      absl::StrCat("  baseline config:  ",
                   before.empty() ? "-" : absl::StrJoin(before, ",")),
      absl::StrCat("  candidate config: ",
                   after.empty() ? "-" : absl::StrJoin(after, ","))};
}

std::string ShapeText(const Row& row) {
  return row.key.has_shape() ? tuning::CanonicalText(row.key.shape()) : "-";
}

// The evidence for a red row.
std::vector<std::string> Evidence(const GateRow& gate_row) {
  const Row& row = gate_row.row;
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(VerdictName(row.verdict), ": ", row.name, " (",
                               row.metric, ")"));
  lines.push_back(row.reason);
  if (row.ratio) {
    lines.push_back(absl::StrFormat(
        "ratio %s, interval %s, %d and %d processes that vary by %s, runs by "
        "%s",
        RatioText(row), IntervalText(row), row.ratio->baseline_processes,
        row.ratio->candidate_processes,
        FormatShortPercent(row.ratio->process_spread),
        FormatShortPercent(row.ratio->run_spread)));
  }
  if (!row.measured_differently.empty()) {
    lines.push_back(
        absl::StrCat("measured differently: ", row.measured_differently));
  }
  lines.push_back(absl::StrCat("operator ", row.key.operator_name(), ", shape ",
                               ShapeText(row)));
  const std::string machine =
      row.ratio && std::abs(row.ratio->machine - 1) >= .01
          ? absl::StrFormat(", machine x%.3f", row.ratio->machine)
          : "";
  lines.push_back(
      absl::StrCat("baseline  ", FormatValue(BaselineValue(row), row.unit),
                   machine, " at commit ", ShortCommit(row.baseline.commit)));
  lines.push_back(
      absl::StrCat("candidate ", FormatValue(CandidateValue(row), row.unit),
                   " at commit ", ShortCommit(row.candidate.commit)));
  for (std::string& line : ConfigLines(row.baseline, row.candidate)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

// JSON lists them all.
std::string RunsText(const std::vector<RunInfo>& runs) {
  if (runs.empty()) return "no runs";
  const std::string first = ShortCommit(runs.front().header.commit());
  const std::string last = ShortCommit(runs.back().header.commit());
  if (runs.size() == 1) {
    return absl::StrCat("run ", runs[0].id(), " at commit ", last);
  }
  return absl::StrCat(runs.size(), " runs at commit ", first,
                      first == last ? "" : absl::StrCat(" to ", last),
                      ", last ", runs.back().id());
}

// Whether a row that is not red needs a sentence.
bool NeedsReason(const GateRow& row) {
  if (IsRed(row)) return false;
  if (!row.exempted.empty()) return true;
  return row.row.verdict != Verdict::kUnchanged &&
         row.row.verdict != Verdict::kNew;
}

// Why rows that are not red are what they are; of many the first.
std::string Reasons(const Rows& rows) {
  constexpr int kShown = 10;
  std::string text;
  int count = 0;
  for (const GateRow* row : rows) {
    if (!NeedsReason(*row) || ++count > kShown) continue;
    absl::StrAppend(&text, "\n", EscapeForTerminal(row->row.name), "\n  ",
                    EscapeForTerminal(ReasonText(*row)), "\n");
  }
  if (count > kShown) {
    absl::StrAppend(&text, "\nand ", count - kShown,
                    " more; --format=json has every reason\n");
  }
  return text;
}

std::string HardwareText(const GateReport& report) {
  if (report.candidate_runs.empty()) return "-";
  return report.candidate_runs.back().header.hardware().id();
}

int HiddenRows(const GateReport& report) {
  int hidden = 0;
  for (const GateRow& row : report.rows) {
    hidden += !IsNotable(row);
  }
  return hidden;
}

// For programs, to whom the notes above the table are not shown.
Table ComparisonData(const Comparison& comparison, bool only_changes) {
  const std::vector<GateRow> rows = RowsOf(comparison, only_changes);
  std::vector<Field> fields = AllFields();
  fields.push_back(Field::kMeasuredDifferently);
  return BuildTable(fields, Pointers(rows));
}

}  // namespace

Table ComparisonTable(const Comparison& comparison, bool only_changes) {
  const std::vector<GateRow> rows = RowsOf(comparison, only_changes);
  return BuildTable(AllFields(), Pointers(rows));
}

std::string FormatComparison(const Comparison& comparison, bool only_changes,
                             OutputFormat format, int width) {
  if (format == OutputFormat::kJson || format == OutputFormat::kCsv) {
    return ComparisonData(comparison, only_changes).Format(format);
  }
  const Table table = ComparisonTable(comparison, only_changes);
  const std::string wide = table.Format(format);
  if (format != OutputFormat::kTable || width == 0 || WidthOf(wide) <= width) {
    return wide;
  }
  // A sentence is no column where there is little room.
  const std::vector<GateRow> rows = RowsOf(comparison, only_changes);
  std::vector<Field> fields = AllFields();
  Remove(Field::kWhy, &fields);
  return absl::StrCat(FittingTable(fields, Pointers(rows), width),
                      Reasons(Pointers(rows)));
}

std::string GateText(const GateReport& report, int width) {
  std::string text =
      absl::StrCat("gate: ", EscapeForTerminal(report.summary), "\n");
  absl::StrAppend(&text, "candidate ",
                  EscapeForTerminal(RunsText(report.candidate_runs)), " on ",
                  EscapeForTerminal(HardwareText(report)), "\n");
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    absl::StrAppend(
        &text, "baseline  ", EscapeForTerminal(BaselineName(baseline.text)),
        ": ",
        EscapeForTerminal(baseline.problem.empty() ? RunsText(baseline.runs)
                                                   : baseline.problem),
        "\n");
  }
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "note: ", EscapeForTerminal(note), "\n");
  }
  const Rows notable = NotableRows(report);
  if (!notable.empty()) {
    std::vector<Field> fields = GateFields(report);
    Remove(Field::kWhy, &fields);  // a sentence is no column
    absl::StrAppend(&text, "\n", FittingTable(fields, notable, width));
  }
  if (const int hidden = HiddenRows(report); hidden > 0) {
    absl::StrAppend(&text, "\n", hidden, " unchanged\n");
  }
  for (const GateRow& row : report.rows) {
    if (!IsRed(row)) continue;
    absl::StrAppend(
        &text, "\n",
        absl::StrJoin(Evidence(row), "\n  ",
                      [](std::string* out, const std::string& line) {
                        *out += EscapeForTerminal(line);
                      }),
        "\n");
  }
  absl::StrAppend(&text, Reasons(notable));
  if (const auto request = RemeasureRequest(report)) {
    absl::StrAppend(&text, "\nto tell, measure ", request->additional_processes,
                    " more processes on each side:\n  --benchmark_filter=",
                    EscapeForTerminal(QuoteForShell(request->filter)), "\n");
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
        &text, "Baseline ", EscapeForMarkdown(BaselineName(baseline.text)),
        ": ",
        EscapeForMarkdown(baseline.problem.empty() ? RunsText(baseline.runs)
                                                   : baseline.problem),
        ".\n");
  }
  absl::StrAppend(&text, "\n");
  const Rows notable = NotableRows(report);
  if (!notable.empty()) {
    std::vector<Field> fields = GateFields(report);
    if (AllAreTimes(notable)) Remove(Field::kMetric, &fields);
    absl::StrAppend(&text, BuildTable(fields, notable).ToMarkdown(), "\n");
  }
  if (const int hidden = HiddenRows(report); hidden > 0) {
    absl::StrAppend(&text, hidden, " unchanged.\n");
  }
  for (const GateRow& row : report.rows) {
    if (!IsRed(row)) continue;
    // A list item per row; two spaces at the end break the line.
    absl::StrAppend(
        &text, "\n- ",
        absl::StrJoin(Evidence(row), "  \n  ",
                      [](std::string* out, const std::string& line) {
                        *out += EscapeForMarkdown(line);
                      }),
        "\n");
  }
  if (!report.notes.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "Note: ", EscapeForMarkdown(note), "\n");
  }
  if (const auto request = RemeasureRequest(report)) {
    absl::StrAppend(&text, "\nTo tell, measure the benchmarks marked RERUN in ",
                    request->additional_processes,
                    " more processes on each side.\n");
  }
  return text;
}

std::string GateCsv(const GateReport& report) {
  std::vector<Field> fields = GateFields(report);
  fields.push_back(Field::kMeasuredDifferently);
  return BuildTable(fields, Pointers(report.rows)).ToCsv();
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
