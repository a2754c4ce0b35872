#ifndef OPTRAIL_SUITES_WORKER_OPENED_WORKER_H_
#define OPTRAIL_SUITES_WORKER_OPENED_WORKER_H_

// A worker process that was told its task. It makes ready by itself (the
// device, operands, inputs and their references) while others are measured, and
// is waited for once it is needed.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto worker,  // returns at once
//                            OpenedWorker::Start(options, {seed}));
//   ...
//   const proto::Evaluation opened = worker->AwaitOpen();
//   if (IsOk(opened)) worker->Ask(request, deadline);
//
// Used by the thread that started it, which has to live as long (base/
// subprocess.h, DieWithParent).

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/exchange.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct OpenedWorkerOptions {
  std::string binary;
  proto::Task task;
  // Empty: what it makes ready is shared with nobody.
  std::string shared_folder;
  int64_t memory_cap_bytes = 0;
  // From when it is waited for.
  absl::Duration open_deadline;
  // See WorkerOptions::environment.
  std::vector<std::pair<std::string, std::string>> environment;
};

class OpenedWorker {
 public:
  // Errors as Subprocess::Start.
  static absl::StatusOr<std::unique_ptr<OpenedWorker>> Start(
      OpenedWorkerOptions options, const std::vector<uint64_t>& input_seeds);

  // Whether it waits for a request, none of which went wrong so far, and can be
  // told such a task next.
  bool IsIdle() const;
  // Whether AwaitOpen() would not wait.
  bool HasOpened() const { return awaited_ || process_->HasOutput(); }
  // Idle, or still making ready for a task that nobody asks about any more.
  bool MayGoOn() const { return !awaited_ || IsIdle(); }
  bool Suits(const OpenedWorkerOptions& options) const;
  // Tells it another task, in place of the one it had: the device is open
  // already, which may have taken longer than all else. False: it came to
  // nothing.
  bool Reopen(OpenedWorkerOptions options,
              const std::vector<uint64_t>& input_seeds);

  // OK, or what keeps any config of the task from being measured.
  proto::Evaluation AwaitOpen();

  // After AwaitOpen() said OK. Makes the seed's inputs ready where they are
  // not.
  proto::Evaluation MakeReady(uint64_t input_seed);
  std::vector<proto::Evaluation> Ask(const proto::WorkerRequest& request,
                                     absl::Duration deadline,
                                     const TimeElsewhere& elsewhere = {});

  // The same in two steps, for one that waits with these inputs at hand.
  bool IsReadyFor(uint64_t input_seed) const {
    return IsIdle() && ready_seeds_.count(input_seed) > 0;
  }
  absl::Status Send(const proto::WorkerRequest& request);
  std::vector<proto::Evaluation> Receive(absl::Duration deadline);

  // False once a process ended instead of answering.
  bool alive() const { return alive_; }
  // Of the process, whatever task it has.
  int64_t memory_cap_bytes() const { return memory_cap_bytes_; }

  // Begins to end it; the destructor waits. Several end faster so than one
  // after the other: giving a device back takes its time.
  void Kill();

 private:
  explicit OpenedWorker(OpenedWorkerOptions options)
      : options_(std::move(options)) {}

  void SendOpen(const std::vector<uint64_t>& input_seeds);
  std::vector<proto::Evaluation> Note(Exchanged exchanged);

  OpenedWorkerOptions options_;
  int64_t memory_cap_bytes_ = 0;  // of the process
  std::unique_ptr<Subprocess> process_;
  std::set<uint64_t> ready_seeds_;
  bool awaited_ = false;
  bool alive_ = true;
  bool sound_ = true;
  proto::Evaluation opened_;
};

// Whether a process that answered so can be asked again.
bool LeavesNothingBehind(proto::Outcome outcome);

// Processes that a task is done with, for tasks that come after it. All tasks
// that share it are expected first, so that the processes of each suit all.
class UsedWorkers {
 public:
  UsedWorkers() = default;
  ~UsedWorkers() { Clear(); }
  UsedWorkers(const UsedWorkers&) = delete;
  UsedWorkers& operator=(const UsedWorkers&) = delete;

  // A task is going to need processes of this cap.
  void Expect(int64_t memory_cap_bytes);
  // The largest that was expected.
  int64_t memory_cap_bytes() const { return memory_cap_bytes_; }

  // Ends it where it is not idle. Where there are enough, the one with the
  // smallest cap goes, which suits fewest.
  void Keep(std::unique_ptr<OpenedWorker> worker);
  // One that need not be waited for; nullptr: none suits.
  std::unique_ptr<OpenedWorker> Take(const OpenedWorkerOptions& options);
  void Clear();

 private:
  std::vector<std::unique_ptr<OpenedWorker>> workers_;
  int64_t memory_cap_bytes_ = 0;
};

// Ends them without waiting: a second goes by until a driver has taken back
// what eight processes had.
void EndWorkers(std::vector<std::unique_ptr<OpenedWorker>> workers);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_OPENED_WORKER_H_
