#ifndef OPTRAIL_SUITES_TUNE_SESSION_EVALUATOR_H_
#define OPTRAIL_SUITES_TUNE_SESSION_EVALUATOR_H_

// SessionEvaluator is what a tuning session (tuning/session/session.h) measures
// with here: it makes of its requests what the stopwatch is told (which inputs,
// which process, how long to sample) and of the evaluations its answers.
//
//   WorkerEvaluator workers(task, WorkerOptions{});
//   SessionEvaluator evaluator(workers, DefaultSamplingOptions());
//   const auto session = tuning::RunSession(setup, evaluator, clock);

#include "suites/proto/worker.pb.h"
#include "suites/worker/evaluator.h"
#include "tuning/session/evaluator.h"

namespace optrail::suites {

// Inputs rotate among this many sets during the search, and among as many
// others while finalists are ranked, and others again while a winner is proven:
// new ones for each round would each need a reference.
inline constexpr int kInputSets = 3;

// Calls as long as this are sampled as often as the stopwatch concludes from,
// and no more: they vary less, and rounds tell more than samples.
inline constexpr double kLongCallNs = 20e6;

class SessionEvaluator : public tuning::OneAtATime {
 public:
  // `evaluator` must outlive this.
  SessionEvaluator(suites::Evaluator& evaluator,
                   proto::SamplingOptions sampling);

  // Public, for tests and benches.
  EvaluationOptions OptionsFor(const tuning::Request& request) const;

 protected:
  tuning::Answer Evaluate(const tuning::Request& request) override;

 private:
  suites::Evaluator& evaluator_;
  const proto::SamplingOptions sampling_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_SESSION_EVALUATOR_H_
