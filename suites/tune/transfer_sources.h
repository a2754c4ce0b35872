#ifndef OPTRAIL_SUITES_TUNE_TRANSFER_SOURCES_H_
#define OPTRAIL_SUITES_TUNE_TRANSFER_SOURCES_H_

// Which earlier sessions of other tasks a tuning session learns from: the same
// operator and data types at a nearby shape, on another hardware, with other
// threads, or by an earlier version of the kernel.
//
//   for (std::string& id : ChooseTransferSessions(sessions, task)) {
//     header.add_source_session_ids(std::move(id));
//   }
//   strategy_options.sources = LoadTransferSources(
//       history, header.source_session_ids(), space);
//
// How far a source is believed is the strategy's affair
// (tuning/search/source_knowledge.h); trials of the very same task are not
// sources but known (warm start).

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tracker/history/history.h"
#include "tuning/proto/session.pb.h"
#include "tuning/search/strategy.h"
#include "tuning/space/space.h"

namespace optrail::suites {

// How unlike two tasks are: 0 for tasks that differ in the kernel's version
// alone; each doubling of a dimension or of the threads counts 1. nullopt if
// nothing can be learned (another operator, device kind, backend, number of
// devices, attribute or data type) or they are the same.
absl::optional<double> TaskDistance(const proto::Task& a, const proto::Task& b);

// Indices of the tasks that are nearest to tasks[i], the nearest first: those
// that it may learn from while all of them are tuned.
std::vector<int> NearestTasks(const std::vector<proto::Task>& tasks, size_t i);

// Ids of the newest session of each of the nearest tasks, nearest first.
// `sessions` in order of time. Those of the task itself are none.
std::vector<std::string> ChooseTransferSessions(
    const std::vector<tracker::SessionInfo>& sessions, const proto::Task& task);

// One source per session that has enough trials whose knobs and values this
// space knows. A session that is gone or unreadable is left out: it is
// knowledge, not part of the result.
std::vector<tuning::TransferSource> LoadTransferSources(
    const tracker::History& history,
    const google::protobuf::RepeatedPtrField<std::string>& session_ids,
    const tuning::BoundSpace& space);

// Those of the sessions that can be read, in their order.
std::vector<proto::Session> LoadSourceSessions(
    const tracker::History& history,
    const google::protobuf::RepeatedPtrField<std::string>& session_ids);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TRANSFER_SOURCES_H_
