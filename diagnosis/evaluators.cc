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

}  // namespace

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
