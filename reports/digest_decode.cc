// Reads what EncodeDigest wrote: see digest.h.

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "google/protobuf/arena.h"
#include "reports/digest.h"
#include "reports/digest.pb.h"
#include "tracker/detect/folded_change.h"
#include "tracker/history/record.h"
#include "tracker/judge/evidence.h"

namespace optrail::reports {
namespace {

using tracker::Change;
using tracker::Point;

int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

tracker::Opinion OpinionOf(const proto::KeptOpinion& kept) {
  tracker::Opinion opinion;
  opinion.state = static_cast<tracker::ChangeState>(kept.state());
  opinion.record_id = kept.record_id();
  opinion.commit = kept.commit();
  opinion.created_unix_ns = kept.created_unix_ns();
  opinion.reason = kept.reason();
  opinion.names_change = kept.names_change();
  opinion.reason_is_size = kept.reason_is_size();
  opinion.notes.assign(kept.notes().begin(), kept.notes().end());
  return opinion;
}

// Fills a digest from what was kept, a part per function; each returns false
// where it does not fit.
class Decoder {
 public:
  Decoder(const proto::SeriesDigest& kept, const DigestRuns& runs,
          KeptDigest* digest)
      : kept_(kept), runs_(runs), digest_(*digest) {}

  bool Decode() {
    digest_.key = kept_.key();
    digest_.series.direction = kept_.direction();
    digest_.series.times = runs_.TimesOf(kept_.first_runs());
    return digest_.series.times != nullptr && TakePoints() && TakeFacts() &&
           TakeJudgement();
  }

 private:
  int size() const { return kept_.points_size(); }
  bool IsPoint(int place) const { return place >= 0 && place < size(); }
  bool IsEnd(int place) const { return place >= 0 && place <= size(); }

  bool TakePoints() {
    std::vector<std::shared_ptr<const tracker::ResultAttributes>> attributes;
    for (const proto::KeptAttributes& each : kept_.attributes()) {
      tracker::ResultAttributes one;
      one.config = each.config();
      if (each.has_flop()) one.flop = each.flop();
      if (each.has_moved_bytes()) one.moved_bytes = each.moved_bytes();
      attributes.push_back(
          std::make_shared<const tracker::ResultAttributes>(std::move(one)));
    }
    for (const proto::KeptEpoch& each : kept_.epochs()) {
      digest_.series.epochs.push_back(
          {proto::Toolchain(), each.change(), each.is_of_other_config()});
    }
    const int epochs = kept_.epochs_size();
    digest_.series.points.resize(size());
    for (int i = 0; i < size(); ++i) {
      const proto::KeptPoint& from = kept_.points(i);
      Point& point = digest_.series.points[i];
      point.runs = runs_.PointRunsOf({from.runs().begin(), from.runs().end()});
      if (point.runs == nullptr || from.attributes() < 0 ||
          from.attributes() >= static_cast<int>(attributes.size()) ||
          from.epoch() < 0 || from.epoch() >= epochs) {
        return false;
      }
      if (from.has_value()) point.value = point.low = point.high = from.value();
      point.outcome = from.outcome();
      point.detail = from.detail();
      point.attributes = attributes[from.attributes()];
      if (from.has_roofline_fraction()) {
        point.roofline_fraction = from.roofline_fraction();
      }
      point.epoch = from.epoch();
      point.processes.reserve(from.processes_size());
      for (const double value : from.processes()) {
        point.processes.emplace_back();
        point.processes.back().value = value;
      }
    }
    return size() > 0;
  }

  bool TakeFacts() {
    JudgedSeries::Digested& facts = digest_.facts;
    facts.point_count = kept_.point_count();
    facts.process_count = kept_.process_count();
    if (facts.point_count < size() || facts.process_count < 0) return false;
    facts.gaps.assign(kept_.gaps().begin(), kept_.gaps().end());
    facts.drawn.limit = kept_.limit();
    facts.drawn.points.assign(kept_.drawn().begin(), kept_.drawn().end());
    for (const int place : facts.gaps) {
      if (!IsEnd(place)) return false;
    }
    for (const int place : facts.drawn.points) {
      if (!IsPoint(place)) return false;
    }
    if (kept_.trend_runs_size() != kept_.trend_values_size()) return false;
    facts.drawn.trend.reserve(kept_.trend_runs_size());
    for (int i = 0; i < kept_.trend_runs_size(); ++i) {
      const int commit = runs_.CommitOf(kept_.trend_runs(i));
      if (commit < 0) return false;
      facts.drawn.trend.emplace_back(commit, kept_.trend_values(i));
    }
    return true;
  }

  bool TakeJudgement() {
    tracker::Judgement& judgement = digest_.judgement;
    judgement.changes.resize(kept_.changes_size());
    for (int i = 0; i < kept_.changes_size(); ++i) {
      if (!TakeChange(kept_.changes(i), &judgement.changes[i])) return false;
    }
    for (const proto::KeptLevel& level : kept_.levels()) {
      if (!IsEnd(level.begin()) || !IsEnd(level.end())) return false;
      judgement.levels.push_back({level.begin(), level.end(), level.value()});
    }
    judgement.known_points = kept_.known_points();
    judgement.needed_points = kept_.needed_points();
    judgement.standing = static_cast<Verdict>(kept_.standing());
    judgement.why = kept_.why();
    judgement.decided_by = kept_.decided_by();
    if (kept_.has_minimum_detectable_effect()) {
      judgement.minimum_detectable_effect = kept_.minimum_detectable_effect();
    }
    const absl::Span<const tracker::VerdictInfo> verdicts = tracker::Verdicts();
    return judgement.decided_by >= -1 &&
           judgement.decided_by < kept_.changes_size() &&
           std::any_of(verdicts.begin(), verdicts.end(),
                       [&](const tracker::VerdictInfo& info) {
                         return info.verdict == judgement.standing;
                       });
  }

  bool TakeChange(const proto::KeptChange& from, Change* change) {
    const proto::FoldedChange& at = from.change();
    if (from.kind() < 0 ||
        from.kind() > static_cast<int>(tracker::ChangeKind::kRenamed) ||
        from.opinion().state() < 0 ||
        from.opinion().state() >
            static_cast<int>(tracker::ChangeState::kAcknowledged) ||
        !IsPoint(at.index()) || !IsPoint(at.latest()) ||
        !IsEnd(at.earliest()) || !IsEnd(at.begin()) || !IsEnd(at.end()) ||
        at.between() < 0 || !IsEnd(at.index() - at.between()) ||
        (from.before() != -1 && !IsPoint(from.before())) ||
        (from.back() != -1 && !IsPoint(from.back()))) {
      return false;
    }
    change->kind = static_cast<tracker::ChangeKind>(from.kind());
    change->provisional = from.provisional();
    change->change = tracker::FromFolded(at);
    change->worse_by = from.worse_by();
    change->opinion = OpinionOf(from.opinion());
    change->cause = from.cause();
    change->stands_apart = from.stands_apart();
    if (from.has_points_to_answer()) {
      change->points_to_answer = from.points_to_answer();
    }
    const std::vector<Point>& points = digest_.series.points;
    if (from.before() >= 0) change->before = &points[from.before()];
    if (from.back() >= 0) change->back = &points[from.back()];
    return !from.has_evidence() || TakeEvidence(from.evidence(), change);
  }

  bool TakeEvidence(const proto::KeptEvidence& from, Change* change) {
    auto evidence = std::make_shared<tracker::Evidence>();
    const auto take = [&](const proto::KeptLevelEvidence& level,
                          tracker::LevelEvidence* to) {
      if (!IsEnd(level.begin()) || !IsEnd(level.end()) ||
          level.begin() > level.end() || level.points() < 0 ||
          level.behind() < 0 || level.runs() < 0) {
        return false;
      }
      *to = {level.begin(),  level.end(),  level.points(),
             level.behind(), level.runs(), {}};
      for (const int64_t row : level.run_rows()) {
        const proto::Run* const run = runs_.Find(row);
        if (run == nullptr) return false;
        to->run_ids.push_back(run->run_id());
      }
      return true;
    };
    if (!take(from.before(), &evidence->before) ||
        !take(from.after(), &evidence->after) || !IsPoint(from.bad()) ||
        (from.good() != -1 && !IsPoint(from.good()))) {
      return false;
    }
    const std::vector<Point>& points = digest_.series.points;
    if (from.good() >= 0) evidence->good = &points[from.good()].runs->commit;
    evidence->bad = &points[from.bad()].runs->commit;
    tracker::CountSuspects(*evidence);
    change->evidence = std::move(evidence);
    return true;
  }

  const proto::SeriesDigest& kept_;
  const DigestRuns& runs_;
  KeptDigest& digest_;
};

}  // namespace

DigestRuns::DigestRuns(const tracker::OrderedRuns& runs,
                       const std::vector<int64_t>& rows,
                       const RunTables& tables)
    : runs_(runs) {
  for (int i = 0; i < runs.size(); ++i) {
    rows_[runs.run(i).run_id()] = rows[i];
    places_[rows[i]] = i;
    commits_.push_back(tables.CommitOf(runs.run(i).run_id()));
  }
}

const proto::Run* DigestRuns::Find(int64_t row) const {
  const auto place = places_.find(row);
  return place == places_.end() ? nullptr : &runs_.run(place->second);
}

int DigestRuns::CommitOf(int64_t row) const {
  const auto place = places_.find(row);
  return place == places_.end() ? -1 : commits_[place->second];
}

std::shared_ptr<const tracker::PointRuns> DigestRuns::PointRunsOf(
    const std::vector<int64_t>& rows) const {
  std::shared_ptr<const tracker::PointRuns> all;
  for (const int64_t row : rows) {
    const auto place = places_.find(row);
    if (place == places_.end()) return nullptr;
    const auto& alone = runs_.alone(place->second);
    if (all == nullptr) {
      all = alone;
      continue;
    }
    tracker::PointRuns more = *all;
    more.ids.push_back(alone->ids.front());
    more.first_started_unix_ns =
        std::min(more.first_started_unix_ns, alone->first_started_unix_ns);
    all = std::make_shared<const tracker::PointRuns>(std::move(more));
  }
  return all;
}

std::shared_ptr<const std::vector<int64_t>> DigestRuns::TimesOf(
    const std::string& first_runs) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = times_.find(first_runs);
    if (known != times_.end()) return known->second;
  }
  std::vector<int64_t> times;
  int64_t row = 0;
  for (size_t i = 0; i < first_runs.size();) {
    uint64_t value = 0;
    for (int shift = 0; i < first_runs.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(first_runs[i++]);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    row = static_cast<int64_t>(static_cast<uint64_t>(row) +
                               static_cast<uint64_t>(UnZigZag(value)));
    const proto::Run* const run = Find(row);
    if (run == nullptr) return nullptr;
    times.push_back(run->started_unix_ns());
  }
  std::sort(times.begin(), times.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  return times_
      .emplace(first_runs,
               std::make_shared<const std::vector<int64_t>>(std::move(times)))
      .first->second;
}

void KeptDigest::Settle(const tracker::Series& all,
                        tracker::Judgement& judgement) {
  for (Change& change : judgement.changes) change.series = &all;
}

bool DecodeDigest(absl::string_view bytes, const DigestRuns& runs,
                  KeptDigest* digest) {
  // Its hundred small messages live and die together.
  google::protobuf::Arena arena;
  auto* const kept =
      google::protobuf::Arena::CreateMessage<proto::SeriesDigest>(&arena);
  return tracker::DecodeRecord(bytes, kept).ok() &&
         Decoder(*kept, runs, digest).Decode();
}

}  // namespace optrail::reports
