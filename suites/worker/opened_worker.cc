#include "suites/worker/opened_worker.h"

#include <signal.h>

#include <utility>

#include "base/running_binary.h"
#include "base/status_macros.h"
#include "suites/worker/exchange.h"

namespace optrail::suites {
namespace {

// A request fits into a pipe; a process that does not even start is found out
// when it is waited for.
constexpr absl::Duration kWritePatience = absl::Seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<OpenedWorker>> OpenedWorker::Start(
    OpenedWorkerOptions options, const std::vector<uint64_t>& input_seeds) {
  SubprocessOptions process;
  process.stderr_mode = StderrMode::kCapture;
  process.max_stderr_bytes = kMaxWorkerStderrBytes;
  process.max_resident_bytes = options.memory_cap_bytes;
  // The watchdog looks every few milliseconds; this stops what is quicker.
  process.max_data_bytes = 2 * options.memory_cap_bytes;
  std::unique_ptr<OpenedWorker> worker(new OpenedWorker(std::move(options)));
  OPTRAIL_ASSIGN_OR_RETURN(
      worker->process_, StartWorkerProcess(worker->options_.binary, process));
  proto::WorkerRequest request;
  proto::WorkerRequest::Open& open = *request.mutable_open();
  *open.mutable_task() = worker->options_.task;
  open.set_shared_folder(worker->options_.shared_folder);
  open.set_build(RunningBinaryFingerprint());
  for (const uint64_t seed : input_seeds) {
    open.add_input_seeds(seed);
    worker->ready_seeds_.insert(seed);
  }
  // What became of it is told by the reply that does not come.
  (void)worker->process_->WriteFrame(request.SerializeAsString(),
                                     kWritePatience);
  return worker;
}

proto::WorkerReply OpenedWorker::AwaitOpen() {
  if (awaited_) return opened_;
  awaited_ = true;
  Exchanged exchanged =
      Receive(options_.open_deadline, options_.memory_cap_bytes, *process_);
  alive_ = exchanged.answered;
  opened_ = std::move(exchanged.reply);
  return opened_;
}

proto::WorkerReply OpenedWorker::MakeReady(uint64_t input_seed) {
  if (ready_seeds_.count(input_seed) > 0) return opened_;
  proto::WorkerRequest request;
  request.mutable_make_ready()->add_input_seeds(input_seed);
  const proto::WorkerReply made = Ask(request, options_.open_deadline);
  if (made.outcome() == proto::OK) ready_seeds_.insert(input_seed);
  return made;
}

proto::WorkerReply OpenedWorker::Ask(const proto::WorkerRequest& request,
                                     absl::Duration deadline) {
  Exchanged exchanged =
      Exchange(request, deadline, options_.memory_cap_bytes, *process_);
  alive_ = exchanged.answered;
  return std::move(exchanged.reply);
}

void OpenedWorker::Kill() {
  // Its whole group, as Subprocess does.
  if (process_->running()) kill(-process_->pid(), SIGKILL);
}

}  // namespace optrail::suites
