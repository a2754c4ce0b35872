#include "suites/worker/opened_worker.h"

#include <signal.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/process/running_binary.h"
#include "base/status_macros.h"

namespace optrail::suites {
namespace {

// A request fits into a pipe; a process that does not even start is found out
// when it is waited for.
constexpr absl::Duration kWritePatience = absl::Seconds(2);

// A tuning session has as many on a device where processes are opened ahead.
constexpr size_t kMaxUsed = 12;

}  // namespace

absl::StatusOr<std::unique_ptr<OpenedWorker>> OpenedWorker::Start(
    OpenedWorkerOptions options, const std::vector<uint64_t>& input_seeds) {
  SubprocessOptions process;
  process.stderr_mode = StderrMode::kCapture;
  process.max_stderr_bytes = kMaxWorkerStderrBytes;
  process.environment = options.environment;
  process.max_resident_bytes = options.memory_cap_bytes;
  // The watchdog looks every few milliseconds; this stops what is quicker.
  process.max_data_bytes = 2 * options.memory_cap_bytes;
  std::unique_ptr<OpenedWorker> worker(new OpenedWorker(std::move(options)));
  OPTRAIL_ASSIGN_OR_RETURN(
      worker->process_, StartWorkerProcess(worker->options_.binary, process));
  worker->memory_cap_bytes_ = worker->options_.memory_cap_bytes;
  worker->SendOpen(input_seeds);
  return worker;
}

void OpenedWorker::SendOpen(const std::vector<uint64_t>& input_seeds) {
  proto::WorkerRequest request;
  proto::WorkerRequest::Open& open = *request.mutable_open();
  *open.mutable_task() = options_.task;
  open.set_shared_folder(options_.shared_folder);
  open.set_build(RunningBinaryFingerprint());
  for (const uint64_t seed : input_seeds) {
    open.add_input_seeds(seed);
    ready_seeds_.insert(seed);
  }
  // What became of it is told by the reply that does not come.
  (void)process_->WriteFrame(request.SerializeAsString(), kWritePatience);
}

bool OpenedWorker::IsIdle() const {
  return awaited_ && alive_ && sound_ && IsOk(opened_);
}

bool OpenedWorker::Suits(const OpenedWorkerOptions& options) const {
  return options.binary == options_.binary &&
         options.task.device_kind() == options_.task.device_kind() &&
         options.task.threads() == options_.task.threads() &&
         options.task.devices() == options_.task.devices() &&
         options.memory_cap_bytes <= memory_cap_bytes_;
}

bool OpenedWorker::Reopen(OpenedWorkerOptions options,
                          const std::vector<uint64_t>& input_seeds) {
  // The answer about the task before it, for which nobody asked, is dropped.
  (void)AwaitOpen();
  if (!IsIdle()) return false;
  options_ = std::move(options);
  ready_seeds_.clear();
  awaited_ = false;
  SendOpen(input_seeds);
  return true;
}

proto::Evaluation OpenedWorker::AwaitOpen() {
  if (awaited_) return opened_;
  awaited_ = true;
  Exchanged exchanged = suites::Receive(options_.open_deadline,
                                        options_.memory_cap_bytes, *process_);
  alive_ = exchanged.answered;
  opened_ = std::move(exchanged.evaluations[0]);
  return opened_;
}

proto::Evaluation OpenedWorker::MakeReady(uint64_t input_seed) {
  if (ready_seeds_.count(input_seed) > 0) return opened_;
  proto::WorkerRequest request;
  request.mutable_make_ready()->add_input_seeds(input_seed);
  const proto::Evaluation made = Ask(request, options_.open_deadline)[0];
  if (IsOk(made)) ready_seeds_.insert(input_seed);
  return made;
}

std::vector<proto::Evaluation> OpenedWorker::Ask(
    const proto::WorkerRequest& request, absl::Duration deadline,
    const TimeElsewhere& elsewhere) {
  return Note(Exchange(request, deadline, options_.memory_cap_bytes, *process_,
                       elsewhere));
}

absl::Status OpenedWorker::Send(const proto::WorkerRequest& request) {
  return process_->WriteFrame(request.SerializeAsString(), kWritePatience);
}

std::vector<proto::Evaluation> OpenedWorker::Receive(absl::Duration deadline) {
  return Note(suites::Receive(deadline, options_.memory_cap_bytes, *process_));
}

std::vector<proto::Evaluation> OpenedWorker::Note(Exchanged exchanged) {
  alive_ = exchanged.answered;
  // After a failure nobody knows what the config left behind.
  sound_ &= LeavesNothingBehind(exchanged.evaluations[0].trial().outcome());
  return std::move(exchanged.evaluations);
}

void OpenedWorker::Kill() {
  // Its whole group, as Subprocess does.
  if (process_->running()) kill(-process_->pid(), SIGKILL);
}

bool LeavesNothingBehind(proto::Outcome outcome) {
  return outcome == proto::OK || outcome == proto::CENSORED ||
         outcome == proto::CONTENDED || outcome == proto::INVALID ||
         outcome == proto::UNSUPPORTED;
}

void EndWorkers(std::vector<std::unique_ptr<OpenedWorker>> workers) {
  if (workers.empty()) return;
  for (const auto& worker : workers) worker->Kill();
  std::thread([workers = std::move(workers)]() mutable {
    workers.clear();
  }).detach();
}

void UsedWorkers::Expect(int64_t memory_cap_bytes) {
  memory_cap_bytes_ = std::max(memory_cap_bytes_, memory_cap_bytes);
}

void UsedWorkers::Keep(std::unique_ptr<OpenedWorker> worker) {
  workers_.push_back(std::move(worker));
  auto ended = workers_.end();
  if (!workers_.back()->MayGoOn()) {
    --ended;
  } else if (workers_.size() > kMaxUsed) {
    ended = std::min_element(
        workers_.begin(), workers_.end(), [](const auto& a, const auto& b) {
          return a->memory_cap_bytes() < b->memory_cap_bytes();
        });
  }
  if (ended == workers_.end()) return;
  std::vector<std::unique_ptr<OpenedWorker>> list;
  list.push_back(std::move(*ended));
  workers_.erase(ended);
  EndWorkers(std::move(list));
}

std::unique_ptr<OpenedWorker> UsedWorkers::Take(
    const OpenedWorkerOptions& options) {
  const auto found = std::find_if(
      workers_.begin(), workers_.end(), [&options](const auto& worker) {
        return worker->HasOpened() && worker->Suits(options);
      });
  if (found == workers_.end()) return nullptr;
  std::unique_ptr<OpenedWorker> worker = std::move(*found);
  workers_.erase(found);
  return worker;
}

void UsedWorkers::Clear() { EndWorkers(std::exchange(workers_, {})); }

}  // namespace optrail::suites
