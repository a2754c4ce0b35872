#include "suites/worker/worker_evaluator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "ops/core/smaller_shape.h"

namespace optrail::suites {
namespace {

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
  const proto::Metering& metering = options.metering;
  if (metering.metrics().empty()) return absl::ZeroDuration();
  const int64_t windows =
      int64_t{metering.metrics_size()} * std::max(metering.windows(), 1);
  return kCalibrationTime +
         windows *
             (kWindowTime + 2 * absl::Nanoseconds(metering.min_window_ns()));
}

proto::WorkerRequest RequestFor(const std::vector<Contender>& contenders,
                                const EvaluationOptions& options) {
  proto::WorkerRequest request;
  proto::WorkerRequest::Evaluate& evaluate = *request.mutable_evaluate();
  *evaluate.mutable_sampling() = options.sampling;
  evaluate.set_input_seed(options.input_seed);
  *evaluate.mutable_metering() = options.metering;
  evaluate.set_zero_inputs(options.zero_inputs);
  if (options.numerics_seed) {
    evaluate.set_numerics_seed(*options.numerics_seed);
  }
  *evaluate.mutable_contenders() = {contenders.begin(), contenders.end()};
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
    const absl::optional<Evaluation>& compiled) const {
  if (!compiled.has_value() || !IsOk(*compiled)) return compiled;
  if (!options.accept_facts) return absl::nullopt;
  const absl::Status accepted =
      options.accept_facts(config, compiled->trial().facts());
  if (accepted.ok()) return absl::nullopt;
  Evaluation refused = EvaluationOf(proto::INVALID, accepted.message());
  *refused.mutable_trial()->mutable_facts() = compiled->trial().facts();
  return refused;
}

bool WorkerEvaluator::Begin(const proto::Config& config,
                            const EvaluationOptions& options) {
  OPTRAIL_CHECK(!begun_);
  const WorkerPool::Need need = NeedOf(options);
  if (!policy_.host_is_free || !pool_.IsIdle(need)) return false;
  const std::string key = KeyOf(config);
  const absl::optional<Evaluation> compiled =
      key.empty() ? absl::nullopt : compiled_.Find(key);
  if ((!key.empty() && !compiled) || Refused(config, options, compiled)) {
    return false;
  }
  begun_ =
      pool_.Use(need, 1).Send(RequestFor({ContenderOf(config)}, options)).ok();
  return begun_;
}

Evaluation WorkerEvaluator::Profile(
    const proto::Config& config,
    const std::vector<std::string>& compile_options,
    const EvaluationOptions& options) {
  OPTRAIL_CHECK(!begun_);
  const WorkerPool::Need need = NeedOf(options);
  const Evaluation opened = pool_.MakeReady(need);
  if (!IsOk(opened)) return opened;
  proto::WorkerRequest request;
  proto::WorkerRequest::Profile& profile = *request.mutable_profile();
  *profile.mutable_config() = config;
  profile.set_input_seed(options.input_seed);
  *profile.mutable_compile_options() = {compile_options.begin(),
                                        compile_options.end()};
  const CompilePause pause(compiled_.pool_if_any());
  Evaluation observed =
      pool_.Use(need, 1).Ask(request, options_.config_deadline)[0];
  pool_.GiveBack(need.process, observed.trial().outcome(), /*done=*/false);
  return observed;
}

std::vector<WorkerEvaluator::Code> WorkerEvaluator::AwaitCode(
    const std::vector<Contender>& contenders) {
  std::vector<Code> codes(contenders.size());
  // The worker itself compiles what an experiment needs.
  const auto needs_code = [](const Contender& one) {
    return !one.elsewhere() && !one.has_perturbation();
  };
  const auto backend_of = [this](const Contender& one) {
    return one.has_backend() ? one.backend() : task_.backend();
  };
  for (size_t i = 0; i < codes.size(); ++i) {
    const Contender& one = contenders[i];
    if (!needs_code(one)) continue;
    codes[i].key = compiled_.KeyOf(one.config(), backend_of(one));
    compiled_.Prepare(codes[i].key, one.config(), backend_of(one));
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    const Contender& one = contenders[i];
    if (!needs_code(one)) continue;
    codes[i].compiled =
        compiled_.Await(codes[i].key, one.config(), backend_of(one));
  }
  return codes;
}

std::vector<Evaluation> WorkerEvaluator::Ask(
    const std::vector<Contender>& contenders, const EvaluationOptions& options,
    const WorkerPool::Need& need) {
  const auto count = static_cast<int>(contenders.size());
  const absl::Duration deadline =
      count * (std::min(options_.config_deadline, options.hopeless_after) +
               MeteringTime(options));
  const CompilePause pause(compiled_.pool_if_any());
  if (std::exchange(begun_, false)) {
    return pool_.Use(need, 0).Receive(deadline);
  }
  return pool_.Use(need, count)
      .Ask(RequestFor(contenders, options), deadline, options.elsewhere);
}

std::vector<Evaluation> WorkerEvaluator::Measure(
    const std::vector<Contender>& contenders,
    const EvaluationOptions& options) {
  const auto count = static_cast<int64_t>(contenders.size());
  OPTRAIL_CHECK(count > 0 && (!begun_ || count == 1));
  const std::vector<Code> codes = AwaitCode(contenders);
  const auto tell_code = [&](size_t i, Evaluation* evaluation) {
    if (!codes[i].compiled) return;
    proto::Trial& trial = *evaluation->mutable_trial();
    trial.set_compile_ns(compiled_.TakeTime(codes[i].key, *codes[i].compiled));
    // The worker's facts hold the numerics as well.
    if (trial.facts().empty()) {
      *trial.mutable_facts() = codes[i].compiled->trial().facts();
    }
  };
  for (size_t i = 0; i < codes.size(); ++i) {
    auto refused = Refused(contenders[i].config(), options, codes[i].compiled);
    if (!refused) continue;
    tell_code(i, &*refused);
    return {*std::move(refused)};
  }
  const int64_t start_ns = Clock::Real()->NowNs();
  const WorkerPool::Need need = NeedOf(options);
  if (!begun_) {
    Evaluation ready = pool_.MakeReady(need);
    if (!IsOk(ready)) {
      ready.mutable_trial()->set_elapsed_ns(Clock::Real()->NowNs() - start_ns);
      return {ready};
    }
  }
  const int64_t ready_ns = Clock::Real()->NowNs();
  std::vector<Evaluation> evaluations = Ask(contenders, options, need);
  Evaluation& first = evaluations[0];
  pool_.GiveBack(need.process, first.trial().outcome(), options.fresh_process);
  const int64_t turn_ns = first.trial().effort().turn_ns();
  const int64_t took_ns = Clock::Real()->NowNs() - ready_ns - turn_ns;
  if (first.trial().outcome() == proto::TIMED_OUT &&
      options.hopeless_after < options_.config_deadline) {
    first.mutable_trial()->set_outcome(proto::CENSORED);
    first.mutable_trial()->set_time_ns(options.sampling.hopeless_above_ns());
  }
  for (Evaluation& evaluation : evaluations) {
    evaluation.mutable_trial()->set_elapsed_ns(
        std::max<int64_t>(0, took_ns / count));
  }
  first.set_unpaid_ns(ready_ns - start_ns + turn_ns);
  // If there is one of several, something is wrong with any of them.
  for (size_t i = 0; evaluations.size() == codes.size() && i < codes.size();
       ++i) {
    tell_code(i, &evaluations[i]);
  }
  return evaluations;
}

}  // namespace optrail::suites
