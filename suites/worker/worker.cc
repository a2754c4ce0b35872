#include "suites/worker/worker.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/devices.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

constexpr int64_t kMaxInPlaceBytes = int64_t{256} << 20;

int64_t ProcessCpuNs() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

class KernelTimer : public CallTimer {
 public:
  KernelTimer(ops::Invocation& invocation, ops::CheckedOperands& operands,
              ops::Device& device, proto::CacheMode cache_mode)
      : invocation_(invocation),
        operands_(operands),
        device_(device),
        cold_(cache_mode == proto::COLD) {}

  int64_t TimeCallsNs(int64_t calls) override {
    if (operands_.has_in_out()) Note(operands_.Restore());
    if (cold_) device_.FlushCaches();
    Note(device_.Synchronize());
    const int64_t cpu_before_ns = ProcessCpuNs();
    const auto start = std::chrono::steady_clock::now();
    if (operands_.has_in_out()) {
      for (int64_t i = 0; i < calls; ++i) {
        invocation_.Run(operands_.addresses(static_cast<int>(i)));
      }
    } else {
      const absl::Span<void* const> addresses = operands_.addresses();
      for (int64_t i = 0; i < calls; ++i) invocation_.Run(addresses);
    }
    Note(device_.Synchronize());
    const auto end = std::chrono::steady_clock::now();
    cpu_ns_ += ProcessCpuNs() - cpu_before_ns;
    calls_ += calls;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(end - start)
        .count();
  }

  // Processor time of all threads per call, over everything timed.
  double cpu_time_ns() const {
    return static_cast<double>(cpu_ns_) / static_cast<double>(calls_);
  }

  int64_t max_calls() const override {
    if (cold_) return 1;
    return operands_.has_in_out() ? operands_.sets() : CallTimer::max_calls();
  }

  // The first failure of the device, if any.
  const absl::Status& status() const { return status_; }

 private:
  void Note(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  ops::Invocation& invocation_;
  ops::CheckedOperands& operands_;
  ops::Device& device_;
  const bool cold_;
  int64_t cpu_ns_ = 0;
  int64_t calls_ = 0;
  absl::Status status_;
};

proto::WorkerReply Failed(proto::Outcome outcome, absl::string_view detail) {
  proto::WorkerReply reply;
  reply.set_outcome(outcome);
  reply.set_detail(std::string(detail));
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

}  // namespace

bool IsWorker(int argc, char** argv) {
  return argc == 2 && std::strcmp(argv[1], kWorkerFlag) == 0;
}

absl::Status Worker::Open(const proto::WorkerRequest::Open& request) {
  task_ = request.task();
  const ops::Registry& registry = ops::Registry::Get();
  entry_ = registry.Find(task_.operator_name());
  if (entry_ == nullptr) return registry.UnknownOperator(task_.operator_name());
  const auto kernel = entry_->kernels.find(task_.device_kind());
  if (kernel == entry_->kernels.end()) {
    return absl::UnimplementedError(
        absl::StrCat(task_.operator_name(), " has no kernel for ",
                     tuning::DeviceName(task_.device_kind())));
  }
  kernel_ = kernel->second.kernel.get();
  OPTRAIL_RETURN_IF_ERROR(ops::CheckShape(*entry_->op, task_.shape()));
  OPTRAIL_ASSIGN_OR_RETURN(device_,
                           MakeDevice(task_.device_kind(), task_.threads()));
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
  for (uint64_t seed : request.input_seeds()) {
    OPTRAIL_RETURN_IF_ERROR(operands_->Fill(seed));
  }
  return absl::OkStatus();
}

proto::WorkerReply Worker::Evaluate(
    const proto::WorkerRequest::Evaluate& request) {
  absl::Status status = operands_->Fill(request.input_seed());
  if (!status.ok()) return Failed(proto::LAUNCH_ERROR, status.message());

  const int64_t prepare_start_ns = Clock::Real()->NowNs();
  absl::StatusOr<std::unique_ptr<ops::Invocation>> invocation =
      kernel_->Prepare(task_.shape(), request.config(), *device_);
  if (!invocation.ok()) {
    return Failed(OutcomeOfPrepare(invocation.status()),
                  invocation.status().message());
  }
  proto::WorkerReply reply;
  reply.set_prepare_ns(Clock::Real()->NowNs() - prepare_start_ns);
  reply.set_workspace_bytes((*invocation)->workspace_bytes());

  // Right first.
  status = operands_->Arm();
  if (!status.ok()) return Failed(proto::LAUNCH_ERROR, status.message());
  (*invocation)->Run(operands_->addresses());
  status = device_->Synchronize();
  if (!status.ok()) return Failed(proto::LAUNCH_ERROR, status.message());
  const absl::StatusOr<double> error = operands_->Verify();
  if (!error.ok()) {
    const proto::Outcome outcome = absl::IsDataLoss(error.status())
                                       ? proto::WRONG_RESULT
                                       : proto::LAUNCH_ERROR;
    (void)operands_->Repair();
    return Failed(outcome, error.status().message());
  }
  reply.set_error_in_tolerances(*error);

  KernelTimer timer(**invocation, *operands_, *device_, task_.cache_mode());
  const int64_t sampling_started_unix_ns = Clock::Real()->WallNs();
  const std::unique_ptr<ops::Monitor> monitor = device_->MakeMonitor();
  Sampling sampling = TakeSamples(request.sampling(), timer, *monitor);
  if (!timer.status().ok()) {
    return Failed(proto::LAUNCH_ERROR, timer.status().message());
  }
  if (task_.cache_mode() == proto::COLD && sampling.outcome == proto::OK &&
      sampling.time_ns < kMinColdCallNs) {
    return Failed(proto::UNSUPPORTED,
                  absl::StrCat("a call takes ", sampling.time_ns,
                               " ns, too short to be timed with cold caches "
                               "(at least ",
                               kMinColdCallNs, " ns)"));
  }
  // The timed calls are watched too: a kernel that is right once and then
  // tramples on its inputs is wrong.
  status = operands_->CheckInputsAndGuards();
  if (!status.ok()) {
    (void)operands_->Repair();
    return Failed(proto::WRONG_RESULT, status.message());
  }
  reply.set_outcome(sampling.outcome);
  if (sampling.outcome != proto::CONTENDED) {
    reply.set_time_ns(sampling.time_ns);
  }
  sampling.measurement.set_started_unix_ns(sampling_started_unix_ns);
  proto::Conditions* conditions = sampling.measurement.mutable_conditions();
  monitor->Fill(conditions);
  conditions->set_page_bytes(operands_->page_bytes());
  proto::MetricSamples* cpu_time = sampling.measurement.add_metrics();
  cpu_time->set_metric("cpu_time");
  cpu_time->set_unit("ns");
  cpu_time->set_direction(proto::LOWER_IS_BETTER);
  cpu_time->add_values(timer.cpu_time_ns());
  *reply.mutable_measurement() = std::move(sampling.measurement);
  return reply;
}

proto::WorkerReply Worker::Answer(const proto::WorkerRequest& request) {
  if (request.has_open()) {
    const absl::Status status = Open(request.open());
    if (!status.ok()) {
      return Failed(OutcomeOfPrepare(status), status.message());
    }
    return Failed(proto::OK, "");
  }
  if (operands_ == nullptr) {
    return Failed(proto::LAUNCH_ERROR, "no task was opened");
  }
  return Evaluate(request.evaluate());
}

int RunWorker() {
  DieWithParent();
  absl::StatusOr<std::unique_ptr<FrameChannel>> channel =
      FrameChannel::TakeStandardStreams();
  if (!channel.ok()) {
    std::cerr << "worker: " << channel.status().message() << "\n";
    return ToInt(ExitCode::kBadInput);
  }
  Worker worker;
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
