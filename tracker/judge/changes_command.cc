#include "tracker/judge/changes_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "base/units.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/judge/judge.h"
#include "tracker/notify/alert.h"
#include "tracker/series/commit.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

// What happened between the two points, beside the text of the record.
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
  if (change.kind == ChangeKind::kRenamed) {
    parts.push_back(absl::StrCat("called ", change.cause, " before"));
  } else if (change.before != nullptr && change.kind != ChangeKind::kEpoch) {
    const std::string settings =
        DescribeSettingsChange(series, *change.before, after);
    if (!settings.empty()) parts.push_back(settings);
  }
  if (change.before != nullptr && after.config != change.before->config) {
    parts.push_back("another config was chosen");
  }
  if (parts.empty()) parts.push_back(after.commit.subject());
  return absl::StrJoin(parts, "; ");
}

bool IsNoChangeOfTheCode(const Change& change) {
  return change.kind == ChangeKind::kEpoch ||
         change.kind == ChangeKind::kMachine;
}

// What wants an answer first, then by how much worse it got.
void SortByUrgency(std::vector<Change>& changes) {
  const auto rank = [](const Change& change) {
    return std::make_tuple(IsNoChangeOfTheCode(change), change.opinion.state,
                           change.kind == ChangeKind::kProvisional,
                           change.undone, -change.worse_by);
  };
  std::stable_sort(
      changes.begin(), changes.end(),
      [&](const Change& a, const Change& b) { return rank(a) < rank(b); });
}

Table ChangesTable(const std::vector<Change>& changes) {
  Table table({{"state"},
               {"benchmark", Align::kLeft, "", Clip::kNever},
               {"change", Align::kRight, "relative_change"},
               {"interval", Align::kRight},
               {"worse", Align::kRight, "worse_by"},
               {"good", Align::kLeft, "last_commit_before", Clip::kNever},
               {"first", Align::kLeft, "first_commit_after", Clip::kNever},
               {"points", Align::kRight, "points_since"},
               {"confidence", Align::kRight},
               {"why"},
               {"series", Align::kLeft, "", Clip::kNever}});
  for (const Change& change : changes) {
    const ChangePoint& point = change.change;
    table.AddRow(
        {ChangeText(change), DisplayName(change.series->key.benchmark),
         Cell::Number(point.relative_change,
                      FormatChange(point.relative_change)),
         absl::StrCat(FormatChange(point.relative_change_low), "..",
                      FormatChange(point.relative_change_high)),
         Cell::Number(change.worse_by, change.worse_by > 0 ? "yes" : "no"),
         change.before == nullptr ? "-" : CommitText(change.before->commit),
         CommitText(change.after().commit),
         Cell::Integer(static_cast<int64_t>(change.series->points.size()) -
                       point.index),
         change.kind == ChangeKind::kEpoch
             ? Cell::None()
             : Cell::Number(point.confidence,
                            absl::StrFormat("%.3f", point.confidence)),
         Explanation(change), change.series->text});
  }
  return table;
}

}  // namespace

absl::StatusOr<int> RunChanges(const ChangesCommand& options,
                               std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.min_effect >= 0, "min_effect",
                                    options.min_effect, "at least 0"));
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(const auto metric,
                           CompilePattern("metric", options.metric));
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  SeriesQuery query;
  query.runs.suite = options.suite;
  query.runs.hardware_id = options.hardware_id;
  query.runs.branch = options.branch;
  query.wanted = [&](const SeriesKey& key) {
    return MatchesPart(*filter, DisplayName(key.benchmark)) &&
           MatchesWhole(*metric, key.metric);
  };
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedSeries loaded,
                           LoadSeries(history, query));
  const std::vector<Series>& series = loaded.series;
  WarnOfBadFiles(loaded.bad_files);
  PrintNotices(loaded.notices);
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTriage triage, history.LoadTriage());
  WarnOfBadFiles(triage.bad_files);
  const TriageBook book(triage.records, NowUnixNs(options.common));
  JudgeOptions judge;
  judge.min_effect = options.min_effect;
  std::vector<Change> changes;
  int not_judged = 0;
  for (Judgement& judgement : JudgeAll(series, book, judge)) {
    not_judged += judgement.standing == Verdict::kNoBaseline ||
                  judgement.standing == Verdict::kCannotTell;
    for (Change& change : judgement.changes) {
      if (change.kind == ChangeKind::kReturn ||
          std::abs(change.worse_by) < options.min_effect ||
          (options.only_new && (IsNoChangeOfTheCode(change) ||
                                change.opinion.state != ChangeState::kNew))) {
        continue;
      }
      changes.push_back(std::move(change));
    }
  }
  SortByUrgency(changes);
  const auto alerts =
      std::count_if(changes.begin(), changes.end(),
                    [](const Change& change) { return change.IsAlert(); });
  out << ChangesTable(changes).Format(options.common.format, TerminalWidth());
  if (IsForPeople(options.common.format)) {
    out << "\n"
        << alerts << " new for the worse, " << changes.size()
        << " changes of at least " << FormatShortPercent(options.min_effect)
        << " in " << series.size() << " series\n";
    if (not_judged > 0) {
      out << "of " << not_judged
          << " series the newest level can't be told yet: too few points, or "
             "too much noise\n";
    }
  }
  if (alerts > 0 && !options.alert_command.empty()) {
    changes.erase(
        std::remove_if(changes.begin(), changes.end(),
                       [](const Change& change) { return !change.IsAlert(); }),
        changes.end());
    const absl::Status told =
        RunAlert(options.alert_command,
                 ChangesTable(changes).Format(OutputFormat::kJson));
    if (!told.ok()) std::cerr << "note: " << told.message() << "\n";
  }
  if (loaded.runs.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const RunList all, history.ListRuns());
    if (all.runs.empty()) {
      std::cerr << EmptyHistoryText(history.dir()) << "\n";
    } else {
      std::cerr << "no runs match the flags; there are " << all.runs.size()
                << " in " << history.dir() << "\n";
    }
  }
  return alerts > 0 ? 1 : 0;
}

}  // namespace optrail::tracker
