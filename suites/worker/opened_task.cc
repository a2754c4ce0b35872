#include "suites/worker/opened_task.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "ops/core/backend_space.h"
#include "ops/core/batch_rows.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "ops/core/perturbation.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/worker_reply.h"

namespace optrail::suites {
namespace {

constexpr int64_t kMaxInPlaceBytes = int64_t{256} << 20;

// Whether its compile options are all that is perturbed.
bool IsOfCompiler(const proto::Perturbation& perturbation) {
  proto::Perturbation rest = perturbation;
  rest.clear_compile_options();
  return rest.ByteSizeLong() == 0;
}

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

}  // namespace

void AddFacts(const ops::Artifact& artifact, proto::Trial* trial) {
  for (const auto& [name, value] : artifact.facts) {
    proto::Fact& fact = *trial->add_facts();
    fact.set_name(name);
    fact.set_value(value);
  }
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

proto::Evaluation Compile(const proto::WorkerRequest::Compile& request) {
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
    return PrepareFailed(artifact.status());
  }
  proto::Evaluation compiled = EvaluationOf(proto::OK);
  compiled.mutable_trial()->set_compile_ns(Clock::Real()->NowNs() - start_ns);
  AddFacts(*artifact, compiled.mutable_trial());
  return compiled;
}

absl::Status OpenedTask::Open(const proto::WorkerRequest::Open& request) {
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
  fewer_rows_.reset();
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(task_.device_kind()));
  const bool ahead = type->policy().host_is_free && !shared_folder_.empty();
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
  auto seeds = request.input_seeds();
  // The first is enough to begin with; an evaluation makes its own ready.
  if (ahead && seeds.size() > 1) seeds.Truncate(1);
  return MakeReady(seeds);
}

void OpenedTask::TakeMadeAhead(uint64_t input_seed) {
  if (references_ != nullptr) operands_->Adopt(references_->Await(input_seed));
}

absl::Status OpenedTask::MakeReady(
    const google::protobuf::RepeatedField<uint64_t>& input_seeds) {
  for (const uint64_t seed : input_seeds) {
    TakeMadeAhead(seed);
    // Results are checked with hard values and timed with typical ones.
    OPTRAIL_RETURN_IF_ERROR(operands_->Fill(seed, ops::Values::kHard));
    operands_->ComputeReference();
    OPTRAIL_RETURN_IF_ERROR(operands_->Fill(seed));
  }
  return absl::OkStatus();
}

absl::StatusOr<const ops::Backend*> OpenedTask::BackendNamed(
    const std::string& name) const {
  if (name == task_.backend()) return backend_;
  proto::Task task = task_;
  task.set_backend(name);
  OPTRAIL_ASSIGN_OR_RETURN(const Found found, FindBackend(task));
  OPTRAIL_RETURN_IF_ERROR(found.backend->Id(target_).status());
  return found.backend;
}

absl::Status OpenedTask::Meter(const proto::Metering& metering,
                               bool zero_inputs, ops::Timer& timer,
                               proto::Measurement* measurement) {
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

absl::StatusOr<ops::CheckedOperands::Results> OpenedTask::RunChecked(
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

namespace {

// The results of one call with values of the seed.
absl::StatusOr<ops::CheckedOperands::ResultBytes> ResultsOf(
    uint64_t input_seed, ops::Values values, ops::CheckedOperands& operands,
    ops::Runnable& runnable, ops::Device& device) {
  OPTRAIL_RETURN_IF_ERROR(operands.Fill(input_seed, values));
  OPTRAIL_RETURN_IF_ERROR(operands.Arm());
  OPTRAIL_RETURN_IF_ERROR(runnable.Run(operands.addresses()));
  OPTRAIL_RETURN_IF_ERROR(device.Synchronize());
  return operands.CopyResults();
}

}  // namespace

absl::StatusOr<uint64_t> OpenedTask::BitsOfResults(uint64_t input_seed,
                                                   ops::Runnable& runnable) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::CheckedOperands::ResultBytes bytes,
                           ResultsOf(input_seed, ops::Values::kHard, *operands_,
                                     runnable, *device_));
  return operands_->BitsOf(bytes);
}

absl::Status OpenedTask::MakeFewerRows(const ops::Backend& backend) {
  if (fewer_rows_ && fewer_rows_of_ == backend.name()) return absl::OkStatus();
  fewer_rows_.emplace();
  fewer_rows_of_ = backend.name();
  const ops::Operator& op = *entry_->op;
  const absl::optional<int> dim = ops::BatchDim(op, task_.shape());
  // A compiler on the host takes seconds for each number of rows.
  if (!dim || (backend.compiles() && !operands_->far())) {
    return absl::OkStatus();
  }
  const ops::EmbeddedFile& file = ops::SpaceFileOf(backend);
  OPTRAIL_ASSIGN_OR_RETURN(tuning::Space space,
                           tuning::Space::Parse(file.contents, file.path));
  space_of_rows_ = std::make_unique<tuning::Space>(std::move(space));
  for (const int64_t rows : ops::FewerRows(task_.shape().dims(*dim).value())) {
    FewerRows fewer;
    fewer.shape = ops::WithRows(task_.shape(), *dim, rows);
    if (!ops::CheckShape(op, fewer.shape).ok()) continue;
    auto bound = space_of_rows_->Bind(fewer.shape, target_.hardware);
    auto operands = ops::CheckedOperands::Create(op, fewer.shape, *device_);
    if (!bound.ok() || !operands.ok()) continue;
    fewer.space = *std::move(bound);
    fewer.operands = *std::move(operands);
    fewer_rows_->push_back(std::move(fewer));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<bool>> OpenedTask::IsBatchInvariant(
    uint64_t input_seed, const std::string& backend_name,
    const proto::Config& config, ops::Runnable& runnable) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Backend* backend,
                           BackendNamed(backend_name));
  OPTRAIL_RETURN_IF_ERROR(MakeFewerRows(*backend));
  absl::optional<ops::CheckedOperands::ResultBytes> all;
  for (FewerRows& fewer : *fewer_rows_) {
    if (!fewer.space->Validate(config).ok()) continue;
    const absl::StatusOr<ops::Artifact> artifact =
        Compiled(*backend, {fewer.shape, config, target_}, shared_folder_, {});
    if (!artifact.ok()) continue;
    const auto loaded =
        ops::Runnable::Load(*backend, *artifact, fewer.shape, config, *device_);
    if (!loaded.ok()) continue;
    if (!all) {
      OPTRAIL_ASSIGN_OR_RETURN(all, ResultsOf(input_seed, ops::Values::kTypical,
                                              *operands_, runnable, *device_));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const ops::CheckedOperands::ResultBytes some,
                             ResultsOf(input_seed, ops::Values::kTypical,
                                       *fewer.operands, **loaded, *device_));
    for (size_t i = 0; i < some.size(); ++i) {
      if (!std::equal(some[i].begin(), some[i].end(), (*all)[i].begin())) {
        return absl::make_optional(false);
      }
    }
  }
  return all ? absl::make_optional(true) : absl::nullopt;
}

absl::Status OpenedTask::CheckLaterCall(uint64_t input_seed,
                                        ops::Runnable& runnable) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::CheckedOperands::Results results,
                           RunChecked(input_seed, runnable));
  const absl::StatusOr<double> error = results.Compare();
  if (error.ok()) return absl::OkStatus();
  return absl::Status(error.status().code(),
                      absl::StrCat("right at first, but after it was timed, ",
                                   error.status().message()));
}

absl::Status OpenedTask::CheckInputsAndGuards() {
  absl::Status status = operands_->CheckInputsAndGuards();
  if (!status.ok()) (void)operands_->Repair();
  return status;
}

absl::StatusOr<std::unique_ptr<ops::Timer>> OpenedTask::MakeTimer(
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

proto::Evaluation OpenedTask::Profile(
    const proto::WorkerRequest::Profile& request) {
  std::unique_ptr<ops::Runnable> runnable;
  proto::Evaluation profile = Load(task_.backend(), request.config(),
                                   request.compile_options(), &runnable);
  if (!IsOk(profile)) return profile;
  absl::Status status = operands_->Fill(request.input_seed());
  if (status.ok()) status = operands_->Arm();
  if (!status.ok()) return EvaluationOf(proto::LAUNCH_ERROR, status.message());
  auto* const perturbable = dynamic_cast<ops::Perturbable*>(device_.get());
  proto::Measurement& measurement =
      *profile.mutable_trial()->add_measurements();
  // The facts are worth having where nothing else can be observed.
  if (perturbable == nullptr) return profile;
  auto metrics = perturbable->ProfileCalls(*runnable, *operands_);
  if (!metrics.ok()) {
    return TimerFailed(metrics.status());
  }
  for (proto::MetricSamples& metric : *metrics) {
    *measurement.add_metrics() = std::move(metric);
  }
  return profile;
}

proto::Evaluation OpenedTask::Load(const std::string& backend_name,
                                   const proto::Config& config,
                                   const CompileOptions& compile_options,
                                   std::unique_ptr<ops::Runnable>* runnable) {
  const auto backend = BackendNamed(backend_name);
  if (!backend.ok()) return PrepareFailed(backend.status());
  const int64_t prepare_start_ns = Clock::Real()->NowNs();
  const absl::StatusOr<ops::Artifact> artifact =
      Compiled(**backend, {task_.shape(), config, target_}, shared_folder_,
               {compile_options.begin(), compile_options.end()});
  if (!artifact.ok()) return PrepareFailed(artifact.status());
  const int64_t load_start_ns = Clock::Real()->NowNs();
  absl::StatusOr<std::unique_ptr<ops::Runnable>> loaded = ops::Runnable::Load(
      **backend, *artifact, task_.shape(), config, *device_);
  if (!loaded.ok()) {
    return PrepareFailed(loaded.status());
  }
  *runnable = *std::move(loaded);
  proto::Evaluation evaluation = EvaluationOf(proto::OK);
  proto::Trial& trial = *evaluation.mutable_trial();
  const int64_t loaded_ns = Clock::Real()->NowNs();
  trial.set_compile_ns(loaded_ns - prepare_start_ns);
  trial.set_load_ns(loaded_ns - load_start_ns);
  AddFacts(*artifact, &trial);
  const ops::Invocation& invocation = (*runnable)->invocation();
  evaluation.set_memory_bytes(operands_->bytes_per_set() +
                              invocation.workspace_bytes() +
                              invocation.packed_bytes());
  return evaluation;
}

}  // namespace optrail::suites
