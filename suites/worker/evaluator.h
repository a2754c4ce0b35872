#ifndef OPTRAIL_SUITES_WORKER_EVALUATOR_H_
#define OPTRAIL_SUITES_WORKER_EVALUATOR_H_

// Evaluator measures contenders of one task, interleaved; the tune driver and
// the bench driver see nothing else of processes and clocks. The real one runs
// them in worker processes (worker_evaluator.h); tests use a table.
//
// Configs that are compiled at run time may be compiled ahead, while others are
// measured:
//
//   const int ahead = evaluator.CompileAhead(space.default_config());
//   evaluator.Prepare(config);                       // returns at once
//   if (!evaluator.IsReady(config)) {
//     evaluator.AwaitReady({config, other}, absl::Seconds(1));
//   }
//   const Evaluation e = evaluator.Evaluate(config, options);

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/core/measurement_policy.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/worker_reply.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/evaluator.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

using proto::Contender;
using proto::Evaluation;
using Facts = google::protobuf::RepeatedPtrField<proto::Fact>;

// A process that evaluations are going to need.
struct ComingProcess {
  // See EvaluationOptions; absent: the one that all others share.
  absl::optional<int64_t> process_of_round;
  std::vector<uint64_t> input_seeds;
};

struct EvaluationOptions {
  proto::SamplingOptions sampling;
  // In a process that has measured nothing yet.
  bool fresh_process = false;
  // In a process that measures nothing but evaluations with this number; it is
  // kept for the next of them.
  absl::optional<int64_t> process_of_round;
  // Those of the next rounds: where several are opened at a time
  // (MeasurementPolicy), they are opened with this one.
  std::vector<ComingProcess> next_rounds;
  // Which of the random input sets; any number.
  uint64_t input_seed = 0;
  // The input set of which the facts of a config say the class of its results
  // (tuning/session/numerics.h); absent: they say nothing.
  absl::optional<uint64_t> numerics_seed;
  // A config that has not answered by then is hopeless, and CENSORED at
  // sampling.hopeless_above_ns; only where that is known.
  absl::Duration hopeless_after = absl::InfiniteDuration();
  // The metrics that are read beside time, where the device can ("joules").
  proto::Metering metering;
  // Times and meters on zeros instead of typical values.
  bool zero_inputs = false;
  // Whether a config may be launched, by what compiling it told: what is
  // refused is INVALID. Empty: all may.
  std::function<absl::Status(const proto::Config&, const Facts&)> accept_facts;
  // Asked for the times of contenders that are computed elsewhere.
  TimeElsewhere elsewhere;
};

// A config of the evaluator's task; `backend` is named as in a task.
Contender ContenderOf(const proto::Config& config);
Contender ContenderOf(const std::string& backend, const proto::Config& config);

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Measures contenders in one process, in their order; several are sampled
  // interleaved, so that what changes meanwhile is the same for all. Where
  // something is wrong with one of several, none was compared: then there is
  // one evaluation alone, which says what.
  virtual std::vector<Evaluation> Measure(
      const std::vector<Contender>& contenders,
      const EvaluationOptions& options) = 0;

  Evaluation Evaluate(const proto::Config& config,
                      const EvaluationOptions& options) {
    return Measure({ContenderOf(config)}, options).front();
  }
  // Several configs that are compared: one after the other, where something is
  // wrong with one of them, which finds out with which.
  std::vector<Evaluation> EvaluateTogether(
      const std::vector<proto::Config>& configs,
      const EvaluationOptions& options);
  // The same of contenders of which some are perturbed. The first error of any
  // of them is that of all: Unimplemented for what this device or backend does
  // not offer.
  absl::StatusOr<std::vector<Evaluation>> EvaluatePerturbed(
      const std::vector<Contender>& contenders,
      const EvaluationOptions& options);

  // Observes some calls closely, without the stopwatch
  // (ops/core/perturbation.h): the measurement has metrics alone, and the facts
  // are those of the config compiled with `compile_options`, too.
  virtual Evaluation Profile(const proto::Config& config,
                             const std::vector<std::string>& compile_options,
                             const EvaluationOptions& options) {
    return EvaluationOf(proto::UNSUPPORTED, "nothing is observed here");
  }
  // Begins to measure and returns at once, where a process waits for nothing
  // else: the next call of Evaluate() has to be the same, and finds it done or
  // under way. False: nothing was begun.
  virtual bool Begin(const proto::Config& config,
                     const EvaluationOptions& options) {
    return false;
  }

  // How many configs like `example` should wait, compiled or about to be, while
  // others are measured; 0: none of them needs a compiler.
  virtual int CompileAhead(const proto::Config& example) { return 0; }
  // Begins to compile; where that is done already, or not needed, nothing
  // happens. Evaluate() waits for it.
  virtual void Prepare(const proto::Config& config) {}
  // Whether Evaluate() would not have to wait for a compiler.
  virtual bool IsReady(const proto::Config& config) { return true; }
  // Waits until one of these, which were prepared, is ready, or for so long.
  virtual void AwaitReady(const std::vector<proto::Config>& configs,
                          absl::Duration wait) {}
  // Is not wanted any more.
  virtual void Abandon(const proto::Config& config) {}

  // Measures the same configs on a smaller problem, whose calls take about
  // `fraction` of the time (ops/core/smaller_shape.h). This one keeps it.
  // nullptr: there is none, or configs like `example` would have to be compiled
  // for it.
  virtual Evaluator* Smaller(const proto::Config& example, double fraction) {
    return nullptr;
  }

  // How the task is measured: its device's policy, within what the size of its
  // operands allows.
  virtual ops::MeasurementPolicy policy() const { return {}; }
  // Begins to open one; returns at once. Where it is there, nothing happens.
  virtual void OpenAhead(const ComingProcess& process) {}
  // Whether Evaluate() would not have to wait until that one is open, which
  // somebody has begun to open.
  virtual bool IsOpen(absl::optional<int64_t> process_of_round) { return true; }
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_EVALUATOR_H_
