#ifndef OPTRAIL_SUITES_WORKER_COMPILED_CONFIGS_H_
#define OPTRAIL_SUITES_WORKER_COMPILED_CONFIGS_H_

// CompiledConfigs knows which configs of a task have to be compiled, and what
// became of that: in the compile cache, or in a pool of compilers, which it
// starts when it needs one (compile_pool.h).
//
//   CompiledConfigs compiled(task, options);
//   const std::string key = compiled.KeyOf(config, "");
//   compiled.Prepare(key, config, "");  // returns at once
//   const absl::optional<proto::Evaluation> made = compiled.Await(key, config,
//   "");
//
// Used by one thread.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/core/backend.h"
#include "suites/worker/compile_pool.h"
#include "suites/worker/worker_options.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// Options of a pool for tasks of up to so many threads on devices of `kind`.
CompilePoolOptions CompilePoolFor(proto::DeviceKind kind, int threads,
                                  const WorkerOptions& worker);

class CompiledConfigs {
 public:
  CompiledConfigs(proto::Task task, WorkerOptions options);

  // Of the config's recipe; empty: it needs no compiler, or the worker says
  // what is wrong with it.
  std::string KeyOf(const proto::Config& config, const std::string& backend);
  // nullopt where neither the pool nor an earlier session has compiled it.
  absl::optional<proto::Evaluation> Find(const std::string& key);
  // Begins to compile what has the key and is not there yet.
  void Prepare(const std::string& key, const proto::Config& config,
               const std::string& backend);
  // Waits for the compiler; nullopt where none is needed.
  absl::optional<proto::Evaluation> Await(const std::string& key,
                                          const proto::Config& config,
                                          const std::string& backend);
  // The time that compiling took, which is told once: what is measured again,
  // or has the code of another config, was not compiled again.
  int64_t TakeTime(const std::string& key, const proto::Evaluation& compiled);

  CompilePool& pool();
  // null: none was needed so far.
  CompilePool* pool_if_any() { return pool_.get(); }

 private:
  const proto::Task task_;
  const WorkerOptions options_;
  absl::optional<absl::StatusOr<ops::Target>> target_;
  std::shared_ptr<CompilePool> pool_;
  // By backend and config's text.
  absl::flat_hash_map<std::string, std::string> keys_;
  absl::flat_hash_set<std::string> told_;  // keys
  // Found in the cache.
  absl::flat_hash_map<std::string, proto::Evaluation> cached_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_COMPILED_CONFIGS_H_
