#include "suites/worker/worker_evaluator.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ops/core/registry.h"
#include "suites/worker/worker.h"

namespace optrail::suites {
namespace {

// What the process needs for itself: code, libraries, the runtime's pools.
constexpr int64_t kWorkerOwnBytes = int64_t{256} << 20;

// Of that, what stays resident in a worker that waits.
constexpr int64_t kWaitingOwnBytes = int64_t{32} << 20;

// Operands, and up to three cached references in double precision with the
// inputs they came from. 0 for a task that the worker is going to refuse.
int64_t TaskBytes(const proto::Task& task) {
  const ops::OperatorEntry* entry =
      ops::Registry::Get().Find(task.operator_name());
  if (entry == nullptr) return 0;
  const auto specs = entry->op->Operands(task.shape());
  if (!specs.ok()) return 0;
  int64_t bytes = 0;
  for (const ops::OperandSpec& spec : *specs) {
    bytes += static_cast<int64_t>(spec.size_bytes()) +
             spec.elements() * static_cast<int64_t>(sizeof(double)) * 6;
  }
  return bytes;
}

// `memory_cap_bytes`: a process that died near it most likely failed to
// allocate, whatever it then did about that.
Evaluation Ended(const ExitInfo& exit, absl::string_view stderr_tail,
                 absl::Duration deadline, int64_t memory_cap_bytes) {
  Evaluation evaluation;
  switch (exit.kind) {
    case ExitInfo::Kind::kTimedOut:
    case ExitInfo::Kind::kKilled:
      evaluation.outcome = proto::TIMED_OUT;
      evaluation.detail =
          absl::StrCat("no answer within ", absl::FormatDuration(deadline),
                       "; the worker was killed");
      return evaluation;
    case ExitInfo::Kind::kOutOfMemory:
      evaluation.outcome = proto::OUT_OF_MEMORY;
      break;
    default:
      evaluation.outcome = exit.max_resident_bytes > memory_cap_bytes * 9 / 10
                               ? proto::OUT_OF_MEMORY
                               : proto::CRASHED;
  }
  const absl::string_view tail = absl::StripSuffix(stderr_tail, "\n");
  evaluation.detail = absl::StrCat("the worker ", exit.ToString(),
                                   tail.empty() ? "" : ": ", tail);
  return evaluation;
}

}  // namespace

WorkerEvaluator::WorkerEvaluator(proto::Task task, WorkerOptions options)
    : task_(std::move(task)), options_(std::move(options)) {}

WorkerEvaluator::~WorkerEvaluator() { StopWorker(); }

int64_t WorkerEvaluator::waiting_bytes() const {
  return kWaitingOwnBytes + TaskBytes(task_);
}

void WorkerEvaluator::StopWorker() {
  worker_.reset();
  configs_in_worker_ = 0;
}

Evaluation WorkerEvaluator::Exchange(const proto::WorkerRequest& request,
                                     absl::Duration deadline) {
  const absl::Status sent =
      worker_->WriteFrame(request.SerializeAsString(), deadline);
  const absl::StatusOr<std::string> frame =
      sent.ok() ? worker_->ReadFrame(deadline)
                : absl::StatusOr<std::string>(sent);
  proto::WorkerReply reply;
  if (!frame.ok() || !reply.ParseFromString(*frame)) {
    // A worker that ended by itself is reported as it ended.
    const ExitInfo exit = worker_->KillAndWait();
    const Evaluation ended =
        Ended(exit, worker_->TakeStderr(), deadline, memory_cap_bytes_);
    StopWorker();
    return ended;
  }
  Evaluation evaluation;
  evaluation.outcome = reply.outcome();
  evaluation.detail = reply.detail();
  if (reply.has_measurement()) evaluation.measurement = reply.measurement();
  if (reply.has_time_ns()) evaluation.time_ns = reply.time_ns();
  if (reply.has_error_in_tolerances()) {
    evaluation.error_in_tolerances = reply.error_in_tolerances();
  }
  if (reply.has_prepare_ns()) evaluation.prepare_ns = reply.prepare_ns();
  return evaluation;
}

Evaluation WorkerEvaluator::StartWorker(uint64_t input_seed) {
  Evaluation failed;
  failed.outcome = proto::LAUNCH_ERROR;
  SubprocessOptions subprocess_options;
  subprocess_options.stderr_mode = StderrMode::kCapture;
  subprocess_options.max_stderr_bytes = 2000;
  memory_cap_bytes_ =
      kWorkerOwnBytes + TaskBytes(task_) + options_.max_config_bytes;
  subprocess_options.max_resident_bytes = memory_cap_bytes_;
  // The watchdog looks every few milliseconds; this stops what is quicker.
  subprocess_options.max_data_bytes = 2 * memory_cap_bytes_;
  const std::string binary =
      options_.binary.empty() ? "/proc/self/exe" : options_.binary;
  absl::StatusOr<std::unique_ptr<Subprocess>> started =
      Subprocess::Start({binary, kWorkerFlag}, subprocess_options);
  if (!started.ok()) {
    failed.detail = std::string(started.status().message());
    return failed;
  }
  worker_ = *std::move(started);
  ++workers_started_;
  proto::WorkerRequest request;
  *request.mutable_open()->mutable_task() = task_;
  request.mutable_open()->add_input_seeds(input_seed);
  seeds_in_worker_ = {input_seed};
  return Exchange(request, options_.open_deadline);
}

Evaluation WorkerEvaluator::Evaluate(const proto::Config& config,
                                     const EvaluationOptions& options) {
  const int64_t start_ns = Clock::Real()->NowNs();
  const auto timed = [&](Evaluation evaluation) {
    evaluation.elapsed_ns = Clock::Real()->NowNs() - start_ns;
    return evaluation;
  };
  if (options.fresh_process || options.process_of_round != round_of_worker_ ||
      configs_in_worker_ >= options_.configs_per_worker) {
    StopWorker();
  }
  round_of_worker_ = options.process_of_round;
  if (worker_ == nullptr) {
    const Evaluation opened = StartWorker(options.input_seed);
    if (opened.outcome != proto::OK) {
      StopWorker();
      return timed(opened);
    }
  }
  proto::WorkerRequest request;
  *request.mutable_evaluate()->mutable_config() = config;
  *request.mutable_evaluate()->mutable_sampling() = options.sampling;
  request.mutable_evaluate()->set_input_seed(options.input_seed);
  ++configs_in_worker_;
  // Inputs that are new to the worker need a reference first.
  absl::Duration deadline = options_.config_deadline;
  if (seeds_in_worker_.insert(options.input_seed).second) {
    deadline += options_.open_deadline;
  }
  const Evaluation evaluation = Exchange(request, deadline);
  // A fresh process serves one config; after a failure nobody knows what the
  // config left behind.
  const bool sound = evaluation.outcome == proto::OK ||
                     evaluation.outcome == proto::CENSORED ||
                     evaluation.outcome == proto::CONTENDED ||
                     evaluation.outcome == proto::INVALID;
  if (options.fresh_process || !sound) StopWorker();
  return timed(evaluation);
}

}  // namespace optrail::suites
