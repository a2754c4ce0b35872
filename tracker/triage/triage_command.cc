#include "tracker/triage/triage_command.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/closest.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "base/units.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/selectors.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/judge/judge.h"
#include "tracker/series/commit.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

std::string ScopeText(const proto::TriageRecord& record) {
  return record.series().empty() ? record.pattern() : record.series();
}

// Describes the change that was answered: "+8.0% to +12.0%, after 1a2b up to
// 3c4d".
std::string CoversText(const proto::TriageRecord& record) {
  if (record.answered_size() > 1) {
    std::set<std::string> benchmarks;
    for (const proto::AnsweredChange& answered : record.answered()) {
      const absl::StatusOr<SeriesKey> key = ParseSeriesKey(answered.series());
      benchmarks.insert(key.ok() ? DisplayName(key->benchmark)
                                 : answered.series());
    }
    // Its metrics, hardware and branches make several of one benchmark.
    return absl::StrCat(
        "what ", record.answered_size(), " series of ", benchmarks.size(),
        benchmarks.size() == 1 ? " benchmark" : " benchmarks", " showed");
  }
  if (record.answered_size() == 0) return "";
  const proto::AnsweredChange& answered = record.answered(0);
  std::string text;
  if (answered.has_effect_low() && answered.has_effect_high()) {
    text = absl::StrCat(FormatChange(answered.effect_low()), " to ",
                        FormatChange(answered.effect_high()), ", ");
  }
  if (answered.has_last_before()) {
    absl::StrAppend(&text, "after ", CommitText(answered.last_before()), " ");
  }
  return absl::StrCat(text, "up to ", CommitText(answered.last()));
}

Table RecordTable() {
  return Table({{"id", Align::kLeft, "", Clip::kNever},
                {"kind"},
                {"state"},
                {"series", Align::kLeft, "scope", Clip::kNever},
                {"commit", Align::kLeft, "", Clip::kNever},
                {"until"},
                {"effect", Align::kRight},
                {"covers"},
                {"text"}});
}

void AddRecord(const TriageBook::Entry& entry, Table& table) {
  const proto::TriageRecord& record = entry.record;
  table.AddRow(
      {record.record_id(), TriageKindName(record.kind()),
       RecordStateName(entry.state),
       record.kind() == proto::UNDO ? record.supersedes() : ScopeText(record),
       CommitText(record.commit()),
       record.has_until_unix_ns() ? LastDayText(record.until_unix_ns()) : "",
       record.has_effect()
           ? Cell::Number(record.effect(), FormatChange(record.effect()))
           : Cell::None(),
       CoversText(record), record.text()});
}

// Stores and prints.
absl::StatusOr<int> Store(const History& history, const CommonOptions& common,
                          proto::TriageRecord record, std::ostream& out) {
  record.set_created_unix_ns(NowUnixNs(common));
  record.set_record_id(NewRecordId(record.created_unix_ns()));
  OPTRAIL_RETURN_IF_ERROR(history.AppendTriage(record));
  Table table = RecordTable();
  const TriageBook book({record}, record.created_unix_ns());
  AddRecord(book.entries()[0], table);
  out << table.Format(common.format, TerminalWidth());
  return 0;
}

// How far the place is from what the change's first point could be.
int DistanceTo(const ChangePoint& change, int place) {
  return std::max({0, change.earliest - place, place - change.latest});
}

// The change that somebody means who names the point at `place`; null if the
// judge has found none there.
const Change* ChangeAt(const Judgement& judgement, int place) {
  const Change* nearest = nullptr;
  const auto distance = [place](const Change& change) {
    return std::make_pair(DistanceTo(change.change, place),
                          std::abs(change.change.index - place));
  };
  for (const Change& change : judgement.changes) {
    if (change.kind == ChangeKind::kEpoch ||
        change.kind == ChangeKind::kReturn ||
        DistanceTo(change.change, place) > TriageBook::kPlaceTolerance) {
      continue;
    }
    if (nearest == nullptr || distance(change) < distance(*nearest)) {
      nearest = &change;
    }
  }
  return nearest;
}

void SetCommit(const proto::Commit& from, proto::Commit* to) {
  to->set_id(from.id());
  if (from.has_first_parent_position()) {
    to->set_first_parent_position(from.first_parent_position());
  }
}

// Returns the change that an answer to the point at `place` covers.
proto::AnsweredChange AnswerOf(const Judgement& judgement, const Series& series,
                               int place) {
  const Change* const found = ChangeAt(judgement, place);
  const absl::optional<ChangePoint> change =
      found != nullptr ? absl::make_optional(found->change)
                       : ChangeAsMeasured(judgement, series, place);
  const int earliest = change ? change->earliest : place;
  proto::AnsweredChange answered;
  answered.set_series(series.text);
  if (earliest > 0) {
    SetCommit(series.points[earliest - 1].runs->commit,
              answered.mutable_last_before());
  }
  SetCommit(series.points[change ? change->latest : place].runs->commit,
            answered.mutable_last());
  if (change) {
    answered.set_effect_low(change->relative_change_low);
    answered.set_effect_high(change->relative_change_high);
  }
  return answered;
}

// The error for a record that is meant for no series.
absl::Status NothingIsMeant(const proto::TriageRecord& record,
                            const std::vector<Series>& series) {
  std::vector<std::string> names;
  for (const Series& one : series) {
    names.push_back(DisplayName(one.key.benchmark));
  }
  return absl::NotFoundError(absl::StrCat(
      "'", ScopeText(record), "' is no series of the history and matches none",
      DidYouMean(ScopeText(record), names),
      "; next: `optrail log series` lists them"));
}

// Names in the record what it is an answer to, in every series that it means.
// NotFound for an acknowledgement of nothing; what is expected or muted may
// still come, so that is only said: often it is a typing error.
absl::Status NameWhatIsAnswered(const History& history,
                                proto::TriageRecord& record) {
  OPTRAIL_ASSIGN_OR_RETURN(LoadedSeries loaded, LoadSeries(history));
  const TriageBook book({record}, 0);
  const bool names_changes =
      record.kind() == proto::ACKNOWLEDGE || record.kind() == proto::EXPECT;
  std::vector<Judgement> judgements;
  if (names_changes) {
    JudgeOptions judge;
    FoldMemory folds(std::move(loaded.folds));
    judge.folds = &folds;
    judgements = JudgeAll(loaded.series, TriageBook({}, 0), judge);
    KeepFolds(history, folds.changed());
  }
  int covered = 0, placed = 0, changed = 0;
  for (size_t i = 0; i < loaded.series.size(); ++i) {
    const Series& series = loaded.series[i];
    if (!Covers(book.entries()[0], series)) continue;
    ++covered;
    const absl::optional<int> place = PlaceOf(record.commit(), series);
    if (!place) continue;
    ++placed;
    if (!names_changes) continue;
    changed += ChangeAt(judgements[i], *place) != nullptr;
    proto::AnsweredChange answered = AnswerOf(judgements[i], series, *place);
    if (record.has_effect()) {  // that is the size
      answered.clear_effect_low();
      answered.clear_effect_high();
    }
    *record.add_answered() = std::move(answered);
  }
  if (covered == 0 && record.kind() == proto::ACKNOWLEDGE) {
    return NothingIsMeant(record, loaded.series);
  }
  if (covered == 0) {
    std::cerr << "note: no series of the history is meant by '"
              << EscapeForTerminal(ScopeText(record)) << "' so far\n";
  } else if (placed == 0 && record.kind() != proto::MUTE) {
    std::cerr << "note: none of the " << covered
              << " series was measured at or after commit "
              << CommitText(record.commit()) << " so far\n";
  } else if (changed == 0 && record.kind() == proto::ACKNOWLEDGE) {
    std::cerr << "note: no change is known at commit "
              << CommitText(record.commit()) << " in the " << placed
              << " series that '" << EscapeForTerminal(ScopeText(record))
              << "' means; next: `optrail changes` lists changes\n";
  }
  return absl::OkStatus();
}

// The commit that git knows by that name; else the history does, since a report
// is read where no clone is.
absl::StatusOr<proto::Commit> CommitMeant(const History& history,
                                          const std::string& workspace,
                                          const std::string& name) {
  absl::StatusOr<proto::Commit> commit = CommitNamed(workspace, name);
  if (commit.ok()) return commit;
  const absl::StatusOr<Selection> measured =
      SelectRuns(history, name, GitIn(workspace));
  if (!measured.ok() || measured->runs.empty()) return commit.status();
  return measured->runs.back().header.commit();
}

}  // namespace

absl::StatusOr<int> RunTriageAdd(const TriageAddCommand& options,
                                 std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  proto::TriageRecord record;
  record.set_kind(options.kind);
  OPTRAIL_RETURN_IF_ERROR(SetScope(options.scope, &record));
  if (absl::StripAsciiWhitespace(options.text).empty()) {
    return absl::InvalidArgumentError(
        options.kind == proto::NOTE
            ? "the note is empty: expected a text"
            : "--reason is missing: expected why, for those who come later");
  }
  record.set_text(options.text);
  if (options.kind == proto::MUTE) {
    if (options.until.empty()) {
      return absl::InvalidArgumentError(
          "--until is missing: expected the last day, such as 2026-12-24");
    }
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t until, ParseEndOfDay(options.until));
    if (until <= NowUnixNs(options.common)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--until=", options.until,
                       " has passed: expected today or a later day (UTC)"));
    }
    record.set_until_unix_ns(until);
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(
        *record.mutable_commit(),
        CommitMeant(history, options.common.workspace, options.commit));
  }
  if (!options.effect.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const double effect, ParseEffect(options.effect));
    record.set_effect(effect);
  }
  OPTRAIL_RETURN_IF_ERROR(NameWhatIsAnswered(history, record));
  return Store(history, options.common, std::move(record), out);
}

absl::StatusOr<int> RunTriageList(const TriageListCommand& options,
                                  std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTriage loaded, history.LoadTriage());
  WarnOfBadFiles(loaded.bad_files);
  Table table = RecordTable();
  const TriageBook book(loaded.records, NowUnixNs(options.common));
  for (const TriageBook::Entry& entry : book.entries()) {
    if (!options.only_active || entry.state == RecordState::kActive) {
      AddRecord(entry, table);
    }
  }
  out << table.Format(options.common.format, TerminalWidth());
  return 0;
}

absl::StatusOr<int> RunTriageUndo(const TriageUndoCommand& options,
                                  std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTriage loaded, history.LoadTriage());
  WarnOfBadFiles(loaded.bad_files);
  const TriageBook book(loaded.records, NowUnixNs(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const TriageBook::Entry* const entry,
                           book.Find(options.id));
  if (entry->state == RecordState::kUndone) {
    return absl::FailedPreconditionError(absl::StrCat(
        "triage record ", entry->record.record_id(), " is undone already"));
  }
  proto::TriageRecord record;
  record.set_kind(proto::UNDO);
  record.set_supersedes(entry->record.record_id());
  record.set_text(options.reason);
  return Store(history, options.common, std::move(record), out);
}

}  // namespace optrail::tracker
