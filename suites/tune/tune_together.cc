#include "suites/tune/tune_together.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

// Trials per turn: few, so that the schedule follows the gains; not one, since
// the first after another task's finds cold caches.
constexpr int kTurnTrials = 4;

std::vector<tuning::TuningTask> TasksOf(
    const std::vector<TogetherTask>& tasks) {
  std::vector<tuning::TuningTask> list;
  for (const TogetherTask& task : tasks) list.push_back(task.task);
  return list;
}

tuning::TaskSchedulerOptions SchedulerOptionsOf(
    const std::vector<TogetherTask>& tasks, const TogetherOptions& options) {
  tuning::TaskSchedulerOptions scheduler = options.scheduler;
  if (options.total_trials > 0 && !tasks.empty()) {
    scheduler.warm_up_trials =
        std::min(scheduler.warm_up_trials,
                 tuning::WarmUpTrials(options.total_trials,
                                      static_cast<int>(tasks.size())));
  }
  return scheduler;
}

class Together {
 public:
  Together(const std::vector<TogetherTask>& tasks,
           const TogetherOptions& options)
      : tasks_(tasks),
        options_(options),
        scheduler_options_(SchedulerOptionsOf(tasks, options)),
        scheduler_(TasksOf(tasks), scheduler_options_),
        statuses_(tasks.size()),
        used_(options.shares.size()),
        listeners_(tasks.size()),
        told_(tasks.size()),
        suggested_(tasks.size()) {
    for (size_t i = 0; i < used_.size(); ++i) HoldWhereUsedUp(i);
    for (size_t i = 0; i < tasks.size(); ++i) {
      const std::vector<int>& siblings = tasks[i].task.siblings;
      for (size_t k = 0; k < siblings.size(); ++k) {
        listeners_[siblings[k]].push_back(
            {tasks[i].session, static_cast<int>(k)});
      }
    }
    // Trials known before the first are the siblings' sources already.
    for (size_t i = 0; i < tasks.size(); ++i) {
      told_[i] = tasks[i].session->all_trials().size();
    }
  }

  std::vector<absl::Status> Run() {
    while (!TotalSpent()) {
      const absl::optional<int> next = scheduler_.Next();
      if (!next) break;
      if (options_.before_turn) options_.before_turn(*next);
      Turn(*next);
    }
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (!statuses_[i].ok()) continue;
      statuses_[i] = tasks_[i].session->EndSearch(ReasonToEnd(i));
    }
    return statuses_;
  }

 private:
  bool TrialsSpent() const {
    return options_.total_trials > 0 && trials_ >= options_.total_trials;
  }
  bool TotalSpent() const {
    return TrialsSpent() || (options_.total_time_ns > 0 &&
                             elapsed_ns_ >= options_.total_time_ns);
  }

  // The total that is nearer to its end decides.
  bool ShareUsedUp(size_t group) const {
    // Rounding must not make a share one trial larger.
    const double share = options_.shares[group] - 1e-9;
    const Used& used = used_[group];
    return (options_.total_trials > 0 &&
            used.trials >= share * options_.total_trials) ||
           (options_.total_time_ns > 0 &&
            used.elapsed_ns >= share * options_.total_time_ns);
  }

  void HoldWhereUsedUp(size_t group) {
    if (used_[group].up || !ShareUsedUp(group)) return;
    used_[group].up = true;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].group == static_cast<int>(group)) {
        scheduler_.Hold(static_cast<int>(i));
      }
    }
  }

  // A turn ends with the share: what is beyond it is given in turns of its own.
  bool EndsShare(int task, int64_t trials, int64_t elapsed_ns) {
    if (used_.empty()) return false;
    const int group = tasks_[task].group;
    used_[group].trials += trials;
    used_[group].elapsed_ns += elapsed_ns;
    if (used_[group].up) return false;
    HoldWhereUsedUp(group);
    return used_[group].up;
  }

  // A total that is hardly more than the tasks goes round in smaller turns.
  int64_t TurnTrials(int task) const {
    if (options_.total_trials == 0) return kTurnTrials;
    const auto count = static_cast<int64_t>(tasks_.size());
    const int64_t most =
        scheduler_.WarmsUp(task) ? scheduler_.WarmUpOf(task) : kTurnTrials;
    return std::clamp<int64_t>(options_.total_trials / count, 1, most);
  }

  // Its siblings learn from the trials since the last call.
  void TellListeners(int task) {
    const auto& trials = tasks_[task].session->all_trials();
    for (int& next = told_[task]; next < trials.size(); ++next) {
      for (const auto& [session, sibling] : listeners_[task]) {
        session->Overhear(sibling, trials[next]);
      }
    }
  }

  // Returns true if the task begins its turn with a sibling's best config.
  bool BeginsWithSuggestion(int task) {
    while (const absl::optional<std::string> text =
               scheduler_.TakeSuggestion(task)) {
      if (tasks_[task].session->Suggest(configs_.at(*text))) {
        suggested_[task] = *text;
        return true;
      }
      scheduler_.RefuseSuggestion(task);
    }
    return false;
  }

  // The best config, and whether what was suggested is among the trials by now.
  // Compiled ahead, others may be answered before it.
  void ReportConfigs(int task, int64_t trials, tuning::TaskReport* report) {
    if (tasks_[task].task.siblings.empty() && listeners_[task].empty()) return;
    const tuning::Session& session = *tasks_[task].session;
    if (session.best_config().has_value()) {
      report->best_config = tuning::CanonicalText(*session.best_config());
      configs_.emplace(report->best_config, *session.best_config());
    }
    std::string& suggested = suggested_[task];
    const auto& all = session.all_trials();
    for (int64_t i = all.size() - trials; i < all.size() && !suggested.empty();
         ++i) {
      if (tuning::CanonicalText(all[i].config()) == suggested) {
        suggested.clear();
      }
    }
    report->suggestion_answered = suggested.empty();
  }

  void Turn(int task) {
    tuning::Session& session = *tasks_[task].session;
    const int64_t trials_before = session.trials();
    const int64_t elapsed_before_ns = session.elapsed_ns();
    absl::Status& status = statuses_[task];
    session.GoOn();
    const int64_t turn_trials =
        BeginsWithSuggestion(task) ? 1 : TurnTrials(task);
    for (int64_t i = 0; i < turn_trials && !TotalSpent(); ++i) {
      const int64_t trials = session.trials();
      const int64_t elapsed_ns = session.elapsed_ns();
      status = session.Advance();
      if (!status.ok() || session.search_ended()) break;
      trials_ += session.trials() - trials;
      elapsed_ns_ += session.elapsed_ns() - elapsed_ns;
      TellListeners(task);
      if (options_.after_trial) {
        options_.after_trial({task, trials_, elapsed_ns_});
      }
      if (EndsShare(task, session.trials() - trials,
                    session.elapsed_ns() - elapsed_ns)) {
        break;
      }
    }
    tuning::TaskReport report;
    report.trials = static_cast<int>(session.trials() - trials_before);
    report.best_cost = session.best_cost();
    report.expected_improvement = session.expected_improvement();
    ReportConfigs(task, report.trials, &report);
    if (options_.total_trials == 0) {
      report.effort =
          static_cast<double>(session.elapsed_ns() - elapsed_before_ns) * 1e-9;
    }
    if (report.trials > 0) scheduler_.Report(task, report);
    if (!status.ok() || session.search_ended()) scheduler_.Finish(task);
  }

  // For a session that has not ended by itself.
  proto::StopReason ReasonToEnd(int task) const {
    if (scheduler_.HasStalled(task) && !scheduler_.AllStalled()) {
      return proto::LEFT_FOR_OTHERS;
    }
    return TrialsSpent() ? proto::TRIALS_SPENT : proto::TIME_SPENT;
  }

  struct Used {
    int64_t trials = 0;
    int64_t elapsed_ns = 0;
    bool up = false;
  };

  const std::vector<TogetherTask>& tasks_;
  const TogetherOptions& options_;
  const tuning::TaskSchedulerOptions scheduler_options_;
  tuning::TaskScheduler scheduler_;
  std::vector<absl::Status> statuses_;
  std::vector<Used> used_;  // by group; empty: there are no shares
  // By task: who learns from it, as which of its siblings, and how many of its
  // trials they know.
  std::vector<std::vector<std::pair<tuning::Session*, int>>> listeners_;
  std::vector<int> told_;
  // By task: the suggestion that it has not answered yet, or "".
  std::vector<std::string> suggested_;
  std::map<std::string, proto::Config> configs_;  // by canonical text
  int64_t trials_ = 0;
  int64_t elapsed_ns_ = 0;
};

}  // namespace

std::vector<absl::Status> SearchTogether(const std::vector<TogetherTask>& tasks,
                                         const TogetherOptions& options) {
  return Together(tasks, options).Run();
}

}  // namespace optrail::suites
