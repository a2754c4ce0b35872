#ifndef OPTRAIL_DIAGNOSIS_GPU_EXPERIMENTS_H_
#define OPTRAIL_DIAGNOSIS_GPU_EXPERIMENTS_H_

// RunGpuExperiments finds out what a CUDA kernel waits for: operands that stay
// in the L2, two calls at a time, and, where the kernel is compiled on request,
// one cost after another taken out of its code.
//
//   RunGpuExperiments(subject, evaluator_for, options, &numbers);
//
// All of it is measured in captured graphs, so that the host's launches hide
// nothing. The numbers are those of docs/method/diagnosis.md.

#include "diagnosis/numbers.h"
#include "diagnosis/pairs.h"
#include "suites/worker/evaluator.h"

namespace optrail::diagnosis {

void RunGpuExperiments(const Subject& subject,
                       const EvaluatorFor& evaluator_for,
                       const suites::EvaluationOptions& options,
                       Numbers* numbers);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_GPU_EXPERIMENTS_H_
