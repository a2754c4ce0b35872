#include "tracker/judge/judge.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/stats/statistics.h"
#include "tracker/detect/online.h"
#include "tracker/detect/sudden.h"
#include "tracker/judge/beside.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/judge/newest.h"
#include "tracker/judge/standing.h"

namespace optrail::tracker {
namespace {

double ValueOf(const Point& point) {
  return point.value.value_or(std::numeric_limits<double>::quiet_NaN());
}

// One series on its way to its judgement, a step per function.
class Case {
 public:
  Case(const Series& series, const TriageBook& book,
       const JudgeOptions& options)
      : series_(series), book_(book), options_(options) {
    result_.needed_points = OnlineDetector::kFewestPoints;
    if (options.folds != nullptr)
      known_folds_ = options.folds->Find(series.text);
    for (int i = 0; i < size(); ++i) {
      if (i == 0 || series_.points[i].epoch != series_.points[i - 1].epoch) {
        result_.epoch_begins.push_back(i);
      }
    }
  }

  Judgement Take() {
    for (size_t e = 0; e < result_.epoch_begins.size(); ++e) {
      if (e > 0) AddEpoch(static_cast<int>(e));
      FoldEpoch(static_cast<int>(e));
    }
    KeepFolds();
    result_.FindUndone();
    FindBaseline();
    Weigh();
    MarkNewest();
    AddBegins();
    LookApart();
    AddCreep();
    HeedAckOfCreep();
    ForeseeAnswer();
    DecideStanding(series_, options_.recent_points, result_);
    return std::move(result_);
  }

 private:
  int size() const { return static_cast<int>(series_.points.size()); }
  int BeginOf(int epoch) const { return result_.epoch_begins[epoch]; }
  int EndOf(int epoch) const {
    return epoch + 1 < static_cast<int>(result_.epoch_begins.size())
               ? result_.epoch_begins[epoch + 1]
               : size();
  }

  void Add(ChangeKind kind, const ChangePoint& point) {
    Change change;
    change.series = &series_;
    change.kind = kind;
    change.change = point;
    change.worse_by = WorseBy(series_, point.relative_change);
    change.opinion = book_.OpinionOf(series_, point);
    for (int i = point.index - point.between - 1;
         i >= 0 && change.before == nullptr; --i) {
      if (series_.points[i].value) change.before = &series_.points[i];
    }
    result_.changes.push_back(std::move(change));
  }

  // Adds the difference of the levels on its two sides, if they are known.
  void AddEpoch(int epoch) {
    ChangePoint point;
    point.index = point.earliest = point.latest = BeginOf(epoch);
    // The nearest points on either side.
    point.begin = point.end = point.index;
    int before = 0, after = 0;
    while (point.begin > BeginOf(epoch - 1) && before < 2 * kFewestForLevel) {
      before += series_.points[--point.begin].value.has_value();
    }
    while (point.end < EndOf(epoch) && after < 2 * kFewestForLevel) {
      after += series_.points[point.end++].value.has_value();
    }
    if (before == 0 || after == 0) return;
    point.level_before = Median(ValuesOf(series_, point.begin, point.index));
    point.level_after = Median(ValuesOf(series_, point.index, point.end));
    if (point.level_before == 0) return;
    point.relative_change =
        (point.level_after - point.level_before) / std::abs(point.level_before);
    point.relative_change_low = point.relative_change_high =
        point.relative_change;
    Add(ChangeKind::kEpoch, point);
  }

  // The first point of the epoch that the point at `place` is of.
  int EpochBeginBefore(int place) const {
    return *std::prev(std::upper_bound(result_.epoch_begins.begin(),
                                       result_.epoch_begins.end(), place));
  }

  // The fold over an epoch, which goes on from what is known of it.
  OnlineDetector Fold(int epoch) {
    std::vector<double> values;
    for (int i = BeginOf(epoch); i < EndOf(epoch); ++i) {
      values.push_back(ValueOf(series_.points[i]));
    }
    OnlineDetector detector;
    if (epoch < known_folds_.epochs_size()) {
      detector.Resume(known_folds_.epochs(epoch), values);
    }
    const int64_t size = static_cast<int64_t>(values.size());
    if (detector.size() == size) ++folds_as_known_;
    for (int64_t i = detector.size(); i < size; ++i) detector.Append(values[i]);
    if (options_.folds != nullptr)
      *folds_.add_epochs() = detector.State(values);
    return detector;
  }

  void KeepFolds() {
    if (options_.folds == nullptr ||
        (folds_as_known_ == folds_.epochs_size() &&
         folds_as_known_ == known_folds_.epochs_size())) {
      return;
    }
    options_.folds->Keep(series_.text, std::move(folds_));
  }

  void FoldEpoch(int epoch) {
    const int begin = BeginOf(epoch);
    OnlineDetector detector = Fold(epoch);
    const auto add = [&](ChangePoint point, ChangeKind kind) {
      point.index += begin;
      point.earliest += begin;
      point.latest += begin;
      point.begin += begin;
      point.end += begin;
      Add(kind, point);
    };
    const size_t first = result_.changes.size();
    std::vector<int> shifts = {begin, EndOf(epoch)};
    for (const auto* found : {&detector.confirmed(), &detector.returns()}) {
      for (const ChangePoint& point : *found) {
        shifts.push_back(begin + point.index);
      }
    }
    std::sort(shifts.begin(), shifts.end());
    for (const ChangePoint& point : detector.confirmed()) {
      add(point, ChangeKind::kConfirmed);
    }
    for (const ChangePoint& point : detector.returns()) {
      add(point, ChangeKind::kReturn);
    }
    std::sort(result_.changes.begin() + first, result_.changes.end(),
              [](const Change& a, const Change& b) {
                return a.change.index < b.change.index;
              });
    // A mark in a past epoch will never be confirmed.
    if (detector.provisional() &&
        ValuesOf(series_, EndOf(epoch), size()).empty()) {
      add(*detector.provisional(), ChangeKind::kProvisional);
      result_.changes.back().provisional = true;
    }
    for (size_t k = first; k < result_.changes.size(); ++k) {
      AskTheMachine(shifts, result_.changes[k]);
    }
    if (EndOf(epoch) == size()) newest_fold_ = std::move(detector);
  }

  // Marks newest points that stand off their level before the detector does:
  // the gate, which judges the newest run alone, may be red already.
  void MarkNewest() {
    const absl::optional<NewestOff> found = FindNewestOff(series_, result_);
    if (!found) return;
    Add(ChangeKind::kProvisional, found->change);
    result_.changes.back().provisional = true;
    AskTheMachine({found->begin, size()}, result_.changes.back());
  }

  // A stretch that ended before a detector confirmed its begin has a row for
  // its end alone: lists its begin, too.
  void AddBegins() {
    for (size_t k = 0; k < result_.changes.size(); ++k) {
      const Change& end = result_.changes[k];
      if (end.kind != ChangeKind::kProvisional &&
          end.kind != ChangeKind::kConfirmed) {
        continue;
      }
      const auto level = std::find_if(
          result_.levels.begin(), result_.levels.end(), [&](const Level& one) {
            return one.begin < end.change.index && end.change.index <= one.end;
          });
      if (level == result_.levels.end()) continue;
      const auto begin = FindBeginOfStretch(series_, level->begin, end.change);
      if (!begin) continue;
      const Point* const back = &end.after();
      const auto known = std::find_if(
          result_.changes.begin(), result_.changes.end(),
          [&](const Change& one) {
            return one.provisional && one.worse_by * end.worse_by < 0 &&
                   std::abs(one.change.index - begin->index) <=
                       TriageBook::kPlaceTolerance;
          });
      if (known != result_.changes.end()) {
        known->back = back;
      } else {
        Add(ChangeKind::kProvisional, *begin);
        result_.changes.back().provisional = true;
        result_.changes.back().back = back;
        std::rotate(result_.changes.begin() + k, result_.changes.end() - 1,
                    result_.changes.end());
        ++k;
      }
      // A level that was there before is no gain. A loss stays an alert.
      Change& ended = result_.changes[k];
      if (!ended.provisional || ended.worse_by > 0) continue;
      ended.kind = ChangeKind::kReturn;
      ended.provisional = false;
    }
  }

  // Goes on with the points since a provisional change until it is confirmed.
  void ForeseeAnswer() {
    for (Change& change : result_.changes) {
      if (change.kind != ChangeKind::kProvisional || change.IsOfPastEpoch() ||
          change.IsUndone()) {
        continue;
      }
      const std::vector<double> since =
          ValuesOf(series_, change.change.index, size());
      OnlineDetector fold = *newest_fold_;
      for (int i = 0; i < kMostToAnswer && !change.points_to_answer; ++i) {
        if (!fold.Append(since[i % since.size()]).confirmed.empty()) {
          change.points_to_answer = i + 1;
        }
      }
    }
  }

  // Notes which provisional changes are an alert before they are confirmed.
  void LookApart() {
    const auto is_apart = [&](int begin, int place) {
      return begin < place && StandApart(ValuesOf(series_, begin, place),
                                         ValuesOf(series_, place, size()));
    };
    for (size_t k = 0; k < result_.changes.size(); ++k) {
      if (result_.changes[k].kind != ChangeKind::kProvisional ||
          result_.changes[k].IsUndone()) {
        continue;
      }
      const ChangePoint change = result_.changes[k].change;
      const int begin = BeginOfLevelBefore(result_, result_.changes[k]);
      result_.changes[k].stands_apart = is_apart(begin, change.index);
      if (result_.changes[k].stands_apart || begin >= change.index) continue;
      // A point of the new level among those before makes them look wide.
      const auto moved = MovedBack(series_, begin, change);
      if (!moved || !is_apart(begin, moved->index)) continue;
      Add(ChangeKind::kProvisional, *moved);
      result_.changes[k] = std::move(result_.changes.back());
      result_.changes.pop_back();
      result_.changes[k].provisional = result_.changes[k].stands_apart = true;
    }
  }

  // The begin of the level that a creep is looked for in: an acknowledgement
  // where nothing jumps begins no level, it may be of the creep itself.
  int CreepBegin() const {
    int begin = result_.epoch_begins.back();
    for (const Change& change : result_.changes) {
      const int place = change.change.index;
      if (change.kind == ChangeKind::kConfirmed ||
          change.kind == ChangeKind::kMachine ||
          (change.opinion.state == ChangeState::kAcknowledged &&
           JumpsAt(series_, EpochBeginBefore(place), change.change))) {
        begin = std::max(begin, place);
      }
    }
    return begin;
  }

  // The creep since `begin`, if no mark on it is a step that explains it. A
  // mark that is no step is a part of it.
  absl::optional<ChangePoint> CreepSince(int begin) const {
    std::vector<int> marks;
    for (const Change& change : result_.changes) {
      if (change.provisional && change.worse_by > 0 && !change.IsUndone() &&
          change.change.index > begin) {
        marks.push_back(change.change.index);
      }
    }
    // Somebody who acknowledged a step here knew better than a detector.
    if (result_.baseline_begin > begin) marks.push_back(result_.baseline_begin);
    return FindCreep(series_, begin, marks);
  }

  absl::optional<Opinion> AcknowledgementOf(const ChangePoint& creep) const {
    Opinion opinion = book_.OpinionOf(series_, creep);
    if (opinion.state == ChangeState::kAcknowledged) return opinion;
    return AcknowledgedBefore(ChangeKind::kCreep, creep);
  }

  // Returns whether the record says up to which size it covers this series.
  bool LimitsSize(const std::string& record_id) const {
    const auto entry = book_.Find(record_id);
    if (!entry.ok()) return false;
    const proto::AnsweredChange* const answered = (*entry)->AnsweredOf(series_);
    return answered != nullptr && answered->has_effect_high();
  }

  // Adds a creep of the whole level. Where there is none, or one of whatever
  // size was acknowledged, what creeps since that is news.
  void AddCreep() {
    if (size() == 0) return;
    const int begin = CreepBegin();
    auto found = CreepSince(begin);
    const auto known = found ? AcknowledgementOf(*found) : absl::nullopt;
    if (begin < result_.baseline_begin &&
        (!found || (known && !LimitsSize(known->record_id)))) {
      const auto behind = CreepSince(result_.baseline_begin);
      if (behind && (!found || !AcknowledgementOf(*behind))) found = behind;
    }
    if (found) AddCreep(*found);
  }

  void AddCreep(const ChangePoint& found) {
    std::vector<Change>& changes = result_.changes;
    changes.erase(
        std::remove_if(changes.begin(), changes.end(),
                       [&](const Change& change) {
                         return change.provisional && change.worse_by > 0 &&
                                (change.IsOpen() ||
                                 change.opinion.state ==
                                     ChangeState::kAcknowledged) &&
                                !change.stands_apart &&
                                change.change.index >= found.earliest &&
                                !JumpsAt(series_, found.begin, change.change);
                       }),
        changes.end());
    Add(ChangeKind::kCreep, found);
    changes.back().stands_apart =
        changes.back().worse_by >= 2 * kLeastEffect &&
        std::min(WorseBy(series_, found.relative_change_low),
                 WorseBy(series_, found.relative_change_high)) >= kLeastEffect;
    std::rotate(
        std::upper_bound(changes.begin(), changes.end() - 1, changes.back(),
                         [](const Change& a, const Change& b) {
                           return a.change.index < b.change.index;
                         }),
        changes.end() - 1, changes.end());
  }

  // A level that climbs through an acknowledged commit is what was
  // acknowledged: later points put its step anywhere, and where they do nothing
  // jumps.
  absl::optional<Opinion> AcknowledgedBefore(ChangeKind kind,
                                             const ChangePoint& change) const {
    const auto place = book_.LastAcknowledged(series_, size());
    // A creep is known not to jump.
    if (!place || change.index <= *place || change.begin >= *place ||
        (kind != ChangeKind::kCreep &&
         JumpsAt(series_, EpochBeginBefore(change.index), change))) {
      return absl::nullopt;
    }
    ChangePoint there = change;
    there.index = there.earliest = there.latest = *place;
    Opinion opinion = book_.OpinionOf(series_, there);
    if (opinion.state != ChangeState::kAcknowledged) return absl::nullopt;
    return opinion;
  }

  void HeedAckOfCreep() {
    for (Change& change : result_.changes) {
      if (change.worse_by <= 0 || change.opinion.state != ChangeState::kNew ||
          change.kind == ChangeKind::kEpoch) {
        continue;
      }
      if (const auto opinion = AcknowledgedBefore(change.kind, change.change)) {
        change.opinion = *opinion;
      }
    }
  }

  // Notes whether calibration loops shifted where the benchmark did; `shifts`
  // are the bounds of levels, ascending.
  void AskTheMachine(const std::vector<int>& shifts, Change& change) const {
    if (change.kind == ChangeKind::kReturn || series_.key.metric != "time") {
      return;
    }
    const int index = change.change.index;
    const auto next = std::upper_bound(shifts.begin(), shifts.end(), index);
    const auto same = std::lower_bound(shifts.begin(), shifts.end(), index);
    if (next == shifts.end() || same == shifts.begin()) return;
    const auto loop = LoopBehind(series_, *(same - 1), change.change, *next,
                                 std::log1p(kLeastEffect));
    if (!loop) return;
    change.kind = ChangeKind::kMachine;
    change.cause = *loop;
  }

  void FindBaseline() {
    if (size() == 0) return;
    result_.baseline_begin = std::max(result_.epoch_begins.back(),
                                      result_.NormOf(size(), series_, book_));
  }

  // Every level by itself: between confirmed changes, and within an epoch.
  void Weigh() {
    result_.weights.assign(size(), 0);
    std::vector<int> bounds = result_.epoch_begins;
    for (const Change& change : result_.changes) {
      if (change.kind == ChangeKind::kConfirmed ||
          change.kind == ChangeKind::kMachine ||
          change.kind == ChangeKind::kReturn) {
        bounds.push_back(change.change.index);
      }
    }
    bounds.push_back(result_.baseline_begin);
    bounds.push_back(size());
    std::sort(bounds.begin(), bounds.end());
    for (size_t k = 0; k + 1 < bounds.size(); ++k) {
      WeighLevel(bounds[k], bounds[k + 1]);
    }
  }

  void WeighLevel(int begin, int end) {
    const std::vector<double> values = ValuesOf(series_, begin, end);
    if (values.empty()) return;
    const double level = Median(values);
    result_.levels.push_back({begin, end, level});
    const double spread =
        values.size() < kFewestForLevel ? 0 : MedianAbsoluteDeviation(values);
    for (int i = begin; i < end; ++i) {
      if (!series_.points[i].value) continue;
      const double distance = std::abs(*series_.points[i].value - level);
      const double limit = kFarOff * spread;
      const double share =
          spread > 0 && distance > limit ? limit / distance : 1;
      result_.weights[i] = share * share;
    }
  }

  const Series& series_;
  const TriageBook& book_;
  const JudgeOptions& options_;
  proto::SeriesFolds known_folds_, folds_;
  absl::optional<OnlineDetector> newest_fold_;  // of the newest epoch
  int folds_as_known_ = 0;                      // epochs
  Judgement result_;
};

}  // namespace

Judgement JudgeSeries(const Series& series, const TriageBook& book,
                      const JudgeOptions& options) {
  return Case(series, book, options).Take();
}

}  // namespace optrail::tracker
