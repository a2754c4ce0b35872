#include "suites/worker/compile_pool.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/process/cpus.h"
#include "base/process/process_guard.h"
#include "suites/worker/exchange.h"

namespace optrail::suites {
namespace {

// The niceness of its processes: a measurement is more urgent than they are.
constexpr int kNiceness = 5;

}  // namespace

int64_t CompilePool::PausableClock::NowNs() const {
  const absl::MutexLock lock(&mutex_);
  return (stopped_at_ns_ ? *stopped_at_ns_ : Clock::Real()->NowNs()) -
         stopped_ns_;
}

void CompilePool::PausableClock::Stop() {
  const absl::MutexLock lock(&mutex_);
  stopped_at_ns_ = Clock::Real()->NowNs();
}

void CompilePool::PausableClock::GoOn() {
  const absl::MutexLock lock(&mutex_);
  stopped_ns_ += Clock::Real()->NowNs() - *stopped_at_ns_;
  stopped_at_ns_.reset();
}

CompilePool::CompilePool(CompilePoolOptions options)
    : options_(std::move(options)) {
  const size_t count = std::max<size_t>(1, options_.cores.size());
  for (size_t i = 0; i < count; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    if (!options_.cores.empty()) slots_.back()->core = options_.cores[i];
  }
}

CompilePool::~CompilePool() {
  {
    const absl::MutexLock lock(&mutex_);
    ending_ = true;
    waiting_.clear();
    // A guard that is told to end takes its compiler along.
    for (const auto& slot : slots_) {
      if (slot->process != 0) kill(slot->process, SIGTERM);
    }
  }
  for (const auto& slot : slots_) {
    if (slot->thread.joinable()) slot->thread.join();
  }
}

void CompilePool::Start(const std::string& key,
                        proto::WorkerRequest::Compile request) {
  const absl::MutexLock lock(&mutex_);
  if (!known_.emplace(key, absl::nullopt).second) return;
  Job job;
  job.key = key;
  *job.request.mutable_compile() = std::move(request);
  waiting_.push_back(std::move(job));
  for (const auto& slot : slots_) {
    if (slot->thread.joinable()) continue;
    slot->thread = std::thread([this, slot = slot.get()] { Serve(*slot); });
    return;
  }
}

absl::optional<proto::Evaluation> CompilePool::Find(
    const std::string& key) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return absl::nullopt;
  return found->second;
}

void CompilePool::WaitForAny(const std::vector<std::string>& keys,
                             absl::Duration wait) const {
  const absl::MutexLock lock(&mutex_);
  const auto any_done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bool started = false;
    for (const std::string& key : keys) {
      const auto found = known_.find(key);
      if (found == known_.end()) continue;
      started = true;
      if (found->second.has_value()) return true;
    }
    return !started;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&any_done), wait);
}

void CompilePool::Drop(const std::string& key) {
  const absl::MutexLock lock(&mutex_);
  const auto job =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [&](const Job& waiting) { return waiting.key == key; });
  if (job == waiting_.end()) return;
  waiting_.erase(job);
  known_.erase(key);
}

void CompilePool::Serve(Slot& slot) {
  // Inherited by the processes that this thread starts. What cannot be had is
  // no reason not to compile.
  if (slot.core >= 0) (void)UseCpus({slot.core});
  setpriority(PRIO_PROCESS, 0, kNiceness);
  std::unique_ptr<Subprocess> process;
  while (true) {
    Job job;
    {
      const absl::MutexLock lock(&mutex_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ending_ || (!paused_ && !waiting_.empty());
      };
      mutex_.Await(absl::Condition(&has_work));
      if (ending_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    proto::Evaluation compiled = Compile(job, slot, &process);
    const absl::MutexLock lock(&mutex_);
    known_[job.key] = std::move(compiled);
  }
}

absl::StatusOr<std::unique_ptr<Subprocess>> CompilePool::StartProcess() const {
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kCapture;
  options.max_stderr_bytes = kMaxWorkerStderrBytes;
  options.max_resident_bytes = options_.max_bytes;
  // The guard looks every few milliseconds; this stops what is quicker.
  options.max_data_bytes = 2 * options_.max_bytes;
  options.guard = options_.binary;
  options.clock = &clock_;
  return StartWorkerProcess(options_.binary, options);
}

proto::Evaluation CompilePool::Compile(const Job& job, Slot& slot,
                                       std::unique_ptr<Subprocess>* process) {
  if (*process == nullptr) {
    auto started = StartProcess();
    if (!started.ok()) {
      return EvaluationOf(proto::LAUNCH_ERROR, started.status().message());
    }
    *process = *std::move(started);
  }
  {
    const absl::MutexLock lock(&mutex_);
    slot.process = (*process)->pid();
    if (ending_) return {};
    // Paused since the job was taken: what is sent to it waits.
    if (paused_) SignalGuarded(slot.process, SIGSTOP);
  }
  const int64_t start_ns = clock_.NowNs();
  Exchanged exchanged =
      Exchange(job.request, options_.deadline, options_.max_bytes, **process);
  proto::Evaluation& compiled = exchanged.evaluations[0];
  proto::Trial& trial = *compiled.mutable_trial();
  trial.set_compile_ns(clock_.NowNs() - start_ns);
  if (!exchanged.answered) {
    {
      const absl::MutexLock lock(&mutex_);
      slot.process = 0;
    }
    process->reset();
    if (trial.outcome() == proto::CRASHED) {
      trial.set_outcome(proto::COMPILE_ERROR);
    }
    trial.set_detail(absl::StrCat("compiling: ", trial.detail()));
  }
  return std::move(compiled);
}

void CompilePool::SignalAll(int number) {
  for (const auto& slot : slots_) {
    if (slot->process != 0) SignalGuarded(slot->process, number);
  }
}

void CompilePool::Pause() {
  if (!options_.pauses) return;
  const absl::MutexLock lock(&mutex_);
  paused_ = true;
  clock_.Stop();
  SignalAll(SIGSTOP);
}

void CompilePool::Resume() {
  if (!options_.pauses) return;
  const absl::MutexLock lock(&mutex_);
  SignalAll(SIGCONT);
  clock_.GoOn();
  paused_ = false;
}

}  // namespace optrail::suites
