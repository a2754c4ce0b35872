#include "suites/tune/promotion.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/runnable.h"
#include "ops/core/tuned_kernel.h"
#include "suites/graph/call_timer.h"
#include "suites/worker/opened_task.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store.h"
#include "tuning/store/store_files.h"
#include "tuning/store/tuned_entry.h"
#include "tuning/store/tuned_text.h"

namespace optrail::suites {
namespace {

// Shorter measurements hardly decide.
constexpr absl::Duration kLeastMeasurement = absl::Seconds(1);
constexpr uint64_t kInputSeed = 1;

PromotionState StateOf(const PairedTimes& times) {
  if (times.high() < 1) return PromotionState::kLoses;
  return times.low() >= 1 - kMostLoss ? PromotionState::kWins
                                      : PromotionState::kUndecided;
}

// Calls of a workload's tasks that share a device and a number of threads.
class Calls {
 public:
  // The tasks must outlive it.
  static absl::StatusOr<std::unique_ptr<Calls>> Open(
      const std::vector<const TaskEntry*>& tasks, const RunContext& context) {
    auto calls = std::unique_ptr<Calls>(new Calls(context));
    OPTRAIL_RETURN_IF_ERROR(calls->Allocate(tasks));
    return calls;
  }

  // One run of the workload with the configs that the store has for it.
  using Run = std::vector<std::pair<const ops::Invocation*, ops::Call>>;
  absl::StatusOr<Run> RunWith(const tuning::TunedConfigStore& store) {
    std::vector<std::pair<const ops::Invocation*, ops::Call>> by_task;
    for (Task& task : tasks_) {
      OPTRAIL_ASSIGN_OR_RETURN(ops::Runnable * runnable,
                               LoadedFor(task, store));
      OPTRAIL_ASSIGN_OR_RETURN(const ops::Call call,
                               runnable->Prepare(task.operands->addresses()));
      by_task.emplace_back(&runnable->invocation(), call);
    }
    Run run;
    for (const int task : order_) run.push_back(by_task[task]);
    return run;
  }

  absl::StatusOr<PairedTimes> Compare(const Run& old_run, const Run& new_run,
                                      absl::Duration most) {
    const auto runs = [](const Run& run) {
      return [&run](const ops::Call&) {
        for (const auto& [invocation, call] : run) {
          OPTRAIL_RETURN_IF_ERROR(invocation->Run(call));
        }
        return absl::OkStatus();
      };
    };
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> old_timer,
                             CallTimer::Create(runs(old_run), *device_));
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> new_timer,
                             CallTimer::Create(runs(new_run), *device_));
    PairedTimingOptions options;
    options.one_thread = device_->kind() == proto::CPU && threads_ == 1;
    options.half_width = kMostLoss / 2;
    options.most = most;
    return TimePairs(old_timer->get(), new_timer->get(), options);
  }

 private:
  struct Task {
    const TaskEntry* entry;
    std::unique_ptr<ops::CheckedOperands> operands;
    std::map<std::string, std::unique_ptr<ops::Runnable>> loaded;  // by config
  };

  explicit Calls(const RunContext& context) : context_(context) {}

  absl::Status Allocate(const std::vector<const TaskEntry*>& tasks) {
    threads_ = tasks[0]->task.threads();
    ops::DeviceOptions options;
    options.threads = threads_;
    const proto::DeviceKind kind = context_.hardware.device_kind();
    OPTRAIL_ASSIGN_OR_RETURN(target_, LocalTarget(kind, context_.hardware));
    OPTRAIL_ASSIGN_OR_RETURN(device_, ops::MakeDevice(kind, options));
    std::vector<int> counts;
    for (const TaskEntry* entry : tasks) {
      Task& task = tasks_.emplace_back();
      task.entry = entry;
      OPTRAIL_ASSIGN_OR_RETURN(
          task.operands, ops::CheckedOperands::Create(
                             *entry->entry->op, entry->task.shape(), *device_));
      OPTRAIL_RETURN_IF_ERROR(task.operands->Fill(kInputSeed));
      counts.push_back(entry->count);
    }
    order_ = OrderOfCalls(counts);
    return absl::OkStatus();
  }

  absl::StatusOr<ops::Runnable*> LoadedFor(
      Task& task, const tuning::TunedConfigStore& store) {
    const proto::Task& of = task.entry->task;
    ops::KernelQuestion question;
    question.operator_name = of.operator_name();
    question.shape = of.shape();
    question.device_kind = of.device_kind();
    question.backend = of.backend();
    question.threads = of.threads();
    question.cache_mode = of.cache_mode();
    OPTRAIL_ASSIGN_OR_RETURN(
        const ops::ChosenKernel kernel,
        ops::ChooseKernel(question, context_.hardware, &store));
    std::unique_ptr<ops::Runnable>& loaded =
        task.loaded[tuning::CanonicalText(kernel.config)];
    if (loaded == nullptr) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const ops::Artifact artifact,
          ops::CompileCached(*kernel.backend, kernel.Request(target_),
                             JoinPath(context_.state, kCompiledFolder)));
      OPTRAIL_ASSIGN_OR_RETURN(
          loaded, ops::Runnable::Load(*kernel.backend, artifact, kernel.shape,
                                      kernel.config, *device_));
    }
    return loaded.get();
  }

  const RunContext& context_;
  int threads_ = 1;
  ops::Target target_;
  std::unique_ptr<ops::Device> device_;
  std::vector<Task> tasks_;
  std::vector<int> order_;
};

// An entry of the overlay that the workload calls.
struct Candidate {
  tuning::StoreDifference difference;
  const TaskEntry* task = nullptr;
  PromotionVerdict verdict;
};

tuning::EntryKey KeyOf(const proto::Task& task) {
  proto::TunedConfig entry;
  entry.set_shape(tuning::CanonicalText(task.shape()));
  entry.set_threads(task.threads());
  entry.set_cache_mode(task.cache_mode());
  entry.set_backend(task.backend());
  entry.set_launch_mode(task.launch_mode());
  entry.set_devices(task.devices());
  return tuning::EntryKeyOf(entry);
}

// The checked-in configs, and over them those of the marked candidates.
absl::StatusOr<tuning::TunedConfigStore> StoreWith(
    const std::vector<proto::TunedConfigs>& tree,
    const std::vector<Candidate>& candidates, const std::vector<bool>& is_new) {
  tuning::StoreOptions options;
  for (const proto::TunedConfigs& file : tree) {
    options.checked_in.push_back(
        {file.operator_name(), tuning::FormatTunedConfigs(file)});
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!is_new[i]) continue;
    const tuning::StoreDifference& difference = candidates[i].difference;
    proto::TunedConfigs file;
    file.set_operator_name(difference.operator_name);
    file.set_hardware_id(difference.hardware_id);
    file.set_device_kind(difference.device_kind);
    *file.add_tuned() = difference.overlay;
    options.checked_in.push_back(
        {difference.operator_name, tuning::FormatTunedConfigs(file)});
  }
  return tuning::TunedConfigStore::Load(options);
}

// Measures and judges the candidates of tasks on one number of threads.
absl::Status Judge(const PromotionCommand& command,
                   const std::vector<const TaskEntry*>& tasks,
                   const std::vector<proto::TunedConfigs>& tree,
                   absl::Duration time, std::vector<Candidate>* candidates) {
  if (candidates->empty()) return absl::OkStatus();
  const size_t count = candidates->size();
  MeasurePromotion measure = command.measure;
  std::unique_ptr<Calls> calls;
  Calls::Run old_run;
  if (measure == nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(calls, Calls::Open(tasks, command.context));
    OPTRAIL_ASSIGN_OR_RETURN(
        const tuning::TunedConfigStore old_store,
        StoreWith(tree, *candidates, std::vector<bool>(count)));
    OPTRAIL_ASSIGN_OR_RETURN(old_run, calls->RunWith(old_store));
    measure = [&](const std::vector<bool>& is_new,
                  absl::Duration most) -> absl::StatusOr<PairedTimes> {
      OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore new_store,
                               StoreWith(tree, *candidates, is_new));
      OPTRAIL_ASSIGN_OR_RETURN(const Calls::Run new_run,
                               calls->RunWith(new_store));
      return calls->Compare(old_run, new_run, most);
    };
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<PromotionVerdict> verdicts,
      JudgePromotion(static_cast<int>(count), time, measure));
  for (size_t i = 0; i < count; ++i) (*candidates)[i].verdict = verdicts[i];
  return absl::OkStatus();
}

const char* NameOf(PromotionState state) {
  switch (state) {
    case PromotionState::kWins:
      return "promoted";
    case PromotionState::kLoses:
      return "refused";
    case PromotionState::kUndecided:
      return "undecided";
  }
  return "";
}

bool SameEntry(const tuning::StoreDifference& a,
               const tuning::StoreDifference& b) {
  return !a.is_best && a.operator_name == b.operator_name &&
         a.hardware_id == b.hardware_id &&
         a.overlay.SerializeAsString() == b.overlay.SerializeAsString();
}

absl::StatusOr<int> Report(const PromotionCommand& command,
                           const std::vector<Candidate>& candidates,
                           std::ostream& out, std::ostream& notes) {
  Table table({{"entry", Align::kLeft, "", Clip::kFold},
               {"state"},
               {"workload, old over new", Align::kLeft, "", Clip::kFold},
               {"config"}});
  bool refused = false, undecided = false;
  for (const Candidate& candidate : candidates) {
    const PromotionVerdict& verdict = candidate.verdict;
    refused = refused || verdict.state == PromotionState::kLoses;
    undecided = undecided || verdict.state == PromotionState::kUndecided;
    table.AddRow(
        {absl::StrCat(candidate.difference.operator_name, " ",
                      tuning::EntryText(candidate.difference.overlay)),
         NameOf(verdict.state),
         absl::StrCat(
             RatioText(verdict.times),
             verdict.together == 1
                 ? ""
                 : absl::StrCat(", with ", verdict.together - 1, " others")),
         candidate.difference.overlay.config()});
  }
  out << table.Format(command.format, TerminalWidth());
  if (!command.dry_run) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<std::string> written,
        tuning::PromoteOverlay(
            command.folders, command.context.store,
            [&](absl::string_view op) {
              return std::any_of(candidates.begin(), candidates.end(),
                                 [&](const Candidate& candidate) {
                                   return candidate.difference.operator_name ==
                                          op;
                                 });
            },
            // An entry that was tuned again meanwhile was not measured.
            [&](const tuning::StoreDifference& difference) {
              return std::any_of(
                  candidates.begin(), candidates.end(),
                  [&](const Candidate& candidate) {
                    return candidate.verdict.state == PromotionState::kWins &&
                           SameEntry(candidate.difference, difference);
                  });
            }));
    for (const std::string& path : written)
      notes << "written: " << path << "\n";
  }
  if (refused) {
    notes << "the workload is slower with what is refused, which stays in the "
             "overlay; next: optrail tune --retune of these shapes\n";
    return ToInt(ExitCode::kCheckFailed);
  }
  if (undecided) {
    notes << "next: the same command with a longer --time_budget\n";
    return ToInt(ExitCode::kNotEnoughData);
  }
  return 0;
}

}  // namespace

std::vector<int> OrderOfCalls(const std::vector<int>& counts) {
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  const int64_t passes = std::min<int64_t>(most, kMostPasses);
  std::vector<int> order;
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (size_t i = 0; i < counts.size(); ++i) {
      const int64_t calls = std::max<int64_t>(1, counts[i] * passes / most);
      if ((pass + 1) * calls / passes > pass * calls / passes) {
        order.push_back(static_cast<int>(i));
      }
    }
  }
  return order;
}

absl::StatusOr<std::vector<PromotionVerdict>> JudgePromotion(
    int count, absl::Duration time, const MeasurePromotion& measure) {
  std::vector<PromotionVerdict> verdicts(count);
  const absl::Duration most = std::max(kLeastMeasurement, time / (count + 2));
  const auto judge = [&](const std::vector<bool>& is_new) -> absl::Status {
    OPTRAIL_ASSIGN_OR_RETURN(const PairedTimes times, measure(is_new, most));
    for (int i = 0; i < count; ++i) {
      if (!is_new[i]) continue;
      verdicts[i].state = StateOf(times);
      verdicts[i].times = times;
      verdicts[i].together =
          static_cast<int>(std::count(is_new.begin(), is_new.end(), true));
    }
    return absl::OkStatus();
  };
  const auto wins = [](const PromotionVerdict& verdict) {
    return verdict.state == PromotionState::kWins;
  };
  OPTRAIL_RETURN_IF_ERROR(judge(std::vector<bool>(count, true)));
  if (count == 1 || wins(verdicts[0])) return verdicts;
  std::vector<bool> winners(count);
  for (int i = 0; i < count; ++i) {
    std::vector<bool> alone(count);
    alone[i] = true;
    OPTRAIL_RETURN_IF_ERROR(judge(alone));
    winners[i] = wins(verdicts[i]);
  }
  if (std::count(winners.begin(), winners.end(), true) > 1) {
    OPTRAIL_RETURN_IF_ERROR(judge(winners));
  }
  return verdicts;
}

absl::StatusOr<int> RunPromotion(const PromotionCommand& command,
                                 std::ostream& out, std::ostream& notes) {
  const proto::Hardware& hardware = command.context.hardware;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> all,
                           SelectTasks(command.selection, hardware));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<tuning::StoreDifference> differences,
      tuning::DiffStore(command.folders, command.context.store));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::TunedConfigs> tree,
                           tuning::ReadTree(command.folders));
  struct Group {
    std::vector<const TaskEntry*> tasks;
    std::vector<Candidate> candidates;
  };
  std::map<int, Group> groups;  // by threads
  size_t found = 0;
  for (const TaskEntry& task : all) {
    if (!task.available.ok()) {
      notes << "left out: " << ShortTaskText(task.task) << ": "
            << task.available.message() << "\n";
      continue;
    }
    Group& group = groups[task.task.threads()];
    group.tasks.push_back(&task);
    for (const tuning::StoreDifference& difference : differences) {
      if (difference.is_best || difference.hardware_id != hardware.id() ||
          difference.device_kind != hardware.device_kind() ||
          difference.operator_name != task.task.operator_name() ||
          tuning::EntryKeyOf(difference.overlay) != KeyOf(task.task)) {
        continue;
      }
      group.candidates.push_back({difference, &task, {}});
      ++found;
    }
  }
  if (found == 0) {
    notes << "the overlay holds nothing new that this workload calls\n";
    return 0;
  }
  std::vector<Candidate> judged;
  for (auto& [threads, group] : groups) {
    const absl::Duration share =
        command.time * (static_cast<double>(group.candidates.size()) /
                        static_cast<double>(found));
    OPTRAIL_RETURN_IF_ERROR(
        Judge(command, group.tasks, tree, share, &group.candidates));
    std::move(group.candidates.begin(), group.candidates.end(),
              std::back_inserter(judged));
  }
  if (differences.size() > found) {
    notes << differences.size() - found
          << " more entries of the overlay are not called by the workload and "
             "stay there\n";
  }
  return Report(command, judged, out, notes);
}

}  // namespace optrail::suites
