#include "tracker/judge/newest.h"

#include <algorithm>

#include "tracker/judge/beside.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

// The begin of the level before the newest one in its epoch; nullopt if there
// is none.
absl::optional<int> BeginOfLastLevelButOne(const Judgement& judgement) {
  const size_t levels = judgement.levels.size();
  if (levels < 2) return absl::nullopt;
  const int before = judgement.levels[levels - 2].begin;
  if (before < judgement.epoch_begins.back()) return absl::nullopt;
  return before;
}

// A step too small to be news, which nobody has answered.
bool IsSmall(const Change& change) {
  return change.worse_by > 0 && change.worse_by < kLeastEffect &&
         change.opinion.state == ChangeState::kNew &&
         change.kind != ChangeKind::kMachine;
}

// Points that are off the level before a step too small to be news: that begins
// no level that would hide what came on top of it.
absl::optional<ChangePoint> FindNewestOnTop(const Series& series,
                                            const Judgement& judgement) {
  const int begin = judgement.levels.back().begin;
  const int level_begin = std::max(begin, judgement.epoch_begins.back());
  for (const Change& change : judgement.changes) {
    if (!change.provisional || !IsSmall(change)) continue;
    if (auto found =
            FindNewestBeyond(series, level_begin, change.change.index)) {
      return found;
    }
  }
  const absl::optional<int> before = BeginOfLastLevelButOne(judgement);
  if (!before) return absl::nullopt;
  const bool is_small =
      std::any_of(judgement.changes.begin(), judgement.changes.end(),
                  [begin](const Change& change) {
                    return change.change.index == begin && IsSmall(change);
                  });
  return is_small ? FindNewest(series, *before) : absl::nullopt;
}

// A step that was acknowledged before a detector saw it has a row, too, and so
// has a gain beyond the level before one that was acknowledged, or that is no
// news.
absl::optional<ChangePoint> FindNewestAcknowledged(const Series& series,
                                                   const Judgement& judgement,
                                                   bool for_the_worse) {
  const absl::optional<int> before = BeginOfLastLevelButOne(judgement);
  if (!before) return absl::nullopt;
  const int begin = judgement.levels.back().begin;
  const bool is_of_a_change =
      std::any_of(judgement.changes.begin(), judgement.changes.end(),
                  [begin, for_the_worse](const Change& change) {
                    return change.change.index == begin &&
                           (for_the_worse || change.worse_by <= -kLeastEffect);
                  });
  if (is_of_a_change) return absl::nullopt;
  auto found = FindNewest(series, *before, for_the_worse);
  // Points behind it are of the level that was acknowledged.
  if (for_the_worse && found &&
      found->index > begin + TriageBook::kPlaceTolerance) {
    found.reset();
  }
  return found;
}

}  // namespace

absl::optional<NewestOff> FindNewestOff(const Series& series,
                                        const Judgement& judgement) {
  if (series.points.empty() || !series.points.back().value ||
      judgement.levels.empty()) {
    return absl::nullopt;
  }
  const int level_begin =
      std::max(judgement.levels.back().begin, judgement.epoch_begins.back());
  // A step that is marked already does not hide one that came after it.
  int begin = level_begin;
  bool is_marked = false, is_gain_marked = false, is_open = false;
  for (const Change& change : judgement.changes) {
    if (!change.provisional) continue;
    is_gain_marked |= change.worse_by <= -kLeastEffect;
    if (change.worse_by >= kLeastEffect) {
      is_marked = true;
      is_open |= change.opinion.state == ChangeState::kNew;
    }
    begin = std::max(begin, change.change.index);
  }
  auto found = FindNewest(series, begin);
  // An open mark says all of it; one that was answered says only what it was.
  if (!found && !is_open) {
    const absl::optional<int> before =
        begin > level_begin ? level_begin : BeginOfLastLevelButOne(judgement);
    if (before) found = FindNewestBehind(series, *before, begin);
  }
  if (!found && is_marked) return absl::nullopt;
  if (!found) found = FindNewest(series, level_begin);
  if (!found) found = FindNewestOnTop(series, judgement);
  if (!found) found = FindNewestAcknowledged(series, judgement, true);
  if (!found && !is_gain_marked) {
    found = FindNewest(series, level_begin, /*for_the_worse=*/false);
    if (!found) found = FindNewestAcknowledged(series, judgement, false);
  }
  if (!found) return absl::nullopt;
  return NewestOff{*found, begin};
}

int BeginOfLevelBefore(const Judgement& judgement, const Change& change) {
  if (judgement.levels.empty()) return 0;
  const int begin = judgement.levels.back().begin;
  if (change.opinion.state == ChangeState::kAcknowledged ||
      change.change.index > begin + TriageBook::kPlaceTolerance) {
    return begin;
  }
  const bool is_shift =
      std::any_of(judgement.changes.begin(), judgement.changes.end(),
                  [begin](const Change& one) {
                    return one.change.index == begin && !one.provisional &&
                           one.kind != ChangeKind::kCreep;
                  });
  return is_shift ? begin : BeginOfLastLevelButOne(judgement).value_or(begin);
}

}  // namespace optrail::tracker
