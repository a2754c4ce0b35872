#include "diagnosis/evaluators.h"

#include <algorithm>
#include <utility>

#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

// Experiments hold operands twice more.
constexpr int64_t kExperimentBytes = int64_t{4} << 30;
// They also compile the kernel again, in the process that measures.
constexpr absl::Duration kExperimentDeadline = absl::Seconds(40);

// One of the rates that bound a call is higher than it was.
bool Rises(const proto::Ceilings& before, const proto::Ceilings& now) {
  constexpr double kSame = 1.05;
  return now.flop_per_s_one_thread() > kSame * before.flop_per_s_one_thread() ||
         now.flop_per_s_all_threads() >
             kSame * before.flop_per_s_all_threads() ||
         now.memory_read_bytes_per_s_all_threads() >
             kSame * before.memory_read_bytes_per_s_all_threads();
}

}  // namespace

Machine MachineOf(const suites::RunContext& context) {
  constexpr int kMostReadings = 4;
  Machine machine{context.hardware, suites::KeptCeilings(context)};
  for (int i = 0; i < kMostReadings; ++i) {
    const proto::Ceilings before = machine.ceilings;
    machine.ceilings = suites::CeilingsOf(context);
    if (!Rises(before, machine.ceilings)) break;
  }
  return machine;
}

Evaluators::Evaluators(suites::WorkerOptions options,
                       const suites::RunContext& context)
    : options_(std::move(options)) {
  options_.shared_folder = context.state;
  options_.max_config_bytes =
      std::max(options_.max_config_bytes, kExperimentBytes);
  options_.config_deadline =
      std::max(options_.config_deadline, kExperimentDeadline);
  // Two calls at a time need two queues. This process may have set it to one,
  // which opens faster (ops/device/cuda/driver.cc).
  options_.environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "8");
}

suites::Evaluator& Evaluators::Of(const proto::Task& task) {
  std::unique_ptr<suites::WorkerEvaluator>& evaluator =
      evaluators_[tuning::TaskText(task)];
  if (evaluator == nullptr) {
    evaluator = std::make_unique<suites::WorkerEvaluator>(task, options_);
  }
  if (last_ != evaluator.get()) Rest();
  last_ = evaluator.get();
  return *evaluator;
}

void Evaluators::Rest() {
  if (last_ != nullptr) last_->Rest();
}

}  // namespace optrail::diagnosis
