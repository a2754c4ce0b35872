#include "tracker/gate/gate_report.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/text/markdown.h"
#include "base/text/prose.h"
#include "base/text/quote.h"
#include "base/text/units.h"
#include "tracker/compare/row_table.h"
#include "tracker/judge/evidence.h"
#include "tracker/series/value_text.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

std::string ShortCommit(const proto::Commit& commit) {
  if (commit.id().empty()) return "unknown";
  return absl::StrCat(commit.id().substr(0, 12), commit.dirty() ? "+" : "");
}

bool IsNotable(const GateRow& row) {
  return row.action != proto::IGNORE || row.row.verdict != Verdict::kUnchanged;
}

Rows NotableRows(const GateReport& report) {
  Rows rows;
  for (const GateRow& row : report.rows) {
    if (IsNotable(row)) rows.push_back(&row);
  }
  return rows;
}

// "2.1 ms, run ID at commit X" or "2.1 ms, median of 10 runs up to commit X":
// what `show` says of the same runs.
std::string SideText(const Side& side, absl::string_view unit) {
  if (side.run_ids.empty()) return "not measured";
  const std::string value = FormatValue(side.value, unit);
  if (side.run_ids.size() > 1) {
    return absl::StrCat(value, ", median of ", side.run_ids.size(),
                        " runs up to commit ", ShortCommit(side.commit));
  }
  return absl::StrCat(value, side.value ? ", median of run " : ", run ",
                      side.run_ids.front(), " at commit ",
                      ShortCommit(side.commit));
}

// The command that shows a row without times: what failed or, of a benchmark
// that is missing, what it was. "" where no history has the run.
std::string ShowCommandFor(const GateReport& report, const Row& row) {
  const Side& side =
      row.candidate.run_ids.empty() ? row.baseline : row.candidate;
  if (!report.history_flag.has_value() || side.run_ids.empty()) return "";
  return absl::StrCat(ShowCommand(side.run_ids.back(), row.name),
                      *report.history_flag);
}

// The evidence for a red row.
std::vector<std::string> EvidenceLines(const GateReport& report,
                                       const GateRow& gate_row) {
  const Row& row = gate_row.row;
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(VerdictName(row.verdict), ": ", row.name, " (",
                               row.metric, ")"));
  lines.push_back(row.reason);
  if (row.ratio) {
    const std::string interval = IntervalText(row);
    lines.push_back(
        absl::StrCat("ratio ", RatioText(row), " (", RatioOfText(row), ")",
                     interval.empty() ? "" : ", interval ", interval));
    // The spread of `show` and the report is the range of one run's processes.
    lines.push_back(absl::StrFormat(
        "%d and %d processes; standard deviations: %s between processes%s",
        row.ratio->baseline_processes, row.ratio->candidate_processes,
        FormatShortPercent(row.ratio->process_spread),
        row.rounds > 0
            ? ""
            : absl::StrCat(", ", FormatShortPercent(row.ratio->run_spread),
                           " between runs")));
  }
  if (!gate_row.muted_until.empty()) {
    lines.push_back(absl::StrCat("muted until ", gate_row.muted_until,
                                 " for `changes` and the report, where it "
                                 "quiets changes of a number and "
                                 "no crash; it does not quiet the gate, for "
                                 "which a policy has exemptions"));
  }
  if (!gate_row.answer.empty()) lines.push_back(gate_row.answer);
  if (!row.measured_differently.empty()) {
    lines.push_back(
        absl::StrCat("measured differently: ", row.measured_differently));
  }
  // The name of a benchmark that another tool measured says all of this.
  if (row.key.has_shape()) {
    lines.push_back(absl::StrCat("operator ", row.key.operator_name(),
                                 ", shape ",
                                 tuning::CanonicalText(row.key.shape())));
  }
  lines.push_back(absl::StrCat(
      "baseline  ", SideText(row.baseline, row.unit),
      row.unused_runs == 0
          ? ""
          : absl::StrCat("; ", row.unused_runs,
                         " more of the baseline are of another level, or "
                         "disturbed")));
  lines.push_back(
      absl::StrCat("candidate ", SideText(row.candidate, row.unit)));
  if (row.ratio && std::abs(row.ratio->machine - 1) >= .01) {
    lines.push_back(
        absl::StrFormat("the machine, which the ratio leaves out, took x%.3f",
                        row.ratio->machine));
  }
  tracker::Evidence suspects;
  suspects.good = gate_row.good ? &gate_row.good->commit : &row.baseline.commit;
  suspects.bad = gate_row.bad ? &gate_row.bad->commit : &row.candidate.commit;
  CountSuspects(suspects);
  const std::string next =
      NextCommand(suspects, row.name, row.metric, report.measured_by);
  if (!next.empty()) {
    lines.push_back(absl::StrCat(
        "suspected: ", SuspectsText(suspects),
        gate_row.bad ? ", by the runs between the two sides" : ""));
    // A bisection needs both sides; one that is missing has nothing to time.
    if (row.ratio) lines.push_back(absl::StrCat("next: ", next));
  }
  if (!row.ratio) {
    const std::string command = ShowCommandFor(report, row);
    if (!command.empty()) lines.push_back(absl::StrCat("next: ", command));
  }
  // Foreign benchmarks have no config.
  if (!row.candidate.config.empty() &&
      row.baseline.config == row.candidate.config) {
    lines.push_back(absl::StrCat("config of both: ", row.candidate.config));
  }
  if (!gate_row.changed.empty()) {
    lines.push_back("changed with it, the likeliest cause first:");
  }
  for (const std::string& line : gate_row.changed) {
    lines.push_back(absl::StrCat("  ", line));
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

// The runs of each hardware and suite of the candidate.
std::map<std::pair<std::string, std::string>, std::vector<RunInfo>> GroupsOf(
    const GateReport& report) {
  std::map<std::pair<std::string, std::string>, std::vector<RunInfo>> groups;
  for (const RunInfo& run : report.candidate_runs) {
    groups[{run.header.hardware().id(), run.header.suite()}].push_back(run);
  }
  return groups;
}

// "suite smoke on amd-epyc-zen4-2c: run ID at commit 1a2b3c".
std::vector<std::string> CandidateLines(const GateReport& report) {
  std::vector<std::string> lines;
  for (const auto& [group, runs] : GroupsOf(report)) {
    lines.push_back(absl::StrCat("suite ", group.second, " on ", group.first,
                                 ": ", RunsText(runs)));
  }
  return lines;
}

// Returns the fields that tell the rows apart, then all others. The baseline of
// a row is only worth a column if there are several.
std::vector<Field> FieldsOf(const GateReport& report) {
  std::set<std::string> suites, machines, texts;
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    suites.insert(baseline.suite);
    machines.insert(baseline.hardware_id);
    texts.insert(baseline.text);
  }
  std::vector<Field> fields = {Field::kAction};
  if (suites.size() > 1) fields.push_back(Field::kSuite);
  if (machines.size() > 1) fields.push_back(Field::kHardware);
  if (texts.size() > 1) fields.push_back(Field::kAgainst);
  return AllFields(std::move(fields));
}

std::string BaselineLine(const GateReport& report,
                         const GateReport::ResolvedBaseline& baseline) {
  const bool several = GroupsOf(report).size() > 1;
  return absl::StrCat(
      BaselineName(baseline.text),
      several ? absl::StrCat(" for suite ", baseline.suite, " on ",
                             baseline.hardware_id)
              : "",
      ": ",
      baseline.problem.empty() ? RunsText(baseline.runs) : baseline.problem);
}

// The benchmarks of a quorum that are not the same everywhere.
Table MatrixTable(const GateReport& report) {
  std::set<std::string> suites, metrics, baselines;
  for (const GateReport::MatrixRow& row : report.matrix) {
    suites.insert(row.suite);
    metrics.insert(row.metric);
    baselines.insert(row.baseline);
  }
  std::vector<Column> columns;
  const auto whole = [&](std::string header) {
    columns.emplace_back(std::move(header), Align::kLeft, "", Clip::kNever);
  };
  if (suites.size() > 1) whole("suite");
  whole("benchmark");
  if (metrics.size() > 1) whole("metric");
  if (baselines.size() > 1) whole("against");
  for (const std::string& hardware : report.hardware) whole(hardware);
  whole("slower on");
  Table table(std::move(columns));
  for (const GateReport::MatrixRow& row : report.matrix) {
    bool is_notable = false;
    std::vector<Cell> cells;
    if (suites.size() > 1) cells.emplace_back(row.suite);
    cells.emplace_back(row.name);
    if (metrics.size() > 1) cells.emplace_back(row.metric);
    if (baselines.size() > 1) cells.emplace_back(row.baseline);
    for (const GateReport::MatrixCell& cell : row.cells) {
      is_notable |= cell.verdict != Verdict::kUnchanged;
      if (!cell.verdict.has_value()) {
        cells.emplace_back("not measured");
      } else if (!cell.ratio.has_value()) {
        cells.emplace_back(VerdictName(*cell.verdict));
      } else {
        cells.emplace_back(absl::StrFormat(
            "%s %.3f", std::string(VerdictName(*cell.verdict)), *cell.ratio));
      }
    }
    cells.emplace_back(absl::StrCat(row.slower_on, row.is_red ? ": FAIL" : ""));
    if (is_notable) table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace

std::string GateText(const GateReport& report, int width) {
  std::string text =
      absl::StrCat("gate: ", EscapeForTerminal(report.summary), "\n");
  if (!report.candidate.empty()) {
    absl::StrAppend(&text, "candidate ", EscapeForTerminal(report.candidate),
                    "\n");
  }
  for (const std::string& line : CandidateLines(report)) {
    absl::StrAppend(&text, "  ", EscapeForTerminal(line), "\n");
  }
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    absl::StrAppend(&text, "baseline  ",
                    EscapeForTerminal(BaselineLine(report, baseline)), "\n");
  }
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "note: ", EscapeForTerminal(note), "\n");
  }
  text = WrapProse(text, width);
  const Rows notable = NotableRows(report);
  if (!notable.empty()) {
    std::vector<Field> fields = FieldsOf(report);
    Remove(Field::kWhy, &fields);  // a sentence is no column
    absl::StrAppend(&text, "\n", FittingTable(fields, notable, width));
  }
  if (const Table matrix = MatrixTable(report); matrix.num_rows() > 0) {
    absl::StrAppend(&text, "\n", matrix.ToText(width));
  }
  if (const size_t hidden = report.rows.size() - notable.size(); hidden > 0) {
    absl::StrAppend(&text, "\n", hidden, " unchanged\n");
  }
  std::string prose;
  for (const GateRow& row : report.rows) {
    if (!IsRed(row)) continue;
    absl::StrAppend(
        &prose, "\n",
        absl::StrJoin(EvidenceLines(report, row), "\n  ",
                      [](std::string* out, const std::string& line) {
                        *out += EscapeForTerminal(line);
                      }),
        "\n");
  }
  absl::StrAppend(&prose, Reasons(notable, /*width=*/0));
  if (const auto request = RemeasureRequest(report)) {
    if (report.rounds > 0) {
      absl::StrAppend(&prose, "\nto tell, repeat it with --max_rounds=",
                      report.rounds + request->additional_processes, "\n");
    } else {
      absl::StrAppend(&prose, "\nto tell, measure ",
                      request->additional_processes,
                      " more processes on each side:\n  --benchmark_filter=",
                      EscapeForTerminal(QuoteForShell(request->filter)), "\n");
    }
  }
  return absl::StrCat(text, WrapProse(prose, width));
}

std::string GateMarkdown(const GateReport& report) {
  std::string text = absl::StrCat(
      "### Performance gate: ", SentenceForMarkdown(report.summary), "\n\n");
  // Lines of one paragraph would be merged.
  if (!report.candidate.empty()) {
    absl::StrAppend(&text, "- Candidate ", EscapeForMarkdown(report.candidate),
                    ".\n");
  }
  for (const std::string& line : CandidateLines(report)) {
    absl::StrAppend(&text, "- Candidate ", EscapeForMarkdown(line), ".\n");
  }
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    absl::StrAppend(&text, "- Baseline ",
                    EscapeForMarkdown(BaselineLine(report, baseline)), ".\n");
  }
  absl::StrAppend(&text, "\n");
  const Rows notable = NotableRows(report);
  if (!notable.empty()) {
    std::vector<Field> fields = FieldsOf(report);
    if (AllAreTimes(notable)) Remove(Field::kMetric, &fields);
    absl::StrAppend(&text, BuildTable(fields, notable).ToMarkdown(), "\n");
  }
  if (const Table matrix = MatrixTable(report); matrix.num_rows() > 0) {
    absl::StrAppend(&text, matrix.ToMarkdown(), "\n");
  }
  if (const size_t hidden = report.rows.size() - notable.size(); hidden > 0) {
    absl::StrAppend(&text, hidden, " unchanged.\n");
  }
  for (const GateRow& row : report.rows) {
    if (!IsRed(row)) continue;
    // A list item per row; two spaces at the end break the line.
    absl::StrAppend(
        &text, "\n- ",
        absl::StrJoin(EvidenceLines(report, row), "  \n  ",
                      [](std::string* out, const std::string& line) {
                        // A command is copied as a whole.
                        constexpr absl::string_view kNext = "next: ";
                        absl::string_view command = line;
                        if (absl::ConsumePrefix(&command, kNext)) {
                          absl::StrAppend(out, kNext, CodeForMarkdown(command));
                        } else {
                          *out += SentenceForMarkdown(line);
                        }
                      }),
        "\n");
  }
  if (!report.notes.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "- Note: ", SentenceForMarkdown(note), "\n");
  }
  if (const auto request = RemeasureRequest(report)) {
    absl::StrAppend(&text, "\nTo tell, measure the benchmarks marked RERUN in ",
                    request->additional_processes,
                    " more processes on each side.\n");
  }
  return text;
}

std::string FormatGate(const GateReport& report, OutputFormat format,
                       int width) {
  std::vector<Field> fields = FieldsOf(report);
  switch (format) {
    case OutputFormat::kTable:
      return GateText(report, width);
    case OutputFormat::kJson:
      return GateJson(report);
    case OutputFormat::kCsv:
      fields.push_back(Field::kMeasuredDifferently);
      return BuildTable(fields, Pointers(report.rows)).ToCsv();
    case OutputFormat::kMarkdown:
      return GateMarkdown(report);
  }
  return "";
}

}  // namespace optrail::tracker
