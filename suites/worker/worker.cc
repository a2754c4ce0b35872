#include "suites/worker/worker.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <iostream>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/process_guard.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "ops/core/perturbation.h"
#include "suites/stopwatch/stopwatch.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

constexpr int64_t kMaxInPlaceBytes = int64_t{256} << 20;

// What takes no longer than this part of what is hopeless may be the best so
// far (a session's race_factor is 1.5): nothing is believed to win that is
// right in its first call only. The rest costs no second check.
constexpr double kNearlyBest = 0.7;

// Of what is done beside a measurement.
constexpr int kNicenessBeside = 5;

proto::WorkerReply Failed(proto::Outcome outcome, absl::string_view detail) {
  proto::WorkerReply reply;
  reply.set_outcome(outcome);
  // Compilers end what they say with a line break.
  reply.set_detail(std::string(absl::StripTrailingAsciiWhitespace(detail)));
  return reply;
}

proto::Outcome OutcomeOfPrepare(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnavailable:
      return proto::UNSUPPORTED;
    case absl::StatusCode::kResourceExhausted:
      return proto::OUT_OF_MEMORY;
    case absl::StatusCode::kInternal:
      return proto::COMPILE_ERROR;
    default:
      return proto::INVALID;
  }
}

proto::Outcome OutcomeOfRun(const absl::Status& status) {
  return absl::IsDataLoss(status) ? proto::WRONG_RESULT : proto::LAUNCH_ERROR;
}

// A meter that must not be believed is as good as none.
proto::Outcome OutcomeOfMeter(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status)
             ? proto::UNSUPPORTED
             : proto::LAUNCH_ERROR;
}

// The device has no such way of timing; or it failed.
proto::Outcome OutcomeOfTimer(const absl::Status& status) {
  const proto::Outcome outcome = OutcomeOfPrepare(status);
  return outcome == proto::UNSUPPORTED || outcome == proto::OUT_OF_MEMORY
             ? outcome
             : proto::LAUNCH_ERROR;
}

void AddFacts(const ops::Artifact& artifact, proto::WorkerReply* reply) {
  for (proto::Fact& fact : FactsOf(artifact)) {
    *reply->add_facts() = std::move(fact);
  }
}

// Whether its compile options are all that is perturbed.
bool IsOfCompiler(const proto::Perturbation& perturbation) {
  proto::Perturbation rest = perturbation;
  rest.clear_compile_options();
  return rest.ByteSizeLong() == 0;
}

// The error of what a call left; compared by another thread, which gets out of
// the way of the one that launches, or right away.
std::shared_future<absl::StatusOr<double>> Compared(
    const ops::CheckedOperands::Results& results, bool beside) {
  const auto compare = [&results, beside] {
    if (beside) setpriority(PRIO_PROCESS, 0, kNicenessBeside);
    return results.Compare();
  };
  std::shared_future<absl::StatusOr<double>> error =
      std::async(beside ? std::launch::async : std::launch::deferred, compare)
          .share();
  if (!beside) error.wait();
  return error;
}

}  // namespace

std::vector<proto::Fact> FactsOf(const ops::Artifact& artifact) {
  std::vector<proto::Fact> facts;
  for (const auto& [name, value] : artifact.facts) {
    facts.emplace_back().set_name(name);
    facts.back().set_value(value);
  }
  return facts;
}

absl::StatusOr<ops::Target> LocalTarget(
    proto::DeviceKind kind, const absl::optional<proto::Hardware>& hardware) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(kind));
  ops::Target target;
  target.kind = kind;
  target.isa = type->isa();
  if (hardware.has_value()) {
    target.hardware = *hardware;
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(target.hardware, type->Hardware());
  }
  return target;
}

std::string TooShortCold(const Sampling& sampling) {
  if (sampling.time_ns * sampling.measurement.calls_per_sample() >=
      kMinColdSampleNs) {
    return "";
  }
  return absl::StrCat("a call takes ", sampling.time_ns,
                      " ns, too short to be timed with cold caches (at least ",
                      kMinColdSampleNs, " ns)");
}

bool IsWorker(int argc, char** argv) {
  return (argc == 2 && std::strcmp(argv[1], kWorkerFlag) == 0) ||
         IsProcessGuard(argc, argv);
}

namespace {

struct Found {
  const ops::OperatorEntry* entry = nullptr;
  const ops::Backend* backend = nullptr;
};

absl::StatusOr<Found> FindBackend(const proto::Task& task) {
  const ops::Registry& registry = ops::Registry::Get();
  Found found;
  found.entry = registry.Find(task.operator_name());
  if (found.entry == nullptr) {
    return registry.UnknownOperator(task.operator_name());
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      found.backend,
      found.entry->FindBackend(task.device_kind(), task.backend()));
  OPTRAIL_RETURN_IF_ERROR(ops::CheckShape(*found.entry->op, task.shape()));
  OPTRAIL_RETURN_IF_ERROR(
      ops::Computes(*found.entry->op, *found.backend, task.shape()));
  return found;
}

// From the cache, else compiled and kept there.
absl::StatusOr<ops::Artifact> Compiled(const ops::Backend& backend,
                                       const ops::CompileRequest& request,
                                       const std::string& shared_folder,
                                       const std::vector<std::string>& added) {
  absl::Status kept;
  absl::StatusOr<ops::Artifact> artifact = ops::CompileCached(
      backend, request,
      shared_folder.empty() ? "" : JoinPath(shared_folder, kCompiledFolder),
      &kept, added);
  // Without a cache, it is compiled again next time.
  if (!kept.ok()) std::cerr << "worker: " << kept.message() << "\n";
  return artifact;
}

proto::WorkerReply Compile(const proto::WorkerRequest::Compile& request) {
  const proto::Task& task = request.task();
  absl::StatusOr<ops::Artifact> artifact = absl::UnknownError("");
  const int64_t start_ns = Clock::Real()->NowNs();
  if (const auto found = FindBackend(task); !found.ok()) {
    artifact = found.status();
  } else {
    // Code may be compiled for hardware that is elsewhere.
    absl::StatusOr<ops::Target> target = ops::Target();
    if (request.has_hardware()) {
      target->kind = task.device_kind();
      target->hardware = request.hardware();
      target->isa = request.isa();
    } else {
      target = LocalTarget(task.device_kind());
    }
    artifact = target.ok() ? Compiled(*found->backend,
                                      {task.shape(), request.config(), *target},
                                      request.shared_folder(), {})
                           : absl::StatusOr<ops::Artifact>(target.status());
  }
  if (!artifact.ok()) {
    return Failed(OutcomeOfPrepare(artifact.status()),
                  artifact.status().message());
  }
  proto::WorkerReply reply = Failed(proto::OK, "");
  reply.set_prepare_ns(Clock::Real()->NowNs() - start_ns);
  AddFacts(*artifact, &reply);
  return reply;
}

}  // namespace

absl::Status Worker::Open(const proto::WorkerRequest::Open& request) {
  task_ = request.task();
  shared_folder_ = request.shared_folder();
  OPTRAIL_ASSIGN_OR_RETURN(const Found found, FindBackend(task_));
  entry_ = found.entry;
  backend_ = found.backend;
  OPTRAIL_ASSIGN_OR_RETURN(target_, LocalTarget(task_.device_kind()));
  // What is missing here is said before anything is allocated.
  OPTRAIL_RETURN_IF_ERROR(backend_->Id(target_).status());
  // Of the task before, if there was one.
  operands_.reset();
  references_.reset();
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(task_.device_kind()));
  const bool ahead = type->processes_ahead() > 0 && !shared_folder_.empty();
  if (ahead) {
    references_ = std::make_unique<ReferencesAhead>(
        *entry_->op, task_.shape(), JoinPath(shared_folder_, kReferencesFolder),
        request.build(),
        std::vector<uint64_t>(request.input_seeds().begin(),
                              request.input_seeds().end()));
  }
  if (device_ == nullptr) {
    taken_.emplace(std::random_device{}());
    ops::DeviceOptions options;
    options.threads = task_.threads();
    OPTRAIL_ASSIGN_OR_RETURN(device_,
                             ops::MakeDevice(task_.device_kind(), options));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      operands_,
      ops::CheckedOperands::Create(*entry_->op, task_.shape(), *device_));
  if (operands_->has_in_out()) {
    const int sets = static_cast<int>(std::clamp<int64_t>(
        kMaxInPlaceBytes / operands_->bytes_per_set(), 1, kInPlaceSets));
    OPTRAIL_ASSIGN_OR_RETURN(
        operands_, ops::CheckedOperands::Create(*entry_->op, task_.shape(),
                                                *device_, sets));
  }
  if (!shared_folder_.empty()) {
    operands_->ShareReferences(JoinPath(shared_folder_, kReferencesFolder),
                               request.build());
  }
  proto::WorkerRequest::MakeReady ready;
  *ready.mutable_input_seeds() = request.input_seeds();
  // The first is enough to begin with; an evaluation makes its own ready.
  if (ahead && ready.input_seeds_size() > 1) {
    ready.mutable_input_seeds()->Truncate(1);
  }
  return MakeReady(ready);
}

void Worker::TakeMadeAhead(uint64_t input_seed) {
  if (references_ != nullptr) operands_->Adopt(references_->Await(input_seed));
}

absl::Status Worker::MakeReady(const proto::WorkerRequest::MakeReady& request) {
  for (const uint64_t seed : request.input_seeds()) {
    TakeMadeAhead(seed);
    // Results are checked with hard values and timed with typical ones.
    OPTRAIL_RETURN_IF_ERROR(operands_->Fill(seed, ops::Values::kHard));
    operands_->ComputeReference();
    OPTRAIL_RETURN_IF_ERROR(operands_->Fill(seed));
  }
  return absl::OkStatus();
}

absl::StatusOr<ops::Artifact> Worker::ArtifactOf(
    const ops::Backend& backend, const proto::Config& config,
    const CompileOptions& compile_options) const {
  return Compiled(backend, {task_.shape(), config, target_}, shared_folder_,
                  {compile_options.begin(), compile_options.end()});
}

absl::StatusOr<const ops::Backend*> Worker::OtherBackend(
    const std::string& name) const {
  if (name == task_.backend()) return backend_;
  proto::Task task = task_;
  task.set_backend(name);
  OPTRAIL_ASSIGN_OR_RETURN(const Found found, FindBackend(task));
  OPTRAIL_RETURN_IF_ERROR(found.backend->Id(target_).status());
  return found.backend;
}

absl::Status Worker::Meter(const proto::Metering& metering, bool zero_inputs,
                           ops::Timer& timer, proto::Measurement* measurement) {
  if (metering.below_ns() > 0 &&
      measurement->median_ns() >= metering.below_ns()) {
    return absl::OkStatus();
  }
  const int64_t calls = measurement->calls_per_sample();
  const std::string inputs =
      absl::StrCat(zero_inputs ? "zeros" : "typical",
                   operands_->has_in_out() ? ", in place, not restored" : "");
  for (const std::string& metric : metering.metrics()) {
    ops::Meter* found = nullptr;
    for (ops::Meter* meter : device_->meters()) {
      if (meter->info().metric == metric) found = meter;
    }
    // Time is no meter's; what nobody can read stays unknown.
    if (found == nullptr) continue;
    OPTRAIL_RETURN_IF_ERROR(found->Calibrate(
        [&](absl::Duration duration) {
          return KeepBusy(calls, timer, duration);
        },
        shared_folder_));
    for (int i = 0; i < std::max(metering.windows(), 1); ++i) {
      if (!metering.quickly()) found->Rest();
      OPTRAIL_ASSIGN_OR_RETURN(
          proto::MeterWindow window,
          TakeWindow(calls, timer, *found,
                     absl::Nanoseconds(metering.min_window_ns()),
                     metering.quickly()));
      window.set_inputs(inputs);
      *measurement->add_windows() = std::move(window);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ops::CheckedOperands::Results> Worker::RunChecked(
    uint64_t input_seed, ops::Runnable& runnable) {
  TakeMadeAhead(input_seed);
  OPTRAIL_RETURN_IF_ERROR(operands_->Fill(input_seed, ops::Values::kHard));
  OPTRAIL_RETURN_IF_ERROR(operands_->Arm());
  OPTRAIL_RETURN_IF_ERROR(runnable.Run(operands_->addresses()));
  OPTRAIL_RETURN_IF_ERROR(device_->Synchronize());
  auto results = operands_->TakeResults();
  if (!results.ok()) (void)operands_->Repair();
  return results;
}

absl::Status Worker::CheckLaterCall(uint64_t input_seed,
                                    ops::Runnable& runnable) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::CheckedOperands::Results results,
                           RunChecked(input_seed, runnable));
  const absl::StatusOr<double> error = results.Compare();
  if (error.ok()) return absl::OkStatus();
  return absl::Status(error.status().code(),
                      absl::StrCat("right at first, but after it was timed, ",
                                   error.status().message()));
}

absl::StatusOr<std::unique_ptr<ops::Timer>> Worker::MakeTimer(
    uint64_t input_seed, ops::Runnable& runnable, bool zero_inputs,
    const proto::Perturbation* perturbation) {
  OPTRAIL_RETURN_IF_ERROR(operands_->Fill(
      input_seed, zero_inputs ? ops::Values::kZeros : ops::Values::kTypical));
  OPTRAIL_RETURN_IF_ERROR(operands_->Arm());
  const ops::TimingMode mode = {task_.cache_mode(), task_.launch_mode()};
  if (perturbation == nullptr || IsOfCompiler(*perturbation)) {
    return device_->MakeTimer(runnable, *operands_, mode);
  }
  auto* const perturbable = dynamic_cast<ops::Perturbable*>(device_.get());
  if (perturbable == nullptr) {
    return absl::UnimplementedError(
        "unsupported here: this kind of device perturbs no calls");
  }
  return perturbable->MakePerturbedTimer(runnable, *operands_, mode,
                                         *perturbation);
}

proto::WorkerReply Worker::Profile(
    const proto::WorkerRequest::Profile& request) {
  std::unique_ptr<ops::Runnable> runnable;
  proto::WorkerReply reply =
      Load(*backend_, request.config(), request.compile_options(), &runnable);
  if (reply.outcome() != proto::OK) return reply;
  absl::Status status = operands_->Fill(request.input_seed());
  if (status.ok()) status = operands_->Arm();
  if (!status.ok()) return Failed(proto::LAUNCH_ERROR, status.message());
  auto* const perturbable = dynamic_cast<ops::Perturbable*>(device_.get());
  reply.mutable_measurement();
  // The facts are worth having where nothing else can be observed.
  if (perturbable == nullptr) return reply;
  auto metrics = perturbable->ProfileCalls(*runnable, *operands_);
  if (!metrics.ok()) {
    return Failed(OutcomeOfTimer(metrics.status()), metrics.status().message());
  }
  for (proto::MetricSamples& metric : *metrics) {
    *reply.mutable_measurement()->add_metrics() = std::move(metric);
  }
  return reply;
}

absl::StatusOr<absl::optional<Sampling>> Worker::FirstCall(
    const proto::WorkerRequest::Evaluate& request, ops::Runnable& runnable) {
  // Where calls are short, checking comes first and costs nothing.
  if (!request.sampling().has_hopeless_above_ns() ||
      request.sampling().hopeless_above_ns() < kLongCallNs ||
      operands_->has_in_out()) {
    return absl::optional<Sampling>();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Timer> timer,
                           MakeTimer(request.input_seed(), runnable));
  const std::unique_ptr<ops::Monitor> monitor = device_->MakeMonitor();
  OPTRAIL_ASSIGN_OR_RETURN(
      Sampling first, TakeFirstSample(request.sampling(), *timer, *monitor));
  monitor->Fill(first.measurement.mutable_conditions());
  timer->Fill(&first.measurement);
  return absl::make_optional(std::move(first));
}

void Worker::TellTurn(proto::WorkerReply::Turn turn,
                      const std::string& note) const {
  if (!tell_) return;
  proto::WorkerReply reply;
  reply.set_turn(turn);
  reply.set_detail(note);
  tell_(reply);
}

ops::NeighbourNames Worker::FindNeighbours() const {
  auto* const shared = dynamic_cast<ops::SharedDevice*>(device_.get());
  return shared != nullptr ? shared->FindNeighbours() : ops::NeighbourNames();
}

proto::WorkerReply Worker::InTurn(
    absl::FunctionRef<proto::WorkerReply()> evaluate) const {
  const int64_t start_ns = Clock::Real()->NowNs();
  bool waited = false;
  const std::unique_ptr<ops::Turn> turn = device_->TakeTurn([&] {
    waited = true;
    const std::string active = FindNeighbours().active;
    TellTurn(proto::WorkerReply::WAITS,
             active.empty()
                 ? "waits for another session, which measures on this device"
                 : absl::StrCat("waits until ", active,
                                " no longer computes on this device"));
  });
  const int64_t turn_ns = Clock::Real()->NowNs() - start_ns;
  if (waited) TellTurn(proto::WorkerReply::HAS_IT, "");
  if (const std::string idle = FindNeighbours().idle; !idle.empty()) {
    TellTurn(proto::WorkerReply::HAS_IT,
             absl::StrCat(idle,
                          ": has this device open, computes nothing, and "
                          "is ignored"));
  }
  proto::WorkerReply reply = evaluate();
  if (waited) reply.set_turn_ns(turn_ns);
  return reply;
}

proto::WorkerReply Worker::Load(const ops::Backend& backend,
                                const proto::Config& config,
                                const CompileOptions& compile_options,
                                std::unique_ptr<ops::Runnable>* runnable) {
  const int64_t prepare_start_ns = Clock::Real()->NowNs();
  const absl::StatusOr<ops::Artifact> artifact =
      ArtifactOf(backend, config, compile_options);
  if (!artifact.ok()) {
    return Failed(OutcomeOfPrepare(artifact.status()),
                  artifact.status().message());
  }
  const int64_t load_start_ns = Clock::Real()->NowNs();
  absl::StatusOr<std::unique_ptr<ops::Runnable>> loaded =
      ops::Runnable::Load(backend, *artifact, task_.shape(), config, *device_);
  if (!loaded.ok()) {
    return Failed(OutcomeOfPrepare(loaded.status()), loaded.status().message());
  }
  *runnable = *std::move(loaded);
  proto::WorkerReply reply = Failed(proto::OK, "");
  const int64_t loaded_ns = Clock::Real()->NowNs();
  reply.set_prepare_ns(loaded_ns - prepare_start_ns);
  reply.set_load_ns(loaded_ns - load_start_ns);
  AddFacts(*artifact, &reply);
  const ops::Invocation& invocation = (*runnable)->invocation();
  reply.set_memory_bytes(operands_->bytes_per_set() +
                         invocation.workspace_bytes() +
                         invocation.packed_bytes());
  return reply;
}

absl::optional<proto::WorkerReply> Worker::TooShort(
    const Sampling& sampling) const {
  if (task_.cache_mode() != proto::COLD || sampling.outcome != proto::OK) {
    return absl::nullopt;
  }
  const std::string too_short = TooShortCold(sampling);
  if (too_short.empty()) return absl::nullopt;
  return Failed(proto::UNSUPPORTED, too_short);
}

void Worker::FillReply(int64_t started_unix_ns, Sampling sampling,
                       proto::WorkerReply* reply) const {
  reply->set_outcome(sampling.outcome);
  if (sampling.outcome != proto::CONTENDED) {
    reply->set_time_ns(sampling.time_ns);
  } else if (const std::string active = FindNeighbours().active;
             !active.empty()) {
    reply->set_detail(
        absl::StrCat(active, " computed on this device meanwhile"));
  }
  sampling.measurement.set_started_unix_ns(started_unix_ns);
  sampling.measurement.mutable_conditions()->set_page_bytes(
      operands_->page_bytes());
  *reply->mutable_measurement() = std::move(sampling.measurement);
}

proto::WorkerReply Worker::EvaluateInTurn(
    const proto::WorkerRequest::Evaluate& request) {
  std::unique_ptr<ops::Runnable> runnable;
  proto::WorkerReply reply = Load(*backend_, request.config(), {}, &runnable);
  if (reply.outcome() != proto::OK) return reply;
  const int64_t sampling_started_unix_ns = Clock::Real()->WallNs();
  const absl::optional<int64_t> busy_before_ns = device_->busy_ns();
  // The first long call of a hopeless config is its last.
  const absl::StatusOr<absl::optional<Sampling>> first =
      FirstCall(request, *runnable);
  if (!first.ok()) {
    return Failed(OutcomeOfTimer(first.status()), first.status().message());
  }
  absl::StatusOr<Sampling> sampling = first->has_value() ? **first : Sampling();
  if (sampling->outcome != proto::CENSORED) {
    // Right first: nothing counts of what was not checked.
    int64_t check_start_ns = Clock::Real()->NowNs();
    const auto results = RunChecked(request.input_seed(), *runnable);
    if (!results.ok()) {
      return Failed(OutcomeOfRun(results.status()), results.status().message());
    }
    // Where the device is far, it is timed meanwhile.
    const std::shared_future<absl::StatusOr<double>> error =
        Compared(*results, /*beside=*/operands_->far());
    reply.set_check_ns(Clock::Real()->NowNs() - check_start_ns);
    if (!operands_->far() && !error.get().ok()) {
      return Failed(proto::WRONG_RESULT, error.get().status().message());
    }
    const absl::StatusOr<std::unique_ptr<ops::Timer>> timer =
        MakeTimer(request.input_seed(), *runnable, request.zero_inputs());
    const std::unique_ptr<ops::Monitor> monitor = device_->MakeMonitor();
    if (timer.ok()) {
      sampling = TakeSamples(request.sampling(), **timer, *monitor,
                             first->has_value() ? &**first : nullptr);
    }
    check_start_ns = Clock::Real()->NowNs();
    if (!error.get().ok()) {
      return Failed(proto::WRONG_RESULT, error.get().status().message());
    }
    reply.set_error_in_tolerances(*error.get());
    reply.set_check_ns(reply.check_ns() + Clock::Real()->NowNs() -
                       check_start_ns);
    if (!timer.ok()) {
      return Failed(OutcomeOfTimer(timer.status()), timer.status().message());
    }
    if (!sampling.ok()) {
      return Failed(proto::LAUNCH_ERROR, sampling.status().message());
    }
    monitor->Fill(sampling->measurement.mutable_conditions());
    (*timer)->Fill(&sampling->measurement);
    if (const auto too_short = TooShort(*sampling)) return *too_short;
    if (sampling->outcome == proto::OK) {
      const absl::Status status =
          Meter(request.metering(), request.zero_inputs(), **timer,
                &sampling->measurement);
      if (!status.ok()) {
        return Failed(OutcomeOfMeter(status), status.message());
      }
    }
  }
  // The timed calls are watched too: a kernel that is right once and then
  // tramples on its inputs is wrong.
  const int64_t last_check_start_ns = Clock::Real()->NowNs();
  const absl::Status status = operands_->CheckInputsAndGuards();
  if (!status.ok()) {
    (void)operands_->Repair();
    return Failed(proto::WRONG_RESULT, status.message());
  }
  const bool may_win =
      !request.sampling().has_hopeless_above_ns() ||
      sampling->time_ns < kNearlyBest * request.sampling().hopeless_above_ns();
  if (!operands_->far() && may_win) {
    const auto later = CheckLaterCall(request.input_seed(), *runnable);
    if (!later.ok()) {
      return Failed(OutcomeOfRun(later), later.message());
    }
  }
  reply.set_check_ns(reply.check_ns() + Clock::Real()->NowNs() -
                     last_check_start_ns);
  if (const auto busy_ns = device_->busy_ns(); busy_ns && busy_before_ns) {
    reply.set_busy_ns(*busy_ns - *busy_before_ns);
  }
  FillReply(sampling_started_unix_ns, *std::move(sampling), &reply);
  return reply;
}

namespace {

// The clock of what another program computes: it counts its own calls.
class ElsewhereTimer : public ops::Timer {
 public:
  explicit ElsewhereTimer(
      std::function<absl::StatusOr<int64_t>(int64_t calls)> time_ns)
      : time_ns_(std::move(time_ns)) {}

  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override { return time_ns_(calls_); }

 private:
  const std::function<absl::StatusOr<int64_t>(int64_t calls)> time_ns_;
  int64_t calls_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> Worker::TimeElsewhere(int contender,
                                              int64_t calls) const {
  if (!tell_ || !listen_) return absl::UnavailableError("nobody is there");
  proto::WorkerReply reply;
  reply.mutable_ask_elsewhere()->set_contender(contender);
  reply.mutable_ask_elsewhere()->set_calls(calls);
  tell_(reply);
  OPTRAIL_ASSIGN_OR_RETURN(const proto::WorkerRequest answer, listen_());
  if (!answer.has_timed_elsewhere()) {
    return absl::InvalidArgumentError("that was asked for of another program");
  }
  const proto::WorkerRequest::TimedElsewhere& timed = answer.timed_elsewhere();
  if (!timed.error().empty()) return absl::InternalError(timed.error());
  return timed.elapsed_ns();
}

proto::WorkerReply Worker::EvaluateTogetherInTurn(
    const proto::WorkerRequest::EvaluateTogether& request) {
  struct Member {
    proto::WorkerReply reply;
    std::unique_ptr<ops::Runnable> runnable;  // null: elsewhere
    absl::optional<ops::CheckedOperands::Results> results;
    std::shared_future<absl::StatusOr<double>> error;
    std::unique_ptr<ops::Timer> timer;
  };
  std::vector<Member> members(request.contenders_size());
  const int64_t started_unix_ns = Clock::Real()->WallNs();
  const absl::optional<int64_t> busy_before_ns = device_->busy_ns();
  const int64_t check_start_ns = Clock::Real()->NowNs();
  for (size_t i = 0; i < members.size(); ++i) {
    Member& member = members[i];
    const auto& contender = request.contenders(static_cast<int>(i));
    if (contender.elsewhere()) continue;
    const auto backend = OtherBackend(contender.backend());
    if (!backend.ok()) {
      return Failed(OutcomeOfPrepare(backend.status()),
                    backend.status().message());
    }
    member.reply =
        Load(**backend, contender.config(),
             contender.perturbation().compile_options(), &member.runnable);
    if (member.reply.outcome() != proto::OK) return member.reply;
    if (contender.has_perturbation()) continue;
    auto results = RunChecked(request.input_seed(), *member.runnable);
    if (!results.ok()) {
      return Failed(OutcomeOfRun(results.status()), results.status().message());
    }
    member.results = *std::move(results);
    member.error = Compared(*member.results, /*beside=*/operands_->far());
  }
  int64_t check_ns = Clock::Real()->NowNs() - check_start_ns;
  std::vector<ops::Timer*> timers;
  for (size_t i = 0; i < members.size(); ++i) {
    Member& member = members[i];
    if (member.runnable == nullptr) {
      const int contender = static_cast<int>(i);
      member.timer =
          std::make_unique<ElsewhereTimer>([this, contender](int64_t calls) {
            return TimeElsewhere(contender, calls);
          });
    } else {
      const auto& contender = request.contenders(static_cast<int>(i));
      auto timer = MakeTimer(
          request.input_seed(), *member.runnable, request.zero_inputs(),
          contender.has_perturbation() ? &contender.perturbation() : nullptr);
      if (!timer.ok()) {
        return Failed(OutcomeOfTimer(timer.status()), timer.status().message());
      }
      member.timer = *std::move(timer);
    }
    timers.push_back(member.timer.get());
  }
  const std::unique_ptr<ops::Monitor> monitor = device_->MakeMonitor();
  absl::StatusOr<std::vector<Sampling>> samplings =
      TakeSamplesInTurns(request.sampling(), timers, *monitor);
  for (size_t i = 0; samplings.ok() && i < members.size(); ++i) {
    Sampling& sampling = (*samplings)[i];
    if (members[i].runnable == nullptr || sampling.outcome != proto::OK) {
      continue;
    }
    const absl::Status metered =
        Meter(request.metering(), request.zero_inputs(), *members[i].timer,
              &sampling.measurement);
    if (!metered.ok()) {
      return Failed(OutcomeOfMeter(metered), metered.message());
    }
  }
  const int64_t last_check_start_ns = Clock::Real()->NowNs();
  for (const Member& member : members) {
    if (member.error.valid() && !member.error.get().ok()) {
      return Failed(proto::WRONG_RESULT, member.error.get().status().message());
    }
  }
  if (!samplings.ok()) {
    return Failed(proto::LAUNCH_ERROR, samplings.status().message());
  }
  if (const absl::Status sound = operands_->CheckInputsAndGuards();
      !sound.ok()) {
    (void)operands_->Repair();
    return Failed(proto::WRONG_RESULT, sound.message());
  }
  for (const Member& member : members) {
    if (!member.error.valid()) continue;
    const absl::Status later =
        CheckLaterCall(request.input_seed(), *member.runnable);
    if (!later.ok()) return Failed(OutcomeOfRun(later), later.message());
  }
  check_ns += Clock::Real()->NowNs() - last_check_start_ns;
  proto::WorkerReply together = Failed(proto::OK, "");
  const auto count = static_cast<int64_t>(members.size());
  const absl::optional<int64_t> busy_ns = device_->busy_ns();
  for (size_t i = 0; i < members.size(); ++i) {
    Sampling& sampling = (*samplings)[i];
    const absl::optional<proto::WorkerReply> too_short = TooShort(sampling);
    if (too_short) return *too_short;
    proto::WorkerReply& reply = *together.add_together();
    reply = std::move(members[i].reply);
    if (members[i].error.valid()) {
      reply.set_error_in_tolerances(*members[i].error.get());
    }
    reply.set_check_ns(check_ns / count);
    if (busy_ns && busy_before_ns) {
      reply.set_busy_ns((*busy_ns - *busy_before_ns) / count);
    }
    monitor->Fill(sampling.measurement.mutable_conditions());
    members[i].timer->Fill(&sampling.measurement);
    FillReply(started_unix_ns, std::move(sampling), &reply);
  }
  return together;
}

proto::WorkerReply Worker::Answer(const proto::WorkerRequest& request) {
  if (request.has_open()) {
    const absl::Status status = Open(request.open());
    if (!status.ok()) {
      return Failed(OutcomeOfPrepare(status), status.message());
    }
    return Failed(proto::OK, "");
  }
  if (request.has_compile()) return Compile(request.compile());
  if (operands_ == nullptr) {
    return Failed(proto::LAUNCH_ERROR, "no task was opened");
  }
  if (request.has_make_ready()) {
    const absl::Status status = MakeReady(request.make_ready());
    return status.ok() ? Failed(proto::OK, "")
                       : Failed(proto::LAUNCH_ERROR, status.message());
  }
  return InTurn([&] {
    if (request.has_profile()) return Profile(request.profile());
    return request.has_evaluate_together()
               ? EvaluateTogetherInTurn(request.evaluate_together())
               : EvaluateInTurn(request.evaluate());
  });
}

int RunWorker(int argc, char** argv) {
  if (IsProcessGuard(argc, argv)) return RunProcessGuard(argc, argv);
  DieWithParent();
  absl::StatusOr<std::unique_ptr<FrameChannel>> channel =
      FrameChannel::TakeStandardStreams();
  if (!channel.ok()) {
    std::cerr << "worker: " << channel.status().message() << "\n";
    return ToInt(ExitCode::kBadInput);
  }
  // Who does not listen any more is found out by the reply.
  Worker worker(
      [&channel](const proto::WorkerReply& reply) {
        (void)(*channel)->Write(reply.SerializeAsString());
      },
      [&channel]() -> absl::StatusOr<proto::WorkerRequest> {
        OPTRAIL_ASSIGN_OR_RETURN(const std::string frame, (*channel)->Read());
        proto::WorkerRequest request;
        if (request.ParseFromString(frame)) return request;
        return absl::DataLossError("unreadable request");
      });
  while (true) {
    const absl::StatusOr<std::string> frame = (*channel)->Read();
    if (absl::IsOutOfRange(frame.status())) return 0;
    proto::WorkerRequest request;
    if (!frame.ok() || !request.ParseFromString(*frame)) {
      std::cerr << "worker: unreadable request\n";
      return ToInt(ExitCode::kBadInput);
    }
    const absl::Status sent =
        (*channel)->Write(worker.Answer(request).SerializeAsString());
    if (!sent.ok()) return ToInt(ExitCode::kBadInput);
  }
}

}  // namespace optrail::suites
