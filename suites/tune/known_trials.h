#ifndef OPTRAIL_SUITES_TUNE_KNOWN_TRIALS_H_
#define OPTRAIL_SUITES_TUNE_KNOWN_TRIALS_H_

// What earlier sessions say of a task: the trials with which its next session
// starts.

#include <vector>

#include "tracker/history/history.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/search/strategy.h"

namespace optrail::suites {

// Trials of this very task (same trial keys) in `sessions`, sorted by time: the
// newest reading of each config, if the config itself decided its outcome. Each
// is config, outcome, time, objectives and the id of its session, where the
// samples are: a session that held those of all before it would make a history
// grow with the square of its sessions. Unreadable session files are
// `optrail history verify`'s affair.
std::vector<proto::Trial> KnownTrials(
    const tracker::History& history,
    const std::vector<tracker::SessionInfo>& sessions, const proto::Task& task);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_KNOWN_TRIALS_H_
