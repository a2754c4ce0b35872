#include "suites/worker/worker_pool.h"

#include <algorithm>
#include <utility>

#include "base/process/machine_memory.h"
#include "base/status_macros.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"
#include "suites/worker/worker_reply.h"

namespace optrail::suites {
namespace {

// Memory that the process needs for itself: code, libraries, the runtime's
// pools.
constexpr int64_t kWorkerOwnBytes = int64_t{256} << 20;

// Of that, what stays resident in a worker that waits.
constexpr int64_t kWaitingOwnBytes = int64_t{32} << 20;

// Nobody may have more of the machine's memory: what takes it all ends by its
// own limit, and not whom the kernel chooses.
int64_t MostBytes() { return MachineMemoryBytes() / 8 * 7; }

constexpr size_t kMaxEnding = 4;
// Begun so many configs before it is needed: opening takes as long as some
// fifteen readings.
constexpr int kConfigsBeforeNext = 20;

std::vector<ops::OperandSpec> SpecsOf(const proto::Task& task) {
  const ops::OperatorEntry* entry =
      ops::Registry::Get().Find(task.operator_name());
  if (entry == nullptr) return {};
  if (!ops::CheckShape(*entry->op, task.shape()).ok()) return {};
  auto specs = entry->op->Operands(task.shape());
  return specs.ok() ? *std::move(specs) : std::vector<ops::OperandSpec>();
}

// Operands, and up to three cached references in double precision with the
// inputs they came from.
int64_t TaskBytes(const proto::Task& task) {
  int64_t bytes = 0;
  for (const ops::OperandSpec& spec : SpecsOf(task)) {
    bytes += static_cast<int64_t>(spec.size_bytes()) +
             spec.elements() * static_cast<int64_t>(sizeof(double)) * 6;
  }
  return bytes;
}

}  // namespace

int64_t OperandBytes(const proto::Task& task) {
  int64_t bytes = 0;
  for (const ops::OperandSpec& spec : SpecsOf(task)) {
    bytes += static_cast<int64_t>(spec.size_bytes());
  }
  return bytes;
}

int64_t WaitingBytes(const proto::Task& task) {
  return kWaitingOwnBytes + TaskBytes(task);
}

WorkerPool::WorkerPool(proto::Task task, WorkerOptions options,
                       ops::MeasurementPolicy policy)
    : task_(std::move(task)),
      options_(std::move(options)),
      policy_(std::move(policy)) {
  if (ServesOthers()) options_.used->Expect(OwnMemoryCap());
}

int64_t WorkerPool::OwnMemoryCap() const {
  return std::min(
      kWorkerOwnBytes + TaskBytes(task_) + options_.max_config_bytes,
      MostBytes());
}

void WorkerPool::Rest() {
  std::vector<std::unique_ptr<OpenedWorker>> ended = std::move(ending_);
  ending_.clear();
  for (auto& [process, slot] : slots_) {
    // The shared one has served many configs.
    if (process && ServesOthers() && slot.worker->MayGoOn()) {
      options_.used->Keep(std::move(slot.worker));
    } else {
      ended.push_back(std::move(slot.worker));
    }
  }
  slots_.clear();
  if (next_ != nullptr) ended.push_back(std::move(next_));
  if (policy_.processes_kept > 0) {
    // What was found out need not wait for them.
    EndWorkers(std::move(ended));
  } else {
    for (const auto& worker : ended) worker->Kill();
  }
}

void WorkerPool::Stop(Number process) {
  const auto found = slots_.find(process);
  if (found == slots_.end()) return;
  found->second.worker->Kill();
  if (policy_.processes_kept > 0) {
    ending_.push_back(std::move(found->second.worker));
    if (ending_.size() > kMaxEnding) ending_.erase(ending_.begin());
  }
  slots_.erase(found);
}

void WorkerPool::StopOthers(Number process) {
  while (true) {
    auto oldest = slots_.end();
    int used = 0;
    for (auto it = slots_.begin(); it != slots_.end(); ++it) {
      if (it->first == process || IsWaiting(it->second)) continue;
      ++used;
      if (oldest == slots_.end() ||
          it->second.last_used < oldest->second.last_used) {
        oldest = it;
      }
    }
    if (used <= policy_.processes_kept) return;
    Stop(oldest->first);
  }
}

void WorkerPool::StopAhead() {
  for (auto it = slots_.begin(); it != slots_.end();) {
    const auto here = it++;
    if (IsWaiting(here->second)) Stop(here->first);
  }
  ending_.clear();
}

absl::StatusOr<std::unique_ptr<OpenedWorker>> WorkerPool::StartOne(
    const std::vector<uint64_t>& seeds) {
  OpenedWorkerOptions worker;
  worker.binary = BinaryOf(options_);
  worker.task = task_;
  worker.shared_folder = options_.shared_folder;
  worker.memory_cap_bytes =
      ServesOthers() ? options_.used->memory_cap_bytes() : OwnMemoryCap();
  worker.open_deadline = options_.open_deadline;
  worker.environment = options_.environment;
  if (options_.used != nullptr) {
    while (auto used = options_.used->Take(worker)) {
      if (!used->Reopen(worker, seeds)) continue;
      return used;
    }
  }
  ++workers_started_;
  return OpenedWorker::Start(std::move(worker), seeds);
}

absl::Status WorkerPool::Start(Number process,
                               const std::vector<uint64_t>& seeds) {
  OPTRAIL_ASSIGN_OR_RETURN(slots_[process].worker, StartOne(seeds));
  return absl::OkStatus();
}

void WorkerPool::OpenAhead(const ComingProcess& process) {
  if (slots_.count(process.process_of_round) > 0) return;
  if (Start(process.process_of_round, process.input_seeds).ok()) {
    slots_[process.process_of_round].ahead = true;
  } else {
    // Said when it is needed.
    slots_.erase(process.process_of_round);
  }
}

bool WorkerPool::IsOpen(Number process) const {
  const auto found = slots_.find(process);
  return found == slots_.end() || found->second.worker->HasOpened();
}

void WorkerPool::Replace(const Need& need) {
  const auto slot = slots_.find(need.process);
  if (slot == slots_.end() ||
      slot->second.configs < (need.fresh ? 1 : options_.configs_per_worker)) {
    return;
  }
  Stop(need.process);
  if (need.process || next_ == nullptr) return;
  slots_[need.process].worker = std::move(next_);
  slots_[need.process].ahead = true;
}

void WorkerPool::OpenTogether(const Need& need) {
  if (need.next.empty() || slots_.count(need.process) > 0) return;
  // They were opened for rounds that did not come.
  StopAhead();
  OpenAhead({need.process, {need.input_seed}});
  for (const ComingProcess& process : need.next) OpenAhead(process);
  for (auto& [opened, slot] : slots_) {
    // What does not open is said when it is needed.
    if (IsWaiting(slot)) (void)slot.worker->AwaitOpen();
  }
}

proto::Evaluation WorkerPool::MakeReady(const Need& need) {
  Replace(need);
  StopOthers(need.process);
  OpenTogether(need);
  return Await(need);
}

proto::Evaluation WorkerPool::Await(const Need& need) {
  if (slots_.count(need.process) == 0) {
    if (const absl::Status started = Start(need.process, {need.input_seed});
        !started.ok()) {
      slots_.erase(need.process);
      return EvaluationOf(proto::LAUNCH_ERROR, started.message());
    }
  }
  OpenedWorker& worker = *slots_[need.process].worker;
  proto::Evaluation opened = worker.AwaitOpen();
  // Inputs that are new to the worker need a reference first.
  if (IsOk(opened)) opened = worker.MakeReady(need.input_seed);
  if (IsOk(opened)) return opened;
  const bool ahead = slots_[need.process].ahead;
  Stop(need.process);
  if (!ahead) return opened;
  // There may have been too many at a time for the device.
  StopAhead();
  if (options_.used != nullptr) options_.used->Clear();
  return Await(need);
}

bool WorkerPool::IsIdle(const Need& need) const {
  const auto slot = slots_.find(need.process);
  return !need.fresh && slot != slots_.end() && slot->second.configs > 0 &&
         slot->second.configs < options_.configs_per_worker &&
         slot->second.worker->IsReadyFor(need.input_seed);
}

OpenedWorker& WorkerPool::Use(const Need& need, int configs) {
  Slot& slot = slots_[need.process];
  slot.configs += configs;
  slot.last_used = ++uses_;
  if (!need.process && policy_.processes_ahead > 0 && next_ == nullptr &&
      slot.configs >= options_.configs_per_worker - kConfigsBeforeNext) {
    if (auto next = StartOne({need.input_seed}); next.ok()) {
      next_ = *std::move(next);
    }
  }
  return *slot.worker;
}

void WorkerPool::GiveBack(Number process, proto::Outcome outcome, bool done) {
  const auto slot = slots_.find(process);
  if (slot == slots_.end()) return;
  if (done || !LeavesNothingBehind(outcome) || !slot->second.worker->alive()) {
    Stop(process);
  }
}

}  // namespace optrail::suites
