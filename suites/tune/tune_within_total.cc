// Searches for the best configs of all tasks together, within a total budget.

#include <algorithm>
#include <cstdint>
#include <list>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "suites/tune/transfer_sources.h"
#include "suites/tune/tune_call.h"

namespace optrail::suites {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

// Ceilings are readings, too: a bound that is a little too high must not make a
// task look finished.
constexpr double kTrustInRoofline = 0.9;

// Workers that wait for their task's next turn may hold this share of the
// memory.
constexpr double kShareOfMemory = 0.25;
constexpr int64_t kUnknownMemoryBytes = int64_t{4} << 30;

// Between its turns a task's worker keeps the operands and references, which
// may take long to compute. Beyond the share of memory those that waited
// longest end, and start anew at their next turn.
class WaitingWorkers {
 public:
  explicit WaitingWorkers(const proto::Hardware& hardware)
      : limit_bytes_(static_cast<int64_t>(kShareOfMemory *
                                          (hardware.has_memory_bytes()
                                               ? hardware.memory_bytes()
                                               : kUnknownMemoryBytes))) {}

  void Use(WorkerEvaluator* worker) {
    workers_.remove(worker);
    workers_.push_front(worker);
    int64_t bytes = 0;
    for (auto it = workers_.begin(); it != workers_.end();) {
      bytes += (*it)->waiting_bytes();
      if (bytes <= limit_bytes_ || it == workers_.begin()) {
        ++it;
        continue;
      }
      (*it)->Rest();
      it = workers_.erase(it);
    }
  }

 private:
  const int64_t limit_bytes_;
  std::list<WorkerEvaluator*> workers_;  // last used first
};

}  // namespace

void TuneCall::OpenAll() {
  for (size_t i = 0; i < pending_.size(); ++i) {
    Pending& pending = pending_[i];
    proto::Budget& budget = pending.tune.budget;
    if (options_.total_trials > 0)
      budget.set_total_trials(options_.total_trials);
    if (options_.total_time_ns > 0) {
      budget.set_total_time_ns(options_.total_time_ns);
    }
    const std::string& op = pending.task->task.operator_name();
    if (options_.operator_shares.count(op) > 0) {
      budget.set_operator_share(shares_.FractionOf(op));
    }
    pending.tune.on_progress = [this, i](const tuning::TuneProgress& now) {
      if (verifying_ == nullptr) return;
      verifying_->Update(
          static_cast<int64_t>(i),
          absl::StrCat(Title(i), ProgressDetail(now, pending_[i].tune)));
    };
    if (const absl::Status opened = OpenSession(pending); !opened.ok()) {
      BreakOff(opened, &summaries_[pending.summary]);
    }
  }
}

std::vector<TogetherTask> TuneCall::OpenedTasks(
    std::vector<size_t>* index) const {
  std::vector<size_t> opened;
  int64_t begun_unix_ns = Clock::Real()->WallNs();
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i].session == nullptr) continue;
    opened.push_back(i);
    // The first sitting's, so that a resumed call knows no more than it did.
    begun_unix_ns = std::min(begun_unix_ns,
                             pending_[i].session->header().started_unix_ns());
  }
  std::vector<TogetherTask> tasks;
  for (const Start& start : StartsOf(opened, begun_unix_ns)) {
    const size_t i = opened[start.task];
    const Pending& pending = pending_[i];
    TogetherTask task;
    task.session = pending.session.get();
    task.task.name = ShortTaskText(pending.task->task);
    task.task.weight = pending.task->count;
    // As the first sitting knew it, so that a resumed call decides alike.
    task.task.floor_cost =
        kTrustInRoofline * pending.session->header().roofline_time_ns();
    task.group = shares_.GroupOf(pending.task->task.operator_name());
    tasks.push_back(task);
    index->push_back(i);
  }
  std::vector<proto::Task> searched_together;
  for (const size_t i : *index) {
    searched_together.push_back(pending_[i].task->task);
  }
  for (size_t i = 0; i < tasks.size() && !options_.forget_trials; ++i) {
    tasks[i].task.siblings = NearestTasks(searched_together, i);
  }
  return tasks;
}

void TuneCall::SearchAll() {
  std::vector<size_t> index;
  const std::vector<TogetherTask> tasks = OpenedTasks(&index);
  const bool by_time = options_.total_time_ns > 0;
  Progress progress(
      "tuning",
      by_time ? options_.total_time_ns / kNsPerMs : options_.total_trials,
      ForProgress(/*counts=*/!by_time));
  WaitingWorkers workers(context_.hardware);
  TogetherOptions together;
  together.total_trials = options_.total_trials;
  together.total_time_ns = options_.total_time_ns;
  together.shares = shares_.fractions();
  together.before_turn = [&](int task) {
    workers.Use(pending_[index[task]].evaluator.get());
  };
  together.after_trial = [&](const TogetherProgress& now) {
    const tuning::Session& session = *tasks[now.task].session;
    tuning::TuneProgress detail;
    detail.trials = session.trials();
    detail.best_value = session.best_value();
    detail.phase = "search";
    progress.Update(
        by_time ? now.total_elapsed_ns / kNsPerMs : now.total_trials,
        absl::StrCat(Title(index[now.task]),
                     ProgressDetail(detail, pending_[index[now.task]].tune)));
  };
  const std::vector<absl::Status> searched = SearchTogether(tasks, together);
  for (size_t i = 0; i < searched.size(); ++i) {
    Pending& pending = pending_[index[i]];
    pending.evaluator->Rest();
    if (searched[i].ok()) continue;
    BreakOff(searched[i], &summaries_[pending.summary]);
    pending.session.reset();
  }
}

absl::Status TuneCall::FinishAll() {
  Progress progress("verifying", static_cast<int64_t>(pending_.size()),
                    ForProgress(/*counts=*/true));
  verifying_ = &progress;
  for (size_t i = 0; i < pending_.size(); ++i) {
    Pending& pending = pending_[i];
    if (pending.session == nullptr) continue;
    OPTRAIL_RETURN_IF_ERROR(Record(pending, pending.session->Finish()));
    pending.session.reset();
  }
  verifying_ = nullptr;
  progress.Update(static_cast<int64_t>(pending_.size()));
  progress.Finish();
  // Only now: a journal that is missing would look like a task without trials
  // when the same call is started again, and get some.
  for (Pending& pending : pending_) {
    if (!pending.recorded) continue;
    OPTRAIL_RETURN_IF_ERROR(RemoveTuneJournal(pending.setup, pending.tune));
  }
  return absl::OkStatus();
}

absl::Status TuneCall::Together() {
  OPTRAIL_RETURN_IF_ERROR(CheckTotalTrials(options_, pending_.size()));
  std::vector<std::string> operators;
  for (const Pending& pending : pending_) {
    operators.push_back(pending.task->task.operator_name());
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      shares_, OperatorShares::Of(options_.operator_shares, operators));
  OpenAll();
  SearchAll();
  return FinishAll();
}

absl::Status CheckTotalTrials(const TuneDriverOptions& options, size_t tasks) {
  if (options.total_trials == 0 ||
      options.total_trials >= static_cast<int64_t>(tasks)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a total of ", options.total_trials, " trials (--total_trials) for ",
      tasks, " tasks; expected at least one each"));
}

}  // namespace optrail::suites
