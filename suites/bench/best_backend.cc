#include "suites/bench/best_backend.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "suites/bench/backend_comparison.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"

namespace optrail::suites {
namespace {

// The tasks of one comparison have this text in common.
std::string GroupOf(proto::Task task) {
  task.clear_backend();
  task.clear_kernel_id();
  return tuning::TaskText(task);
}

// Those of each comparison, in order; the own backend comes first.
std::vector<std::vector<const TaskEntry*>> Groups(
    const std::vector<TaskEntry>& tasks) {
  std::vector<std::vector<const TaskEntry*>> groups;
  std::map<std::string, size_t> index;
  for (const TaskEntry& task : tasks) {
    const auto [found, is_new] =
        index.emplace(GroupOf(task.task), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(&task);
  }
  return groups;
}

tuning::BestResult FindBest(const std::vector<const TaskEntry*>& group,
                            const tuning::TunedConfigStore& store) {
  std::map<std::string, std::string> ids;
  for (const TaskEntry* task : group) {
    if (task->available.ok()) {
      ids[task->task.backend()] = task->task.kernel_id();
    }
  }
  return store.FindBest(tuning::RequestOf(group[0]->task), ids);
}

}  // namespace

absl::Status KeepBest(const proto::Run& run, const RunContext& context) {
  // By benchmark without selection: tuned configs come after default ones and
  // take their place.
  std::map<std::string, const BackendComparison*> kept;
  const std::vector<BackendComparison> comparisons = CompareBackends(run);
  for (const BackendComparison& comparison : comparisons) {
    proto::BenchmarkKey key = comparison.key;
    const bool tuned = key.selection() == proto::TUNED;
    if (!tuned && key.selection() != proto::DEFAULT) continue;
    key.clear_selection();
    const BackendComparison*& place = kept[tracker::CanonicalText(key)];
    if (place == nullptr || tuned) place = &comparison;
  }
  int written = 0;
  int untold = 0;
  int processes = 1;
  for (const proto::BenchmarkResult& result : run.results()) {
    for (const proto::Measurement& measurement : result.measurements()) {
      processes = std::max(processes, measurement.round());
    }
  }
  const std::string date =
      absl::FormatTime("%Y-%m-%d", absl::FromUnixNanos(run.started_unix_ns()),
                       absl::UTCTimeZone());
  for (const auto& [text, comparison] : kept) {
    const proto::BestBackend best = BestOf(*comparison, run, date);
    if (best.entries_size() < 2) continue;
    // One process does not tell how far from it the next one would be.
    if (best.entries(1).ratio_low() <= 0) {
      ++untold;
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(tuning::WriteOverlay(
        context.store, comparison->key.operator_name(), context.hardware.id(),
        comparison->key.device_kind(), best));
    ++written;
  }
  if (written > 0) {
    std::cerr << "kept in " << context.store << " for --backend=best: the "
              << "fastest backend of " << written << " comparison"
              << (written == 1 ? "" : "s") << "\n";
  }
  if (untold > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the fastest backend of ", untold, " comparison",
        untold == 1 ? "" : "s",
        " is not kept: no two processes read both; next: --processes=",
        std::max(2, 2 * processes),
        processes > 1 ? ", or a quieter machine" : ""));
  }
  return absl::OkStatus();
}

std::vector<TaskEntry> ToBeCompared(
    const std::vector<TaskEntry>& tasks,
    absl::FunctionRef<bool(const TaskEntry&)> is_new,
    const tuning::TunedConfigStore& store) {
  std::vector<TaskEntry> compared;
  for (std::vector<const TaskEntry*> group : Groups(tasks)) {
    group.erase(
        std::remove_if(group.begin(), group.end(),
                       [](const TaskEntry* t) { return !t->available.ok(); }),
        group.end());
    if (group.size() < 2) continue;
    const bool any_new =
        std::any_of(group.begin(), group.end(),
                    [&](const TaskEntry* task) { return is_new(*task); });
    if (!any_new && FindBest(group, store).winner() != nullptr) continue;
    for (const TaskEntry* task : group) compared.push_back(*task);
  }
  return compared;
}

std::vector<TaskEntry> ChooseBest(const std::vector<TaskEntry>& tasks,
                                  const tuning::TunedConfigStore& store) {
  std::vector<TaskEntry> chosen;
  for (const auto& group : Groups(tasks)) {
    const TaskEntry* best = group[0];
    const tuning::BestResult found = FindBest(group, store);
    if (const auto* winner = found.winner(); winner != nullptr) {
      for (const TaskEntry* task : group) {
        if (task->task.backend() == winner->backend()) best = task;
      }
    } else {
      std::cerr << "note: " << ShortTaskText(best->task) << ": " << found.why
                << "; the device's own runs\n  next: optrail bench --op="
                << best->task.operator_name() << " --shape='"
                << tuning::CanonicalText(best->task.shape())
                << "' --backend=all\n";
    }
    chosen.push_back(*best);
    chosen.back().as_best = true;
  }
  return chosen;
}

}  // namespace optrail::suites
