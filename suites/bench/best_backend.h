#ifndef OPTRAIL_SUITES_BENCH_BEST_BACKEND_H_
#define OPTRAIL_SUITES_BENCH_BEST_BACKEND_H_

// Which backend is best, remembered: an interleaved bench of all of them says
// so, the store keeps it with the ids that were compared, and a later bench or
// service asks for "best". An answer whose ids are not today's is none.
//
//   tasks = ToBeCompared(all_tasks, is_new, store);  // tune --backend=all
//   KeepBest(run, context);                // --backend=all
//   tasks = ChooseBest(all_tasks, store);  // --backend=best

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tracker/proto/run.pb.h"
#include "tuning/store/store.h"

namespace optrail::suites {

// Writes what the comparisons of `run` say into the overlay: with the tuned
// configs where those were measured, else with the default ones. A comparison
// of fewer than two backends that work says nothing; of one that fewer than two
// processes read nothing is kept, and the status says so.
absl::Status KeepBest(const proto::Run& run, const RunContext& context);

// Of tasks as SelectTasks chooses them with "all": those of which several
// backends are here, and that the store has no valid verdict of, or of which
// one `is_new`.
std::vector<TaskEntry> ToBeCompared(
    const std::vector<TaskEntry>& tasks,
    absl::FunctionRef<bool(const TaskEntry&)> is_new,
    const tuning::TunedConfigStore& store);

// Of tasks that differ in nothing but the backend (SelectTasks with "all"), the
// one that the store calls best, marked as such; where it does not know, or
// knows of other ids than today's, the device's own, and a note on standard
// error says why and what would tell.
std::vector<TaskEntry> ChooseBest(const std::vector<TaskEntry>& tasks,
                                  const tuning::TunedConfigStore& store);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_BEST_BACKEND_H_
