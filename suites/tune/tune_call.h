#ifndef OPTRAIL_SUITES_TUNE_TUNE_CALL_H_
#define OPTRAIL_SUITES_TUNE_TUNE_CALL_H_

// TuneCall is one call of TuneTasks (tune_driver.h), and private to it.
// tune_driver.cc finds the tasks that are left to tune and records their
// sessions; tune_one_by_one.cc and tune_within_total.cc search in between. One
// thread runs it; the context and the options must outlive it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/text/progress.h"
#include "suites/predict/start_order.h"
#include "suites/tune/operator_shares.h"
#include "suites/tune/tune_driver.h"
#include "suites/tune/tune_session.h"
#include "suites/tune/tune_summary.h"
#include "suites/tune/tune_together.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tracker/history/history.h"
#include "tuning/session/session.h"
#include "tuning/store/store.h"

namespace optrail::suites {

// The sessions that a call has recorded, should it be interrupted: where all
// tasks are tuned anew, the same call would begin with them once more. A file
// of their ids, named by what was asked for.
class RecordedByCall {
 public:
  RecordedByCall(const std::string& folder, const std::vector<TaskEntry>& tasks,
                 const TuneDriverOptions& options);

  const std::vector<std::string>& ids() const { return ids_; }
  absl::Status Add(const std::string& session_id);
  absl::Status Remove();

 private:
  std::string path_;
  std::vector<std::string> ids_;
};

// Returns what the progress bar says of a task.
std::string ProgressDetail(const tuning::TuneProgress& progress,
                           const TuneOptions& options);

void BreakOff(const absl::Status& error, TuneSummary* summary);

class TuneCall {
 public:
  TuneCall(const RunContext& context, const TuneDriverOptions& options,
           tracker::History history)
      : context_(context), options_(options), history_(std::move(history)) {}

  absl::StatusOr<std::vector<TuneSummary>> Run(
      const std::vector<TaskEntry>& tasks);

 private:
  struct Pending {
    const TaskEntry* task = nullptr;
    TaskSpace space;
    TuneSetup setup;
    TuneOptions tune;
    size_t summary = 0;
    std::unique_ptr<WorkerEvaluator> evaluator;
    std::unique_ptr<tuning::Session> session;  // while it is open
    bool recorded = false;
    bool was_recorded = false;  // by an earlier call
    // The store had no answer when the call began, and one is all it wants.
    bool is_new = false;
    // These belong to the entry that the winner's replaces, if there is one.
    std::string stored_config, stored_bucket;
    std::string stored_numerics, stored_default_numerics;
    bool stored_verified = false;
  };

  // It is known before any of the tasks is looked at.
  struct Known {
    std::map<std::string, proto::Session> recorded;
    tuning::TunedConfigStore store;
    proto::Ceilings ceilings;
    std::string objective;
    WorkerOptions worker;
  };

  // tune_driver.cc:
  absl::Status FindPending(const std::vector<TaskEntry>& tasks);
  // One of them, which is pending unless `summary` says all there is.
  absl::Status FindPending(const TaskEntry& task, Known* known,
                           TuneSummary* summary);
  // What the same call recorded before it was interrupted, by task.
  std::map<std::string, proto::Session> FindRecorded(
      const std::vector<TaskEntry>& tasks);
  // For all tasks: what waits for one of them must not compile where another is
  // measured.
  std::shared_ptr<CompilePool> Compilers(
      const std::vector<TaskEntry>& tasks) const;
  // Puts the part of the space that is searched in its place, and returns the
  // part's text; "" if all of it is.
  absl::StatusOr<std::string> Restrict(const TaskEntry& task,
                                       TaskSpace* space) const;
  // Takes what is known of a task before its space is.
  Pending NewPending(const TaskEntry& task, const Known& known) const;
  // Returns where to begin among some of pending_, by the sessions that had
  // ended at `known_unix_ns`, and prints it. Start::task is an index into
  // `some`.
  std::vector<Start> StartsOf(const std::vector<size_t>& some,
                              int64_t known_unix_ns) const;
  void Begin(Pending& pending);
  // Calls Begin, and opens the task's session.
  absl::Status OpenSession(Pending& pending);
  absl::Status Record(Pending& pending, absl::StatusOr<proto::Session> session);
  // Returns what a user should know of a session that ended.
  std::vector<std::string> NotesOn(const proto::Session& session,
                                   const Pending& pending) const;
  // An entry that answers what the options limit the search to is kept to that
  // limit from now on, by `store check`, too.
  absl::Status KeepLimit(const TaskEntry& task,
                         const proto::TunedConfig& stored) const;
  // Enters what the options limit the search to, and classes that the session
  // does not tell and the entry before it does, of the same kernel.
  void SetNumerics(const Pending& pending, proto::TunedConfig* tuned) const;
  // A bucket was verified for one config and kernel; the entry of another one
  // has its own shape as its bucket, and is no neighbour of others.
  std::string BucketOf(const Pending& pending,
                       const proto::TunedConfig& tuned) const;

  // tune_one_by_one.cc:
  absl::Status OneByOne();
  void OrderPending();
  // The search, ranking and proof of one task, and the first requests of the
  // next as soon as this one needs no more compilers.
  absl::StatusOr<proto::Session> SearchAlone(size_t i);
  // Opens the task's session, once no other process has it open. Cancelled, and
  // the summary says "skipped", if that one tuned it.
  absl::Status OpenWhenFree(Pending& pending);
  absl::Status CheckIsNotTuned(Pending& pending);
  void AskAhead(size_t i);
  // A turn of the search after that of task i, where it has something to do.
  bool AdvanceNext(size_t i);

  // tune_within_total.cc:
  absl::Status Together();
  void OpenAll();
  // The opened tasks in the order of their first turns; *index gets the place
  // of each in pending_.
  std::vector<TogetherTask> OpenedTasks(std::vector<size_t>* index) const;
  void SearchAll();
  absl::Status FinishAll();

  bool together() const {
    return options_.total_trials > 0 || options_.total_time_ns > 0;
  }
  std::string Title(size_t i) const {
    return absl::StrCat("[", i + 1, "/", pending_.size(), "] ",
                        ShortTaskText(pending_[i].task->task), ": ");
  }
  ProgressOptions ForProgress(bool counts) const {
    ProgressOptions progress;
    progress.quiet = options_.quiet;
    progress.counts = counts;
    return progress;
  }

  const RunContext& context_;
  const TuneDriverOptions& options_;
  const tracker::History history_;
  std::vector<TuneSummary> summaries_;
  std::vector<Pending> pending_;
  OperatorShares shares_;  // of a total
  size_t turn_ = 0;        // whose search it is, one by one
  // Sessions of the history, oldest first, those of this call included.
  std::vector<tracker::SessionInfo> earlier_;
  absl::optional<RecordedByCall> recorded_;  // where all are tuned anew
  Progress* verifying_ = nullptr;            // while finalists are verified
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_CALL_H_
