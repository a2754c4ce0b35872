#ifndef OPTRAIL_FLEET_TASK_RUNNER_H_
#define OPTRAIL_FLEET_TASK_RUNNER_H_

// TaskRunner runs the command of a task in a folder of its own, as another user
// where root runs the pilot, with a clean environment:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto runner, TaskRunner::Create(options));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string place,
//                            runner->CreatePlace(task));
//   OPTRAIL_RETURN_IF_ERROR(runner->Run(task, place, may_go_on, &outcome));
//   OPTRAIL_ASSIGN_OR_RETURN(const auto records,
//                            TaskRunner::Records(place, &outcome.log));
//   runner->RemovePlace(place);
//
// It knows nothing of leases: `may_go_on` is asked ten times a second, and its
// error ends the task. One thread; the process has no other, since the shared
// history is copied in a child of it.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/subprocess.h"
#include "fleet/pilot_options.h"
#include "fleet/queue.h"
#include "tracker/history/postgres/postgres_store.h"

namespace optrail::fleet {

class TaskRunner {
 public:
  using MayGoOn = std::function<absl::Status()>;

  // `options` must outlive the runner. NotFound for a user of the tasks that
  // this machine does not have.
  static absl::StatusOr<std::unique_ptr<TaskRunner>> Create(
      const PilotOptions& options);
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;
  ~TaskRunner();  // removes its folder

  // A new folder that belongs to the user of the tasks.
  absl::StatusOr<std::string> CreatePlace(const Task& task) const;
  void RemovePlace(const std::string& place) const;

  // Errors are those of `may_go_on` but DeadlineExceeded, which fails the task,
  // Unavailable, and what keeps this machine from running any task.
  absl::Status Run(const Task& task, const std::string& place,
                   const MayGoOn& may_go_on, Outcome* outcome);

  // Reads what the task recorded. `log` is told of what cannot be read.
  static absl::StatusOr<std::vector<tracker::PlacedRecord>> Records(
      const std::string& place, std::string* log);

 private:
  explicit TaskRunner(const PilotOptions& options) : options_(options) {}

  absl::Status Prepare();
  std::vector<std::string> AsUserOfTasks(
      const std::vector<std::string>& command) const;
  absl::StatusOr<ExitInfo> RunAsUser(const std::vector<std::string>& command,
                                     SubprocessOptions options,
                                     const MayGoOn& may_go_on,
                                     Outcome* outcome) const;
  absl::Status Clone(SubprocessOptions options, const MayGoOn& may_go_on,
                     Outcome* outcome) const;
  absl::Status CopySharedHistory() const;
  absl::Status CopyInAChild(const MayGoOn& may_go_on) const;
  absl::StatusOr<ExitInfo> RunSteps(const Task& task, const std::string& place,
                                    const MayGoOn& may_go_on,
                                    Outcome* outcome) const;

  const PilotOptions& options_;
  std::string folder_;  // holds the copy and the places of the tasks
  std::string copy_;    // the shared history, for tasks that judge it
  uid_t uid_ = 0;       // of the tasks
  gid_t gid_ = 0;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_TASK_RUNNER_H_
