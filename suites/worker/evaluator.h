#ifndef OPTRAIL_SUITES_WORKER_EVALUATOR_H_
#define OPTRAIL_SUITES_WORKER_EVALUATOR_H_

// Evaluator measures configs of one task; the tune driver and the bench driver
// see nothing else of processes and clocks. The real one runs them in worker
// processes (worker_evaluator.h); tests use a table.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "suites/proto/worker.pb.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct EvaluationOptions {
  proto::SamplingOptions sampling;
  // In a process that has measured nothing yet.
  bool fresh_process = false;
  // In a process that measures nothing but evaluations with this number; it is
  // kept for the next of them.
  absl::optional<int64_t> process_of_round;
  // Which of the random input sets; any number.
  uint64_t input_seed = 0;
  // To be metered beside time, where the device can ("joules").
  std::vector<std::string> metrics;
};

// Whatever goes wrong with a config is an outcome, never a failed call.
struct Evaluation {
  // Nobody knows what became of it (a connection broke): no outcome.
  bool lost = false;
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  std::string detail;
  // OK, CENSORED and CONTENDED only.
  absl::optional<proto::Measurement> measurement;
  // OK: median per call. CENSORED: a lower bound.
  absl::optional<double> time_ns;
  absl::optional<double> error_in_tolerances;
  absl::optional<int64_t> prepare_ns;
  absl::optional<int64_t> load_ns;
  std::vector<proto::Fact> facts;  // that compiling told
  // Everything but compiling and references, which no budget pays for.
  int64_t elapsed_ns = 0;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Evaluation Evaluate(const proto::Config& config,
                              const EvaluationOptions& options) = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_EVALUATOR_H_
