#include "suites/worker/worker_evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "base/file.h"
#include "base/running_binary.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "ops/core/smaller_shape.h"
#include "suites/worker/exchange.h"
#include "suites/worker/worker.h"
#include "tuning/proto/canonical.h"

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

Evaluation EvaluationOf(const proto::WorkerReply& reply) {
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

std::string BinaryOf(const WorkerOptions& worker) {
  return worker.binary.empty() ? RunningBinary() : worker.binary;
}

}  // namespace

WorkerEvaluator::WorkerEvaluator(proto::Task task, WorkerOptions options)
    : task_(std::move(task)),
      options_(std::move(options)),
      compilers_(options_.compilers) {}

WorkerEvaluator::~WorkerEvaluator() { StopWorker(); }

int64_t WorkerEvaluator::waiting_bytes() const {
  const int64_t own = kWaitingOwnBytes + TaskBytes(task_);
  return smaller_ && *smaller_ ? own + (*smaller_)->waiting_bytes() : own;
}

void WorkerEvaluator::Rest() {
  StopWorker();
  if (smaller_ && *smaller_) (*smaller_)->Rest();
}

void WorkerEvaluator::StopWorker() {
  worker_.reset();
  configs_in_worker_ = 0;
}

Evaluation WorkerEvaluator::Ask(const proto::WorkerRequest& request,
                                absl::Duration deadline) {
  const Exchanged exchanged =
      Exchange(request, deadline, memory_cap_bytes_, *worker_);
  if (!exchanged.answered) StopWorker();
  return EvaluationOf(exchanged.reply);
}

CompilePoolOptions CompilePoolFor(proto::DeviceKind kind, int threads,
                                  const WorkerOptions& worker) {
  CompilePoolOptions options;
  options.binary = BinaryOf(worker);
  options.deadline = worker.compile_deadline;
  options.max_bytes = worker.max_compiler_bytes;
  ops::DeviceOptions device;
  device.threads = threads;
  if (const auto type = ops::FindDeviceType(kind); type.ok()) {
    options.cores = (*type)->SpareCores(device);
  }
  if (options.cores.empty()) {
    options.cores = UsableCpus();
    options.pauses = true;
  }
  return options;
}

CompilePool& WorkerEvaluator::Compilers() {
  if (compilers_ == nullptr) {
    compilers_ = std::make_shared<CompilePool>(
        CompilePoolFor(task_.device_kind(), task_.threads(), options_));
  }
  return *compilers_;
}

std::string WorkerEvaluator::KeyOf(const proto::Config& config) {
  const auto [entry, is_new] = keys_.try_emplace(tuning::CanonicalText(config));
  std::string& key = entry->second;
  // Without a folder, what one process compiles is of no use to another.
  if (!is_new || options_.shared_folder.empty()) return key;
  const ops::OperatorEntry* op =
      ops::Registry::Get().Find(task_.operator_name());
  if (op == nullptr) return key;
  const auto backend = op->FindBackend(task_.device_kind(), task_.backend());
  if (!backend.ok()) return key;
  if (!target_.has_value()) target_ = LocalTarget(task_.device_kind());
  if (!target_->ok()) return key;
  const absl::StatusOr<ops::Recipe> recipe =
      (*backend)->Describe({task_.shape(), config, **target_});
  if (recipe.ok() && recipe->NeedsCompiler()) key = recipe->Key();
  return key;
}

absl::optional<Compiled> WorkerEvaluator::CompiledOf(const std::string& key) {
  if (compilers_ != nullptr) {
    if (auto compiled = compilers_->Find(key); compiled.has_value()) {
      return compiled;
    }
  }
  const auto cached = cached_.find(key);
  if (cached != cached_.end()) return cached->second;
  const ops::CompileCache cache(
      JoinPath(options_.shared_folder, kCompiledFolder));
  const absl::StatusOr<ops::Artifact> artifact = cache.Get(key);
  if (!artifact.ok()) return absl::nullopt;
  Compiled& compiled = cached_[key];
  compiled.outcome = proto::OK;
  compiled.facts = FactsOf(*artifact);
  return compiled;
}

int WorkerEvaluator::CompileAhead(const proto::Config& example) {
  // Twice as many as compile at a time, so that none of them runs dry.
  return KeyOf(example).empty() ? 0 : 2 * Compilers().processes();
}

void WorkerEvaluator::Prepare(const proto::Config& config) {
  const std::string key = KeyOf(config);
  if (key.empty() || CompiledOf(key).has_value()) return;
  proto::WorkerRequest::Compile request;
  *request.mutable_task() = task_;
  *request.mutable_config() = config;
  request.set_shared_folder(options_.shared_folder);
  Compilers().Start(key, std::move(request));
}

bool WorkerEvaluator::IsReady(const proto::Config& config) {
  const std::string key = KeyOf(config);
  return key.empty() || CompiledOf(key).has_value();
}

void WorkerEvaluator::AwaitReady(const std::vector<proto::Config>& configs,
                                 absl::Duration wait) {
  std::vector<std::string> keys;
  for (const proto::Config& config : configs) {
    if (IsReady(config)) return;
    keys.push_back(KeyOf(config));
  }
  if (!keys.empty()) Compilers().WaitForAny(keys, wait);
}

Evaluator* WorkerEvaluator::Smaller(const proto::Config& example,
                                    double fraction) {
  if (!smaller_) {
    smaller_.emplace();
    const ops::OperatorEntry* entry =
        ops::Registry::Get().Find(task_.operator_name());
    if (entry == nullptr || !KeyOf(example).empty()) return nullptr;
    const absl::optional<proto::Shape> shape =
        ops::SmallerShape(*entry->op, task_.shape(), fraction);
    if (!shape) return nullptr;
    proto::Task task = task_;
    *task.mutable_shape() = *shape;
    *smaller_ = std::make_unique<WorkerEvaluator>(std::move(task), options_);
  }
  return smaller_->get();
}

void WorkerEvaluator::Abandon(const proto::Config& config) {
  if (compilers_ != nullptr) compilers_->Drop(KeyOf(config));
}

Evaluation WorkerEvaluator::StartWorker(uint64_t input_seed) {
  SubprocessOptions process;
  process.stderr_mode = StderrMode::kCapture;
  process.max_stderr_bytes = kMaxWorkerStderrBytes;
  memory_cap_bytes_ =
      kWorkerOwnBytes + TaskBytes(task_) + options_.max_config_bytes;
  process.max_resident_bytes = memory_cap_bytes_;
  // The watchdog looks every few milliseconds; this stops what is quicker.
  process.max_data_bytes = 2 * memory_cap_bytes_;
  auto started = StartWorkerProcess(BinaryOf(options_), process);
  if (!started.ok()) {
    Evaluation failed;
    failed.outcome = proto::LAUNCH_ERROR;
    failed.detail = std::string(started.status().message());
    return failed;
  }
  worker_ = *std::move(started);
  ++workers_started_;
  proto::WorkerRequest request;
  *request.mutable_open()->mutable_task() = task_;
  request.mutable_open()->set_shared_folder(options_.shared_folder);
  request.mutable_open()->set_build(RunningBinaryFingerprint());
  request.mutable_open()->add_input_seeds(input_seed);
  seeds_in_worker_ = {input_seed};
  return Ask(request, options_.open_deadline);
}

Evaluation WorkerEvaluator::Evaluate(const proto::Config& config,
                                     const EvaluationOptions& options) {
  absl::optional<Compiled> compiled;
  if (const std::string key = KeyOf(config); !key.empty()) {
    Prepare(config);
    AwaitReady({config}, absl::InfiniteDuration());
    compiled = CompiledOf(key);
  }
  if (compiled.has_value()) {
    Evaluation evaluation;
    evaluation.outcome = compiled->outcome;
    evaluation.detail = compiled->detail;
    evaluation.prepare_ns = compiled->compile_ns;
    evaluation.facts = compiled->facts;
    if (compiled->outcome != proto::OK) return evaluation;
    if (options.accept_facts) {
      const absl::Status accepted = options.accept_facts(compiled->facts);
      if (!accepted.ok()) {
        evaluation.outcome = proto::INVALID;
        evaluation.detail = std::string(accepted.message());
        return evaluation;
      }
    }
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
    const Evaluation made = Ask(ready, options_.open_deadline);
    if (made.outcome != proto::OK) {
      StopWorker();
      return timed(made);
    }
    seeds_in_worker_.insert(options.input_seed);
  }
  const int64_t unpaid_ns = Clock::Real()->NowNs() - start_ns;
  start_ns += unpaid_ns;
  proto::WorkerRequest request;
  *request.mutable_evaluate()->mutable_config() = config;
  *request.mutable_evaluate()->mutable_sampling() = options.sampling;
  request.mutable_evaluate()->set_input_seed(options.input_seed);
  for (const std::string& metric : options.metrics) {
    request.mutable_evaluate()->add_metrics(metric);
  }
  ++configs_in_worker_;
  Evaluation evaluation;
  {
    const CompilePause pause(compilers_.get());
    evaluation = Ask(
        request, std::min(options_.config_deadline, options.hopeless_after));
  }
  if (evaluation.outcome == proto::TIMED_OUT &&
      options.hopeless_after < options_.config_deadline) {
    evaluation.outcome = proto::CENSORED;
    evaluation.time_ns = options.sampling.hopeless_above_ns();
  }
  evaluation.unpaid_ns = unpaid_ns;
  if (compiled.has_value()) {
    // Told once: what is measured again was not compiled again.
    evaluation.prepare_ns = compiled->compile_ns;
    evaluation.facts = compiled->facts;
  }
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
