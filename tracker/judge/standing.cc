#include "tracker/judge/standing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/compare/ratio.h"
#include "tracker/compare/verdict.h"
#include "tracker/detect/online.h"
#include "tracker/judge/beside.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// A noise that hides so many times the effect that matters hides too much.
constexpr double kBlind = 3;

// A decision on its way, a step per function.
class Decision {
 public:
  Decision(const Series& series, int recent_points, Judgement& result)
      : series_(series), recent_points_(recent_points), result_(result) {}

  void Decide() {
    if (size() == 0) return;
    FindMinimumDetectableEffect();
    const int begin = result_.epoch_begins.back();
    const int known = static_cast<int>(ValuesOf(series_, begin, size()).size());
    result_.known_points = known;
    const Point& newest = series_.points.back();
    if (!IsWorking(newest)) {
      SayUnmeasured(newest);
      if (result_.standing == Verdict::kFailed) FindFailure();
      return;
    }
    if (DecideByAlert()) return;
    // The reason for no verdict if points are too few.
    const std::string too_few = absl::StrCat(
        known, " of ", OnlineDetector::kFewestPoints, " points",
        begin == 0 ? "" : " of a new epoch", "; use gate or bisect");
    if (known < 2) {
      return Say(Verdict::kNoBaseline,
                 begin == 0
                     ? too_few
                     : absl::StrCat(too_few, ": ",
                                    series_.epochs[newest.epoch].change));
    }
    if (DecideByChanges(begin)) return;
    if (known < OnlineDetector::kFewestPoints) {
      return Say(Verdict::kCannotTell, too_few);
    }
    if (DecideByCreep()) return;
    if (result_.minimum_detectable_effect > kBlind * kLeastEffect) {
      return Say(
          Verdict::kCannotTell,
          absl::StrCat("noise hides what is smaller than ",
                       FormatShortPercent(*result_.minimum_detectable_effect)));
    }
    if (!DecideByAnswer()) Say(Verdict::kUnchanged, "");
  }

 private:
  int size() const { return static_cast<int>(series_.points.size()); }

  void Say(Verdict standing, std::string why, int decided_by = -1) {
    result_.standing = standing;
    result_.why = std::move(why);
    result_.decided_by = decided_by;
  }

  // The newest run measured nothing, or the result was wrong.
  void SayUnmeasured(const Point& newest) {
    const bool was_measured = !result_.levels.empty();
    const auto because = [&](absl::string_view what) {
      return absl::StrCat(what, newest.detail.empty() ? "" : ": ",
                          newest.detail);
    };
    switch (newest.outcome) {
      case proto::UNSUPPORTED:
        // A benchmark that is skipped counts as one that the run lacks.
        return Say(was_measured ? Verdict::kMissing : Verdict::kSkipped,
                   because("skipped"));
      case proto::CONTENDED:
        return Say(Verdict::kCannotTell,
                   because(tuning::OutcomeName(newest.outcome)));
      case proto::OK:
      case proto::OUTCOME_UNSPECIFIED:
        return Say(was_measured ? Verdict::kFailed : Verdict::kNoBaseline,
                   because("nothing was measured"));
      default:
        return Say(Verdict::kFailed,
                   because(tuning::OutcomeName(newest.outcome)));
    }
  }

  void FindFailure() {
    for (int i = size() - 1; i >= 0; --i) {
      const Point& point = series_.points[i];
      if (IsWorking(point)) {
        result_.last_worked = point.runs;
        return;
      }
      result_.first_failed = point.runs;
    }
  }

  // The shift that five new points against ten old ones show at the 0.1% level
  // with a probability of 95%. The noise is that of the newest level, robustly.
  void FindMinimumDetectableEffect() {
    std::vector<double> logs;
    for (const double value :
         ValuesOf(series_, result_.baseline_begin, size())) {
      if (value > 0) logs.push_back(std::log(value));
    }
    if (logs.size() < kFewestForLevel) return;
    constexpr double kNew = 5, kOld = 10, kLevel = .0005, kPower = .95;
    constexpr double kManyDegrees = 1e9;  // the spread counts as known
    result_.minimum_detectable_effect = MinimumDetectableEffect(
        MedianAbsoluteDeviation(logs) * std::sqrt(1 / kNew + 1 / kOld),
        kManyDegrees, -NormalQuantile(kLevel), kPower, /*min_effect=*/0);
  }

  std::string SinceText(const Change& change) const {
    const int age = change.PointsSince();
    return absl::StrCat("since ", age, age == 1 ? " point" : " points");
  }

  std::string CreepText(const Change& creep) const {
    return absl::StrFormat("creeps: %s over %d points, with no step",
                           FormatChange(creep.change.relative_change),
                           size() - creep.change.begin);
  }

  // What nobody has answered stays, however many points and epochs ago.
  bool DecideByAlert() {
    for (int k = static_cast<int>(result_.changes.size()) - 1; k >= 0; --k) {
      const Change& change = result_.changes[k];
      if (!change.IsAlert() || change.worse_by < kLeastEffect) continue;
      Say(Verdict::kSlower,
          change.kind == ChangeKind::kCreep ? CreepText(change)
          : change.provisional
              ? absl::StrCat(SinceText(change), "; ", change.AnswerText())
              : SinceText(change),
          k);
      return true;
    }
    return false;
  }

  bool DecideByChanges(int epoch_begin) {
    for (int k = static_cast<int>(result_.changes.size()) - 1; k >= 0; --k) {
      const Change& change = result_.changes[k];
      if (change.change.index <
              std::max(epoch_begin, size() - recent_points_) ||
          change.kind == ChangeKind::kEpoch) {
        return false;
      }
      if (change.kind == ChangeKind::kReturn ||
          change.kind == ChangeKind::kCreep || change.IsUndone() ||
          std::abs(change.worse_by) < kLeastEffect) {
        continue;
      }
      const bool provisional = change.kind == ChangeKind::kProvisional;
      const bool worse = change.worse_by > 0;
      if (change.kind == ChangeKind::kMachine) {
        Say(Verdict::kUnchanged,
            absl::StrCat(change.provisional ? "provisional, " : "",
                         "the machine: ", change.cause),
            k);
        return true;
      }
      std::string since =
          absl::StrCat(provisional ? "suspected " : "", SinceText(change));
      if (provisional && change.opinion.state == ChangeState::kNew) {
        absl::StrAppend(&since, "; ", change.AnswerText());
      }
      if (change.opinion.state != ChangeState::kNew) {
        Say(VerdictOfAnswer(change.opinion.state), AnsweredText(change), k);
      } else if (worse) {
        Say(Verdict::kMaybeSlower, since, k);
      } else {
        Say(provisional && !change.stands_apart ? Verdict::kMaybeFaster
                                                : Verdict::kFaster,
            since, k);
      }
      return true;
    }
    return false;
  }

  std::string AnsweredText(const Change& change) const {
    return absl::StrCat(
        ChangeStateName(change.opinion.state), ": ", change.opinion.reason,
        change.kind == ChangeKind::kProvisional ? "; suspected " : "; ",
        SinceText(change));
  }

  // However long ago, a series that got worse is not called unchanged.
  bool DecideByAnswer() {
    const auto answered = std::find_if(
        result_.changes.rbegin(), result_.changes.rend(),
        [](const Change& change) {
          return change.worse_by >= kLeastEffect && !change.IsUndone() &&
                 !IsNoChangeOfTheCode(change) &&
                 change.kind != ChangeKind::kReturn &&
                 change.opinion.state != ChangeState::kNew;
        });
    if (answered == result_.changes.rend()) return false;
    Say(VerdictOfAnswer(answered->opinion.state), AnsweredText(*answered));
    return true;
  }

  bool DecideByCreep() {
    const auto creep = std::find_if(
        result_.changes.begin(), result_.changes.end(),
        [](const Change& change) { return change.kind == ChangeKind::kCreep; });
    if (creep == result_.changes.end()) return false;
    const bool is_new = creep->opinion.state == ChangeState::kNew;
    Say(is_new ? Verdict::kMaybeSlower : VerdictOfAnswer(creep->opinion.state),
        absl::StrCat(CreepText(*creep),
                     is_new ? "" : "; " + creep->opinion.reason),
        static_cast<int>(creep - result_.changes.begin()));
    return true;
  }

  const Series& series_;
  const int recent_points_;
  Judgement& result_;
};

}  // namespace

std::vector<double> ValuesOf(const Series& series, int begin, int end) {
  std::vector<double> values;
  for (int i = begin; i < end; ++i) {
    if (series.points[i].value) values.push_back(*series.points[i].value);
  }
  return values;
}

bool IsWorking(const Point& point) {
  return point.value.has_value() && !tuning::IsFailure(point.outcome);
}

Verdict VerdictOfAnswer(ChangeState answer) {
  switch (answer) {
    case ChangeState::kMuted:
      return Verdict::kMuted;
    case ChangeState::kExpected:
      return Verdict::kExpected;
    case ChangeState::kAcknowledged:
      return Verdict::kAcknowledged;
    case ChangeState::kNew:
      break;
  }
  return Verdict::kSlower;
}

void DecideStanding(const Series& series, int recent_points,
                    Judgement& judgement) {
  Decision(series, recent_points, judgement).Decide();
}

}  // namespace optrail::tracker
