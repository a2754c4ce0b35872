#include "tracker/gate/known_changes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "base/text/quote.h"
#include "base/text/units.h"
#include "tracker/compare/row_table.h"
#include "tracker/gate/baseline.h"
#include "tracker/history/index/history_index.h"
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

std::string KeyOf(const proto::BenchmarkKey& benchmark,
                  absl::string_view metric, absl::string_view hardware,
                  absl::string_view branch) {
  return absl::StrCat(PriorKey(benchmark, metric), "|", hardware, "|", branch);
}

// Returns whether a run of the candidate is of this point.
bool IsOf(const Point& point, const std::set<std::string>& run_ids) {
  return std::any_of(
      point.runs->ids.begin(), point.runs->ids.end(),
      [&](const std::string& id) { return run_ids.count(id) > 0; });
}

// The candidate on one hardware, and what may be its past.
struct Present {
  Present(const GitLookup& git, const proto::Run& last) : past(git, last) {}

  std::set<std::string> run_ids;
  std::set<std::string> commits;
  Past past;
};

// Drops the points after the candidate, but for those of its own commit, such
// as a run with uncommitted changes. Returns whether there were any.
bool DropLater(const Present& present, Series* series) {
  std::vector<Point>& points = series->points;
  const size_t all = points.size();
  while (!points.empty() && !IsOf(points.back(), present.run_ids)) {
    proto::Run run;
    *run.mutable_commit() = points.back().runs->commit;
    if (present.commits.count(run.commit().id()) > 0) break;
    run.set_started_unix_ns(points.back().runs->first_started_unix_ns);
    if (present.past.Has(run)) break;
    points.pop_back();
  }
  if (!points.empty()) series->epochs.resize(points.back().epoch + 1);
  return points.size() < all;
}

GateReport::OpenChange OpenChangeOf(const Change& change,
                                    absl::string_view history_flag) {
  const Evidence evidence = EvidenceOf(change);
  GateReport::OpenChange open;
  open.key = change.series->key;
  open.state = ChangeText(change);
  open.is_unanswered =
      change.IsAlert() && change.kind != ChangeKind::kProvisional;
  open.is_confirmed = open.is_unanswered && change.kind != ChangeKind::kCreep;
  open.relative_change = change.change.relative_change;
  open.worse_by = change.worse_by;
  if (change.before != nullptr) open.good = change.before->runs->commit.id();
  open.first = change.after().runs->commit.id();
  open.points_since = change.PointsSince();
  open.points_to_answer = change.points_to_answer;
  open.suspects = SuspectsText(evidence);
  open.next = NarrowingCommand(change, evidence, history_flag);
  return open;
}

// "BM_Sort (+12.0%)".
std::string NameOf(const GateReport::OpenChange& change) {
  return absl::StrCat(
      DisplayName(change.key.benchmark), " (",
      change.key.metric == "time" ? "" : absl::StrCat(change.key.metric, " "),
      FormatChange(change.relative_change), ")");
}

// One note for all that nobody has answered, and one for those whose level is
// no baseline yet, for a candidate that confirms a change is judged by the
// level before: `changes` has the evidence.
void NoteUnanswered(bool is_norm, GateReport* report) {
  size_t count = 0;
  std::map<std::string, std::set<std::string>> names;  // by commit
  for (const GateReport::OpenChange& change : report->open_changes) {
    if (!change.is_unanswered || change.is_norm != is_norm) continue;
    ++count;
    names[ShortHash(change.first)].insert(NameOf(change));
  }
  if (count == 0) return;
  std::vector<std::string> commits;
  for (const auto& [commit, of] : names) {
    commits.push_back(absl::StrCat(
        "since ", commit, " ", JoinFirst({of.begin(), of.end()}, /*most=*/1)));
  }
  AddNote(
      absl::StrCat("nobody has answered ", count,
                   count == 1 ? " change" : " changes", " for the worse, and ",
                   is_norm ? "the level since then is the baseline: "
                           : "the baseline is the level before: ",
                   absl::StrJoin(commits, "; "), "; next: optrail changes",
                   report->history_flag.value_or("")),
      report);
}

// The window may lie after such a change, so that no row is red.
void NoteUnconfirmed(GateReport* report) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> texts;
  for (const GateReport::OpenChange& change : report->open_changes) {
    if (change.is_unanswered) continue;
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
  AddNote(
      absl::StrCat(
          "`changes` has ", texts.size(),
          texts.size() == 1 ? " change" : " changes",
          " for the worse that it can't confirm yet; runs since then may be in "
          "the baseline: ",
          JoinFirst(texts, kNamed, "; "), "; next: optrail changes",
          report->history_flag.value_or("")),
      report);
}

// Returns the ids of the runs whose suite and hardware the candidate has, too.
std::set<std::string> RunsOfSuites(const std::vector<proto::Run>& runs,
                                   const Candidate& candidate) {
  std::set<std::pair<std::string, std::string>> suites;
  for (const CandidateGroup& group : candidate.groups) {
    suites.insert({group.last().suite(), group.last().hardware().id()});
  }
  std::set<std::string> ids;
  for (const proto::Run& run : runs) {
    if (suites.count({run.suite(), run.hardware().id()}) > 0) {
      ids.insert(run.run_id());
    }
  }
  return ids;
}

// The newest point before `end` from which on a tuned config is used where the
// default ran before, or the other way around; 0 if there is none.
int OtherConfigBegin(const Series& series, int end) {
  for (int k = end - 1; k > 0; --k) {
    const int epoch = series.points[k].epoch;
    if (epoch != series.points[k - 1].epoch &&
        series.epochs[epoch].is_of_other_config) {
      return k;
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<KnownChanges> KnownChanges::Of(
    const History& history, const Policy& policy, const GitLookup& git,
    const std::vector<proto::Baseline>& baselines, const Candidate& candidate,
    int64_t now_unix_ns) {
  std::set<std::string> windows;
  for (const proto::Baseline& baseline : baselines) {
    if (baseline.has_window()) windows.insert(baseline.window().branch());
  }
  std::set<std::string> branches = windows;
  std::map<std::string, Present> presents;  // by hardware
  for (const CandidateGroup& group : candidate.groups) {
    branches.insert(group.last().commit().branch());
    Present& present =
        presents.try_emplace(group.last().hardware().id(), git, group.last())
            .first->second;
    for (const std::vector<RunInfo>* runs :
         {&group.runs, &group.other_settings}) {
      for (const RunInfo& run : *runs) present.run_ids.insert(run.id());
    }
    const std::string& commit = group.last().commit().id();
    if (!commit.empty()) present.commits.insert(commit);
  }
  SeriesQuery query;
  query.wanted = [&](const SeriesKey& key) {
    return branches.count(key.branch) > 0 &&
           presents.count(key.hardware_id) > 0 &&
           // The time says what became of other metrics.
           (key.metric == "time" ||
            policy.RuleFor(DisplayName(key.benchmark), key.metric).action !=
                proto::IGNORE);
  };
  OPTRAIL_ASSIGN_OR_RETURN(LoadedSeries loaded, LoadSeries(history, query));
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTriage triage, history.LoadTriage());
  KnownChanges known(TriageBook(triage.records, now_unix_ns));
  known.shared_names_ = FindSharedNames(loaded.runs, loaded.series);
  bool is_past = false;
  for (Series& series : loaded.series) {
    const Present& present = presents.at(series.key.hardware_id);
    is_past |= DropLater(present, &series);
    if (series.points.empty()) continue;
    int place = static_cast<int>(series.points.size()) - 1;
    while (place >= 0 && !IsOf(series.points[place], present.run_ids)) --place;
    known.candidates_.push_back(
        place >= 0 ? place : static_cast<int>(series.points.size()));
    const SeriesKey& key = series.key;
    known.by_key_[KeyOf(key.benchmark, key.metric, key.hardware_id,
                        key.branch)] = static_cast<int>(known.series_.size());
    known.series_.push_back(std::move(series));
  }
  FoldMemory folds(std::move(loaded.folds));
  JudgeOptions judge;
  // The memory is of whole series, and so are the runs.
  if (!is_past) {
    judge.folds = &folds;
    judge.runs = &loaded.runs;
  }
  known.judgements_ = JudgeAll(known.series_, known.book_, judge);
  KeepFolds(history, folds.changed());
  if (policy.proto().on_missing() == proto::IGNORE) return known;
  const std::set<std::string> same_suites =
      RunsOfSuites(loaded.runs, candidate);
  for (size_t i = 0; i < known.series_.size(); ++i) {
    const Series& series = known.series_[i];
    if (known.judgements_[i].standing == Verdict::kMissing &&
        policy.RuleFor(DisplayName(series.key.benchmark), series.key.metric)
                .action != proto::IGNORE &&
        windows.count(series.key.branch) > 0 &&
        IsOf(series.points.back(), same_suites) &&
        known.book_.RemovalAcknowledged(series) == nullptr &&
        policy.ExemptionFor(DisplayName(series.key.benchmark),
                            series.key.metric,
                            now_unix_ns / 1'000'000'000) == nullptr) {
      known.lost_.push_back(static_cast<int>(i));
    }
  }
  return known;
}

int KnownChanges::Find(const proto::BenchmarkKey& benchmark,
                       absl::string_view metric, absl::string_view hardware,
                       absl::string_view branch) const {
  const auto found = by_key_.find(KeyOf(benchmark, metric, hardware, branch));
  return found == by_key_.end() ? -1 : found->second;
}

int KnownChanges::SeriesOf(const GateRow& row) const {
  return Find(row.row.key, row.row.metric, row.hardware_id,
              row.row.baseline.commit.branch());
}

std::string KnownChanges::LevelStart(const proto::BenchmarkKey& benchmark,
                                     absl::string_view metric,
                                     absl::string_view hardware,
                                     absl::string_view branch,
                                     const std::set<std::string>& runs) const {
  const int i = Find(benchmark, metric, hardware, branch);
  if (i < 0) return "";
  const std::vector<Point>& points = series_[i].points;
  const int begin =
      std::max(judgements_[i].NormOf(candidates_[i], series_[i], book_),
               OtherConfigBegin(series_[i], candidates_[i]));
  for (int k = begin; begin > 0 && k < candidates_[i]; ++k) {
    for (const std::string& id : points[k].runs->ids) {
      if (runs.count(id) > 0) return id;
    }
  }
  return "";
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
          change.worse_by >= kLeastEffect) {
        report->open_changes.push_back(
            OpenChangeOf(change, report->history_flag.value_or("")));
        // A window moves along with a creep.
        report->open_changes.back().is_norm =
            change.kind == ChangeKind::kCreep ||
            judgements_[i].NormOf(candidates_[i], series_[i], book_) >=
                change.change.index;
      }
    }
  }
  std::sort(
      report->open_changes.begin(), report->open_changes.end(),
      [](const auto& a, const auto& b) { return a.worse_by > b.worse_by; });
  NoteUnanswered(/*is_norm=*/true, report);
  NoteUnanswered(/*is_norm=*/false, report);
  NoteUnconfirmed(report);
  NoteForgotten(report);
  NoteSharedNames(report);
}

void KnownChanges::NoteSharedNames(GateReport* report) const {
  std::set<std::pair<std::string, std::string>> judged;
  for (const GateRow& row : report->rows) {
    judged.emplace(DisplayName(row.row.key), row.hardware_id);
  }
  std::vector<SharedName> names;
  for (const SharedName& name : shared_names_) {
    if (judged.count({name.benchmark, name.hardware_id}) > 0) {
      names.push_back(name);
    }
  }
  const std::string note =
      SharedNamesText(names, report->history_flag.value_or(""));
  if (!note.empty()) AddNote(note, report);
}

// The window forgets what its runs lack; nobody has answered it all the same.
void KnownChanges::NoteForgotten(GateReport* report) const {
  constexpr size_t kNamed = 3;
  std::set<std::string> in_rows;
  for (const GateRow& row : report->rows) {
    in_rows.insert(absl::StrCat(row.row.name, "|", row.hardware_id));
  }
  std::set<std::string> names;
  std::vector<std::string> texts;
  std::set<std::string> patterns;  // the same of every machine
  for (const int i : lost_) {
    const SeriesKey& key = series_[i].key;
    const std::string name = DisplayName(key.benchmark);
    if (in_rows.count(absl::StrCat(name, "|", key.hardware_id)) > 0 ||
        !names.insert(absl::StrCat(name, "|", key.hardware_id)).second) {
      continue;
    }
    const Point& last = series_[i].points.back();
    texts.push_back(absl::StrCat(name, " (last at ",
                                 ShortHash(last.runs->commit.id()), ")"));
    patterns.insert(PatternOf(name));
  }
  if (texts.empty()) return;
  const bool is_one = texts.size() == 1;
  // A list of all is too long to read where there are many.
  const std::string all = patterns.size() > kNamed
                              ? "NAME"
                              : QuoteForShell(absl::StrJoin(patterns, "|"));
  AddNote(absl::StrCat(
              texts.size(), is_one ? " benchmark is" : " benchmarks are",
              " missing for so long that the baseline lacks ",
              is_one ? "it" : "them", ", too: ", JoinFirst(texts, kNamed, "; "),
              "; next: bring them back or, if they were removed on purpose, "
              "optrail ack ",
              all, " HEAD --reason=WHY", report->history_flag.value_or("")),
          report);
}

void KnownChanges::HeedRemoval(const Series& series, GateRow* row) const {
  const TriageBook::Entry* const entry = book_.RemovalAcknowledged(series);
  if (entry == nullptr) return;
  const proto::TriageRecord& record = entry->record;
  row->action = proto::WARN;
  row->exempted = absl::StrCat("acknowledged on ",
                               LastDayText(record.created_unix_ns() + 1),
                               " at ", ShortHash(record.commit().id()), ": ",
                               record.text(), " (", record.record_id(), ")");
}

void KnownChanges::HeedAnswers(GateReport* report) const {
  for (GateRow& row : report->rows) {
    if (!IsRed(row)) continue;
    // The answer is to the series of the candidate's own branch.
    const Row& of = row.row;
    int i =
        Find(of.key, of.metric, row.hardware_id, of.candidate.commit.branch());
    const int base = SeriesOf(row);
    if (i < 0) i = base;
    if (i < 0) continue;
    const Series& series = series_[i];
    for (const TriageBook::Entry& entry : book_.entries()) {
      if (entry.record.kind() == proto::MUTE &&
          entry.state == RecordState::kActive &&
          (Covers(entry, series) ||
           (base >= 0 && Covers(entry, series_[base])))) {
        row.muted_until = LastDayText(entry.record.until_unix_ns());
      }
    }
    if (of.verdict == Verdict::kMissing && base >= 0) {
      HeedRemoval(series_[base], &row);
      continue;
    }
    const int place = candidates_[i];
    if (!of.ratio || place == static_cast<int>(series.points.size())) continue;
    ChangePoint change;
    change.index = change.earliest = change.latest = place;
    change.relative_change = of.ratio->ratio - 1;
    change.relative_change_low = of.ratio->low - 1;
    change.relative_change_high = of.ratio->high - 1;
    if (of.slower) {
      change.relative_change = change.relative_change_low =
          change.relative_change_high = of.slower->ratio - 1;
    }
    const Opinion opinion = book_.OpinionOf(series, change);
    if (opinion.state == ChangeState::kAcknowledged && !opinion.names_change) {
      // One more would know no more than one that came after the measurement.
      const bool is_of_now =
          opinion.commit == ShortHash(of.candidate.commit.id()) &&
          opinion.created_unix_ns >
              series.points[place].runs->first_started_unix_ns;
      row.answer = absl::StrCat(
          "the ack at ", opinion.commit, " names no size for this (",
          opinion.record_id,
          is_of_now
              ? "), as the history has no point before it to compare with; "
                "next: an exemption of the policy, with a day and a reason"
              : absl::StrCat("); now that it is measured, next: optrail ack ",
                             QuoteForShell(PatternOf(of.name)), " ",
                             ShortHash(of.candidate.commit.id()),
                             " --reason=WHY",
                             report->history_flag.value_or("")));
    } else if (opinion.state == ChangeState::kAcknowledged) {
      row.action = proto::WARN;
      row.exempted = absl::StrCat(
          "acknowledged on ", LastDayText(opinion.created_unix_ns + 1), " at ",
          opinion.commit, ": ", opinion.reason, " (", opinion.record_id, ")");
    } else if (opinion.state == ChangeState::kExpected) {
      row.answer = absl::StrCat(
          "expected for `changes` and the report: ", opinion.reason,
          "; the gate heeds `ack`, and the exemptions of a policy");
    } else if (!opinion.reason.empty() && opinion.state == ChangeState::kNew) {
      row.answer =
          absl::StrCat(opinion.reason_is_size ? "more than was answered: "
                                              : "another change was answered: ",
                       opinion.reason);
    }
  }
}

void KnownChanges::NarrowSuspects(GateReport* report) const {
  for (GateRow& row : report->rows) {
    const int i = SeriesOf(row);
    if (!IsRed(row) || !row.row.ratio || i < 0) continue;
    const Series& series = series_[i];
    const int begin = PlaceOf(row.row.baseline.run_ids.front(), series);
    const int end = PlaceOf(row.row.candidate.run_ids.back(), series);
    const Change* largest = nullptr;
    for (const Change& change : judgements_[i].changes) {
      if (begin >= 0 && change.change.index > begin &&
          change.change.index <= end && change.worse_by >= kLeastEffect &&
          !change.IsUndone() &&
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
