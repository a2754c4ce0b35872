#include "suites/tune/compile_ahead.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/types/optional.h"
#include "base/file/file.h"
#include "base/process/cpus.h"
#include "base/process/running_binary.h"
#include "base/status_macros.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "suites/tune/task_store.h"
#include "suites/worker/compile_pool.h"
#include "suites/worker/opened_task.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"
#include "tuning/session/proposer.h"

namespace optrail::suites {
namespace {

// The default first, then what the store has, then what a session with this
// budget would try, were it told nothing.
absl::StatusOr<std::vector<proto::Config>> ConfigsOf(
    const TaskEntry& task, const TaskSpace& space,
    const tuning::TunedConfigStore& store, const CompileAheadOptions& options) {
  std::vector<proto::Config> configs = {space.bound->default_config()};
  if (const proto::TunedConfig* tuned = FindTuned(store, task, "", space);
      tuned != nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Config config,
                             tuning::ParseConfig(tuned->config()));
    configs.push_back(config);
  }
  proto::Session begun;
  *begun.mutable_task() = task.task;
  begun.set_strategy(options.strategy.empty() ? tuning::kDefaultStrategy
                                              : options.strategy);
  begun.set_seed(options.seed);
  begun.mutable_budget()->set_trials(options.trials);
  tuning::ProposerOptions proposing;
  proposing.batch = static_cast<int>(std::max<int64_t>(1, options.trials));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<tuning::Proposer> proposer,
      tuning::MakeProposer(*space.bound, begun, proposing));
  for (int64_t i = 0; i < options.trials; ++i) {
    const std::vector<proto::Config> asked = proposer->Ask(1);
    if (asked.empty()) break;
    configs.push_back(asked[0]);
  }
  return configs;
}

}  // namespace

absl::StatusOr<std::vector<CompiledTask>> CompileAhead(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const tuning::TunedConfigStore& store, const CompileAheadOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(context.hardware.device_kind()));
  ops::Target target;
  target.kind = type->kind();
  target.isa = type->isa();
  target.hardware = context.hardware;
  CompilePoolOptions pool_options;
  pool_options.binary =
      options.worker.binary.empty() ? RunningBinary() : options.worker.binary;
  pool_options.deadline = options.worker.compile_deadline;
  pool_options.max_bytes = options.worker.max_compiler_bytes;
  pool_options.cores = UsableCpus();
  CompilePool pool(pool_options);
  const ops::CompileCache cache(
      JoinPath(options.worker.shared_folder, kCompiledFolder));

  std::vector<CompiledTask> all;
  // By key: whose it is. What was known before is nobody's.
  std::map<std::string, absl::optional<size_t>> asked;
  for (const TaskEntry& task : tasks) {
    CompiledTask& compiled = all.emplace_back();
    compiled.task = task.task;
    const absl::StatusOr<TaskSpace> space = BindTask(task, context.hardware);
    if (!space.ok()) {
      compiled.error = std::string(space.status().message());
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Config> configs,
                             ConfigsOf(task, *space, store, options));
    for (const proto::Config& config : configs) {
      const absl::StatusOr<ops::Recipe> recipe =
          task.backend->Describe({task.task.shape(), config, target});
      if (!recipe.ok() || !recipe->NeedsCompiler()) continue;
      const std::string key = recipe->Key();
      if (asked.count(key) > 0) continue;
      if (cache.Get(key).ok()) {
        ++compiled.known;
        asked[key] = absl::nullopt;
        continue;
      }
      asked[key] = all.size() - 1;
      proto::WorkerRequest::Compile request;
      *request.mutable_task() = task.task;
      *request.mutable_config() = config;
      request.set_shared_folder(options.worker.shared_folder);
      *request.mutable_hardware() = target.hardware;
      request.set_isa(target.isa);
      pool.Start(key, std::move(request));
    }
  }
  for (const auto& [key, index] : asked) {
    if (!index.has_value()) continue;
    pool.WaitForAny({key});
    const proto::Trial one = pool.Find(key)->trial();
    CompiledTask& compiled = all[*index];
    compiled.compile_ns += one.compile_ns();
    if (one.outcome() == proto::OK) {
      ++compiled.compiled;
      continue;
    }
    if (compiled.failed++ == 0) compiled.first_failure = one.detail();
  }
  return all;
}

}  // namespace optrail::suites
