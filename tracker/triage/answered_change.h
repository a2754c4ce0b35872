#ifndef OPTRAIL_TRACKER_TRIAGE_ANSWERED_CHANGE_H_
#define OPTRAIL_TRACKER_TRIAGE_ANSWERED_CHANGE_H_

// An answer of triage is to a change of a series, with its suspects and its
// size, or to a benchmark that is gone. Part of triage_command.h.
//
//   *record.add_answered() = AnswerOf(judgement, loaded.series, series, place);

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tracker/history/index/history_index.h"
#include "tracker/judge/judge.h"
#include "tracker/proto/triage.pb.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

// The change that somebody means who names the point at `place`; null if the
// judge has found none there, or one behind it that is not what the point
// shows.
const Change* ChangeAt(const Judgement& judgement, int place);

// The change that an answer to the point at `place` covers; `all` has the
// series of all branches. It has a size wherever there is a point to compare
// with, and be it on the branch that this one left.
proto::AnsweredChange AnswerOf(const Judgement& judgement,
                               const std::vector<Series>& all,
                               const Series& series, int place);

// The answer to a benchmark that is gone, `last` its last point with a value.
proto::AnsweredChange AnswerOfRemoval(const Series& series, const Point& last);

// Tells what the runs at a commit lack, of whatever branch they are: a branch
// that removes a benchmark is gated before its base lacks it.
class RunsAtCommit {
 public:
  RunsAtCommit(const LoadedSeries& loaded, const proto::Commit& commit);

  // `last` is the last point of the series with a value.
  bool Lack(const Series& series, const Point& last) const;

 private:
  std::map<std::string, std::string> suites_of_;  // by run id
  std::set<std::string> suites_;                  // of the runs at the commit
  std::set<std::string> measured_;                // there
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_TRIAGE_ANSWERED_CHANGE_H_
