#ifndef OPTRAIL_SUITES_WORKER_WORKER_OPTIONS_H_
#define OPTRAIL_SUITES_WORKER_WORKER_OPTIONS_H_

// WorkerOptions says how worker processes are started, and their limits.
//
//   WorkerOptions options;
//   options.shared_folder = state;
//   WorkerEvaluator evaluator(task, options);

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/process/running_binary.h"
#include "tuning/proto/context.pb.h"

namespace optrail::suites {

class CompilePool;  // compile_pool.h
class UsedWorkers;  // opened_worker.h

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
  // The most that a config may allocate beyond operands and their references.
  int64_t max_config_bytes = int64_t{1} << 30;
  // A worker is replaced after this many configs, so that what one leaves
  // behind (fragmented memory, a warm branch predictor) does not last.
  int configs_per_worker = 100;
  // NAME=VALUE pairs on top of this process's environment.
  std::vector<std::pair<std::string, std::string>> environment;
};

inline std::string BinaryOf(const WorkerOptions& worker) {
  return worker.binary.empty() ? RunningBinary() : worker.binary;
}

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_OPTIONS_H_
