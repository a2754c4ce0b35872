#ifndef OPTRAIL_SUITES_TUNE_TASK_STORE_H_
#define OPTRAIL_SUITES_TUNE_TASK_STORE_H_

// Looks tasks up in the store of tuned configs (tuning/store/store.h): the
// checked-in files of the operators of this program, and the overlay.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
//                            LoadStore(context, tasks));
//   const proto::TunedConfig* tuned = FindTuned(store, task, "", space);
//
// `objective` is the key of a store's entry (objectives.h); "" is time. Results
// point into the store. Warnings of files that were left out go to standard
// error; a broken checked-in file is an error.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/store.pb.h"
#include "tuning/store/store.h"

namespace optrail::suites {

// The store of the tasks' operators, and the overlay.
absl::StatusOr<tuning::TunedConfigStore> LoadStore(
    const RunContext& context, const std::vector<TaskEntry>& tasks);

// The store of every operator of this program, and the overlay: what lookups
// here use. Checked-in files are those of the build; what a source tree got
// since is in none of them (tuning::EntriesMissingFrom).
absl::StatusOr<tuning::TunedConfigStore> LoadWholeStore(
    const RunContext& context);

// The entry of exactly this task, of whatever kernel; its config is nullptr if
// there is none, or `is_valid` refuses it.
tuning::LookupResult FindEntry(
    const tuning::TunedConfigStore& store, const TaskEntry& task,
    const std::string& objective,
    const tuning::ConfigPredicate* is_valid = nullptr);

// The same, with a config that is valid in the space.
tuning::LookupResult FindExact(const tuning::TunedConfigStore& store,
                               const TaskEntry& task,
                               const std::string& objective,
                               const TaskSpace& space);

// The exact, verified config of a task, tuned for `objective`; nullptr if the
// store has none.
const proto::TunedConfig* FindTuned(const tuning::TunedConfigStore& store,
                                    const TaskEntry& task,
                                    const std::string& objective,
                                    const TaskSpace& space);

// Returns the entry that the store keeps of a session that has a winner.
proto::TunedConfig TunedConfigOf(const proto::Session& session);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TASK_STORE_H_
