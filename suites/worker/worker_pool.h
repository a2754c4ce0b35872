#ifndef OPTRAIL_SUITES_WORKER_WORKER_POOL_H_
#define OPTRAIL_SUITES_WORKER_WORKER_POOL_H_

// WorkerPool keeps the worker processes of one task: it opens them, ahead of
// their use where the policy of the device allows that, replaces the ones that
// failed or served long enough, and ends the others. It knows processes by
// numbers and nothing of what is measured in them.
//
//   WorkerPool pool(task, options, policy);
//   const proto::Evaluation ready = pool.MakeReady(need);
//   if (ready.trial().outcome() == proto::OK) {
//     pool.Use(need, 1).Ask(request, deadline);
//   }
//
// Used by one thread, which has to live as long as the processes
// (opened_worker.h).

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/core/measurement_policy.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/evaluator.h"
#include "suites/worker/opened_worker.h"
#include "suites/worker/worker_options.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// The bytes of the task's operands, once; 0 for a task that a worker is going
// to refuse.
int64_t OperandBytes(const proto::Task& task);
// About what a worker of the task holds while it waits for the next config.
int64_t WaitingBytes(const proto::Task& task);

class WorkerPool {
 public:
  // Absent: the process that all share which name none.
  using Number = absl::optional<int64_t>;
  struct Need {
    Number process;
    uint64_t input_seed = 0;
    // One that has measured nothing yet.
    bool fresh = false;
    // Where several are opened at a time, these are opened with it.
    std::vector<ComingProcess> next;
  };

  WorkerPool(proto::Task task, WorkerOptions options,
             ops::MeasurementPolicy policy);
  ~WorkerPool() { Rest(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Waits until the process is ready for the inputs. OK, or what keeps any
  // config of the task from being measured.
  proto::Evaluation MakeReady(const Need& need);
  // Whether it has measured something, and can go on at once with these inputs.
  bool IsIdle(const Need& need) const;
  // The process, which is going to measure so many configs now. It has to be
  // ready.
  OpenedWorker& Use(const Need& need, int configs);
  // Ends it, now that its last answer was this, where it cannot be asked again
  // or `done`.
  void GiveBack(Number process, proto::Outcome outcome, bool done);

  // Begins to open one; returns at once. Where it is there, nothing happens.
  void OpenAhead(const ComingProcess& process);
  // Whether nobody would have to wait until that one is open, which somebody
  // has begun to open.
  bool IsOpen(Number process) const;

  // Ends all processes; the next config starts another.
  void Rest();

  int workers_started() const { return workers_started_; }

 private:
  struct Slot {
    std::unique_ptr<OpenedWorker> worker;
    int configs = 0;
    int64_t last_used = 0;
    bool ahead = false;
  };
  static bool IsWaiting(const Slot& slot) {
    return slot.ahead && slot.configs == 0;
  }
  // The memory of a process that has no other task to serve.
  int64_t OwnMemoryCap() const;
  // Whether processes go on to the tasks that come after this one.
  bool ServesOthers() const {
    return options_.used != nullptr && policy_.processes_kept > 0;
  }
  absl::StatusOr<std::unique_ptr<OpenedWorker>> StartOne(
      const std::vector<uint64_t>& seeds);
  absl::Status Start(Number process, const std::vector<uint64_t>& seeds);
  // Ends it where it measured too much for `need`.
  void Replace(const Need& need);
  // Opens the process and the next ones, and waits for all.
  void OpenTogether(const Need& need);
  proto::Evaluation Await(const Need& need);
  void Stop(Number process);
  // Those that were opened ahead and not used yet.
  void StopAhead();
  // Those that will hardly be asked again.
  void StopOthers(Number process);

  const proto::Task task_;
  const WorkerOptions options_;
  const ops::MeasurementPolicy policy_;
  std::map<Number, Slot> slots_;
  std::vector<std::unique_ptr<OpenedWorker>> ending_;
  // The next shared one, once the one that serves nears its end.
  std::unique_ptr<OpenedWorker> next_;
  int64_t uses_ = 0;
  int workers_started_ = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_POOL_H_
