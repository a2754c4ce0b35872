// The answers of a Change and a Judgement: see judge.h.

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/units.h"
#include "tracker/judge/beside.h"
#include "tracker/judge/judge.h"

namespace optrail::tracker {
namespace {

// Change::back of changes[i].
const Point* BackFrom(const std::vector<Change>& changes, size_t i) {
  const Change& change = changes[i];
  const double level = change.change.level_before;
  const Point* found = nullptr;
  for (size_t j = i + 1; level != 0 && j < changes.size(); ++j) {
    const Change& later = changes[j];
    if (later.kind == ChangeKind::kEpoch ||
        later.kind == ChangeKind::kMachine) {
      break;
    }
    if (later.kind != ChangeKind::kConfirmed &&
        later.kind != ChangeKind::kReturn) {
      continue;
    }
    const double remains = WorseBy(
        *change.series, (later.change.level_after - level) / std::abs(level));
    const bool back =
        change.worse_by > 0 ? remains < kLeastEffect : remains > -kLeastEffect;
    if (back && found == nullptr) found = &later.after();
    // A confirmed change speaks for itself; a return takes it up again.
    if (!back && later.kind == ChangeKind::kReturn) found = nullptr;
  }
  return found;
}

}  // namespace

bool Change::IsOpen() const {
  return worse_by > 0 && !IsUndone() && opinion.state == ChangeState::kNew &&
         (kind == ChangeKind::kProvisional ||
          (kind == ChangeKind::kCreep && !stands_apart));
}

bool Change::IsAlert() const {
  return (kind == ChangeKind::kConfirmed || kind == ChangeKind::kRenamed ||
          ((kind == ChangeKind::kProvisional || kind == ChangeKind::kCreep) &&
           stands_apart)) &&
         worse_by > 0 && !IsUndone() && opinion.state == ChangeState::kNew;
}

int Change::PointsSince() const {
  return static_cast<int>(std::count_if(
      series->points.begin() + change.index, series->points.end(),
      [](const Point& point) { return point.value.has_value(); }));
}

bool IsNoChangeOfTheCode(const Change& change) {
  return change.kind == ChangeKind::kEpoch ||
         change.kind == ChangeKind::kMachine;
}

bool IsListed(const Change& change, double min_effect) {
  return change.kind != ChangeKind::kReturn &&
         std::abs(change.worse_by) >= min_effect;
}

void ChangeCounts::Add(const Change& change) {
  ++all;
  alerts += change.IsAlert();
  if (IsNoChangeOfTheCode(change)) return;  // its row names no answer
  const ChangeState state = change.opinion.state;
  muted += state == ChangeState::kMuted;
  answered +=
      state == ChangeState::kAcknowledged || state == ChangeState::kExpected;
}

std::string ChangeCounts::Text(double min_effect) const {
  std::vector<std::string> parts;
  if (muted > 0) parts.push_back(absl::StrCat(muted, " muted"));
  if (answered > 0) parts.push_back(absl::StrCat(answered, " answered"));
  return absl::StrCat(
      alerts, " new for the worse, ", all, all == 1 ? " change" : " changes",
      " of at least ", FormatShortPercent(min_effect),
      parts.empty() ? "" : absl::StrCat(" (", absl::StrJoin(parts, ", "), ")"));
}

std::string Change::AnswerText() const {
  if (IsOfPastEpoch()) return "its epoch ended before enough points had come";
  return absl::StrCat(
      points_to_answer
          ? absl::StrCat(*points_to_answer, " more ",
                         *points_to_answer == 1 ? "point" : "points",
                         " like it would confirm it")
          : "more points decide",
      "; gate judges the newest run");
}

int Judgement::NormOf(int points, const Series& series,
                      const TriageBook& book) const {
  int begin = 0;
  for (const Change& change : changes) {
    // The newest points of a creep are no level of their own.
    if (change.change.index >= points || change.kind == ChangeKind::kCreep) {
      continue;
    }
    // A level ends with the point that confirmed it.
    const bool is_known = (change.kind == ChangeKind::kConfirmed &&
                           change.change.end <= points) ||
                          change.kind == ChangeKind::kMachine ||
                          change.opinion.state == ChangeState::kAcknowledged;
    if (is_known) begin = std::max(begin, change.change.index);
  }
  if (const auto place = book.LastAcknowledged(series, points)) {
    // The change that it speaks of may have been found a point or two beside.
    const bool found =
        std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
          return change.kind != ChangeKind::kCreep &&
                 std::abs(change.change.index - *place) <=
                     TriageBook::kPlaceTolerance;
        });
    if (!found) begin = std::max(begin, *place);
  }
  return begin;
}

void Judgement::FindUndone() {
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].kind == ChangeKind::kConfirmed ||
        changes[i].kind == ChangeKind::kRenamed) {
      changes[i].back = BackFrom(changes, i);
    }
  }
}

}  // namespace optrail::tracker
