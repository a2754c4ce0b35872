#ifndef OPTRAIL_SUITES_WORKER_WORKER_EVALUATOR_H_
#define OPTRAIL_SUITES_WORKER_WORKER_EVALUATOR_H_

// WorkerEvaluator measures configs in worker processes: this binary, started
// again with --optrail_worker. A worker that crashes, hangs or exceeds its
// memory is killed, becomes the outcome of the config it ran, and is replaced.
//
//   WorkerEvaluator evaluator(task, WorkerOptions{});
//   const Evaluation e = evaluator.Evaluate(config, options);
//
// What has to be compiled is compiled by other processes (compile_pool.h),
// before the config's own deadline begins.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "ops/core/backend.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/compile_pool.h"
#include "suites/worker/evaluator.h"
#include "suites/worker/opened_worker.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct WorkerOptions {
  // The worker's binary; empty: the running one.
  std::string binary;
  // Checking and sampling one config. Sampling itself is bounded by
  // SamplingOptions; this is for configs that hang.
  absl::Duration config_deadline = absl::Seconds(10);
  // Starting, allocating operands and computing the reference.
  absl::Duration open_deadline = absl::Minutes(2);
  // Compiling one config, where that is done at run time.
  absl::Duration compile_deadline = absl::Minutes(1);
  int64_t max_compiler_bytes = int64_t{4} << 30;
  // Who compiles, where several evaluators share it; null: each has its own,
  // once it needs one. Its limits are its own.
  std::shared_ptr<CompilePool> compilers;
  // Processes that other tasks are done with, where processes may wait; null:
  // none. Their caps are then those of the largest of the tasks.
  std::shared_ptr<UsedWorkers> used;
  // Where workers keep what they share, compiled code and references; empty:
  // each makes its own.
  std::string shared_folder;
  // Of the device, as the caller knows it; else it is asked.
  absl::optional<proto::Hardware> hardware;
  // What a config may allocate beyond the operands and their references.
  int64_t max_config_bytes = int64_t{1} << 30;
  // A worker is replaced after this many configs, so that what one leaves
  // behind (fragmented memory, a warm branch predictor) does not last.
  int configs_per_worker = 100;
};

// Of a pool for tasks of up to so many threads on devices of `kind`.
CompilePoolOptions CompilePoolFor(proto::DeviceKind kind, int threads,
                                  const WorkerOptions& worker);

class WorkerEvaluator : public Evaluator {
 public:
  WorkerEvaluator(proto::Task task, WorkerOptions options);
  ~WorkerEvaluator() override;

  Evaluation Evaluate(const proto::Config& config,
                      const EvaluationOptions& options) override;
  // One after the other where something goes wrong with any of them: nobody
  // could say with which.
  std::vector<Evaluation> EvaluateTogether(
      const std::vector<proto::Config>& configs,
      const EvaluationOptions& options) override;
  // Where processes may wait beside others, so that time alone disturbs: on the
  // device kinds whose processes are opened ahead.
  absl::optional<std::vector<Evaluation>> EvaluateInTurns(
      const std::vector<Contender>& contenders,
      const EvaluationOptions& options) override;
  absl::StatusOr<std::vector<Evaluation>> EvaluatePerturbed(
      const std::vector<Contender>& contenders,
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

  int ProcessesAhead() override;
  int ProcessesTogether() override;
  int64_t OperandBytes() override;
  void OpenAhead(const ComingProcess& process) override;
  bool IsOpen(absl::optional<int64_t> process_of_round) override;

  // Ends its processes and those of the smaller problem; the next config starts
  // another.
  void Rest();
  // About what a worker holds while it waits for the next config.
  int64_t waiting_bytes() const;

  int workers_started() const { return workers_started_; }

 private:
  using Round = absl::optional<int64_t>;
  struct Slot {
    std::unique_ptr<OpenedWorker> worker;
    int configs = 0;
    int64_t last_used = 0;
    bool ahead = false;
  };
  // Gives it to the tasks that come after this one; false: it has to be ended.
  bool KeepForOthers(std::unique_ptr<OpenedWorker>& worker);
  // Of a process that has no other task to serve.
  int64_t OwnMemoryCap() const;
  static bool IsWaiting(const Slot& slot) {
    return slot.ahead && slot.configs == 0;
  }

  absl::StatusOr<std::unique_ptr<OpenedWorker>> StartOne(
      const std::vector<uint64_t>& seeds);
  absl::Status Start(Round round, const std::vector<uint64_t>& seeds);
  // Opens those of the round and of the next ones, and waits for all.
  void OpenTogether(Round round, const EvaluationOptions& options);
  // Waits until the round's process is ready for the inputs. OK, or what keeps
  // any config of the task from being measured.
  proto::WorkerReply Ready(Round round, uint64_t input_seed);
  // nullopt: it can be launched. Else what became of it, as compiling told.
  absl::optional<Evaluation> Refused(
      const proto::Config& config, const EvaluationOptions& options,
      const absl::optional<Compiled>& compiled) const;
  // nullopt: something was wrong with one of them, or with all; `wrong`, unless
  // it is null, is what.
  absl::optional<std::vector<Evaluation>> TryTogether(
      const std::vector<Contender>& contenders,
      const EvaluationOptions& options, Evaluation* wrong = nullptr);
  // Begins to compile what has the key and is not there yet.
  void PrepareKey(const std::string& key, const proto::Config& config,
                  const std::string& backend);
  // Waits for the compiler; nullopt where none is needed.
  absl::optional<Compiled> AwaitCompiled(const std::string& key,
                                         const proto::Config& config,
                                         const std::string& backend);
  // Told once: what is measured again, or another config's code, was not
  // compiled again.
  int64_t CompileTimeOf(const std::string& key, const Compiled& compiled);
  void Stop(Round round);
  // Those that were opened ahead and not used yet.
  void StopAhead();
  // Those that will hardly be asked again.
  void StopOthers(Round round);

  // Of the config's recipe; empty: it needs no compiler, or the worker says
  // what is wrong with it.
  std::string KeyOf(const proto::Config& config) {
    return KeyOf(config, task_.backend());
  }
  std::string KeyOf(const proto::Config& config, const std::string& backend);
  // nullopt where the pool, or an earlier session, has not compiled it.
  absl::optional<Compiled> CompiledOf(const std::string& key);
  CompilePool& Compilers();

  const proto::Task task_;
  const WorkerOptions options_;
  std::map<Round, Slot> slots_;
  std::vector<std::unique_ptr<OpenedWorker>> ending_;
  absl::optional<absl::StatusOr<ops::Target>> target_;
  std::shared_ptr<CompilePool> compilers_;
  // By backend and config's text.
  absl::flat_hash_map<std::string, std::string> keys_;
  absl::flat_hash_set<std::string> told_;  // keys
  // Found in the cache.
  absl::flat_hash_map<std::string, Compiled> cached_;
  // That of the search, once the one that serves it nears its end.
  std::unique_ptr<OpenedWorker> next_;
  int64_t uses_ = 0;
  bool begun_ = false;  // a process has the config that is asked for next
  // Of the smaller problem, once somebody asked for one; null: there is none.
  absl::optional<std::unique_ptr<WorkerEvaluator>> smaller_;
  int workers_started_ = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_EVALUATOR_H_
