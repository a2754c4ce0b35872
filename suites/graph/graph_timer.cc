#include "suites/graph/graph_timer.h"

#include <utility>

#include "base/status_macros.h"
#include "ops/core/invocation.h"

namespace optrail::suites {
namespace {

class GraphInvocation : public ops::Invocation {
 public:
  GraphInvocation(graph::Runner& runner, int step)
      : runner_(runner), step_(step) {}

  void Run(absl::Span<void* const> operands) override {
    const absl::Status status =
        step_ < 0 ? runner_.Run() : runner_.RunStep(step_);
    if (!status.ok()) error_ = status;
  }
  const absl::Status& error() const { return error_; }

 private:
  graph::Runner& runner_;
  const int step_;
  absl::Status error_;
};

// The runner keeps its operands itself.
class NoOperands : public ops::OperandSets {
 public:
  absl::Span<void* const> addresses(int set) const override { return {}; }
  absl::Span<const int64_t> bytes() const override { return {}; }
  int sets() const override { return 1; }
  bool has_in_out() const override { return false; }
  absl::Status Restore() override { return absl::OkStatus(); }
};

class DeviceGraphTimer : public GraphTimer {
 public:
  DeviceGraphTimer(graph::Runner& runner, int step)
      : invocation_(runner, step) {}

  absl::Status Make(ops::CpuDevice& device) {
    OPTRAIL_ASSIGN_OR_RETURN(timer_,
                             device.MakeTimer(invocation_, operands_, {}));
    return absl::OkStatus();
  }

  ops::Timer& get() override { return *timer_; }
  absl::Status error() const override { return invocation_.error(); }

 private:
  GraphInvocation invocation_;
  NoOperands operands_;
  std::unique_ptr<ops::Timer> timer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GraphTimer>> GraphTimer::Create(
    graph::Runner& runner, int step, ops::CpuDevice& device) {
  auto timer = std::make_unique<DeviceGraphTimer>(runner, step);
  OPTRAIL_RETURN_IF_ERROR(timer->Make(device));
  return std::unique_ptr<GraphTimer>(std::move(timer));
}

}  // namespace optrail::suites
