#include "tracker/judge/changes_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text/units.h"
#include "tracker/command/command_support.h"
#include "tracker/compare/verdict.h"
#include "tracker/judge/evidence.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

// Explains the change by what is between the two points, beside the text of the
// record.
std::string Explanation(const Change& change) {
  std::vector<std::string> parts;
  const Series& series = *change.series;
  const Point& after = change.after();
  if (change.kind == ChangeKind::kEpoch) {
    parts.push_back(series.epochs[after.epoch].change);
  }
  if (!change.opinion.reason.empty()) parts.push_back(change.opinion.reason);
  for (const std::string& note : change.opinion.notes) {
    parts.push_back(absl::StrCat("note: ", note));
  }
  if (change.kind == ChangeKind::kMachine) parts.push_back(change.cause);
  if (change.IsUndone()) {
    parts.push_back(
        absl::StrCat("went back at ", CommitText(change.back->runs->commit)));
  } else if (change.kind == ChangeKind::kProvisional &&
             change.opinion.state == ChangeState::kNew) {
    parts.push_back(change.AnswerText());
  }
  if (change.kind == ChangeKind::kRenamed) {
    parts.push_back(absl::StrCat("called ", change.cause, " before"));
  } else if (change.before != nullptr && change.kind != ChangeKind::kEpoch) {
    const std::string settings =
        DescribeSettingsChange(series, *change.before, after);
    if (!settings.empty()) parts.push_back(settings);
  }
  if (change.before != nullptr &&
      after.attributes->config != change.before->attributes->config) {
    parts.push_back("another config was chosen");
  }
  if (parts.empty()) parts.push_back(after.runs->commit.subject());
  return absl::StrJoin(parts, "; ");
}

// The report's words: "slower", "maybe slower", of other metrics "worse".
std::string DirectionText(const Change& change) {
  const bool is_time = change.series->key.metric == "time";
  const bool may_go =
      (change.provisional || change.kind == ChangeKind::kCreep) &&
      !change.stands_apart;
  return absl::StrCat(may_go ? "maybe " : "",
                      change.worse_by > 0 ? (is_time ? "slower" : "worse")
                                          : (is_time ? "faster" : "better"));
}

// The columns of the rows below. People get fewer: a name that is in the row
// already makes lines that no terminal holds.
std::vector<Column> ColumnsOf(bool for_people, bool with_metric) {
  std::vector<Column> columns = {{"state"},
                                 {"benchmark", Align::kLeft, "", Clip::kNever}};
  if (with_metric) columns.push_back({"metric"});
  for (Column& column : std::vector<Column>{
           {"change", Align::kRight, "relative_change"},
           {"interval", Align::kRight},
           {"verdict", Align::kLeft, "worse_by"},
           {"good", Align::kLeft, "last_commit_before", Clip::kNever},
           {"first", Align::kLeft, "first_commit_after", Clip::kNever},
           {"points since", Align::kRight, "points_since"}}) {
    columns.push_back(std::move(column));
  }
  if (for_people) {
    columns.push_back({"hardware", Align::kLeft, "", Clip::kNever});
    columns.push_back({"why"});
    return columns;
  }
  columns.push_back({"confidence", Align::kRight});
  columns.push_back({"why"});
  columns.push_back({"series", Align::kLeft, "", Clip::kNever});
  for (const char* name :
       {"alert", "provisional", "relative_change_low", "relative_change_high",
        "level_before", "level_after", "runs_before", "runs_after",
        "points_to_answer"}) {
    columns.push_back({name, Align::kRight});
  }
  for (const char* name :
       {"unit", "suspects", "narrow_with", "evidence", "changed"}) {
    columns.push_back({name});
  }
  return columns;
}

// The row of a failure has no size, and its commits are the last one that
// worked and the one after it.
std::vector<Cell> FailureRow(const Failure& failure, bool for_people,
                             bool with_metric) {
  const Series& series = *failure.series;
  const auto commit = [](const std::shared_ptr<const PointRuns>& runs) {
    return runs == nullptr ? "-" : CommitText(runs->commit);
  };
  const std::string name = DisplayName(series.key.benchmark);
  std::vector<Cell> row = {VerdictName(Verdict::kFailed), name};
  if (with_metric) row.push_back(series.key.metric);
  row.insert(row.end(),
             {Cell::None(), "", Cell::None(), commit(failure.last_worked),
              commit(failure.first_failed), Cell::Integer(0)});
  if (for_people) {
    row.insert(row.end(), {series.key.hardware_id, failure.why});
    return row;
  }
  row.insert(row.end(), {Cell::None(), failure.why, series.text,
                         Cell::Integer(1), Cell::Integer(0)});
  row.insert(row.end(), 4, Cell::None());
  row.insert(row.end(), 2, Cell::Integer(0));
  row.insert(
      row.end(),
      {Cell::None(), series.key.unit, "", "",
       absl::StrCat(name, " ", series.key.metric, ": ", failure.why), ""});
  return row;
}

std::vector<Cell> ChangeRow(const Change& change, bool for_people,
                            bool with_metric, const std::string& history_flag,
                            Explainer& explainer) {
  const ChangePoint& point = change.change;
  const SeriesKey& key = change.series->key;
  std::vector<Cell> row = {ChangeText(change), DisplayName(key.benchmark)};
  if (with_metric) row.push_back(key.metric);
  row.insert(
      row.end(),
      {Cell::Number(point.relative_change, FormatChange(point.relative_change)),
       absl::StrCat(FormatChange(point.relative_change_low), "..",
                    FormatChange(point.relative_change_high)),
       Cell::Number(change.worse_by, DirectionText(change)),
       change.before == nullptr ? "-" : CommitText(change.before->runs->commit),
       CommitText(change.after().runs->commit),
       Cell::Integer(change.PointsSince())});
  if (for_people) {
    row.insert(row.end(), {key.hardware_id, Explanation(change)});
    return row;
  }
  const Evidence evidence = EvidenceOf(change);
  row.insert(
      row.end(),
      {change.kind == ChangeKind::kEpoch
           ? Cell::None()
           : Cell::Number(point.confidence,
                          absl::StrFormat("%.3f", point.confidence)),
       Explanation(change), change.series->text,
       Cell::Integer(change.IsAlert()), Cell::Integer(change.provisional),
       Cell::Number(point.relative_change_low, ""),
       Cell::Number(point.relative_change_high, ""),
       Cell::Number(point.level_before, ""),
       Cell::Number(point.level_after, ""),
       Cell::Integer(evidence.before.run_ids.size()),
       Cell::Integer(evidence.after.run_ids.size()),
       change.points_to_answer ? Cell::Integer(*change.points_to_answer)
                               : Cell::None(),
       key.unit, SuspectsText(evidence),
       NarrowingCommand(change, evidence, history_flag),
       EvidenceText(change, evidence),
       change.IsAlert()
           ? absl::StrJoin(ChangedWith(evidence, change, explainer), "; ")
           : ""});
  return row;
}

bool IsOfAnotherMetric(const Series& series) {
  return series.key.metric != "time";
}

}  // namespace

Table ChangesTable(const std::vector<Change>& changes,
                   const std::vector<Failure>& failures, OutputFormat format,
                   const std::string& history_flag, Explainer& explainer) {
  const bool for_people = IsForPeople(format);
  bool with_metric = !for_people;
  for (const Change& change : changes) {
    with_metric |= IsOfAnotherMetric(*change.series);
  }
  for (const Failure& failure : failures) {
    with_metric |= IsOfAnotherMetric(*failure.series);
  }
  Table table(ColumnsOf(for_people, with_metric));
  for (const Change& change : changes) {
    table.AddRow(
        ChangeRow(change, for_people, with_metric, history_flag, explainer));
  }
  for (const Failure& failure : failures) {
    table.AddRow(FailureRow(failure, for_people, with_metric));
  }
  return table;
}

}  // namespace optrail::tracker
