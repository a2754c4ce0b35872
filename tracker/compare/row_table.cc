#include "tracker/compare/row_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/text/prose.h"
#include "base/text/units.h"
#include "tracker/series/value_text.h"

namespace optrail::tracker {
namespace {

// What `show` and `bench` print of the side's runs: medians. The ratio may be
// of other numbers, see RatioOfText.
Cell ValueCell(const Side& side, const JudgedRow& row) {
  return side.value
             ? Cell::Number(*side.value, FormatValue(side.value, row.row.unit))
             : Cell::None();
}

std::string ReasonText(const JudgedRow& row) {
  return row.exempted.empty()
             ? row.row.reason
             : absl::StrCat(row.exempted, "; ", row.row.reason);
}

// The interval is that of `ratio`, which a verdict about slower samples does
// not rest on.
bool HasInterval(const Row& row) {
  return row.ratio.has_value() && !row.slower.has_value();
}

// A column of a name that is never cut.
Column Whole(std::string header) {
  return {std::move(header), Align::kLeft, "", Clip::kNever};
}

struct FieldInfo {
  Column column;
  Cell (*cell)(const JudgedRow& row);
};

const FieldInfo& InfoOf(Field field) {
  static const auto* const infos = new std::map<Field, FieldInfo>{
      {Field::kAction,
       {{"action"},
        [](const JudgedRow& row) {
          return Cell(row.action == proto::IGNORE ? "" : ActionName(row));
        }}},
      {Field::kSuite,
       {Whole("suite"), [](const JudgedRow& row) { return Cell(row.suite); }}},
      {Field::kHardware,
       {Whole("hardware"),
        [](const JudgedRow& row) { return Cell(row.hardware_id); }}},
      {Field::kAgainst,
       {Whole("against"),
        [](const JudgedRow& row) { return Cell(BaselineName(row.baseline)); }}},
      {Field::kVerdict,
       {{"verdict"},
        [](const JudgedRow& row) {
          return Cell(VerdictName(row.row.verdict));
        }}},
      {Field::kBenchmark,
       {Whole("benchmark"),
        [](const JudgedRow& row) { return Cell(row.row.name); }}},
      {Field::kMetric,
       {{"metric"}, [](const JudgedRow& row) { return Cell(row.row.metric); }}},
      {Field::kBaseline,
       {{"baseline", Align::kRight},
        [](const JudgedRow& row) { return ValueCell(row.row.baseline, row); }}},
      {Field::kCandidate,
       {{"candidate", Align::kRight},
        [](const JudgedRow& row) {
          return ValueCell(row.row.candidate, row);
        }}},
      {Field::kRatio,
       {{"ratio", Align::kRight},
        [](const JudgedRow& row) {
          if (row.row.slower) {
            return Cell::Number(row.row.slower->ratio, RatioText(row.row));
          }
          return row.row.ratio
                     ? Cell::Number(row.row.ratio->ratio, RatioText(row.row))
                     : Cell::None();
        }}},
      {Field::kRatioOf,
       {{"ratio of", Align::kLeft, "ratio_of", Clip::kNever},
        [](const JudgedRow& row) { return Cell(RatioOfText(row.row)); }}},
      {Field::kInterval,
       {{"interval", Align::kRight},
        [](const JudgedRow& row) { return Cell(IntervalText(row.row)); }}},
      {Field::kDetectable,
       {{"detectable", Align::kRight},
        [](const JudgedRow& row) {
          const auto& effect = row.row.minimum_detectable_effect;
          return effect ? Cell::Number(*effect, FormatPercent(*effect))
                        : Cell::None();
        }}},
      {Field::kWhy,
       {{"why"}, [](const JudgedRow& row) { return Cell(ReasonText(row)); }}},
      {Field::kMeasuredDifferently,
       {{"measured_differently"},
        [](const JudgedRow& row) {
          return Cell(row.row.measured_differently);
        }}},
      {Field::kRatioLow,
       {{"ratio_low", Align::kRight},
        [](const JudgedRow& row) {
          return HasInterval(row.row) ? Cell::Number(row.row.ratio->low, "")
                                      : Cell::None();
        }}},
      {Field::kRatioHigh,
       {{"ratio_high", Align::kRight},
        [](const JudgedRow& row) {
          return HasInterval(row.row) ? Cell::Number(row.row.ratio->high, "")
                                      : Cell::None();
        }}},
  };
  return infos->at(field);
}

// Whether the ratio is what the two medians of the row say, too.
bool MediansFollow(const JudgedRow& row) {
  constexpr double kAsPrinted = .01;
  const Row& of = row.row;
  if (of.slower) return false;
  if (!of.ratio || !of.baseline.value || !of.candidate.value) return true;
  return std::abs(*of.candidate.value - of.ratio->ratio * *of.baseline.value) <=
         kAsPrinted * std::abs(*of.candidate.value);
}

int WidthOf(absl::string_view text) {
  int width = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    width = std::max(width, DisplayWidth(line));
  }
  return width;
}

std::vector<JudgedRow> RowsOf(const Comparison& comparison, bool only_changes) {
  std::vector<JudgedRow> rows;
  for (const Row& row : comparison.rows) {
    if (only_changes && row.verdict == Verdict::kUnchanged) continue;
    rows.emplace_back();
    rows.back().row = row;
  }
  return rows;
}

// Whether a row that is not red needs a sentence.
bool NeedsReason(const JudgedRow& row) {
  if (IsRed(row)) return false;
  if (!row.exempted.empty() || row.row.DetectsLittle()) return true;
  return row.row.verdict != Verdict::kUnchanged &&
         row.row.verdict != Verdict::kNew;
}

}  // namespace

std::string RatioText(const Row& row) {
  if (row.slower) return absl::StrFormat("%.3f", row.slower->ratio);
  return row.ratio ? absl::StrFormat("%.3f", row.ratio->ratio) : "";
}

std::string RatioOfText(const Row& row) {
  if (!row.ratio) return "";
  if (row.slower) {
    return absl::StrFormat(
        "%s; %.3f of %s", row.slower->of, row.ratio->ratio,
        row.ratio->of_fastest ? "fastest samples" : "levels");
  }
  return absl::StrCat(row.rounds > 0 ? "levels of pairs of " : "levels of ",
                      row.ratio->of_fastest ? "fastest samples " : "medians ",
                      FormatValue(row.ratio->baseline, row.unit), " -> ",
                      FormatValue(row.ratio->candidate, row.unit));
}

std::string IntervalText(const Row& row) {
  return HasInterval(row)
             ? absl::StrFormat("%.3f..%.3f", row.ratio->low, row.ratio->high)
             : "";
}

std::string BaselineName(absl::string_view text) {
  constexpr absl::string_view kCommit = "commit:";
  constexpr size_t kShown = 12;
  if (!absl::StartsWith(text, kCommit)) return std::string(text);
  return std::string(text.substr(0, kCommit.size() + kShown));
}

Table BuildTable(const std::vector<Field>& fields, const Rows& rows) {
  std::vector<Column> columns;
  for (const Field field : fields) columns.push_back(InfoOf(field).column);
  Table table(std::move(columns));
  for (const JudgedRow* row : rows) {
    std::vector<Cell> cells;
    for (const Field field : fields) cells.push_back(InfoOf(field).cell(*row));
    table.AddRow(std::move(cells));
  }
  return table;
}

void Remove(Field field, std::vector<Field>* fields) {
  fields->erase(std::remove(fields->begin(), fields->end(), field),
                fields->end());
}

bool AllAreTimes(const Rows& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const JudgedRow* row) {
    return row->row.metric == "time";
  });
}

std::string FittingTable(std::vector<Field> fields, const Rows& rows,
                         int width) {
  if (AllAreTimes(rows)) Remove(Field::kMetric, &fields);
  const bool follow =
      std::all_of(rows.begin(), rows.end(),
                  [](const JudgedRow* row) { return MediansFollow(*row); });
  if (follow) Remove(Field::kRatioOf, &fields);
  const Table table = BuildTable(fields, rows);
  if (WidthOf(table.ToText()) <= width || width == 0) return table.ToText();
  // Columns go below their row: what heads the row is its name.
  const auto name = std::find(fields.begin(), fields.end(), Field::kBenchmark);
  if (name != fields.end()) std::rotate(fields.begin(), name, name + 1);
  return BuildTable(fields, rows).ToText(width);
}

std::vector<Field> AllFields(std::vector<Field> fields) {
  for (const Field field :
       {Field::kVerdict, Field::kBenchmark, Field::kMetric, Field::kBaseline,
        Field::kCandidate, Field::kRatio, Field::kRatioOf, Field::kInterval,
        Field::kDetectable, Field::kWhy}) {
    fields.push_back(field);
  }
  return fields;
}

bool IsRed(const JudgedRow& row) {
  return row.action == proto::FAIL && row.row.verdict != Verdict::kCannotTell;
}

bool IsUnclear(const JudgedRow& row) {
  return row.action == proto::FAIL && row.row.verdict == Verdict::kCannotTell;
}

std::string ActionName(const JudgedRow& row) {
  if (!IsUnclear(row)) return proto::Action_Name(row.action);
  return row.row.processes_needed.has_value() ? "RERUN" : "UNCLEAR";
}

std::string Reasons(const Rows& rows, int width) {
  constexpr int kShown = 10;
  std::string text;
  int count = 0;
  for (const JudgedRow* row : rows) {
    if (!NeedsReason(*row) || ++count > kShown) continue;
    absl::StrAppend(&text, "\n", EscapeForTerminal(row->row.name), "\n  ",
                    EscapeForTerminal(ReasonText(*row)), "\n");
  }
  if (count > kShown) {
    absl::StrAppend(&text, "\nand ", count - kShown,
                    " more; --format=json has every reason\n");
  }
  return WrapProse(text, width);
}

Table ComparisonTable(const Comparison& comparison, bool only_changes) {
  const std::vector<JudgedRow> rows = RowsOf(comparison, only_changes);
  return BuildTable(AllFields(), Pointers(rows));
}

std::string FormatComparison(const Comparison& comparison, bool only_changes,
                             OutputFormat format, int width) {
  const std::vector<JudgedRow> kept = RowsOf(comparison, only_changes);
  const Rows rows = Pointers(kept);
  std::vector<Field> fields = AllFields();
  if (format == OutputFormat::kJson || format == OutputFormat::kCsv) {
    // For programs, to whom the notes above the table are not shown.
    fields.insert(fields.end(), {Field::kMeasuredDifferently, Field::kRatioLow,
                                 Field::kRatioHigh});
  }
  const std::string wide = BuildTable(fields, rows).Format(format);
  if (format != OutputFormat::kTable || width == 0 || WidthOf(wide) <= width) {
    return wide;
  }
  // A sentence is no column where there is little room.
  Remove(Field::kWhy, &fields);
  std::vector<Field> without_metric = fields;
  if (AllAreTimes(rows)) Remove(Field::kMetric, &without_metric);
  const std::string all = BuildTable(without_metric, rows).ToText();
  if (WidthOf(all) <= width) return absl::StrCat(all, Reasons(rows, width));
  return absl::StrCat(FittingTable(fields, rows, width), Reasons(rows, width));
}

}  // namespace optrail::tracker
