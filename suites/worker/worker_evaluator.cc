#include "suites/worker/worker_evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/clock.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "ops/core/smaller_shape.h"

namespace optrail::suites {
namespace {

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

// What the processes hold that are opened together.
constexpr int64_t kTogetherBytes = int64_t{1} << 30;

// Beyond the first size inputs are one set, and beyond the second fewer
// processes wait: making inputs ready takes longer than anything else, and much
// is random in them already.
constexpr int64_t kLargeInputBytes = int64_t{64} << 20;
constexpr int64_t kVeryLargeInputBytes = int64_t{1} << 30;
constexpr int kAheadWithVeryLargeInputs = 2;

// The policy of the task's device, within what its operands allow.
ops::MeasurementPolicy PolicyFor(const proto::Task& task) {
  const auto type = ops::FindDeviceType(task.device_kind());
  ops::MeasurementPolicy policy =
      type.ok() ? (*type)->policy() : ops::MeasurementPolicy();
  const int64_t fit = kTogetherBytes / WaitingBytes(task);
  const auto together =
      static_cast<int>(std::clamp<int64_t>(fit, 1, policy.processes_together));
  // The sides of a pair take turns in being first: of an even number of rounds
  // it would always be the same that is measured just after an opening.
  policy.processes_together = together % 2 == 0 ? together - 1 : together;
  if (policy.processes_ahead == 0) return policy;
  const int64_t operand_bytes = OperandBytes(task);
  if (operand_bytes > kLargeInputBytes) policy.input_sets = 1;
  if (operand_bytes > kVeryLargeInputBytes) {
    policy.processes_ahead = kAheadWithVeryLargeInputs;
  }
  return policy;
}

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

proto::WorkerRequest RequestFor(const std::vector<Contender>& contenders,
                                const EvaluationOptions& options) {
  proto::WorkerRequest request;
  proto::WorkerRequest::Evaluate& evaluate = *request.mutable_evaluate();
  *evaluate.mutable_sampling() = options.sampling;
  evaluate.set_input_seed(options.input_seed);
  *evaluate.mutable_metering() = MeteringFor(options);
  evaluate.set_zero_inputs(options.zero_inputs);
  if (options.numerics_seed) {
    evaluate.set_numerics_seed(*options.numerics_seed);
  }
  for (const Contender& one : contenders) {
    auto& contender = *evaluate.add_contenders();
    contender.set_elsewhere(one.elsewhere != nullptr);
    if (one.elsewhere) continue;
    if (one.backend) contender.set_backend(*one.backend);
    *contender.mutable_config() = one.config;
    if (one.perturbation) {
      *contender.mutable_perturbation() = *one.perturbation;
    }
  }
  return request;
}

WorkerPool::Need NeedOf(const EvaluationOptions& options) {
  return {options.process_of_round, options.input_seed, options.fresh_process,
          options.next_rounds};
}

}  // namespace

WorkerEvaluator::WorkerEvaluator(proto::Task task, WorkerOptions options)
    : task_(std::move(task)),
      options_(std::move(options)),
      policy_(PolicyFor(task_)),
      pool_(task_, options_, policy_),
      compiled_(task_, options_) {}

int64_t WorkerEvaluator::waiting_bytes() const {
  const int64_t own = WaitingBytes(task_);
  return smaller_ && *smaller_ ? own + (*smaller_)->waiting_bytes() : own;
}

void WorkerEvaluator::Rest() {
  begun_ = false;
  pool_.Rest();
  if (smaller_ && *smaller_) (*smaller_)->Rest();
}

int WorkerEvaluator::CompileAhead(const proto::Config& example) {
  // Twice as many as compile at a time, so that none of them runs dry.
  return KeyOf(example).empty() ? 0 : 2 * compiled_.pool().processes();
}

void WorkerEvaluator::Prepare(const proto::Config& config) {
  compiled_.Prepare(KeyOf(config), config, task_.backend());
}

bool WorkerEvaluator::IsReady(const proto::Config& config) {
  const std::string key = KeyOf(config);
  return key.empty() || compiled_.Find(key).has_value();
}

void WorkerEvaluator::AwaitReady(const std::vector<proto::Config>& configs,
                                 absl::Duration wait) {
  std::vector<std::string> keys;
  for (const proto::Config& config : configs) {
    if (IsReady(config)) return;
    keys.push_back(KeyOf(config));
  }
  if (!keys.empty()) compiled_.pool().WaitForAny(keys, wait);
}

void WorkerEvaluator::Abandon(const proto::Config& config) {
  if (CompilePool* const pool = compiled_.pool_if_any()) {
    pool->Drop(KeyOf(config));
  }
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
  const WorkerPool::Need need = NeedOf(options);
  if (!policy_.host_is_free || !pool_.IsIdle(need)) return false;
  const std::string key = KeyOf(config);
  const absl::optional<Compiled> compiled =
      key.empty() ? absl::nullopt : compiled_.Find(key);
  if ((!key.empty() && !compiled) || Refused(config, options, compiled)) {
    return false;
  }
  begun_ = pool_.Use(need, 1)
               .Send(RequestFor({{absl::nullopt, config, {}}}, options))
               .ok();
  return begun_;
}

Evaluation WorkerEvaluator::Profile(
    const proto::Config& config,
    const std::vector<std::string>& compile_options,
    const EvaluationOptions& options) {
  OPTRAIL_CHECK(!begun_);
  const WorkerPool::Need need = NeedOf(options);
  const proto::WorkerReply opened = pool_.MakeReady(need);
  if (opened.outcome() != proto::OK) return EvaluationOf(opened);
  proto::WorkerRequest request;
  proto::WorkerRequest::Profile& profile = *request.mutable_profile();
  *profile.mutable_config() = config;
  profile.set_input_seed(options.input_seed);
  *profile.mutable_compile_options() = {compile_options.begin(),
                                        compile_options.end()};
  const CompilePause pause(compiled_.pool_if_any());
  Evaluation evaluation =
      EvaluationOf(pool_.Use(need, 1).Ask(request, options_.config_deadline));
  pool_.GiveBack(need.process, evaluation.outcome, /*done=*/false);
  return evaluation;
}

std::vector<WorkerEvaluator::Code> WorkerEvaluator::AwaitCode(
    const std::vector<Contender>& contenders) {
  std::vector<Code> codes(contenders.size());
  // The worker itself compiles what an experiment needs.
  const auto needs_code = [](const Contender& one) {
    return !one.elsewhere && !one.perturbation;
  };
  const auto backend_of = [this](const Contender& one) {
    return one.backend.value_or(task_.backend());
  };
  for (size_t i = 0; i < codes.size(); ++i) {
    const Contender& one = contenders[i];
    if (!needs_code(one)) continue;
    codes[i].key = compiled_.KeyOf(one.config, backend_of(one));
    compiled_.Prepare(codes[i].key, one.config, backend_of(one));
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    const Contender& one = contenders[i];
    if (!needs_code(one)) continue;
    codes[i].compiled =
        compiled_.Await(codes[i].key, one.config, backend_of(one));
  }
  return codes;
}

proto::WorkerReply WorkerEvaluator::Ask(
    const std::vector<Contender>& contenders, const EvaluationOptions& options,
    const WorkerPool::Need& need) {
  const auto elsewhere =
      [&contenders](int contender, int64_t calls) -> absl::StatusOr<int64_t> {
    const auto i = static_cast<size_t>(contender);
    if (i >= contenders.size() || !contenders[i].elsewhere) {
      return absl::InvalidArgumentError("that is not computed elsewhere");
    }
    return contenders[i].elsewhere(calls);
  };
  const auto count = static_cast<int>(contenders.size());
  const absl::Duration deadline =
      count * (std::min(options_.config_deadline, options.hopeless_after) +
               MeteringTime(options));
  const CompilePause pause(compiled_.pool_if_any());
  if (std::exchange(begun_, false)) {
    return pool_.Use(need, 0).Receive(deadline);
  }
  return pool_.Use(need, count)
      .Ask(RequestFor(contenders, options), deadline, elsewhere);
}

std::vector<Evaluation> WorkerEvaluator::Measure(
    const std::vector<Contender>& contenders,
    const EvaluationOptions& options) {
  const auto count = static_cast<int64_t>(contenders.size());
  OPTRAIL_CHECK(count > 0 && (!begun_ || count == 1));
  const std::vector<Code> codes = AwaitCode(contenders);
  const auto tell_code = [&](size_t i, Evaluation* evaluation) {
    if (!codes[i].compiled) return;
    evaluation->prepare_ns =
        compiled_.TakeTime(codes[i].key, *codes[i].compiled);
    // The worker's facts hold the numerics as well.
    if (evaluation->facts.empty()) {
      evaluation->facts = codes[i].compiled->facts;
    }
  };
  for (size_t i = 0; i < codes.size(); ++i) {
    auto refused = Refused(contenders[i].config, options, codes[i].compiled);
    if (!refused) continue;
    tell_code(i, &*refused);
    return {*std::move(refused)};
  }
  const int64_t start_ns = Clock::Real()->NowNs();
  const WorkerPool::Need need = NeedOf(options);
  if (!begun_) {
    const proto::WorkerReply ready = pool_.MakeReady(need);
    if (ready.outcome() != proto::OK) {
      Evaluation unready = EvaluationOf(ready);
      unready.elapsed_ns = Clock::Real()->NowNs() - start_ns;
      return {unready};
    }
  }
  const int64_t ready_ns = Clock::Real()->NowNs();
  const proto::WorkerReply reply = Ask(contenders, options, need);
  pool_.GiveBack(need.process, reply.outcome(), options.fresh_process);
  const int64_t took_ns = Clock::Real()->NowNs() - ready_ns - reply.turn_ns();
  std::vector<Evaluation> evaluations;
  if (reply.outcome() == proto::OK && reply.contenders_size() == count) {
    for (const proto::WorkerReply& one : reply.contenders()) {
      evaluations.push_back(EvaluationOf(one));
    }
  } else {
    Evaluation& wrong = evaluations.emplace_back(EvaluationOf(reply));
    if (wrong.outcome == proto::TIMED_OUT &&
        options.hopeless_after < options_.config_deadline) {
      wrong.outcome = proto::CENSORED;
      wrong.time_ns = options.sampling.hopeless_above_ns();
    }
  }
  for (Evaluation& evaluation : evaluations) {
    evaluation.elapsed_ns = std::max<int64_t>(0, took_ns / count);
  }
  evaluations[0].turn_ns = reply.turn_ns();
  evaluations[0].unpaid_ns = ready_ns - start_ns + reply.turn_ns();
  // Of several one is wrong, and nobody knows which.
  for (size_t i = 0; evaluations.size() == codes.size() && i < codes.size();
       ++i) {
    tell_code(i, &evaluations[i]);
  }
  return evaluations;
}

}  // namespace optrail::suites
