#include "suites/worker/worker_evaluator.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/running_binary.h"
#include "ops/core/compile_cache.h"
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
  if (!ops::CheckShape(*entry->op, task.shape()).ok()) return 0;
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
  if (reply.has_load_ns()) evaluation.load_ns = reply.load_ns();
  evaluation.facts.assign(reply.facts().begin(), reply.facts().end());
  return evaluation;
}

absl::Status WorkerEvaluator::StartProcess(int64_t max_resident_bytes) {
  SubprocessOptions subprocess_options;
  subprocess_options.stderr_mode = StderrMode::kCapture;
  subprocess_options.max_stderr_bytes = 2000;
  memory_cap_bytes_ = max_resident_bytes;
  subprocess_options.max_resident_bytes = memory_cap_bytes_;
  // The watchdog looks every few milliseconds; this stops what is quicker.
  subprocess_options.max_data_bytes = 2 * memory_cap_bytes_;
  const std::string binary =
      options_.binary.empty() ? RunningBinary() : options_.binary;
  absl::StatusOr<std::unique_ptr<Subprocess>> started =
      Subprocess::Start({binary, kWorkerFlag}, subprocess_options);
  if (!started.ok()) return started.status();
  worker_ = *std::move(started);
  return absl::OkStatus();
}

absl::optional<Evaluation> WorkerEvaluator::Compile(
    const proto::Config& config) {
  if (options_.shared_folder.empty()) return absl::nullopt;
  // Whatever is wrong with the task or the config, the worker says it.
  const ops::OperatorEntry* entry =
      ops::Registry::Get().Find(task_.operator_name());
  if (entry == nullptr) return absl::nullopt;
  const auto backend = entry->FindBackend(task_.device_kind(), task_.backend());
  if (!backend.ok()) return absl::nullopt;
  const absl::StatusOr<ops::Target> target = LocalTarget(task_.device_kind());
  if (!target.ok()) return absl::nullopt;
  const absl::StatusOr<ops::Recipe> recipe =
      (*backend)->Describe({task_.shape(), config, *target});
  if (!recipe.ok() || !recipe->NeedsCompiler()) return absl::nullopt;
  const std::string key = recipe->Key();
  if (compiled_keys_.count(key) > 0) return absl::nullopt;
  const ops::CompileCache cache(
      JoinPath(options_.shared_folder, kCompiledFolder));
  if (!cache.Get(key).ok()) {
    StopWorker();
    proto::WorkerRequest request;
    *request.mutable_compile()->mutable_task() = task_;
    *request.mutable_compile()->mutable_config() = config;
    request.mutable_compile()->set_shared_folder(options_.shared_folder);
    const absl::Status started = StartProcess(options_.max_compiler_bytes);
    Evaluation compiled;
    if (started.ok()) {
      compiled = Exchange(request, options_.compile_deadline);
    } else {
      compiled.outcome = proto::LAUNCH_ERROR;
      compiled.detail = std::string(started.message());
    }
    StopWorker();
    if (compiled.outcome == proto::TIMED_OUT ||
        compiled.outcome == proto::CRASHED ||
        compiled.outcome == proto::OUT_OF_MEMORY) {
      compiled.detail = absl::StrCat("compiling: ", compiled.detail);
      compiled.outcome = proto::COMPILE_ERROR;
    }
    if (compiled.outcome != proto::OK) return compiled;
  }
  compiled_keys_.insert(key);
  return absl::nullopt;
}

Evaluation WorkerEvaluator::StartWorker(uint64_t input_seed) {
  const absl::Status started = StartProcess(kWorkerOwnBytes + TaskBytes(task_) +
                                            options_.max_config_bytes);
  if (!started.ok()) {
    Evaluation failed;
    failed.outcome = proto::LAUNCH_ERROR;
    failed.detail = std::string(started.message());
    return failed;
  }
  ++workers_started_;
  proto::WorkerRequest request;
  *request.mutable_open()->mutable_task() = task_;
  request.mutable_open()->set_shared_folder(options_.shared_folder);
  request.mutable_open()->add_input_seeds(input_seed);
  seeds_in_worker_ = {input_seed};
  return Exchange(request, options_.open_deadline);
}

Evaluation WorkerEvaluator::Evaluate(const proto::Config& config,
                                     const EvaluationOptions& options) {
  if (absl::optional<Evaluation> failed = Compile(config); failed.has_value()) {
    return *std::move(failed);
  }
  int64_t start_ns = Clock::Real()->NowNs();
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
  // Inputs that are new to the worker need a reference first.
  if (seeds_in_worker_.count(options.input_seed) == 0) {
    proto::WorkerRequest ready;
    ready.mutable_make_ready()->add_input_seeds(options.input_seed);
    const Evaluation made = Exchange(ready, options_.open_deadline);
    if (made.outcome != proto::OK) {
      StopWorker();
      return timed(made);
    }
    seeds_in_worker_.insert(options.input_seed);
  }
  start_ns = Clock::Real()->NowNs();
  proto::WorkerRequest request;
  *request.mutable_evaluate()->mutable_config() = config;
  *request.mutable_evaluate()->mutable_sampling() = options.sampling;
  request.mutable_evaluate()->set_input_seed(options.input_seed);
  for (const std::string& metric : options.metrics) {
    request.mutable_evaluate()->add_metrics(metric);
  }
  ++configs_in_worker_;
  const Evaluation evaluation = Exchange(request, options_.config_deadline);
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
