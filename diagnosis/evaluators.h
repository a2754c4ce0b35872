#ifndef OPTRAIL_DIAGNOSIS_EVALUATORS_H_
#define OPTRAIL_DIAGNOSIS_EVALUATORS_H_

// Evaluators gives each task an evaluator in worker processes. Processes of a
// task that is not asked end, so that no two disturb each other.
//
//   Evaluators evaluators(worker_options, context);
//   evaluators.Of(task).Evaluate(config, options);

#include <map>
#include <memory>
#include <string>

#include "diagnosis/experiments.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::diagnosis {

// This machine with its ceilings, which take a second or two to measure. Others
// only lower a reading, so they are measured again while they rise.
Machine MachineOf(const suites::RunContext& context);

class Evaluators {
 public:
  Evaluators(suites::WorkerOptions options, const suites::RunContext& context);

  suites::Evaluator& Of(const proto::Task& task);
  // Ends the processes, so that somebody else can measure.
  void Rest();

 private:
  suites::WorkerOptions options_;
  std::map<std::string, std::unique_ptr<suites::WorkerEvaluator>> evaluators_;
  suites::WorkerEvaluator* last_ = nullptr;
};

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_EVALUATORS_H_
