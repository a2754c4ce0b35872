#ifndef OPTRAIL_SUITES_WORKLOAD_TASKS_H_
#define OPTRAIL_SUITES_WORKLOAD_TASKS_H_

// What is to be tuned or benchmarked: operators with shapes, chosen from a
// workload or from the shapes files of the operators by regular expressions.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/backend_space.h"
#include "ops/core/registry.h"
#include "suites/proto/workload.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// Stands for whichever backend an earlier bench of all of them found best.
inline constexpr char kBestBackend[] = "best";
inline constexpr char kAllBackends[] = "all";

struct TaskSelection {
  std::string workload;  // name or path; empty: all shapes files
  std::string op_regex;  // matches the whole name; empty: every operator
  // Matches somewhere in the canonical text. A whole shape that no file lists
  // is taken as it stands by the operators that have such shapes.
  std::string shape_regex;
  // 0: all cores. Empty: the workload's, else 1.
  std::vector<int> threads;
  proto::DeviceKind device = proto::CPU;
  // Names of backends between commas; "": the device kind's own; "all": every
  // one but Halide's own autoschedulers, a task each and the kind's own first.
  // Operators that lack the named one are left out.
  std::string backend;
  // Backends beside the device kind's own if `backend` is ""; those that an
  // operator has are taken.
  std::vector<std::string> peers;
  proto::CacheMode cache_mode = proto::HOT;
  // Unspecified: as the device launches usually.
  proto::LaunchMode launch_mode = proto::LAUNCH_MODE_UNSPECIFIED;
  bool with_test_only = false;
};

// True if "all" is among the names.
bool WantsAllBackends(const std::string& backend);

struct TaskEntry {
  proto::Task task;
  const ops::OperatorEntry* entry = nullptr;
  const ops::Backend* backend = nullptr;
  // Chosen as the best of all backends: its series goes by that.
  bool as_best = false;
  // Why the backend cannot be used here: its readings are UNSUPPORTED.
  absl::Status available;
  int count = 1;    // calls per run of the workload
  std::string doc;  // where in the model
};

// A layer that somebody asked for and no backend computes.
struct LeftOutTask {
  proto::Task task;
  absl::Status why;
};

// Shapes of data types that a backend has no kernel for are left out; those of
// a workload's layers are added to `left_out`, unless it is null. Never empty:
// NotFound says what matched nothing and what there is; InvalidArgument names a
// number of threads that the device does not have.
absl::StatusOr<std::vector<TaskEntry>> SelectTasks(
    const TaskSelection& selection, const proto::Hardware& hardware,
    std::vector<LeftOutTask>* left_out = nullptr);

// The backend's configs for one task.
struct TaskSpace : ops::BackendConfigs {
  bool has_choice = true;  // else there is nothing to tune
};
absl::StatusOr<TaskSpace> BindTask(const TaskEntry& task,
                                   const proto::Hardware& hardware);

// "matmul m=384,n=1024,k=1024/f32", with threads if not 1, the backend if it is
// not the device kind's own, and whatever else is not as usual.
std::string ShortTaskText(const proto::Task& task);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKLOAD_TASKS_H_
