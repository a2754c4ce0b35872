#include "tracker/triage/answered_change.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "tracker/judge/beside.h"
#include "tracker/judge/evidence.h"
#include "tracker/series/series_key.h"
#include "tracker/triage/triage.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// How far the place is from what the change's first point could be.
int DistanceTo(const ChangePoint& change, int place) {
  return std::max({0, change.earliest - place, place - change.latest});
}

void SetCommit(const proto::Commit& from, proto::Commit* to) {
  to->set_id(from.id());
  if (from.has_first_parent_position()) {
    to->set_first_parent_position(from.first_parent_position());
  }
}

// Names a series of any branch.
std::string TextOfAllBranches(const SeriesKey& key) {
  return absl::StrJoin(
      {CanonicalText(key.benchmark), key.metric, key.hardware_id}, "|");
}

// Points of the benchmark on another branch that come before this one: what a
// branch with no run before it is compared with. The branch with most of them
// counts.
std::vector<Point> PastOnAnotherBranch(const std::vector<Series>& all,
                                       const Series& series, int place) {
  const Point& from = series.points[place];
  const proto::Commit& commit = from.runs->commit;
  std::vector<Point> most;
  for (const Series& other : all) {
    if (other.key.branch == series.key.branch ||
        TextOfAllBranches(other.key) != TextOfAllBranches(series.key)) {
      continue;
    }
    std::vector<Point> past;
    for (const Point& point : other.points) {
      const proto::Commit& at = point.runs->commit;
      const bool has_positions =
          at.has_first_parent_position() && commit.has_first_parent_position();
      const bool is_before =
          has_positions
              ? at.first_parent_position() < commit.first_parent_position()
              : point.runs->first_started_unix_ns <
                    from.runs->first_started_unix_ns;
      if (is_before && point.value) past.push_back(point);
    }
    if (past.size() > most.size()) most = std::move(past);
  }
  return most;
}

// The difference that the point at `place` shows, without what comes behind it:
// a change that may have begun later is held to have.
absl::optional<ChangePoint> OwnChangeAt(const Judgement& judgement,
                                        const Series& series, int place) {
  Judgement behind;
  behind.epoch_begins = judgement.epoch_begins;
  behind.changes = judgement.changes;
  for (Change& change : behind.changes) {
    if (change.change.index <= place && place < change.change.latest) {
      change.change.index = place + 1;
    }
  }
  return ChangeAsMeasured(behind, series, place);
}

// Returns whether the point at `place`, behind which `change` may have begun,
// shows for certain a change of its own that does not cover it: one of the
// other direction or, where the point is none of the suspects, a smaller one.
// An answer to that point does not mean what came later.
bool IsAnotherThanAt(const Judgement& judgement, const Change& change,
                     int place) {
  constexpr double kSure = .9999;
  const auto there = OwnChangeAt(judgement, *change.series, place);
  if (!there || std::abs(there->relative_change) < kLeastEffect ||
      there->confidence < kSure ||
      there->relative_change_low * there->relative_change_high <= 0) {
    return false;
  }
  return place < change.change.earliest
             ? !IsWithin(change.change, there->relative_change_low,
                         there->relative_change_high)
             : there->relative_change * change.change.relative_change < 0;
}

std::string SuiteOn(const proto::Run& run) {
  return absl::StrCat(run.suite(), "|", run.hardware().id());
}

}  // namespace

const Change* ChangeAt(const Judgement& judgement, int place) {
  const Change* nearest = nullptr;
  const auto distance = [place](const Change& change) {
    return std::make_pair(DistanceTo(change.change, place),
                          std::abs(change.change.index - place));
  };
  for (const Change& change : judgement.changes) {
    if (change.kind == ChangeKind::kEpoch ||
        change.kind == ChangeKind::kReturn ||
        DistanceTo(change.change, place) > TriageBook::kPlaceTolerance ||
        (place < change.change.latest &&
         IsAnotherThanAt(judgement, change, place))) {
      continue;
    }
    if (nearest == nullptr || distance(change) < distance(*nearest)) {
      nearest = &change;
    }
  }
  return nearest;
}

proto::AnsweredChange AnswerOf(const Judgement& judgement,
                               const std::vector<Series>& all,
                               const Series& series, int place) {
  const Change* const found = ChangeAt(judgement, place);
  absl::optional<ChangePoint> change =
      found != nullptr ? absl::make_optional(found->change)
                       : OwnChangeAt(judgement, series, place);
  if (!change) {
    change =
        ChangeSince(PastOnAnotherBranch(all, series, place), series, place);
  }
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

proto::AnsweredChange AnswerOfRemoval(const Series& series, const Point& last) {
  proto::AnsweredChange answered;
  answered.set_series(series.text);
  SetCommit(last.runs->commit, answered.mutable_last_before());
  return answered;
}

RunsAtCommit::RunsAtCommit(const LoadedSeries& loaded,
                           const proto::Commit& commit) {
  for (const proto::Run& run : loaded.runs) {
    suites_of_[run.run_id()] = SuiteOn(run);
    if (!commit.id().empty() && run.commit().id() == commit.id()) {
      suites_.insert(SuiteOn(run));
    }
  }
  if (suites_.empty()) return;
  for (const Series& series : loaded.series) {
    for (const Point& point : series.points) {
      if (point.runs->commit.id() == commit.id() &&
          (point.value || tuning::IsFailure(point.outcome))) {
        measured_.insert(TextOfAllBranches(series.key));
      }
    }
  }
}

bool RunsAtCommit::Lack(const Series& series, const Point& last) const {
  if (measured_.count(TextOfAllBranches(series.key)) > 0) return false;
  for (const std::string& id : last.runs->ids) {
    const auto suite = suites_of_.find(id);
    if (suite != suites_of_.end() && suites_.count(suite->second) > 0) {
      return true;
    }
  }
  return false;
}

}  // namespace optrail::tracker
