#include "tracker/triage/triage_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/selectors.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/judge/judge.h"
#include "tracker/series/commit.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tracker/triage/answered_change.h"
#include "tracker/triage/triage.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

std::string ScopeText(const proto::TriageRecord& record) {
  return record.series().empty() ? record.pattern() : record.series();
}

// "BM_Sort time +8.0% to +12.0%".
std::string SizeText(const proto::AnsweredChange& answered) {
  const absl::StatusOr<SeriesKey> key = ParseSeriesKey(answered.series());
  std::string text =
      key.ok() ? absl::StrCat(DisplayName(key->benchmark), " ", key->metric)
               : answered.series();
  if (answered.has_effect_low() && answered.has_effect_high()) {
    absl::StrAppend(&text, " ", FormatChange(answered.effect_low()), " to ",
                    FormatChange(answered.effect_high()));
  }
  return text;
}

// "after 1a2b up to 3c4d".
std::string SuspectsText(const proto::AnsweredChange& answered) {
  if (IsRemoval(answered)) {
    return absl::StrCat("gone after ", CommitText(answered.last_before()));
  }
  return absl::StrCat(
      answered.has_last_before()
          ? absl::StrCat("after ", CommitText(answered.last_before()), " ")
          : "",
      "up to ", CommitText(answered.last()));
}

// Describes the changes that were answered, the largest first: "BM_Sort time
// +8.0% to +12.0%, BM_Hash time +3.0% to +3.4%, after 1a2b up to 3c4d". Those
// with the same suspects stand together.
std::string CoversText(const proto::TriageRecord& record) {
  constexpr int kShown = 4;
  std::vector<const proto::AnsweredChange*> largest;
  for (const auto& answered : record.answered()) largest.push_back(&answered);
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto* a, const auto* b) {
                     return std::abs(a->effect_low() + a->effect_high()) >
                            std::abs(b->effect_low() + b->effect_high());
                   });
  std::vector<std::string> texts;
  const int shown = std::min(kShown, record.answered_size());
  for (int i = 0; i < shown; ++i) {
    const proto::AnsweredChange& answered = *largest[i];
    const bool ends = i + 1 == shown ||
                      SuspectsText(*largest[i + 1]) != SuspectsText(answered);
    texts.push_back(
        ends ? absl::StrCat(SizeText(answered), ", ", SuspectsText(answered))
             : SizeText(answered));
  }
  if (record.answered_size() > kShown) {
    texts.push_back(
        absl::StrCat("and ", record.answered_size() - kShown, " more series"));
  }
  return absl::StrJoin(texts, ", ");
}

Table RecordTable() {
  return Table({{"id", Align::kLeft, "", Clip::kNever},
                {"kind"},
                {"state"},
                {"series", Align::kLeft, "scope", Clip::kNever},
                {"commit", Align::kLeft, "", Clip::kNever},
                {"until"},
                {"effect", Align::kRight},
                {"covers", Align::kLeft, "", Clip::kFold},
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

std::vector<std::string> NamesOf(const std::vector<Series>& series) {
  std::vector<std::string> names;
  for (const Series& one : series) {
    names.push_back(DisplayName(one.key.benchmark));
  }
  return names;
}

// The error for a record that is meant for no series.
absl::Status NothingIsMeant(const proto::TriageRecord& record,
                            const std::vector<Series>& series) {
  return absl::NotFoundError(absl::StrCat(
      "'", ScopeText(record), "' is no series of the history and matches none",
      DidYouMean(ScopeText(record), NamesOf(series)),
      "; next: `optrail log series` lists them"));
}

// Why a number of the series cannot be answered at the commit; "" if it can.
std::string FailureAt(const Series& series, absl::optional<int> place,
                      const Judgement& judgement) {
  if (!place) {
    return judgement.standing == Verdict::kFailed ? judgement.why : "";
  }
  const Point& point = series.points[*place];
  if (point.value || !tuning::IsFailure(point.outcome)) return "";
  return absl::StrCat(tuning::OutcomeName(point.outcome),
                      point.detail.empty() ? "" : ": ", point.detail);
}

// The point that FailureAt speaks of: the newest where the commit has no place.
const Point& FailedPoint(const Series& series, absl::optional<int> place) {
  return place ? series.points[*place] : series.points.back();
}

// The error for an acknowledgement of nothing but failures, the first of which
// is `failure`: stored, it would quiet nothing.
absl::Status OnlyFailures(const std::string& failure) {
  return absl::FailedPreconditionError(absl::StrCat(
      failure,
      ": an ack answers a change of a number, a failure ends with a run that "
      "works; next: mend it, or an exemption of the policy with a day and a "
      "reason, which the gate heeds"));
}

// Names in the record what it is an answer to, in every series that it means.
// NotFound for an acknowledgement of nothing; what is expected or muted may
// still come, so that is only said: often it is a typing error.
absl::Status NameWhatIsAnswered(const History& history, int64_t now_unix_ns,
                                proto::TriageRecord& record) {
  OPTRAIL_ASSIGN_OR_RETURN(LoadedSeries loaded, LoadSeries(history));
  const TriageBook book({record}, 0);
  proto::TriageRecord now = record;
  now.set_created_unix_ns(now_unix_ns);
  const RunsAtCommit there(loaded, record.commit());
  const bool names_changes =
      record.kind() == proto::ACKNOWLEDGE || record.kind() == proto::EXPECT;
  std::vector<Judgement> judgements;
  if (names_changes) {
    JudgeOptions judge;
    FoldMemory folds(std::move(loaded.folds));
    judge.folds = &folds;
    judge.runs = &loaded.runs;
    judgements = JudgeAll(loaded.series, TriageBook({}, 0), judge);
    KeepFolds(history, folds.changed());
  }
  int covered = 0, placed = 0, changed = 0, failed = 0, removed = 0;
  std::string failure;  // the first
  for (size_t i = 0; i < loaded.series.size(); ++i) {
    const Series& series = loaded.series[i];
    if (!Covers(book.entries()[0], series)) continue;
    ++covered;
    const absl::optional<int> place = PlaceOf(record.commit(), series);
    if (record.kind() == proto::ACKNOWLEDGE) {
      const std::string why = FailureAt(series, place, judgements[i]);
      if (!why.empty()) {
        if (++failed == 1) {
          failure =
              absl::StrCat(DisplayName(series.key.benchmark), " failed (", why,
                           "), at commit ",
                           CommitText(FailedPoint(series, place).runs->commit));
        }
        continue;
      }
      const Point* const last = LastMeasuredBefore(now, series);
      if (last != nullptr && (judgements[i].standing == Verdict::kMissing ||
                              there.Lack(series, *last))) {
        ++removed;
        *record.add_answered() = AnswerOfRemoval(series, *last);
        continue;
      }
    }
    if (!place) continue;
    ++placed;
    if (!names_changes) continue;
    changed += ChangeAt(judgements[i], *place) != nullptr;
    proto::AnsweredChange answered =
        AnswerOf(judgements[i], loaded.series, series, *place);
    if (record.has_effect()) {  // that is the size
      answered.clear_effect_low();
      answered.clear_effect_high();
    }
    *record.add_answered() = std::move(answered);
  }
  if (covered == 0 && record.kind() == proto::ACKNOWLEDGE) {
    return NothingIsMeant(record, loaded.series);
  }
  if (failed > 0 && failed == covered) return OnlyFailures(failure);
  if (failed > 0) {
    std::cerr << "note: " << EscapeForTerminal(failure)
              << (failed == 1 ? ""
                              : absl::StrCat(", as do ", failed - 1,
                                             " more of the series"))
              << ": an ack does not answer a failure\n";
  }
  if (removed > 0) {
    std::cerr
        << "note: " << removed << (removed == 1 ? " series is" : " series are")
        << " missing in the newest run, or in that of the commit: that is "
           "acknowledged until a run has them again\n";
    return absl::OkStatus();
  }
  if (covered == 0) {
    std::cerr << "note: stored, but '" << EscapeForTerminal(ScopeText(record))
              << "' means no series of the history so far"
              << EscapeForTerminal(
                     DidYouMean(ScopeText(record), NamesOf(loaded.series)))
              << "; next: `optrail log series` lists them, `optrail triage "
                 "undo` takes it back\n";
  } else if (placed == 0 && record.kind() != proto::MUTE) {
    std::cerr << "note: none of the " << covered
              << " series was measured at or after commit "
              << CommitText(record.commit()) << " so far"
              << (record.kind() == proto::ACKNOWLEDGE
                      ? "; that a benchmark is gone can be acknowledged once "
                        "a run lacks it"
                      : "")
              << "\n";
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
            : "--reason is missing: expected why, for those who come later; "
              "next: repeat it with --reason='known, see the pull request'");
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
  OPTRAIL_RETURN_IF_ERROR(
      NameWhatIsAnswered(history, NowUnixNs(options.common), record));
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
