#include "suites/tune/elsewhere.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process/host_name.h"
#include "base/process/running_binary.h"
#include "base/process/socket.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "ops/device/toolchain.h"
#include "suites/tune/session_evaluator.h"
#include "suites/worker/measurement_settings.h"
#include "suites/worker/opened_task.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/evaluator_pool.h"
#include "tuning/session/remote_evaluator.h"

namespace optrail::suites {
namespace {

std::string KernelText(absl::string_view op, proto::DeviceKind kind,
                       absl::string_view backend, absl::string_view id) {
  return absl::StrCat(op, "/", tuning::DeviceName(kind),
                      backend.empty() ? "" : ":", backend, "=", id);
}

// Measures whichever task a session opens.
class ServedEvaluator : public tuning::Evaluator {
 public:
  explicit ServedEvaluator(const ServeOptions& options) : options_(options) {}

  absl::StatusOr<tuning::Offer> Open(const proto::Task& task) override {
    const ops::Registry& registry = ops::Registry::Get();
    const ops::OperatorEntry* entry = registry.Find(task.operator_name());
    if (entry == nullptr) {
      return registry.UnknownOperator(task.operator_name());
    }
    const auto backend = entry->FindBackend(task.device_kind(), task.backend());
    OPTRAIL_RETURN_IF_ERROR(backend.status());
    OPTRAIL_RETURN_IF_ERROR(ops::CheckShape(*entry->op, task.shape()));
    OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* device,
                             ops::FindDeviceType(task.device_kind()));
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Hardware hardware,
                             device->Hardware());
    ops::DeviceOptions device_options;
    device_options.threads = task.threads();
    OPTRAIL_RETURN_IF_ERROR(device->CheckOptions(device_options, hardware));
    TaskEntry bound;
    bound.task = task;
    bound.entry = entry;
    bound.backend = *backend;
    OPTRAIL_ASSIGN_OR_RETURN(space_, BindTask(bound, hardware));
    workers_ = std::make_unique<WorkerEvaluator>(task, options_.worker);
    SessionEvaluatorOptions measuring =
        SessionEvaluatorFor(*space_.bound, options_.sampling, *workers_);
    // A session does not say whether it tunes inside one class.
    measuring.tells_numerics = true;
    session_ = std::make_unique<SessionEvaluator>(*workers_, measuring);
    return session_->Open(task);
  }
  void Submit(tuning::Request request) override {
    if (session_ != nullptr) session_->Submit(std::move(request));
  }
  std::vector<proto::Evaluation> Poll(absl::Duration wait) override {
    return session_ != nullptr ? session_->Poll(wait)
                               : std::vector<proto::Evaluation>();
  }
  void Cancel(int64_t ticket) override {
    if (session_ != nullptr) session_->Cancel(ticket);
  }

 private:
  const ServeOptions& options_;
  TaskSpace space_;
  std::unique_ptr<WorkerEvaluator> workers_;
  std::unique_ptr<SessionEvaluator> session_;
};

// Takes connections while a session is served, and tells those who come that
// they have to wait.
class WaitingRoom {
 public:
  // Owns `listener`.
  explicit WaitingRoom(int listener)
      : listener_(listener), thread_([this] { Accept(); }) {}
  ~WaitingRoom() {
    thread_.join();  // has ended when Next() gave an error
    close(listener_);
  }

  // Who came first, and is served from now until the next call. An error is the
  // listener's, and the last.
  absl::StatusOr<std::unique_ptr<FrameChannel>> Next() {
    const absl::MutexLock lock(&mutex_);
    serving_ = false;
    const auto anybody = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !waiting_.empty() || !broken_.ok();
    };
    mutex_.Await(absl::Condition(&anybody));
    if (waiting_.empty()) return broken_;
    std::unique_ptr<FrameChannel> first = std::move(waiting_.front());
    waiting_.pop_front();
    serving_ = true;
    return first;
  }

 private:
  void Accept() {
    while (true) {
      const absl::StatusOr<int> fd = AcceptFrom(listener_);
      const absl::MutexLock lock(&mutex_);
      if (!fd.ok()) {
        broken_ = fd.status();
        return;
      }
      auto channel = std::make_unique<FrameChannel>(*fd, *fd);
      const int before = static_cast<int>(waiting_.size()) + serving_;
      // Who is gone already is found out when it is his turn.
      if (before > 0) (void)tuning::TellToWait(*channel, before);
      waiting_.push_back(std::move(channel));
    }
  }

  const int listener_;
  absl::Mutex mutex_;
  std::deque<std::unique_ptr<FrameChannel>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace

absl::StatusOr<proto::WorkerIdentity> IdentityHere(
    const ServeOptions& options) {
  proto::WorkerIdentity who;
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Target target,
                           LocalTarget(options.device));
  *who.mutable_hardware() = target.hardware;
  *who.mutable_toolchain() = ops::BuildToolchain();
  who.set_binary_fingerprint(RunningBinaryFingerprint());
  who.set_host(HostName());
  *who.mutable_settings() =
      SettingsOf(options.sampling, options.worker, options.device);
  std::vector<std::string> kernels;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(/*with_test_only=*/true)) {
    for (const ops::Backend* backend : entry->BackendsOf(options.device)) {
      const absl::StatusOr<std::string> id = backend->Id(target);
      if (!id.ok()) continue;  // its sessions are refused by that
      const std::string name =
          backend->name() == ops::OwnBackendName(options.device)
              ? ""
              : backend->name();
      kernels.push_back(
          KernelText(entry->op->name(), options.device, name, *id));
    }
  }
  std::sort(kernels.begin(), kernels.end());
  who.mutable_kernel_ids()->Add(kernels.begin(), kernels.end());
  return who;
}

proto::WorkerIdentity ExpectedOf(const proto::Task& task,
                                 const proto::SamplingOptions& sampling,
                                 const WorkerOptions& worker) {
  proto::WorkerIdentity expected;
  expected.set_binary_fingerprint(RunningBinaryFingerprint());
  expected.mutable_hardware()->set_id(task.hardware_id());
  expected.add_kernel_ids(KernelText(task.operator_name(), task.device_kind(),
                                     task.backend(), task.kernel_id()));
  *expected.mutable_settings() =
      SettingsOf(sampling, worker, task.device_kind());
  return expected;
}

absl::Status ServeSessions(const ServeOptions& options, std::ostream& log) {
  // Looking at the machine takes seconds: an address is wrong before that.
  OPTRAIL_ASSIGN_OR_RETURN(const int listener, ListenOn(options.address));
  const absl::StatusOr<proto::WorkerIdentity> here = IdentityHere(options);
  if (!here.ok()) {
    close(listener);
    return here.status();
  }
  const proto::WorkerIdentity& who = *here;
  log << "worker: " << who.hardware().id() << ", build "
      << who.binary_fingerprint() << ", serves at " << options.address
      << std::endl;
  WaitingRoom waiting(listener);
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<FrameChannel> channel,
                             waiting.Next());
    ServedEvaluator evaluator(options);
    log << "worker: a session begins" << std::endl;
    const absl::Status served =
        tuning::ServeEvaluator(*channel, evaluator, who);
    log << "worker: a session ends"
        << (served.ok() ? "" : absl::StrCat(": ", served.message()))
        << std::endl;
  }
}

std::unique_ptr<tuning::Evaluator> EvaluatorAt(
    const std::vector<std::string>& addresses, proto::WorkerIdentity expected,
    const proto::Config& default_config) {
  const auto say = [](const std::string& what) {
    std::cerr << what << std::endl;
  };
  std::vector<tuning::EvaluatorPool::Member> members;
  for (const std::string& address : addresses) {
    const auto connect =
        [address]() -> absl::StatusOr<std::unique_ptr<FrameChannel>> {
      OPTRAIL_ASSIGN_OR_RETURN(const int fd, ConnectTo(address));
      return std::make_unique<FrameChannel>(fd, fd);
    };
    members.push_back(
        {address, std::make_unique<tuning::RemoteEvaluator>(
                      address, connect, expected, say,
                      addresses.size() > 1 ? tuning::IfOccupied::kLose
                                           : tuning::IfOccupied::kWait)});
  }
  if (members.size() == 1) return std::move(members[0].evaluator);
  return std::make_unique<tuning::EvaluatorPool>(
      std::move(members), default_config, *Clock::Real(), say);
}

absl::StatusOr<std::vector<std::string>> ParseWorkerAddresses(
    absl::string_view text) {
  std::vector<std::string> addresses;
  if (text.empty()) return addresses;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::string address(absl::StripAsciiWhitespace(part));
    OPTRAIL_RETURN_IF_ERROR(CheckAddress(address));
    // The second session there would wait for the first one.
    if (absl::c_linear_search(addresses, address)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", address,
                       "\" is there twice; expected each "
                       "worker once, since it serves one session at a time"));
    }
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace optrail::suites
