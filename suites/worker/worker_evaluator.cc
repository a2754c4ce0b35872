#include "suites/worker/worker_evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpus.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/running_binary.h"
#include "base/status_macros.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "ops/core/smaller_shape.h"
#include "suites/worker/worker.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

// What the process needs for itself: code, libraries, the runtime's pools.
constexpr int64_t kWorkerOwnBytes = int64_t{256} << 20;

// Of that, what stays resident in a worker that waits.
constexpr int64_t kWaitingOwnBytes = int64_t{32} << 20;

// Nobody may have more of the machine's memory: what takes it all ends by its
// own limit, and not whom the kernel chooses.
int64_t MostBytes() { return MachineMemoryBytes() / 8 * 7; }

// Where processes are opened ahead, of those that were used: giving a device
// back takes longer than keeping it.
constexpr size_t kMaxKept = 12;
constexpr size_t kMaxEnding = 4;
// Of those that are opened together.
constexpr int64_t kTogetherBytes = int64_t{1} << 30;
// Begun so many configs before it is needed: opening takes as long as some
// fifteen readings.
constexpr int kConfigsBeforeNext = 20;

// Operands, and up to three cached references in double precision with the
// inputs they came from. 0 for a task that the worker is going to refuse.
std::vector<ops::OperandSpec> SpecsOf(const proto::Task& task) {
  const ops::OperatorEntry* entry =
      ops::Registry::Get().Find(task.operator_name());
  if (entry == nullptr) return {};
  if (!ops::CheckShape(*entry->op, task.shape()).ok()) return {};
  auto specs = entry->op->Operands(task.shape());
  return specs.ok() ? *std::move(specs) : std::vector<ops::OperandSpec>();
}

int64_t TaskBytes(const proto::Task& task) {
  int64_t bytes = 0;
  for (const ops::OperandSpec& spec : SpecsOf(task)) {
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
  if (reply.memory_bytes() > 0) evaluation.memory_bytes = reply.memory_bytes();
  if (reply.has_error_in_tolerances()) {
    evaluation.error_in_tolerances = reply.error_in_tolerances();
  }
  if (reply.has_prepare_ns()) evaluation.prepare_ns = reply.prepare_ns();
  if (reply.has_load_ns()) evaluation.load_ns = reply.load_ns();
  evaluation.check_ns = reply.check_ns();
  if (reply.has_busy_ns()) evaluation.busy_ns = reply.busy_ns();
  evaluation.turn_ns = reply.turn_ns();
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
      compilers_(options_.compilers) {
  if (options_.used != nullptr && ProcessesAhead() > 0) {
    options_.used->Expect(OwnMemoryCap());
  }
}

WorkerEvaluator::~WorkerEvaluator() { Rest(); }

int64_t WorkerEvaluator::waiting_bytes() const {
  const int64_t own = kWaitingOwnBytes + TaskBytes(task_);
  return smaller_ && *smaller_ ? own + (*smaller_)->waiting_bytes() : own;
}

int64_t WorkerEvaluator::OwnMemoryCap() const {
  return std::min(
      kWorkerOwnBytes + TaskBytes(task_) + options_.max_config_bytes,
      MostBytes());
}

bool WorkerEvaluator::KeepForOthers(std::unique_ptr<OpenedWorker>& worker) {
  if (options_.used == nullptr || ProcessesAhead() == 0 || !worker->MayGoOn()) {
    return false;
  }
  options_.used->Keep(std::move(worker));
  return true;
}

void WorkerEvaluator::Rest() {
  std::vector<std::unique_ptr<OpenedWorker>> ended = std::move(ending_);
  ending_.clear();
  begun_ = false;
  for (auto& [round, slot] : slots_) {
    // That of the search has served many configs.
    if (round && KeepForOthers(slot.worker)) continue;
    ended.push_back(std::move(slot.worker));
  }
  slots_.clear();
  if (next_ != nullptr) ended.push_back(std::move(next_));
  if (smaller_ && *smaller_) (*smaller_)->Rest();
  if (ProcessesAhead() > 0) {
    // What was found out need not wait for them.
    EndWorkers(std::move(ended));
  } else {
    for (const auto& worker : ended) worker->Kill();
  }
}

void WorkerEvaluator::Stop(Round round) {
  const auto found = slots_.find(round);
  if (found == slots_.end()) return;
  found->second.worker->Kill();
  if (ProcessesAhead() > 0) {
    ending_.push_back(std::move(found->second.worker));
    if (ending_.size() > kMaxEnding) ending_.erase(ending_.begin());
  }
  slots_.erase(found);
}

void WorkerEvaluator::StopOthers(Round round) {
  // Elsewhere those that were used hold memory, and are not used again.
  const size_t kept = ProcessesAhead() == 0 ? 0 : kMaxKept;
  while (true) {
    auto oldest = slots_.end();
    size_t used = 0;
    for (auto it = slots_.begin(); it != slots_.end(); ++it) {
      if (it->first == round || IsWaiting(it->second)) continue;
      ++used;
      if (oldest == slots_.end() ||
          it->second.last_used < oldest->second.last_used) {
        oldest = it;
      }
    }
    if (used <= kept) return;
    Stop(oldest->first);
  }
}

int WorkerEvaluator::ProcessesAhead() {
  const auto type = ops::FindDeviceType(task_.device_kind());
  return type.ok() ? (*type)->processes_ahead() : 0;
}

int WorkerEvaluator::ProcessesTogether() {
  const auto type = ops::FindDeviceType(task_.device_kind());
  if (!type.ok()) return 1;
  const int64_t fit = kTogetherBytes / (kWaitingOwnBytes + TaskBytes(task_));
  const int64_t together =
      std::clamp<int64_t>(fit, 1, (*type)->processes_together());
  // The sides of a pair take turns in being first: of an even number of rounds
  // it would always be the same that is measured just after an opening.
  return static_cast<int>(together % 2 == 0 ? together - 1 : together);
}

int64_t WorkerEvaluator::OperandBytes() {
  int64_t bytes = 0;
  for (const ops::OperandSpec& spec : SpecsOf(task_)) {
    bytes += static_cast<int64_t>(spec.size_bytes());
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<OpenedWorker>> WorkerEvaluator::StartOne(
    const std::vector<uint64_t>& seeds) {
  OpenedWorkerOptions worker;
  worker.binary = BinaryOf(options_);
  worker.task = task_;
  worker.shared_folder = options_.shared_folder;
  worker.memory_cap_bytes = OwnMemoryCap();
  if (options_.used != nullptr && ProcessesAhead() > 0) {
    worker.memory_cap_bytes = options_.used->memory_cap_bytes();
  }
  worker.open_deadline = options_.open_deadline;
  if (options_.used != nullptr) {
    while (auto used = options_.used->Take(worker)) {
      if (!used->Reopen(worker, seeds)) continue;
      return used;
    }
  }
  ++workers_started_;
  return OpenedWorker::Start(std::move(worker), seeds);
}

absl::Status WorkerEvaluator::Start(Round round,
                                    const std::vector<uint64_t>& seeds) {
  OPTRAIL_ASSIGN_OR_RETURN(slots_[round].worker, StartOne(seeds));
  return absl::OkStatus();
}

void WorkerEvaluator::OpenAhead(const ComingProcess& process) {
  if (slots_.count(process.process_of_round) > 0) return;
  if (Start(process.process_of_round, process.input_seeds).ok()) {
    slots_[process.process_of_round].ahead = true;
  } else {
    // Said when it is needed.
    slots_.erase(process.process_of_round);
  }
}

bool WorkerEvaluator::IsOpen(absl::optional<int64_t> process_of_round) {
  const auto found = slots_.find(process_of_round);
  return found == slots_.end() || found->second.worker->HasOpened();
}

void WorkerEvaluator::StopAhead() {
  for (auto it = slots_.begin(); it != slots_.end();) {
    const auto here = it++;
    if (IsWaiting(here->second)) Stop(here->first);
  }
  ending_.clear();
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

std::string WorkerEvaluator::KeyOf(const proto::Config& config,
                                   const std::string& backend_name) {
  const auto [entry, is_new] = keys_.try_emplace(
      absl::StrCat(backend_name, " ", tuning::CanonicalText(config)));
  std::string& key = entry->second;
  // Without a folder, what one process compiles is of no use to another.
  if (!is_new || options_.shared_folder.empty()) return key;
  const ops::OperatorEntry* op =
      ops::Registry::Get().Find(task_.operator_name());
  if (op == nullptr) return key;
  const auto backend = op->FindBackend(task_.device_kind(), backend_name);
  if (!backend.ok()) return key;
  if (!target_.has_value()) {
    target_ = LocalTarget(task_.device_kind(), options_.hardware);
  }
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
  PrepareKey(KeyOf(config), config, task_.backend());
}

void WorkerEvaluator::PrepareKey(const std::string& key,
                                 const proto::Config& config,
                                 const std::string& backend) {
  if (key.empty() || CompiledOf(key).has_value()) return;
  proto::WorkerRequest::Compile request;
  *request.mutable_task() = task_;
  request.mutable_task()->set_backend(backend);
  *request.mutable_config() = config;
  request.set_shared_folder(options_.shared_folder);
  // The compiler need not ask the device, which takes longer than some kernels.
  *request.mutable_hardware() = (*target_)->hardware;
  request.set_isa((*target_)->isa);
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

void WorkerEvaluator::OpenTogether(Round round,
                                   const EvaluationOptions& options) {
  if (options.next_rounds.empty() || slots_.count(round) > 0) return;
  // They were opened for rounds that did not come.
  StopAhead();
  OpenAhead({round, {options.input_seed}});
  for (const ComingProcess& process : options.next_rounds) OpenAhead(process);
  for (auto& [opened, slot] : slots_) {
    // What does not open is said when it is needed.
    if (IsWaiting(slot)) (void)slot.worker->AwaitOpen();
  }
}

proto::WorkerReply WorkerEvaluator::Ready(Round round, uint64_t input_seed) {
  if (slots_.count(round) == 0) {
    if (const absl::Status started = Start(round, {input_seed});
        !started.ok()) {
      slots_.erase(round);
      proto::WorkerReply failed;
      failed.set_outcome(proto::LAUNCH_ERROR);
      failed.set_detail(std::string(started.message()));
      return failed;
    }
  }
  OpenedWorker& worker = *slots_[round].worker;
  proto::WorkerReply reply = worker.AwaitOpen();
  // Inputs that are new to the worker need a reference first.
  if (reply.outcome() == proto::OK) reply = worker.MakeReady(input_seed);
  if (reply.outcome() == proto::OK) return reply;
  const bool ahead = slots_[round].ahead;
  Stop(round);
  if (!ahead) return reply;
  // There may have been too many at a time for the device.
  StopAhead();
  if (options_.used != nullptr) options_.used->Clear();
  return Ready(round, input_seed);
}

namespace {

// A sensor is calibrated once in a while; then a device cools down, its sensor
// settles, and windows are this long at most unless a longer one is asked for.
constexpr absl::Duration kCalibrationTime = absl::Seconds(60);
constexpr absl::Duration kWindowTime = absl::Seconds(20);

absl::Duration MeteringTime(const EvaluationOptions& options) {
  if (options.metrics.empty()) return absl::ZeroDuration();
  const auto windows = static_cast<int64_t>(options.metrics.size()) *
                       std::max(options.meter_windows, 1);
  return kCalibrationTime + windows * (kWindowTime + 2 * options.meter_window);
}

proto::Metering MeteringFor(const EvaluationOptions& options) {
  proto::Metering metering;
  for (const std::string& metric : options.metrics) {
    metering.add_metrics(metric);
  }
  metering.set_windows(options.meter_windows);
  metering.set_min_window_ns(absl::ToInt64Nanoseconds(options.meter_window));
  metering.set_quickly(options.meter_quickly);
  metering.set_below_ns(options.meter_below_ns);
  return metering;
}

proto::WorkerRequest RequestFor(const proto::Config& config,
                                const EvaluationOptions& options) {
  proto::WorkerRequest request;
  proto::WorkerRequest::Evaluate& evaluate = *request.mutable_evaluate();
  *evaluate.mutable_config() = config;
  *evaluate.mutable_sampling() = options.sampling;
  evaluate.set_input_seed(options.input_seed);
  *evaluate.mutable_metering() = MeteringFor(options);
  evaluate.set_zero_inputs(options.zero_inputs);
  return request;
}

}  // namespace

absl::optional<Evaluation> WorkerEvaluator::Refused(
    const proto::Config& config, const EvaluationOptions& options,
    const absl::optional<Compiled>& compiled) const {
  if (!compiled.has_value()) return absl::nullopt;
  Evaluation evaluation;
  evaluation.outcome = compiled->outcome;
  evaluation.detail = compiled->detail;
  evaluation.facts = compiled->facts;
  if (compiled->outcome != proto::OK) return evaluation;
  if (!options.accept_facts) return absl::nullopt;
  const absl::Status accepted = options.accept_facts(config, compiled->facts);
  if (accepted.ok()) return absl::nullopt;
  evaluation.outcome = proto::INVALID;
  evaluation.detail = std::string(accepted.message());
  return evaluation;
}

bool WorkerEvaluator::Begin(const proto::Config& config,
                            const EvaluationOptions& options) {
  OPTRAIL_CHECK(!begun_);
  const auto slot = slots_.find(options.process_of_round);
  if (ProcessesAhead() == 0 || options.fresh_process || slot == slots_.end() ||
      slot->second.configs == 0 ||
      slot->second.configs >= options_.configs_per_worker ||
      !slot->second.worker->IsReadyFor(options.input_seed)) {
    return false;
  }
  const std::string key = KeyOf(config);
  const absl::optional<Compiled> compiled =
      key.empty() ? absl::nullopt : CompiledOf(key);
  if ((!key.empty() && !compiled) || Refused(config, options, compiled))
    return false;
  begun_ = slot->second.worker->Send(RequestFor(config, options)).ok();
  return begun_;
}

absl::optional<Compiled> WorkerEvaluator::AwaitCompiled(
    const std::string& key, const proto::Config& config,
    const std::string& backend) {
  if (key.empty()) return absl::nullopt;
  PrepareKey(key, config, backend);
  if (!CompiledOf(key).has_value()) {
    Compilers().WaitForAny({key}, absl::InfiniteDuration());
  }
  return CompiledOf(key);
}

int64_t WorkerEvaluator::CompileTimeOf(const std::string& key,
                                       const Compiled& compiled) {
  return told_.insert(key).second ? compiled.compile_ns : 0;
}

std::vector<Evaluation> WorkerEvaluator::EvaluateTogether(
    const std::vector<proto::Config>& configs,
    const EvaluationOptions& options) {
  std::vector<Contender> contenders;
  for (const proto::Config& config : configs) {
    contenders.push_back({task_.backend(), config, {}});
  }
  if (auto together = TryTogether(contenders, options)) return *together;
  return Evaluator::EvaluateTogether(configs, options);
}

absl::optional<std::vector<Evaluation>> WorkerEvaluator::EvaluateInTurns(
    const std::vector<Contender>& contenders,
    const EvaluationOptions& options) {
  if (ProcessesAhead() == 0) return absl::nullopt;
  return TryTogether(contenders, options);
}

absl::StatusOr<std::vector<Evaluation>> WorkerEvaluator::EvaluatePerturbed(
    const std::vector<Contender>& contenders,
    const EvaluationOptions& options) {
  Evaluation wrong;
  wrong.detail = "its process could not be made ready";
  if (auto together = TryTogether(contenders, options, &wrong)) {
    return *together;
  }
  const std::string message =
      absl::StrCat(proto::Outcome_Name(wrong.outcome), ": ", wrong.detail);
  return wrong.outcome == proto::UNSUPPORTED ? absl::UnimplementedError(message)
                                             : absl::InternalError(message);
}

Evaluation WorkerEvaluator::Profile(
    const proto::Config& config,
    const std::vector<std::string>& compile_options,
    const EvaluationOptions& options) {
  OPTRAIL_CHECK(!begun_);
  const Round round = options.process_of_round;
  StopOthers(round);
  const proto::WorkerReply opened = Ready(round, options.input_seed);
  if (opened.outcome() != proto::OK) return EvaluationOf(opened);
  proto::WorkerRequest request;
  proto::WorkerRequest::Profile& profile = *request.mutable_profile();
  *profile.mutable_config() = config;
  profile.set_input_seed(options.input_seed);
  *profile.mutable_compile_options() = {compile_options.begin(),
                                        compile_options.end()};
  Slot& slot = slots_[round];
  ++slot.configs;
  slot.last_used = ++uses_;
  const CompilePause pause(compilers_.get());
  Evaluation evaluation =
      EvaluationOf(slot.worker->Ask(request, options_.config_deadline));
  if (!LeavesNothingBehind(evaluation.outcome) || !slot.worker->alive()) {
    Stop(round);
  }
  return evaluation;
}

absl::optional<std::vector<Evaluation>> WorkerEvaluator::TryTogether(
    const std::vector<Contender>& contenders, const EvaluationOptions& options,
    Evaluation* wrong) {
  if (contenders.size() < 2) return absl::nullopt;
  OPTRAIL_CHECK(!begun_);
  std::vector<std::string> keys(contenders.size());
  std::vector<absl::optional<Compiled>> compiled(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) {
    const auto& [backend, config, elsewhere, perturbation] = contenders[i];
    // What an experiment compiles is its worker's affair.
    if (elsewhere || perturbation) continue;
    keys[i] = KeyOf(config, backend);
    PrepareKey(keys[i], config, backend);
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    const auto& [backend, config, elsewhere, perturbation] = contenders[i];
    if (elsewhere || perturbation) continue;
    compiled[i] = AwaitCompiled(keys[i], config, backend);
    if (auto refused = Refused(config, options, compiled[i])) {
      if (wrong != nullptr) *wrong = *std::move(refused);
      return absl::nullopt;
    }
  }
  const int64_t start_ns = Clock::Real()->NowNs();
  const Round round = options.process_of_round;
  if (const auto used = slots_.find(round); options.fresh_process &&
                                            used != slots_.end() &&
                                            used->second.configs > 0) {
    Stop(round);
  }
  StopOthers(round);
  OpenTogether(round, options);
  if (const proto::WorkerReply opened = Ready(round, options.input_seed);
      opened.outcome() != proto::OK) {
    if (wrong != nullptr) *wrong = EvaluationOf(opened);
    return absl::nullopt;
  }
  Slot& slot = slots_[round];
  const int64_t ready_ns = Clock::Real()->NowNs();
  const auto count = static_cast<int64_t>(contenders.size());
  slot.configs += static_cast<int>(count);
  slot.last_used = ++uses_;
  proto::WorkerRequest request;
  proto::WorkerRequest::EvaluateTogether& together =
      *request.mutable_evaluate_together();
  for (const Contender& one : contenders) {
    auto& contender = *together.add_contenders();
    contender.set_elsewhere(one.elsewhere != nullptr);
    if (one.elsewhere) continue;
    contender.set_backend(one.backend);
    *contender.mutable_config() = one.config;
    if (one.perturbation) {
      *contender.mutable_perturbation() = *one.perturbation;
    }
  }
  *together.mutable_sampling() = options.sampling;
  together.set_input_seed(options.input_seed);
  *together.mutable_metering() = MeteringFor(options);
  together.set_zero_inputs(options.zero_inputs);
  proto::WorkerReply reply;
  {
    const CompilePause pause(compilers_.get());
    reply = slot.worker->Ask(
        request, count * (options_.config_deadline + MeteringTime(options)),
        [&contenders](int contender, int64_t calls) -> absl::StatusOr<int64_t> {
          const auto i = static_cast<size_t>(contender);
          if (i >= contenders.size() || !contenders[i].elsewhere) {
            return absl::InvalidArgumentError("that is not computed elsewhere");
          }
          return contenders[i].elsewhere(calls);
        });
  }
  const bool sound =
      reply.outcome() == proto::OK && reply.together_size() == count;
  // What this machine does not offer leaves the process as it was.
  if ((!sound && !LeavesNothingBehind(reply.outcome())) ||
      options.fresh_process || !slot.worker->alive()) {
    Stop(round);
  }
  if (!sound) {
    if (wrong != nullptr) *wrong = EvaluationOf(reply);
    return absl::nullopt;
  }
  const int64_t turn_ns = reply.turn_ns();
  const int64_t took_ns = Clock::Real()->NowNs() - ready_ns - turn_ns;
  std::vector<Evaluation> evaluations;
  for (size_t i = 0; i < contenders.size(); ++i) {
    Evaluation evaluation = EvaluationOf(reply.together(static_cast<int>(i)));
    evaluation.elapsed_ns = std::max<int64_t>(0, took_ns / count);
    if (i == 0) {
      evaluation.turn_ns = turn_ns;
      evaluation.unpaid_ns = ready_ns - start_ns + turn_ns;
    }
    if (compiled[i].has_value()) {
      evaluation.prepare_ns = CompileTimeOf(keys[i], *compiled[i]);
      evaluation.facts = compiled[i]->facts;
    }
    evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
}

Evaluation WorkerEvaluator::Evaluate(const proto::Config& config,
                                     const EvaluationOptions& options) {
  const std::string key = KeyOf(config);
  const absl::optional<Compiled> compiled =
      AwaitCompiled(key, config, task_.backend());
  const int64_t compile_ns = compiled ? CompileTimeOf(key, *compiled) : 0;
  if (auto refused = Refused(config, options, compiled)) {
    refused->prepare_ns = compile_ns;
    return *std::move(refused);
  }
  int64_t start_ns = Clock::Real()->NowNs();
  const auto timed = [&](Evaluation evaluation) {
    evaluation.elapsed_ns = std::max<int64_t>(
        0, Clock::Real()->NowNs() - start_ns - evaluation.turn_ns);
    evaluation.unpaid_ns += evaluation.turn_ns;
    return evaluation;
  };
  const Round round = options.process_of_round;
  if (const auto slot = slots_.find(round);
      slot != slots_.end() && !begun_ &&
      ((options.fresh_process && slot->second.configs > 0) ||
       slot->second.configs >= options_.configs_per_worker)) {
    Stop(round);
    if (!round && next_ != nullptr) {
      slots_[round].worker = std::move(next_);
      slots_[round].ahead = true;
    }
  }
  if (!begun_) {
    StopOthers(round);
    OpenTogether(round, options);
    const proto::WorkerReply opened = Ready(round, options.input_seed);
    if (opened.outcome() != proto::OK) return timed(EvaluationOf(opened));
  }
  Slot& slot = slots_[round];
  const int64_t unpaid_ns = Clock::Real()->NowNs() - start_ns;
  start_ns += unpaid_ns;
  ++slot.configs;
  slot.last_used = ++uses_;
  if (!round && ProcessesAhead() > 0 && next_ == nullptr &&
      slot.configs == options_.configs_per_worker - kConfigsBeforeNext) {
    if (auto next = StartOne({options.input_seed}); next.ok()) {
      next_ = *std::move(next);
    }
  }
  Evaluation evaluation;
  {
    const CompilePause pause(compilers_.get());
    const absl::Duration deadline =
        std::min(options_.config_deadline, options.hopeless_after) +
        MeteringTime(options);
    evaluation = EvaluationOf(
        std::exchange(begun_, false)
            ? slot.worker->Receive(deadline)
            : slot.worker->Ask(RequestFor(config, options), deadline));
  }
  if (evaluation.outcome == proto::TIMED_OUT &&
      options.hopeless_after < options_.config_deadline) {
    evaluation.outcome = proto::CENSORED;
    evaluation.time_ns = options.sampling.hopeless_above_ns();
  }
  evaluation.unpaid_ns = unpaid_ns;
  if (compiled.has_value()) {
    evaluation.prepare_ns = compile_ns;
    evaluation.facts = compiled->facts;
  }
  // A fresh process serves one config.
  const bool sound = LeavesNothingBehind(evaluation.outcome);
  if (options.fresh_process || !sound || !slot.worker->alive()) Stop(round);
  return timed(evaluation);
}

}  // namespace optrail::suites
