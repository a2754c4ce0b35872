#ifndef OPTRAIL_SUITES_WORKER_TESTING_ONE_BY_ONE_EVALUATOR_H_
#define OPTRAIL_SUITES_WORKER_TESTING_ONE_BY_ONE_EVALUATOR_H_

// OneByOneEvaluator is for tests: an evaluator whose contenders are measured
// one after the other, from a table or a script.
//
//   class Table : public OneByOneEvaluator {
//     Evaluation EvaluateOne(const proto::Config& config,
//                            const EvaluationOptions& options) override;
//   };

#include <vector>

#include "suites/worker/evaluator.h"

namespace optrail::suites {

class OneByOneEvaluator : public Evaluator {
 public:
  std::vector<Evaluation> Measure(const std::vector<Contender>& contenders,
                                  const EvaluationOptions& options) override {
    std::vector<Evaluation> evaluations;
    for (const Contender& contender : contenders) {
      evaluations.push_back(EvaluateOne(contender.config(), options));
    }
    return evaluations;
  }
  virtual Evaluation EvaluateOne(const proto::Config& config,
                                 const EvaluationOptions& options) = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_TESTING_ONE_BY_ONE_EVALUATOR_H_
