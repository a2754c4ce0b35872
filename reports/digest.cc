#include "reports/digest.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/types/span.h"
#include "reports/digest.pb.h"
#include "reports/page_series.h"
#include "tracker/detect/folded_change.h"
#include "tracker/history/record.h"
#include "tracker/judge/evidence.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

using tracker::Change;
using tracker::Point;
using tracker::Series;

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}
void AppendVarint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) {
    bytes.push_back(static_cast<char>(value | 0x80));
  }
  bytes.push_back(static_cast<char>(value));
}

// A view's points that are kept, and the way from a place among all of them to
// one among those.
class Keeping {
 public:
  Keeping(const SeriesView& view, const tracker::Judgement& judgement,
          const std::vector<int>& drawn)
      : points_(view.points()), keep_(points_.size(), false) {
    for (const int i : drawn) Mark(i);
    Mark(0);
    Mark(size() - 1);
    MarkNewest();
    MarkDates();
    for (const Change& change : judgement.changes) MarkChange(change);
    place_.reserve(keep_.size() + 1);
    for (const bool keep : keep_) {
      place_.push_back(static_cast<int>(kept_.size()));
      if (keep) kept_.push_back(static_cast<int>(place_.size()) - 1);
    }
    place_.push_back(static_cast<int>(kept_.size()));
  }

  const std::vector<int>& kept() const { return kept_; }
  // How many of the points that are kept come before that place.
  int PlaceOf(int place) const { return place_[place]; }
  // The place of a point that is kept; -1 for null, and for another series'.
  int PlaceOf(const Point* point) const {
    if (point < points_.data() || point >= points_.data() + points_.size()) {
      return -1;
    }
    return place_[point - points_.data()];
  }

 private:
  int size() const { return static_cast<int>(points_.size()); }
  void Mark(int i) {
    if (i >= 0 && i < size()) keep_[i] = true;
  }
  template <typename Is>
  int LastBefore(int end, const Is& is) const {
    int i = end - 1;
    while (i >= 0 && !is(points_[i])) --i;
    return i;
  }
  static bool HasValue(const Point& point) { return point.value.has_value(); }

  // Marks the newest points that pages and verdicts ask for.
  void MarkNewest() {
    const int measured = LastBefore(size(), HasValue);
    Mark(measured);
    Mark(measured + 1);
    Mark(LastBefore(size(), [](const Point& point) {
      return point.value && std::isfinite(*point.value);
    }));
    Mark(LastBefore(size(), [](const Point& point) {
      return point.value && !tuning::IsFailure(point.outcome);
    }));
    Mark(LastBefore(size(), [](const Point& point) {
      return point.attributes->flop && point.attributes->moved_bytes;
    }));
    Mark(LastBefore(size(), [](const Point& point) {
      return point.roofline_fraction.has_value();
    }));
  }

  // The first and the last date that is known.
  void MarkDates() {
    int first = -1, last = -1;
    for (int i = 0; i < size(); ++i) {
      const int64_t ns = points_[i].runs->first_started_unix_ns;
      if (ns / 60000000000 <= 0) continue;
      if (first < 0 || ns < points_[first].runs->first_started_unix_ns) {
        first = i;
      }
      if (last < 0 || ns > points_[last].runs->first_started_unix_ns) last = i;
    }
    Mark(first);
    Mark(last);
  }

  void MarkChange(const Change& change) {
    const tracker::ChangePoint& at = change.change;
    Mark(at.index - 1);
    Mark(at.index);
    Mark(std::max(at.latest, at.index));
    Mark(LastBefore(at.earliest, HasValue));
    Mark(LastBefore(at.index, HasValue));
  }

  const std::vector<Point>& points_;
  std::vector<bool> keep_;
  std::vector<int> kept_, place_;
};

// SeriesView::Drawn::trend of all points, as the view's points.
std::vector<int> TrendPoints(const SeriesView& view) {
  const std::vector<Point>& points = view.points();
  const auto counts = [&](int i) {
    return points[i].value && *points[i].value > 0 &&
           std::isfinite(*points[i].value);
  };
  std::vector<int> valued;
  for (int i = 0; i < static_cast<int>(points.size()); ++i) {
    if (counts(i)) valued.push_back(i);
  }
  // By commit, which is the order of trends.
  std::vector<int> ordered = valued;
  std::stable_sort(ordered.begin(), ordered.end(), [&](int a, int b) {
    return view.commits[a] < view.commits[b];
  });
  // One more than are shown: its value is carried to the first of them.
  int commits = 0, commit = -1;
  size_t begin = ordered.size();
  while (begin > 0) {
    if (view.commits[ordered[begin - 1]] != commit) {
      if (commits == kTrendCommits + 1) break;
      ++commits;
      commit = view.commits[ordered[begin - 1]];
    }
    --begin;
  }
  std::vector<int> trend(ordered.begin() + begin, ordered.end());
  // In the order of points: the last of a commit counts.
  std::sort(trend.begin(), trend.end());
  if (!valued.empty() && (trend.empty() || trend.front() != valued.front())) {
    trend.insert(trend.begin(), valued.front());
  }
  return trend;
}

void KeepEvidence(const Change& change, const Keeping& keeping,
                  const Series& series, const DigestRuns& runs,
                  proto::KeptEvidence* kept) {
  const tracker::Evidence evidence = tracker::EvidenceOf(change);
  const auto keep = [&](const tracker::LevelEvidence& level,
                        proto::KeptLevelEvidence* out) {
    out->set_begin(keeping.PlaceOf(level.begin));
    out->set_end(keeping.PlaceOf(level.end));
    out->set_points(level.points);
    out->set_behind(level.behind);
    out->set_runs(level.runs);
    if (level.run_ids.empty()) return;
    out->add_run_rows(runs.RowOf(level.run_ids.front()));
    out->add_run_rows(runs.RowOf(level.run_ids.back()));
  };
  keep(evidence.before, kept->mutable_before());
  keep(evidence.after, kept->mutable_after());
  int good = -1;
  for (int i = change.change.earliest - 1; i >= 0 && good < 0; --i) {
    if (series.points[i].value) good = i;
  }
  kept->set_good(good < 0 ? -1 : keeping.PlaceOf(good));
  kept->set_bad(
      keeping.PlaceOf(std::max(change.change.latest, change.change.index)));
}

void KeepOpinion(const tracker::Opinion& opinion, proto::KeptOpinion* kept) {
  kept->set_state(static_cast<int>(opinion.state));
  kept->set_record_id(opinion.record_id);
  kept->set_commit(opinion.commit);
  kept->set_created_unix_ns(opinion.created_unix_ns);
  kept->set_reason(opinion.reason);
  kept->set_names_change(opinion.names_change);
  kept->set_reason_is_size(opinion.reason_is_size);
  for (const std::string& note : opinion.notes) kept->add_notes(note);
}

void KeepChange(const Change& change, const Keeping& keeping,
                proto::KeptChange* kept) {
  kept->set_kind(static_cast<int>(change.kind));
  kept->set_provisional(change.provisional);
  tracker::ChangePoint at = change.change;
  at.between =
      keeping.PlaceOf(at.index) - keeping.PlaceOf(at.index - at.between);
  for (int* const place :
       {&at.index, &at.earliest, &at.latest, &at.begin, &at.end}) {
    *place = keeping.PlaceOf(*place);
  }
  *kept->mutable_change() = tracker::ToFolded(at);
  kept->set_worse_by(change.worse_by);
  KeepOpinion(change.opinion, kept->mutable_opinion());
  kept->set_cause(change.cause);
  kept->set_stands_apart(change.stands_apart);
  if (change.points_to_answer) {
    kept->set_points_to_answer(*change.points_to_answer);
  }
  kept->set_before(keeping.PlaceOf(change.before));
  kept->set_back(keeping.PlaceOf(change.back));
}

void KeepJudgement(const tracker::Judgement& judgement, const Keeping& keeping,
                   const Series& series, const DigestRuns& runs,
                   proto::SeriesDigest* kept) {
  for (size_t i = 0; i < judgement.changes.size(); ++i) {
    proto::KeptChange* const change = kept->add_changes();
    KeepChange(judgement.changes[i], keeping, change);
    if (static_cast<int>(i) == judgement.decided_by) {
      KeepEvidence(judgement.changes[i], keeping, series, runs,
                   change->mutable_evidence());
    }
  }
  for (const tracker::Level& level : judgement.levels) {
    proto::KeptLevel* const out = kept->add_levels();
    out->set_begin(keeping.PlaceOf(level.begin));
    out->set_end(keeping.PlaceOf(level.end));
    out->set_value(level.value);
  }
  kept->set_known_points(judgement.known_points);
  kept->set_needed_points(judgement.needed_points);
  kept->set_standing(static_cast<int>(judgement.standing));
  kept->set_why(judgement.why);
  kept->set_decided_by(judgement.decided_by);
  if (judgement.minimum_detectable_effect) {
    kept->set_minimum_detectable_effect(*judgement.minimum_detectable_effect);
  }
}

void KeepPoints(const Series& series, const Keeping& keeping,
                absl::Span<const int> processes, const DigestRuns& runs,
                proto::SeriesDigest* kept) {
  std::map<const tracker::ResultAttributes*, int> attributes;
  for (const int i : keeping.kept()) {
    const Point& point = series.points[i];
    proto::KeptPoint* const out = kept->add_points();
    for (const std::string& id : point.runs->ids) {
      out->add_runs(runs.RowOf(id));
    }
    if (point.value) out->set_value(*point.value);
    out->set_outcome(point.outcome);
    out->set_detail(point.detail);
    if (point.roofline_fraction) {
      out->set_roofline_fraction(*point.roofline_fraction);
    }
    out->set_epoch(point.epoch);
    const auto [known, is_new] =
        attributes.emplace(point.attributes.get(), kept->attributes_size());
    out->set_attributes(known->second);
    if (is_new) {
      proto::KeptAttributes* const more = kept->add_attributes();
      more->set_config(point.attributes->config);
      if (point.attributes->flop) more->set_flop(*point.attributes->flop);
      if (point.attributes->moved_bytes) {
        more->set_moved_bytes(*point.attributes->moved_bytes);
      }
    }
    if (!std::binary_search(processes.begin(), processes.end(), i)) continue;
    for (const tracker::ProcessReading& process : point.processes) {
      out->add_processes(process.value);
    }
  }
}

// The run of a point that began first.
const std::string& FirstRunOf(const tracker::PointRuns& runs,
                              const DigestRuns& all) {
  for (const std::string& id : runs.ids) {
    if (all.Find(all.RowOf(id))->started_unix_ns() ==
        runs.first_started_unix_ns) {
      return id;
    }
  }
  return runs.ids.front();
}

}  // namespace

std::string EncodeDigest(uint64_t key, int limit, const SeriesView& view,
                         const tracker::Judgement& judgement,
                         const DigestRuns& runs) {
  const Series& series = *view.of;
  const std::vector<int> drawn = DrawnPoints(view, limit);
  const Keeping keeping(view, judgement, drawn);
  proto::SeriesDigest kept;
  kept.set_key(key);
  kept.set_limit(limit);
  kept.set_point_count(view.point_count);
  kept.set_process_count(view.process_count);
  kept.set_direction(series.direction);
  // The fewest points have processes at the newest of them alone.
  absl::Span<const int> processes = drawn;
  if (limit == kFewestPoints && processes.size() > kPointsWithProcesses) {
    processes.remove_prefix(processes.size() - kPointsWithProcesses);
  }
  KeepPoints(series, keeping, processes, runs, &kept);
  for (const tracker::Epoch& epoch : series.epochs) {
    proto::KeptEpoch* const out = kept.add_epochs();
    out->set_change(epoch.change);
    out->set_is_of_other_config(epoch.is_of_other_config);
  }
  for (const int i : drawn) kept.add_drawn(keeping.PlaceOf(i));
  for (const int i : view.gaps) kept.add_gaps(keeping.PlaceOf(i));
  for (const int i : TrendPoints(view)) {
    kept.add_trend_runs(runs.RowOf(series.points[i].runs->ids.front()));
    kept.add_trend_values(*series.points[i].value);
  }
  int64_t last = 0;
  for (const Point& point : series.points) {
    const int64_t row = runs.RowOf(FirstRunOf(*point.runs, runs));
    AppendVarint(ZigZag(row - last), *kept.mutable_first_runs());
    last = row;
  }
  KeepJudgement(judgement, keeping, series, runs, &kept);
  return tracker::EncodeRecord(kept);
}

}  // namespace optrail::reports
