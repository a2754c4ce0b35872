#include "suites/graph/graph_timer.h"

#include <utility>

#include "base/status_macros.h"
#include "ops/core/invocation.h"
#include "ops/core/runnable.h"

namespace optrail::suites {
namespace {

class GraphInvocation : public ops::Invocation {
 public:
  explicit GraphInvocation(graph::Runner& runner) : runner_(runner) {}

  absl::Status Run(const ops::Call&) const override { return runner_.Run(); }

 private:
  graph::Runner& runner_;
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
  absl::Status Make(graph::Runner& runner, ops::CpuDevice& device) {
    OPTRAIL_ASSIGN_OR_RETURN(
        runnable_,
        ops::Runnable::Create(std::make_unique<const GraphInvocation>(runner),
                              device));
    OPTRAIL_ASSIGN_OR_RETURN(timer_,
                             device.MakeTimer(*runnable_, operands_, {}));
    return absl::OkStatus();
  }

  ops::Timer& get() override { return *timer_; }

 private:
  std::unique_ptr<ops::Runnable> runnable_;
  NoOperands operands_;
  std::unique_ptr<ops::Timer> timer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GraphTimer>> GraphTimer::Create(
    graph::Runner& runner, ops::CpuDevice& device) {
  auto timer = std::make_unique<DeviceGraphTimer>();
  OPTRAIL_RETURN_IF_ERROR(timer->Make(runner, device));
  return std::unique_ptr<GraphTimer>(std::move(timer));
}

}  // namespace optrail::suites
