// JudgeAll: what one series says of another.

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/process/parallel_for.h"
#include "tracker/judge/beside.h"
#include "tracker/judge/judge.h"
#include "tracker/judge/standing.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

// Adds the change from the last level under the former name to the first.
void AddRenaming(const Series& from, const Series& to, const ChangePoint& point,
                 const TriageBook& book, const JudgeOptions& options,
                 Judgement& judgement) {
  Change change;
  change.series = &to;
  change.kind = ChangeKind::kRenamed;
  change.change = point;
  change.worse_by = WorseBy(to, point.relative_change);
  change.opinion = book.OpinionOf(to, point);
  change.cause = DisplayName(from.key.benchmark);
  change.before = &from.points.back();
  judgement.changes.insert(judgement.changes.begin(), std::move(change));
  if (judgement.decided_by >= 0) ++judgement.decided_by;
  judgement.FindUndone();
  const Change& renamed = judgement.changes[0];
  const int points = static_cast<int>(to.points.size());
  const bool answered = renamed.opinion.state != ChangeState::kNew;
  // Until it has a level of its own to be judged by. What got worse and was
  // answered is not called unchanged later.
  const bool alert = renamed.IsAlert() && renamed.worse_by >= kLeastEffect;
  if (judgement.standing == Verdict::kSlower || renamed.IsUndone() ||
      !to.points.back().value ||
      (!alert && (judgement.decided_by >= 0 ||
                  (points > options.recent_points &&
                   !(answered && renamed.worse_by > 0 &&
                     judgement.standing == Verdict::kUnchanged))))) {
    return;
  }
  judgement.standing = renamed.worse_by < 0 && !answered
                           ? Verdict::kFaster
                           : VerdictOfAnswer(renamed.opinion.state);
  judgement.why = absl::StrCat(
      answered ? absl::StrCat(ChangeStateName(renamed.opinion.state), ": ",
                              renamed.opinion.reason, "; ")
               : "",
      "called ", renamed.cause, " before; since ", points,
      points == 1 ? " point" : " points");
  judgement.decided_by = 0;
}

// The text that all versions of a benchmark have in common.
std::string TextOfAllVersions(const SeriesKey& key) {
  return absl::StrJoin({TextWithoutVersion(key.benchmark), key.metric, key.unit,
                        key.hardware_id, key.branch},
                       "|");
}

// If another version, or a similar name, took a series' place, the gate calls
// the two sides so, too.
void JudgeMissing(const std::vector<Series>& series,
                  const std::vector<bool>& missing, const TriageBook& book,
                  std::vector<Judgement>& judgements) {
  // Most often nothing is, and many series need no text.
  if (!absl::c_linear_search(missing, true)) return;
  std::map<std::string, size_t> measured;
  for (size_t i = 0; i < series.size(); ++i) {
    if (!missing[i]) measured[TextOfAllVersions(series[i].key)] = i;
  }
  for (size_t i = 0; i < series.size(); ++i) {
    if (!missing[i]) continue;
    Judgement& judgement = judgements[i];
    const auto say = [&](Verdict verdict, std::string why) {
      judgement.standing = verdict;
      judgement.why = std::move(why);
    };
    const auto version = measured.find(TextOfAllVersions(series[i].key));
    if (version != measured.end()) {
      say(Verdict::kNewVersion,
          absl::StrCat("version ", series[i].key.benchmark.version(), " -> ",
                       series[version->second].key.benchmark.version(),
                       ": not compared"));
    } else if (!judgement.renamed_to.empty()) {
      say(Verdict::kRenamed,
          absl::StrCat("it may be called ", judgement.renamed_to, " now"));
    } else {
      const TriageBook::Entry* const known =
          book.RemovalAcknowledged(series[i]);
      say(Verdict::kMissing,
          absl::StrCat("the newest run of its suite lacks it",
                       known == nullptr ? ""
                                        : absl::StrCat("; acknowledged: ",
                                                       known->record.text())));
    }
  }
}

// The newest point with a value and nothing wrong; null if there is none.
const Point* NewestWorking(const Series& series) {
  for (auto point = series.points.rbegin(); point != series.points.rend();
       ++point) {
    if (IsWorking(*point)) return &*point;
  }
  return nullptr;
}

// Returns whether `a` is of a later commit than `b`, on whatever branches, and
// was measured later.
bool IsLater(const Point& a, const Point& b) {
  if (a.runs->first_started_unix_ns <= b.runs->first_started_unix_ns)
    return false;
  return !a.runs->commit.has_first_parent_position() ||
         !b.runs->commit.has_first_parent_position() ||
         a.runs->commit.first_parent_position() >
             b.runs->commit.first_parent_position();
}

// A benchmark that works on another branch, at a later commit and measured
// later, has outlived its failure on this one.
void ForgetPastFailures(const std::vector<Series>& series,
                        std::vector<Judgement>& judgements) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  const auto key_of = [&](size_t i) {
    const SeriesKey& key = series[i].key;
    return Key(CanonicalText(key.benchmark), key.metric, key.unit,
               key.hardware_id);
  };
  std::map<Key, std::vector<size_t>> failed;
  for (size_t i = 0; i < series.size(); ++i) {
    if (judgements[i].standing == Verdict::kFailed) {
      failed[key_of(i)].push_back(i);
    }
  }
  if (failed.empty()) return;
  for (size_t i = 0; i < series.size(); ++i) {
    const auto same = failed.find(key_of(i));
    if (same == failed.end()) continue;
    const Point* const working = NewestWorking(series[i]);
    if (working == nullptr) continue;
    for (const size_t k : same->second) {
      Judgement& judgement = judgements[k];
      if (judgement.standing != Verdict::kFailed ||
          !IsLater(*working, series[k].points.back())) {
        continue;
      }
      judgement.standing = Verdict::kCannotTell;
      absl::StrAppend(
          &judgement.why, "; a later commit of ",
          series[i].key.branch.empty() ? "no branch" : series[i].key.branch,
          " works");
    }
  }
}

// A benchmark that failed or was skipped says so by its time. Its other metrics
// lack a point there, or have one of what was measured all the same: they are
// not missing, nor as before.
void AskTheTime(const std::vector<Series>& series,
                const std::vector<bool>& missing,
                std::vector<Judgement>& judgements) {
  using Key = std::tuple<std::string, std::string, std::string>;
  const auto key_of = [&](size_t i) {
    const SeriesKey& key = series[i].key;
    return Key(CanonicalText(key.benchmark), key.hardware_id, key.branch);
  };
  std::map<Key, size_t> unmeasured;
  for (size_t i = 0; i < series.size(); ++i) {
    if (series[i].key.metric != "time" || missing[i] ||
        series[i].points.empty()) {
      continue;
    }
    const Point& newest = series[i].points.back();
    if (newest.outcome != proto::OK && !IsWorking(newest)) {
      unmeasured[key_of(i)] = i;
    }
  }
  if (unmeasured.empty()) return;
  for (size_t i = 0; i < series.size(); ++i) {
    if (series[i].key.metric == "time" || series[i].points.empty()) continue;
    const auto time = unmeasured.find(key_of(i));
    if (time == unmeasured.end()) continue;
    const PointRuns& newest = *series[i].points.back().runs;
    const PointRuns& failed = *series[time->second].points.back().runs;
    const bool is_there = absl::c_any_of(newest.ids, [&](const auto& id) {
      return absl::c_linear_search(failed.ids, id);
    });
    if (!missing[i] && !is_there) continue;
    const Judgement& of_time = judgements[time->second];
    judgements[i].standing = of_time.standing;
    judgements[i].why = of_time.why;
    judgements[i].last_worked = of_time.last_worked;
    judgements[i].first_failed = of_time.first_failed;
    judgements[i].decided_by = -1;
  }
}

}  // namespace

std::vector<Judgement> JudgeAll(const std::vector<Series>& series,
                                const TriageBook& book,
                                const JudgeOptions& options, int threads) {
  std::vector<Judgement> judgements(series.size());
  ParallelFor(static_cast<int64_t>(series.size()), threads, [&](int64_t i) {
    judgements[i] = JudgeSeries(series[i], book, options);
  });
  JudgeTogether(series, book, options, judgements);
  return judgements;
}

void JudgeTogether(const std::vector<Series>& series, const TriageBook& book,
                   const JudgeOptions& options,
                   std::vector<Judgement>& judgements) {
  for (const Renaming& renaming : FindRenamings(series)) {
    judgements[renaming.from].renamed_to =
        DisplayName(series[renaming.to].key.benchmark);
    if (!renaming.change) continue;
    AddRenaming(series[renaming.from], series[renaming.to], *renaming.change,
                book, options, judgements[renaming.to]);
  }
  std::vector<bool> missing(series.size(), false);
  if (options.runs != nullptr) missing = FindMissing(series, *options.runs);
  JudgeMissing(series, missing, book, judgements);
  ForgetPastFailures(series, judgements);
  AskTheTime(series, missing, judgements);
}

std::vector<bool> NeedsAllPoints(const std::vector<Series>& series,
                                 const JudgeOptions& options) {
  std::vector<bool> needed(series.size(), false);
  if (options.runs != nullptr) needed = FindMissing(series, *options.runs);
  for (const Renaming& renaming : FindRenamings(series)) {
    needed[renaming.from] = needed[renaming.to] = true;
  }
  return needed;
}

}  // namespace optrail::tracker
