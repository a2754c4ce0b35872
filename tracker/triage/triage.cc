#include "tracker/triage/triage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/text/percentage.h"
#include "base/text/units.h"
#include "tracker/judge/beside.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

std::unique_ptr<RE2> CompileOrNull(const std::string& pattern) {
  if (pattern.empty()) return nullptr;
  auto compiled = std::make_unique<RE2>(pattern, RE2::Quiet);
  return compiled->ok() ? std::move(compiled) : nullptr;
}

// Which records are taken back. An UNDO counts unless it is taken back itself;
// a circle, which no honest writer makes, counts as not taken back.
class UndoGraph {
 public:
  explicit UndoGraph(const std::vector<proto::TriageRecord>& records) {
    for (const proto::TriageRecord& record : records) {
      if (record.kind() == proto::UNDO) {
        undone_by_[record.supersedes()].push_back(record.record_id());
      }
    }
  }

  bool IsUndone(const std::string& id) {
    if (!visiting_.insert(id).second) return false;
    bool undone = false;
    for (const std::string& by : undone_by_[id]) {
      undone = undone || !IsUndone(by);
    }
    visiting_.erase(id);
    return undone;
  }

 private:
  std::map<std::string, std::vector<std::string>> undone_by_;
  std::set<std::string> visiting_;
};

// The last point of the series at or before the commit; nullopt if none is.
absl::optional<int> LastPlaceOf(const proto::Commit& commit,
                                const Series& series) {
  for (int i = static_cast<int>(series.points.size()) - 1; i >= 0; --i) {
    const proto::Commit& at = series.points[i].runs->commit;
    if (!commit.id().empty() && at.id() == commit.id()) return i;
    if (commit.has_first_parent_position() && at.has_first_parent_position() &&
        at.first_parent_position() <= commit.first_parent_position()) {
      return i;
    }
  }
  return absl::nullopt;
}

// The place of a commit that was measured when the series was answered. Where
// its run is gone (history thin), the first one after it shows what it changed.
absl::optional<int> AnsweredPlaceOf(const proto::Commit& commit,
                                    const Series& series) {
  const absl::optional<int> before = LastPlaceOf(commit, series);
  if (!before || !commit.has_first_parent_position()) return before;
  const proto::Commit& at = series.points[*before].runs->commit;
  const bool is_measured =
      at.id() == commit.id() ||
      at.first_parent_position() == commit.first_parent_position();
  const bool is_newest = *before + 1 == static_cast<int>(series.points.size());
  return is_measured || is_newest ? *before : *before + 1;
}

// Returns whether the change lies where the one that was answered does.
bool IsThere(const proto::AnsweredChange& answered, const Series& series,
             const ChangePoint& change) {
  const absl::optional<int> last = AnsweredPlaceOf(answered.last(), series);
  if (!last || change.earliest > *last) return false;
  if (answered.has_last_before()) {
    const absl::optional<int> before =
        LastPlaceOf(answered.last_before(), series);
    if (before && change.index + TriageBook::kPlaceTolerance <= *before) {
      return false;
    }
  }
  return true;
}

bool NamesSize(const proto::AnsweredChange& answered) {
  return answered.has_effect_low() && answered.has_effect_high();
}

// Returns whether the values were as before when somebody answered: a record of
// many series has such answers, and one that was given before its change.
bool IsOfNoChange(const proto::AnsweredChange& answered) {
  return NamesSize(answered) && answered.effect_low() <= 0 &&
         answered.effect_high() >= 0 && answered.effect_low() > -kLeastEffect &&
         answered.effect_high() < kLeastEffect;
}

// Returns whether the change is the one that was answered, or a smaller one
// there.
bool IsAnswered(const proto::AnsweredChange& answered, const Series& series,
                const ChangePoint& change) {
  return IsThere(answered, series, change) &&
         (!NamesSize(answered) ||
          IsWithin(change, answered.effect_low(), answered.effect_high()));
}

// Returns whether the record names this change: its size, and suspects of which
// the change's place is one. A record that names no change at all, an old one
// or of a commit that was not measured yet, speaks of its commit and what
// follows.
bool Names(const TriageBook::Entry& entry, const Series& series,
           const ChangePoint& change) {
  if (entry.record.answered().empty()) {
    const absl::optional<int> place = PlaceOf(entry.record.commit(), series);
    return place && change.index >= *place;
  }
  const proto::AnsweredChange* const answered = entry.AnsweredOf(series);
  if (answered == nullptr || !NamesSize(*answered)) return false;
  if (!answered->has_last_before()) return true;
  const absl::optional<int> before =
      LastPlaceOf(answered->last_before(), series);
  return !before || change.index > *before;
}

// Whether the record speaks of the change, whatever its size if it says none.
bool SpeaksOf(const TriageBook::Entry& entry, const Series& series,
              const ChangePoint& change) {
  if (const proto::AnsweredChange* answered = entry.AnsweredOf(series)) {
    return IsAnswered(*answered, series, change);
  }
  const absl::optional<int> place = PlaceOf(entry.record.commit(), series);
  return place.has_value() &&
         std::abs(*place - change.index) <= TriageBook::kPlaceTolerance;
}

std::string ShortId(const proto::Commit& commit) {
  return commit.id().substr(0, 12);
}

std::string ExpectedText(const proto::TriageRecord& record) {
  return absl::StrCat("expected was ", record.effect() < 0 ? "" : "+",
                      FormatShortPercent(record.effect(), 3), " (",
                      record.text(), ")");
}

// "+10% was acknowledged at 1a2b3c4d5e6f (the new codec)".
std::string AnsweredText(const proto::TriageRecord& record,
                         const proto::AnsweredChange& answered) {
  return absl::StrCat(
      answered.has_effect_high()
          ? absl::StrCat(FormatChange(answered.effect_low()), " to ",
                         FormatChange(answered.effect_high()))
          : "another change",
      " was ",
      record.kind() == proto::ACKNOWLEDGE ? "acknowledged" : "expected", " at ",
      ShortId(record.commit()), " (", record.text(), ")");
}

}  // namespace

absl::string_view ChangeStateName(ChangeState state) {
  static constexpr absl::string_view kNames[] = {"new", "muted", "expected",
                                                 "acknowledged"};
  return kNames[static_cast<size_t>(state)];
}

absl::string_view RecordStateName(RecordState state) {
  static constexpr absl::string_view kNames[] = {"active", "expired", "undone"};
  return kNames[static_cast<size_t>(state)];
}

absl::string_view TriageKindName(proto::TriageKind kind) {
  static const auto* const names =
      new std::map<proto::TriageKind, absl::string_view>{
          {proto::ACKNOWLEDGE, "ack"},
          {proto::EXPECT, "expect"},
          {proto::MUTE, "mute"},
          {proto::NOTE, "note"},
          {proto::UNDO, "undo"}};
  const auto found = names->find(kind);
  return found == names->end() ? "unknown" : found->second;  // of newer code
}

TriageBook::TriageBook(const std::vector<proto::TriageRecord>& records,
                       int64_t now_unix_ns) {
  UndoGraph undo(records);
  for (const proto::TriageRecord& record : records) {
    Entry entry;
    entry.record = record;
    entry.pattern = CompileOrNull(record.pattern());
    for (int i = 0; i < record.answered_size(); ++i) {
      entry.answered.emplace(record.answered(i).series(), i);
    }
    if (undo.IsUndone(record.record_id())) {
      entry.state = RecordState::kUndone;
    } else if (record.kind() == proto::MUTE &&
               record.until_unix_ns() <= now_unix_ns) {
      entry.state = RecordState::kExpired;
    }
    entries_.push_back(std::move(entry));
  }
  std::sort(
      entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
        return std::make_pair(a.record.created_unix_ns(),
                              a.record.record_id()) <
               std::make_pair(b.record.created_unix_ns(), b.record.record_id());
      });
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].state != RecordState::kActive) continue;
    const std::string& named = entries_[i].record.series();
    if (!named.empty()) {
      by_series_[named].push_back(static_cast<int>(i));
    } else if (entries_[i].pattern != nullptr) {
      with_pattern_.push_back(static_cast<int>(i));
    }
  }
}

const proto::AnsweredChange* TriageBook::Entry::AnsweredOf(
    const Series& series) const {
  const auto found = answered.find(series.text);
  return found == answered.end() ? nullptr : &record.answered(found->second);
}

bool IsWithin(const ChangePoint& change, double low, double high) {
  return change.relative_change_low <= std::max(0.0, high) &&
         change.relative_change_high >= std::min(0.0, low);
}

std::string LastDayText(int64_t unix_ns) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixNanos(unix_ns - 1),
                          absl::UTCTimeZone());
}

bool Covers(const TriageBook::Entry& entry, const Series& series) {
  if (!entry.record.series().empty()) {
    return entry.record.series() == series.text;
  }
  return entry.pattern != nullptr &&
         RE2::FullMatch(DisplayName(series.key.benchmark), *entry.pattern);
}

absl::optional<int> PlaceOf(const proto::Commit& commit, const Series& series) {
  const std::vector<Point>& points = series.points;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!commit.id().empty() && points[i].runs->commit.id() == commit.id()) {
      return static_cast<int>(i);
    }
  }
  if (!commit.has_first_parent_position()) return absl::nullopt;
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].runs->commit.has_first_parent_position() &&
        points[i].runs->commit.first_parent_position() >=
            commit.first_parent_position()) {
      // Before the first point of the series nothing can have changed.
      if (i == 0) return absl::nullopt;
      return static_cast<int>(i);
    }
  }
  return absl::nullopt;
}

std::vector<const TriageBook::Entry*> TriageBook::Covering(
    const Series& series) const {
  std::vector<int> covering;
  const auto named = by_series_.find(series.text);
  if (named != by_series_.end()) covering = named->second;
  for (const int i : with_pattern_) {
    if (Covers(entries_[i], series)) covering.push_back(i);
  }
  std::sort(covering.begin(), covering.end());
  std::vector<const Entry*> entries;
  for (const int i : covering) entries.push_back(&entries_[i]);
  return entries;
}

std::string TriageBook::SayingsOf(const Series& series) const {
  std::string sayings;
  for (const Entry* entry : Covering(series)) {
    const std::string record = entry->record.SerializeAsString();
    absl::StrAppend(&sayings, record.size(), ":", record);
  }
  return sayings;
}

absl::optional<int> TriageBook::LastAcknowledged(const Series& series,
                                                 int points) const {
  absl::optional<int> last;
  for (const Entry* entry : Covering(series)) {
    if (entry->record.kind() != proto::ACKNOWLEDGE) continue;
    const proto::AnsweredChange* answered = entry->AnsweredOf(series);
    if (answered != nullptr &&
        (IsRemoval(*answered) || IsOfNoChange(*answered))) {
      continue;
    }
    const absl::optional<int> place = PlaceOf(entry->record.commit(), series);
    if (place && *place < points && (!last || *place > *last)) last = place;
  }
  return last;
}

bool IsRemoval(const proto::AnsweredChange& answered) {
  return !answered.has_last();
}

const Point* LastMeasuredBefore(const proto::TriageRecord& record,
                                const Series& series) {
  const Point* last = nullptr;
  const proto::Commit& commit = record.commit();
  for (const Point& point : series.points) {
    if (!point.value) continue;
    if (point.runs->commit.id() == commit.id()) return nullptr;
    last = &point;
  }
  if (last == nullptr) return nullptr;
  const proto::Commit& at = last->runs->commit;
  const bool has_positions =
      commit.has_first_parent_position() && at.has_first_parent_position();
  const bool is_later =
      has_positions
          ? commit.first_parent_position() > at.first_parent_position()
          : record.created_unix_ns() > last->runs->first_started_unix_ns;
  return is_later ? last : nullptr;
}

const TriageBook::Entry* TriageBook::RemovalAcknowledged(
    const Series& series) const {
  const Entry* found = nullptr;
  for (const Entry* entry : Covering(series)) {
    const proto::AnsweredChange* answered = entry->AnsweredOf(series);
    if (entry->record.kind() == proto::ACKNOWLEDGE && answered != nullptr &&
        IsRemoval(*answered) &&
        LastMeasuredBefore(entry->record, series) != nullptr) {
      found = entry;
    }
  }
  return found;
}

Opinion TriageBook::OpinionOf(const Series& series,
                              const ChangePoint& change) const {
  Opinion opinion;
  for (const Entry* entry : Covering(series)) {
    const proto::TriageRecord& record = entry->record;
    const auto decide = [&](ChangeState state) {
      if (state < opinion.state) return;
      opinion.state = state;
      opinion.record_id = record.record_id();
      opinion.commit = ShortId(record.commit());
      opinion.created_unix_ns = record.created_unix_ns();
      opinion.reason = record.text();
    };
    if (record.kind() == proto::MUTE) {
      decide(ChangeState::kMuted);
      continue;
    }
    if (!SpeaksOf(*entry, series, change)) {
      // People will ask why it does not cover a change nearby.
      const proto::AnsweredChange* answered = entry->AnsweredOf(series);
      const absl::optional<int> place = PlaceOf(record.commit(), series);
      if (answered != nullptr && !IsRemoval(*answered) &&
          opinion.state == ChangeState::kNew && place &&
          std::abs(*place - change.index) <= kPlaceTolerance) {
        opinion.reason = AnsweredText(record, *answered);
        opinion.reason_is_size = IsThere(*answered, series, change);
      }
      continue;
    }
    if (record.kind() == proto::ACKNOWLEDGE) {
      // One that names the change decides before others.
      const bool names_change = Names(*entry, series, change);
      if (names_change || !opinion.names_change) {
        decide(ChangeState::kAcknowledged);
      }
      opinion.names_change |= names_change;
    } else if (record.kind() == proto::NOTE) {
      opinion.notes.push_back(record.text());
    } else if (record.kind() == proto::EXPECT) {
      if (!record.has_effect() ||
          IsWithin(change, record.effect(), record.effect())) {
        decide(ChangeState::kExpected);
      } else if (opinion.state == ChangeState::kNew) {
        opinion.reason = ExpectedText(record);
      }
    }
  }
  return opinion;
}

absl::StatusOr<const TriageBook::Entry*> TriageBook::Find(
    absl::string_view id) const {
  std::vector<const Entry*> found;
  for (const Entry& entry : entries_) {
    const absl::string_view whole = entry.record.record_id();
    const size_t dash = whole.find('-');
    if (whole == id) return &entry;
    if (!id.empty() && (absl::StartsWith(whole, id) ||
                        (dash != absl::string_view::npos &&
                         absl::StartsWith(whole.substr(dash + 1), id)))) {
      found.push_back(&entry);
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "'", id, "' is no triage record; `optrail triage` lists them"));
  }
  if (found.size() == 1) return found[0];
  std::vector<std::string> meanings;
  for (const Entry* entry : found) {
    meanings.push_back(entry->record.record_id());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", id, "' could be any of: ", absl::StrJoin(meanings, ", ")));
}

absl::Status SetScope(absl::string_view text, proto::TriageRecord* record) {
  if (text.empty()) {
    return absl::InvalidArgumentError(
        "expected a series or a pattern of benchmark names, found ''");
  }
  // A series has characters that a pattern reads otherwise: '|' above all.
  if (ParseSeriesKey(text).ok()) {
    record->set_series(std::string(text));
    return absl::OkStatus();
  }
  const RE2 pattern(re2::StringPiece(text.data(), text.size()), RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is neither a series (`optrail log series` lists them) ",
        "nor a regular expression (RE2): ", pattern.error()));
  }
  record->set_pattern(std::string(text));
  return absl::OkStatus();
}

absl::StatusOr<double> ParseEffect(absl::string_view text) {
  const absl::StatusOr<double> effect = ParsePercentage(text);
  if (effect.ok() && *effect > -1) return *effect;
  return absl::InvalidArgumentError(absl::StrCat(
      "effect '", text, "': expected a percentage such as +5% or -10%"));
}

absl::StatusOr<int64_t> ParseEndOfDay(absl::string_view text) {
  absl::CivilDay day;
  if (text.size() != 10 || !absl::ParseCivilTime(text, &day)) {
    return absl::InvalidArgumentError(
        absl::StrCat("date '", text, "': expected a day such as 2026-12-24"));
  }
  return absl::ToUnixNanos(absl::FromCivil(day + 1, absl::UTCTimeZone()));
}

}  // namespace optrail::tracker
