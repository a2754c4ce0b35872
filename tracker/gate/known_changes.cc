#include "tracker/gate/known_changes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "tracker/compare/row_table.h"
#include "tracker/history/selectors.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/series/series_key.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

// The point of a series that has this run; -1 if none does.
int PlaceOf(const std::string& run_id, const Series& series) {
  for (int i = static_cast<int>(series.points.size()) - 1; i >= 0; --i) {
    const std::vector<std::string>& ids = series.points[i].runs->ids;
    if (std::find(ids.begin(), ids.end(), run_id) != ids.end()) return i;
  }
  return -1;
}

// Returns whether a change began later than every run of the candidate, by the
// commits' positions.
bool IsLater(const Change& change, const GateReport& report) {
  const proto::Commit& commit = change.after().runs->commit;
  return commit.has_first_parent_position() &&
         std::all_of(report.candidate_runs.begin(), report.candidate_runs.end(),
                     [&](const RunInfo& run) {
                       const proto::Commit& of = run.header.commit();
                       return of.has_first_parent_position() &&
                              of.first_parent_position() <
                                  commit.first_parent_position();
                     });
}

GateReport::OpenChange OpenChangeOf(const Change& change) {
  const Evidence evidence = EvidenceOf(change);
  GateReport::OpenChange open;
  open.key = change.series->key;
  open.state = ChangeText(change);
  open.is_confirmed = change.IsAlert();
  open.relative_change = change.change.relative_change;
  open.worse_by = change.worse_by;
  if (change.before != nullptr) open.good = change.before->runs->commit.id();
  open.first = change.after().runs->commit.id();
  open.points_since = change.PointsSince();
  open.points_to_answer = change.points_to_answer;
  open.suspects = SuspectsText(evidence);
  open.next = NarrowingCommand(change, evidence);
  return open;
}

// "BM_Sort (+12.0%)".
std::string NameOf(const GateReport::OpenChange& change) {
  return absl::StrCat(
      DisplayName(change.key.benchmark), " (",
      change.key.metric == "time" ? "" : absl::StrCat(change.key.metric, " "),
      FormatChange(change.relative_change), ")");
}

// One note for all that nobody has answered: `changes` has the evidence.
void NoteUnanswered(GateReport* report) {
  size_t count = 0;
  std::map<std::string, std::set<std::string>> names;  // by commit
  for (const GateReport::OpenChange& change : report->open_changes) {
    if (!change.is_confirmed) continue;
    ++count;
    names[ShortHash(change.first)].insert(NameOf(change));
  }
  if (count == 0) return;
  std::vector<std::string> commits;
  for (const auto& [commit, of] : names) {
    commits.push_back(absl::StrCat(
        "since ", commit, " ", *of.begin(),
        of.size() == 1 ? "" : absl::StrCat(" and ", of.size() - 1, " more")));
  }
  AddNote(
      absl::StrCat("nobody has answered ", count,
                   count == 1 ? " change" : " changes",
                   " for the worse, and the level since then is the baseline: ",
                   absl::StrJoin(commits, "; "), "; next: optrail changes",
                   report->history_flag.value_or("")),
      report);
}

// The window may lie after such a change, so that no row is red.
void NoteUnconfirmed(GateReport* report) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> texts;
  for (const GateReport::OpenChange& change : report->open_changes) {
    if (change.is_confirmed) continue;
    texts.push_back(absl::StrCat(
        NameOf(change), " since ", ShortHash(change.first), " (",
        change.points_since, change.points_since == 1 ? " point" : " points",
        change.points_to_answer
            ? absl::StrCat("; ", *change.points_to_answer,
                           " more like it would confirm it)")
            : ")",
        change.next.empty() ? "" : absl::StrCat(", next: ", change.next)));
  }
  if (texts.empty()) return;
  const size_t count = texts.size();
  texts.resize(std::min(count, kNamed));
  AddNote(
      absl::StrCat(
          "`changes` calls ", count, count == 1 ? " benchmark" : " benchmarks",
          " maybe slower and can't confirm it yet; runs since "
          "then may be in the baseline: ",
          absl::StrJoin(texts, "; "),
          count > kNamed ? absl::StrCat("; and ", count - kNamed, " more") : "",
          "; next: optrail changes", report->history_flag.value_or("")),
      report);
}

}  // namespace

absl::StatusOr<KnownChanges> KnownChanges::Of(const History& history,
                                              int64_t now_unix_ns,
                                              const GateReport& report) {
  std::set<std::string> branches, hardware, metrics = {"time"};
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    if (baseline.runs.empty()) continue;
    branches.insert(baseline.runs.back().header.commit().branch());
    hardware.insert(baseline.hardware_id);
  }
  for (const GateRow& row : report.rows) metrics.insert(row.row.metric);
  KnownChanges known;
  if (branches.empty()) return known;
  SeriesQuery query;
  query.wanted = [&](const SeriesKey& key) {
    return branches.count(key.branch) > 0 &&
           hardware.count(key.hardware_id) > 0 && metrics.count(key.metric) > 0;
  };
  OPTRAIL_ASSIGN_OR_RETURN(known.loaded_, LoadSeries(history, query));
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTriage triage, history.LoadTriage());
  FoldMemory folds(std::move(known.loaded_.folds));
  JudgeOptions judge;
  judge.folds = &folds;
  known.judgements_ = JudgeAll(known.loaded_.series,
                               TriageBook(triage.records, now_unix_ns), judge);
  KeepFolds(history, folds.changed());
  for (size_t i = 0; i < known.loaded_.series.size(); ++i) {
    known.by_text_[known.loaded_.series[i].text] = static_cast<int>(i);
  }
  return known;
}

int KnownChanges::SeriesOf(const GateRow& row) const {
  // The window's runs have one branch, whatever the candidate's is.
  const SeriesKey key = {row.row.key, row.row.metric, row.row.unit,
                         row.hardware_id, row.row.baseline.commit.branch()};
  const auto found = by_text_.find(CanonicalText(key));
  return found == by_text_.end() ? -1 : found->second;
}

void KnownChanges::List(GateReport* report) const {
  std::set<int> listed;
  for (const GateRow& row : report->rows) {
    const int i = SeriesOf(row);
    if (i < 0 || !absl::StartsWith(row.baseline, "window:") ||
        row.rule.action == proto::IGNORE || !listed.insert(i).second) {
      continue;
    }
    for (const Change& change : judgements_[i].changes) {
      if ((change.IsAlert() || change.IsOpen()) &&
          change.worse_by >= kLeastEffect && !IsLater(change, *report)) {
        report->open_changes.push_back(OpenChangeOf(change));
      }
    }
  }
  std::sort(
      report->open_changes.begin(), report->open_changes.end(),
      [](const auto& a, const auto& b) { return a.worse_by > b.worse_by; });
  NoteUnanswered(report);
  NoteUnconfirmed(report);
}

void KnownChanges::NarrowSuspects(GateReport* report) const {
  for (GateRow& row : report->rows) {
    const int i = SeriesOf(row);
    if (!IsRed(row) || !row.row.ratio || i < 0) continue;
    const Series& series = loaded_.series[i];
    const int begin = PlaceOf(row.row.baseline.run_ids.front(), series);
    const int end = PlaceOf(row.row.candidate.run_ids.back(), series);
    const Change* largest = nullptr;
    for (const Change& change : judgements_[i].changes) {
      if (begin >= 0 && change.change.index > begin &&
          change.change.index <= end && change.worse_by >= kLeastEffect &&
          !change.undone &&
          (change.kind == ChangeKind::kConfirmed ||
           change.kind == ChangeKind::kProvisional) &&
          (largest == nullptr || change.worse_by > largest->worse_by)) {
        largest = &change;
      }
    }
    // At the candidate or beyond it there is nothing to narrow.
    if (largest == nullptr ||
        std::max(largest->change.latest, largest->change.index) >= end) {
      continue;
    }
    const Evidence evidence = EvidenceOf(*largest);
    if (evidence.good == nullptr || evidence.before.run_ids.empty() ||
        evidence.after.run_ids.empty()) {
      continue;
    }
    row.good = {*evidence.good, evidence.before.run_ids.back()};
    row.bad = {*evidence.bad, evidence.after.run_ids.front()};
  }
}

}  // namespace optrail::tracker
