#ifndef OPTRAIL_SUITES_WORKER_WORKER_EVALUATOR_H_
#define OPTRAIL_SUITES_WORKER_WORKER_EVALUATOR_H_

// WorkerEvaluator measures configs in worker processes (worker_pool.h): this
// binary, started again with --optrail_worker. A worker that crashes, hangs or
// exceeds its memory is killed, becomes the outcome of the config it ran, and
// is replaced.
//
//   WorkerEvaluator evaluator(task, WorkerOptions{});
//   const Evaluation e = evaluator.Evaluate(config, options);
//
// What has to be compiled is compiled by other processes (compiled_configs.h),
// before the config's own deadline begins.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/core/measurement_policy.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/compiled_configs.h"
#include "suites/worker/evaluator.h"
#include "suites/worker/worker_options.h"
#include "suites/worker/worker_pool.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

class WorkerEvaluator : public Evaluator {
 public:
  WorkerEvaluator(proto::Task task, WorkerOptions options);

  std::vector<Evaluation> Measure(const std::vector<Contender>& contenders,
                                  const EvaluationOptions& options) override;
  Evaluation Profile(const proto::Config& config,
                     const std::vector<std::string>& compile_options,
                     const EvaluationOptions& options) override;
  bool Begin(const proto::Config& config,
             const EvaluationOptions& options) override;
  int CompileAhead(const proto::Config& example) override;
  void Prepare(const proto::Config& config) override;
  bool IsReady(const proto::Config& config) override;
  void AwaitReady(const std::vector<proto::Config>& configs,
                  absl::Duration wait) override;
  void Abandon(const proto::Config& config) override;
  Evaluator* Smaller(const proto::Config& example, double fraction) override;

  ops::MeasurementPolicy policy() const override { return policy_; }
  void OpenAhead(const ComingProcess& process) override {
    pool_.OpenAhead(process);
  }
  bool IsOpen(absl::optional<int64_t> process_of_round) override {
    return pool_.IsOpen(process_of_round);
  }

  // Ends its processes and those of the smaller problem; the next config starts
  // another.
  void Rest();
  // About what a worker holds while it waits for the next config.
  int64_t waiting_bytes() const;

  int workers_started() const { return pool_.workers_started(); }

 private:
  // A contender's code; neither, where it needs no compiler.
  struct Code {
    std::string key;
    absl::optional<Evaluation> compiled;
  };
  std::string KeyOf(const proto::Config& config) {
    return compiled_.KeyOf(config, task_.backend());
  }
  std::vector<Code> AwaitCode(const std::vector<Contender>& contenders);
  // nullopt: it can be launched. Else what became of it, as compiling told.
  absl::optional<Evaluation> Refused(
      const proto::Config& config, const EvaluationOptions& options,
      const absl::optional<Evaluation>& compiled) const;
  // The answers of their process, which is ready for them.
  std::vector<Evaluation> Ask(const std::vector<Contender>& contenders,
                              const EvaluationOptions& options,
                              const WorkerPool::Need& need);

  const proto::Task task_;
  const WorkerOptions options_;
  const ops::MeasurementPolicy policy_;
  WorkerPool pool_;
  CompiledConfigs compiled_;
  bool begun_ = false;  // a process has the config that is asked for next
  // Of the smaller problem, once somebody asked for one; null: there is none.
  absl::optional<std::unique_ptr<WorkerEvaluator>> smaller_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_EVALUATOR_H_
