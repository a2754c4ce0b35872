#include "suites/evaluation/store_answer.h"

#include "base/status_macros.h"
#include "ops/core/tuned_kernel.h"
#include "tuning/store/store.h"

namespace optrail::suites {

absl::StatusOr<StoreAnswer> AnswerOf(const std::string& store_folder,
                                     const proto::Task& task,
                                     const proto::Hardware& hardware) {
  tuning::StoreOptions options;
  options.overlay_directory = store_folder;
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           tuning::TunedConfigStore::Load(options));
  ops::KernelQuestion question;
  question.operator_name = task.operator_name();
  question.shape = task.shape();
  question.device_kind = task.device_kind();
  OPTRAIL_ASSIGN_OR_RETURN(const ops::ChosenKernel kernel,
                           ops::ChooseKernel(question, hardware, &store));
  StoreAnswer answer;
  switch (kernel.found.source) {
    case tuning::LookupSource::kExact:
      answer.how = "exact";
      break;
    case tuning::LookupSource::kBucket:
      answer.how = "bucket";
      break;
    case tuning::LookupSource::kNearest:
      answer.how = "nearest";
      break;
    case tuning::LookupSource::kDefault:
      break;
  }
  if (kernel.found.config != nullptr && !kernel.found.tuned->ties()) {
    answer.config = kernel.config;
  }
  return answer;
}

absl::StatusOr<double> ShareOfBest(const TuneBucketsCommand& command,
                                   const TaskEntry& task,
                                   const StoreAnswer& answer) {
  OPTRAIL_ASSIGN_OR_RETURN(const CheckedConfig checked,
                           CheckConfig(command, task, answer.config));
  return 1 - checked.loss;
}

}  // namespace optrail::suites
