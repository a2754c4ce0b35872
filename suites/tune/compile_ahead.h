#ifndef OPTRAIL_SUITES_TUNE_COMPILE_AHEAD_H_
#define OPTRAIL_SUITES_TUNE_COMPILE_AHEAD_H_

// CompileAhead fills the compile cache with what tuning is going to need: the
// default, the tuned config of the store, and what the strategy proposes before
// it knows anything. It needs the compiler, not the device: a machine without
// one can compile for hardware that is elsewhere.
//
//   CompileAheadOptions options;
//   options.worker.shared_folder = context.state;
//   const auto compiled = CompileAhead(tasks, context, store, options);

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/store/store.h"

namespace optrail::suites {

struct CompileAheadOptions {
  // Configs of each task, beside the default and the tuned one.
  int64_t trials = 72;
  std::string strategy;
  uint64_t seed = 1;
  WorkerOptions worker;  // binary, limits, shared_folder
};

struct CompiledTask {
  proto::Task task;
  int known = 0;     // in the cache before
  int compiled = 0;  // now
  int failed = 0;
  std::string first_failure;
  int64_t compile_ns = 0;  // of all compilers together
  std::string error;       // nothing could be asked; others go on
};

// For `context.hardware`, on all cores that this process may use.
absl::StatusOr<std::vector<CompiledTask>> CompileAhead(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const tuning::TunedConfigStore& store, const CompileAheadOptions& options);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_COMPILE_AHEAD_H_
