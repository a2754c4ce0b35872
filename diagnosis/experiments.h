#ifndef OPTRAIL_DIAGNOSIS_EXPERIMENTS_H_
#define OPTRAIL_DIAGNOSIS_EXPERIMENTS_H_

// RunExperiments finds out what a kernel waits for, without hardware counters:
// it changes one thing at a time around it and looks at the stopwatch.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const Numbers numbers,
//       RunExperiments({task, config}, machine, evaluator_for));
//
// Each experiment interleaves samples of the kernel and of its changed twin, in
// one process, so that what disturbs the machine hits both. What a device or a
// backend does not offer becomes an unsupported number, with the reason. An
// experiment that crashes ends its process and nothing else.

#include "absl/status/statusor.h"
#include "diagnosis/numbers.h"
#include "diagnosis/pairs.h"
#include "suites/worker/evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::diagnosis {

struct Machine {
  proto::Hardware hardware;
  proto::Ceilings ceilings;
};

// The error of the kernel itself, if it does not run or is wrong.
absl::StatusOr<Numbers> RunExperiments(const Subject& subject,
                                       const Machine& machine,
                                       const EvaluatorFor& evaluator_for);

// How close a call that takes `time_ns` comes to the measured ceilings:
// "roofline_share", "arithmetic_share" and the level of memory that bounds it.
void AddRoofline(const suites::TaskEntry& entry, const Machine& machine,
                 double time_ns, Numbers* numbers);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_EXPERIMENTS_H_
