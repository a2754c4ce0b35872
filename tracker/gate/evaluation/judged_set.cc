#include "tracker/gate/evaluation/judged_set.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "tracker/gate/evaluation/planted.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

// A level takes so many points, and the step behind it is looked for in as few
// as two and as many as ten.
constexpr int kFewestBefore = 12;
constexpr int kMostAfter = 10;
constexpr int kBetweenPlaces = 3;

enum Planted { kNothing, kAcknowledged, kGain, kTwo };
constexpr const char* kNames[] = {
    "nothing planted", "behind an acknowledged slow-down", "behind a gain",
    "found: 20% two commits behind an acknowledged slow-down"};
constexpr double kFactors[] = {1, 1.1, 1 / 1.1, 1.1};
constexpr double kSecondFactor = 1.2;
constexpr int kBetween = 2;

std::string CommitOf(size_t place) {
  return absl::StrFormat("%040x", place + 1);
}

std::vector<proto::Run> WithCommits(std::vector<proto::Run> runs) {
  runs = Numbered(std::move(runs));
  for (size_t i = 0; i < runs.size(); ++i) {
    proto::Commit* commit = runs[i].mutable_commit();
    commit->set_id(CommitOf(i));
    commit->set_branch("main");
    commit->set_first_parent_position(static_cast<int64_t>(i));
    runs[i].mutable_hardware()->set_id("machine");
  }
  return runs;
}

// The book has what `optrail ack` writes at the commit of a slow-down of 10%.
TriageBook BookOf(Planted planted, const Series& series, int place) {
  std::vector<proto::TriageRecord> records;
  if (planted == kAcknowledged || planted == kTwo) {
    proto::TriageRecord& record = records.emplace_back();
    record.set_record_id("ack");
    record.set_kind(proto::ACKNOWLEDGE);
    record.set_pattern(".*");
    record.set_text("planted");
    record.mutable_commit()->set_id(CommitOf(place));
    proto::AnsweredChange* answered = record.add_answered();
    answered->set_series(series.text);
    answered->mutable_last_before()->set_id(CommitOf(place - 1));
    answered->mutable_last()->set_id(CommitOf(place));
    answered->set_effect_low(.05);
    answered->set_effect_high(.15);
  }
  return TriageBook(records, /*now_unix_ns=*/0);
}

// Judges every commit from the second after the place on as the newest, or from
// the first of a second step on.
void JudgeBehind(Planted planted, const Series& whole, int place,
                 FalseMarks* marks) {
  const TriageBook book = BookOf(planted, whole, place);
  const int end =
      std::min(static_cast<int>(whole.points.size()), place + kMostAfter);
  const int first = planted == kTwo ? place + kBetween + 1 : place + 2;
  for (int points = first; points <= end; ++points) {
    Series series = whole;
    series.points.resize(points);
    const Judgement judgement = JudgeSeries(series, book);
    const auto is_false = [&](const Change& change) {
      return (change.IsOpen() || change.IsAlert()) &&
             change.worse_by >= kLeastEffect && change.change.index > place;
    };
    ++marks->judged;
    marks->marked += std::any_of(judgement.changes.begin(),
                                 judgement.changes.end(), is_false);
    marks->alerts +=
        std::any_of(judgement.changes.begin(), judgement.changes.end(),
                    [&](const Change& change) {
                      return is_false(change) && change.IsAlert();
                    });
  }
}

}  // namespace

std::vector<std::pair<std::string, FalseMarks>> JudgeRecordedSet(
    const RecordedSet& set, int shuffles, Rng& rng) {
  std::vector<std::pair<std::string, FalseMarks>> marks;
  for (const char* name : kNames) marks.push_back({name, {}});
  const int runs = static_cast<int>(set.runs.size());
  for (int order = 0; order <= shuffles; ++order) {
    std::vector<proto::Run> ordered = set.runs;
    if (order > 0) rng.Shuffle(ordered);
    for (int place = kFewestBefore; place + 2 <= runs;
         place += kBetweenPlaces) {
      for (const Planted planted : {kNothing, kAcknowledged, kGain, kTwo}) {
        std::vector<proto::Run> changed = ordered;
        for (int i = place; i < runs; ++i) {
          const bool is_second = planted == kTwo && i >= place + kBetween;
          changed[i] =
              Slowed(changed[i], /*which=*/-1,
                     kFactors[planted] * (is_second ? kSecondFactor : 1));
        }
        for (const Series& series :
             BuildSeries(WithCommits(std::move(changed)))) {
          if (series.key.metric != "time") continue;
          JudgeBehind(planted, series, place, &marks[planted].second);
        }
      }
    }
  }
  return marks;
}

}  // namespace optrail::tracker
