#include "suites/graph/call_timer.h"

#include <utility>

#include "base/status_macros.h"
#include "ops/core/runnable.h"

namespace optrail::suites {
namespace {

class FunctionInvocation : public ops::Invocation {
 public:
  explicit FunctionInvocation(std::function<absl::Status(const ops::Call&)> run)
      : run_(std::move(run)) {}

  absl::Status Run(const ops::Call& call) const override { return run_(call); }

 private:
  const std::function<absl::Status(const ops::Call&)> run_;
};

class NoOperands : public ops::OperandSets {
 public:
  absl::Span<void* const> addresses(int set) const override { return {}; }
  absl::Span<const int64_t> bytes() const override { return {}; }
  int sets() const override { return 1; }
  bool has_in_out() const override { return false; }
  absl::Status Restore() override { return absl::OkStatus(); }
};

class DeviceCallTimer : public CallTimer {
 public:
  absl::Status Make(std::function<absl::Status(const ops::Call&)> run,
                    ops::Device& device, proto::LaunchMode launch) {
    OPTRAIL_ASSIGN_OR_RETURN(
        runnable_,
        ops::Runnable::Create(
            std::make_unique<const FunctionInvocation>(std::move(run)),
            device));
    OPTRAIL_ASSIGN_OR_RETURN(
        timer_, device.MakeTimer(*runnable_, operands_, {proto::HOT, launch}));
    return absl::OkStatus();
  }

  ops::Timer& get() override { return *timer_; }

 private:
  std::unique_ptr<ops::Runnable> runnable_;
  NoOperands operands_;
  std::unique_ptr<ops::Timer> timer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CallTimer>> CallTimer::Create(
    std::function<absl::Status(const ops::Call&)> run, ops::Device& device,
    proto::LaunchMode launch) {
  auto timer = std::make_unique<DeviceCallTimer>();
  OPTRAIL_RETURN_IF_ERROR(timer->Make(std::move(run), device, launch));
  return std::unique_ptr<CallTimer>(std::move(timer));
}

}  // namespace optrail::suites
