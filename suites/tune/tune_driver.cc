#include "suites/tune/tune_driver.h"

#include <algorithm>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/retry_while_held.h"
#include "base/file/writable_folder.h"
#include "base/hash/hash.h"
#include "base/process/interrupt_note.h"
#include "base/status_macros.h"
#include "base/text/progress.h"
#include "base/text/utf8.h"
#include "ops/core/backend_space.h"
#include "ops/core/operator.h"
#include "suites/predict/start_order.h"
#include "suites/tune/elsewhere.h"
#include "suites/tune/known_trials.h"
#include "suites/tune/objectives.h"
#include "suites/tune/operator_shares.h"
#include "suites/tune/transfer_sources.h"
#include "suites/tune/tune_together.h"
#include "suites/worker/measurement_settings.h"
#include "tracker/history/history.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/proto/roofline.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/session/numerics.h"
#include "tuning/session/objective.h"
#include "tuning/session/stored_config.h"
#include "tuning/store/store_files.h"

namespace optrail::suites {
namespace {

using tuning::CanonicalText;

constexpr int64_t kNsPerMs = 1'000'000;

// Ceilings are readings, too: a bound that is a little too high must not make a
// task look finished.
constexpr double kTrustInRoofline = 0.9;

// Workers that wait for their task's next turn may hold this share of the
// memory.
constexpr double kShareOfMemory = 0.25;
constexpr int64_t kUnknownMemoryBytes = int64_t{4} << 30;

double RooflineTimeNs(const TaskEntry& task, const RunContext& context,
                      const proto::Ceilings& ceilings) {
  const ops::Operator& op = *task.entry->op;
  const double moved_bytes = op.MovedBytes(task.task.shape());
  const bool hot = task.task.cache_mode() == proto::HOT;
  return tuning::RooflineOf(op.Flop(task.task.shape()), moved_bytes,
                            hot ? moved_bytes : 0, context.hardware, ceilings,
                            task.task.threads(), context.hardware.cores())
      .time_ns;
}

// All but when it begins and what it learns from.
proto::Session HeaderFor(const TaskEntry& task, const TaskSpace& space,
                         const RunContext& context,
                         const TuneDriverOptions& options,
                         const proto::Ceilings& ceilings) {
  proto::Session header;
  *header.mutable_task() = task.task;
  *header.mutable_hardware() = context.hardware;
  *header.mutable_toolchain() = context.toolchain;
  *header.mutable_commit() = context.commit;
  *header.mutable_settings() = SettingsOf(options.tune.sampling, options.worker,
                                          context.hardware.device_kind());
  header.mutable_settings()->set_race_ratio(options.tune.race_factor);
  header.mutable_settings()->set_processes(options.tune.rank_rounds);
  header.mutable_settings()->set_attempts_per_process(tuning::kReadingAttempts);
  if (space.configs != nullptr) {
    // No space lists them, and none may be read off the record.
    header.set_space_hash(space.configs->Hash());
    space.configs->Describe(&header);
  } else {
    header.set_space_textproto(ops::SpaceFileOf(*task.backend).contents);
    header.set_space_hash(space.space->hash());
    if (const auto count = space.bound->count(); count.has_value()) {
      header.set_valid_config_count(*count);
    }
  }
  const double roofline_ns = RooflineTimeNs(task, context, ceilings);
  if (roofline_ns > 0) header.set_roofline_time_ns(roofline_ns);
  return header;
}

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

std::string ProgressDetail(const tuning::TuneProgress& progress,
                           const TuneOptions& options) {
  std::string detail = progress.phase == "search"
                           ? absl::StrCat(progress.trials, " trials")
                           : progress.phase;
  if (progress.best_value) {
    absl::StrAppend(
        &detail, ", best ",
        ObjectiveValueText(*progress.best_value, options.objectives.empty()
                                                     ? tuning::TimeObjective()
                                                     : options.objectives[0]));
  }
  return detail;
}

}  // namespace

proto::TunedConfig TunedConfigOf(const proto::Session& session) {
  proto::TunedConfig tuned;
  const proto::Finalist* winner = WinningFinalist(session);
  const proto::Finalist* fallback = DefaultFinalist(session);
  tuned.set_shape(CanonicalText(session.task().shape()));
  tuned.set_config(CanonicalText(session.winner()));
  tuned.set_threads(session.task().threads());
  tuned.set_cache_mode(session.task().cache_mode());
  tuned.set_kernel_id(session.task().kernel_id());
  tuned.set_backend(session.task().backend());
  tuned.set_launch_mode(session.task().launch_mode());
  tuned.set_devices(session.task().devices());
  tuned.set_objective(ObjectiveKey(tuning::ObjectivesOf(session)));
  tuned.set_numerics(tuning::NumericsOf(session, session.winner()));
  if (fallback != nullptr) {
    tuned.set_default_numerics(tuning::NumericsOf(session, fallback->config()));
  }
  tuned.set_time_ns(winner->time_ns());
  if (fallback != nullptr && fallback->outcome() == proto::OK) {
    tuned.set_default_time_ns(fallback->time_ns());
  }
  // Behind the time: the rounds of the proof, where there was one.
  const auto& readings = !session.has_proof() ? winner->measurements()
                         : winner->is_default()
                             ? session.proof().default_measurements()
                             : session.proof().candidate_measurements();
  tuned.set_processes(readings.size());
  int samples = 0;
  for (const proto::Measurement& measurement : readings) {
    samples += measurement.clean_sample_count();
  }
  if (session.has_proof()) {
    *tuned.mutable_proof() = session.proof();
  }
  tuned.set_samples(samples);
  tuned.set_commit(session.commit().id());
  tuned.set_date(absl::FormatTime(
      "%Y-%m-%d", absl::FromUnixNanos(session.started_unix_ns()),
      absl::UTCTimeZone()));
  tuned.set_session_id(session.session_id());
  return tuned;
}

absl::StatusOr<tuning::TunedConfigStore> LoadStore(
    const RunContext& context, const std::vector<TaskEntry>& tasks) {
  tuning::StoreOptions options;
  std::set<const ops::OperatorEntry*> entries;
  for (const TaskEntry& task : tasks) entries.insert(task.entry);
  for (const ops::OperatorEntry* entry : entries) {
    for (const ops::EmbeddedFile& file : entry->tuned) {
      options.checked_in.push_back({file.path, file.contents});
    }
  }
  options.overlay_directory = context.store;
  OPTRAIL_ASSIGN_OR_RETURN(tuning::TunedConfigStore store,
                           tuning::TunedConfigStore::Load(options));
  for (const std::string& warning : store.warnings()) {
    std::cerr << "warning: " << SanitiseText(warning) << "\n";
  }
  return store;
}

absl::StatusOr<tuning::TunedConfigStore> LoadWholeStore(
    const RunContext& context) {
  std::vector<TaskEntry> operators;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    operators.emplace_back().entry = entry;
  }
  return LoadStore(context, operators);
}

namespace {

// The entry of exactly this task, of whatever kernel; no config: there is none,
// or `is_valid` refuses it.
tuning::LookupResult FindEntry(
    const tuning::TunedConfigStore& store, const TaskEntry& task,
    const std::string& objective,
    const tuning::ConfigPredicate* is_valid = nullptr) {
  tuning::LookupRequest request = tuning::RequestOf(task.task);
  request.objective = objective;
  request.is_valid = is_valid;
  const tuning::LookupResult found = store.Lookup(request);
  return found.source == tuning::LookupSource::kExact ? found
                                                      : tuning::LookupResult();
}

// The same, with a config that is valid in the space.
tuning::LookupResult FindExact(const tuning::TunedConfigStore& store,
                               const TaskEntry& task,
                               const std::string& objective,
                               const TaskSpace& space) {
  const auto is_valid = [&](const proto::Config& config) {
    return space.Validate(config).ok();
  };
  const tuning::ConfigPredicate predicate(is_valid);
  return FindEntry(store, task, objective, &predicate);
}

// The options may ask for more than a config that is fast.
bool IsAnswer(const tuning::LookupResult& stored,
              const TuneDriverOptions& options) {
  return stored.config != nullptr && !stored.unverified &&
         (!options.tune.class_of_default || stored.tuned->ties() ||
          tuning::SameBits(stored.tuned->numerics(),
                           stored.tuned->default_numerics())) &&
         (!options.tune.batch_invariant ||
          tuning::IsBatchInvariant(stored.tuned->numerics()));
}

}  // namespace

bool IsTunedAlready(const tuning::TunedConfigStore& store,
                    const TaskEntry& task, const TaskSpace& space,
                    const TuneDriverOptions& options) {
  return !options.retune &&
         IsAnswer(FindExact(store, task, ObjectiveKey(options.tune.objectives),
                            space),
                  options);
}

const proto::TunedConfig* FindTuned(const tuning::TunedConfigStore& store,
                                    const TaskEntry& task,
                                    const std::string& objective,
                                    const TaskSpace& space) {
  const tuning::LookupResult found = FindExact(store, task, objective, space);
  return found.unverified ? nullptr : found.tuned;
}

namespace {

// The sessions that a call has recorded, should it be interrupted: where all
// tasks are tuned anew, the same call would begin with them once more. A file
// of their ids, named by what was asked for.
class RecordedByCall {
 public:
  RecordedByCall(const std::string& folder, const std::vector<TaskEntry>& tasks,
                 const TuneDriverOptions& options) {
    const TuneOptions& tune = options.tune;
    std::string asked = absl::StrCat(
        tune.strategy, " ", tune.seed, " ", tune.finalists, " ",
        tune.rank_rounds, " ", tune.race_factor, " ", tune.class_of_default,
        " ", tune.batch_invariant, " ", options.forget_trials, " ",
        absl::StrJoin(options.elsewhere, ","), " ",
        tune.budget.ShortDebugString());
    if (options.incumbent) {
      absl::StrAppend(&asked, " ", CanonicalText(*options.incumbent));
    }
    for (const proto::Objective& objective : tune.objectives) {
      absl::StrAppend(&asked, "\n", objective.ShortDebugString());
    }
    for (const TaskEntry& task : tasks) {
      absl::StrAppend(&asked, "\n", tuning::TaskText(task.task));
    }
    path_ = JoinPath(folder, absl::StrCat(Fingerprint(asked), ".recorded"));
    const absl::StatusOr<std::string> found = ReadRegularFile(path_);
    if (!found.ok()) return;
    for (absl::string_view id :
         absl::StrSplit(*found, '\n', absl::SkipEmpty())) {
      ids_.emplace_back(id);
    }
  }

  const std::vector<std::string>& ids() const { return ids_; }

  absl::Status Add(const std::string& session_id) {
    ids_.push_back(session_id);
    return WriteFileAtomically(path_,
                               absl::StrCat(absl::StrJoin(ids_, "\n"), "\n"));
  }

  absl::Status Remove() {
    const absl::Status removed = RemoveFile(path_);
    return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  }

 private:
  std::string path_;
  std::vector<std::string> ids_;
};

void BreakOff(const absl::Status& error, TuneSummary* summary) {
  summary->error = std::string(error.message());
  summary->broke_off = true;
}

// One call of TuneTasks.
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
    bool stored_verified = false;
  };

  bool together() const {
    return options_.total_trials > 0 || options_.total_time_ns > 0;
  }
  // For all tasks: what waits for one of them must not compile where another is
  // measured.
  std::shared_ptr<CompilePool> Compilers(
      const std::vector<TaskEntry>& tasks) const;
  // It is known before any of the tasks is looked at.
  struct Known {
    std::map<std::string, proto::Session> recorded;
    tuning::TunedConfigStore store;
    proto::Ceilings ceilings;
    std::string objective;
    WorkerOptions worker;
  };
  absl::Status FindPending(const std::vector<TaskEntry>& tasks);
  // Puts the part of the space that is searched in its place, and returns the
  // part's text; "" if all of it is.
  absl::StatusOr<std::string> Restrict(const TaskEntry& task,
                                       TaskSpace* space) const;
  // Takes what is known of a task before its space is.
  Pending NewPending(const TaskEntry& task, const Known& known) const;
  // One of them, which is pending unless `summary` says all there is.
  absl::Status FindPending(const TaskEntry& task, Known* known,
                           TuneSummary* summary);
  // Returns where to begin among some of pending_, by the sessions that had
  // ended at `known_unix_ns`, and prints it. Start::task is an index into
  // `some`.
  std::vector<Start> StartsOf(const std::vector<size_t>& some,
                              int64_t known_unix_ns) const;
  void OrderPending();
  absl::Status OneByOne();
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
  absl::Status Together();
  void OpenAll();
  void SearchAll();
  absl::Status FinishAll();
  // What the same call recorded before it was interrupted, by task.
  std::map<std::string, proto::Session> FindRecorded(
      const std::vector<TaskEntry>& tasks);
  void Begin(Pending& pending);
  absl::Status Record(Pending& pending, absl::StatusOr<proto::Session> session);
  // Returns what a user should know of a session that ended.
  std::vector<std::string> NotesOn(const proto::Session& session,
                                   const Pending& pending) const;
  // A bucket was verified for one config and kernel; the entry of another one
  // has its own shape as its bucket, and is no neighbour of others.
  std::string BucketOf(const Pending& pending,
                       const proto::TunedConfig& tuned) const;

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

std::shared_ptr<CompilePool> TuneCall::Compilers(
    const std::vector<TaskEntry>& tasks) const {
  int threads = 1;
  for (const TaskEntry& task : tasks) {
    threads = std::max(threads, task.task.threads());
  }
  return std::make_shared<CompilePool>(CompilePoolFor(
      context_.hardware.device_kind(), threads, options_.worker));
}

std::map<std::string, proto::Session> TuneCall::FindRecorded(
    const std::vector<TaskEntry>& tasks) {
  std::map<std::string, proto::Session> sessions;
  if (!options_.retune || together() || !options_.keep) return sessions;
  recorded_.emplace(JoinPath(context_.state, "tuning"), tasks, options_);
  for (const std::string& id : recorded_->ids()) {
    absl::StatusOr<proto::Session> session = history_.ReadSession(id);
    if (!session.ok()) continue;  // then it is tuned again
    sessions[tuning::TaskText(session->task())] = *std::move(session);
  }
  if (!sessions.empty()) {
    std::cerr << "goes on: " << sessions.size() << " of " << tasks.size()
              << " tasks were tuned by this command before it was interrupted, "
                 "the first in session "
              << sessions.begin()->second.session_id() << "\n";
  }
  return sessions;
}

absl::StatusOr<std::string> TuneCall::Restrict(const TaskEntry& task,
                                               TaskSpace* space) const {
  if (options_.within) {
    return RestrictTo(*options_.within, task, context_.hardware, space);
  }
  if (!options_.space_textproto) return "";
  OPTRAIL_RETURN_IF_ERROR(
      ReplaceSpace(*options_.space_textproto, task, context_.hardware, space));
  return *options_.space_textproto;
}

TuneCall::Pending TuneCall::NewPending(const TaskEntry& task,
                                       const Known& known) const {
  Pending pending;
  pending.task = &task;
  if (const tuning::LookupResult replaced =
          FindEntry(known.store, task, known.objective);
      replaced.tuned != nullptr) {
    pending.stored_config = replaced.tuned->config();
    pending.stored_bucket = replaced.tuned->bucket();
    pending.stored_verified = !replaced.unverified;
  }
  pending.tune = options_.tune;
  const ops::Operator& op = *task.entry->op;
  pending.tune.objectives =
      ForTask(options_.tune.objectives, op.Flop(task.task.shape()),
              op.MovedBytes(task.task.shape()));
  pending.tune.journal_directory = JoinPath(context_.state, "tuning");
  return pending;
}

absl::Status TuneCall::FindPending(const TaskEntry& task, Known* known,
                                   TuneSummary* summary) {
  absl::StatusOr<TaskSpace> space = BindTask(task, context_.hardware);
  if (!space.ok()) {
    summary->error = std::string(space.status().message());
    return absl::OkStatus();
  }
  // The text of what takes the space's place.
  OPTRAIL_ASSIGN_OR_RETURN(const std::string part, Restrict(task, &*space));
  if (options_.stored_only && space->configs != nullptr) {
    summary->error =
        "unsupported here: configs that no space lists are not proven alone";
    return absl::OkStatus();
  }
  const tuning::LookupResult stored =
      FindExact(known->store, task, known->objective, *space);
  const bool is_tuned = IsAnswer(stored, options_);
  summary->skipped = options_.stored_only ? stored.config == nullptr
                                          : is_tuned && !options_.retune;
  if (options_.stored_only && !summary->skipped) {
    space->configs = std::make_shared<tuning::StoredConfig>(*stored.config);
  }
  // A task that a killed call with a total budget had finished already belongs
  // to that total. Otherwise the answer is there, and nothing else is asked
  // for.
  if (summary->skipped && !together()) return absl::OkStatus();
  Pending pending = NewPending(task, *known);
  pending.is_new =
      !is_tuned && !together() && options_.keep && options_.bucket.empty();
  pending.setup.header =
      HeaderFor(task, *space, context_, options_, known->ceilings);
  if (!part.empty()) {
    pending.setup.header.set_space_textproto(part);
  } else if (options_.incumbent) {
    *pending.setup.header.mutable_incumbent() = *options_.incumbent;
  } else if (is_tuned && options_.defend_stored && !options_.stored_only) {
    *pending.setup.header.mutable_incumbent() = *stored.config;
  }
  pending.setup.space = space->bound.get();
  pending.setup.configs = space->configs.get();
  if (!options_.elsewhere.empty()) {
    pending.setup.elsewhere = [this, task = task.task,
                               config = space->bound->default_config()] {
      return EvaluatorAt(
          options_.elsewhere,
          ExpectedOf(task, options_.tune.sampling, options_.worker), config);
    };
  }
  if (summary->skipped && HasTuneJournal(pending.setup, pending.tune)) {
    summary->skipped = false;
  }
  if (const auto found = known->recorded.find(tuning::TaskText(task.task));
      found != known->recorded.end()) {
    // Killed between the two, its journal is still there.
    OPTRAIL_RETURN_IF_ERROR(RemoveTuneJournal(pending.setup, pending.tune));
    summary->session = std::move(found->second);
    return absl::OkStatus();
  }
  if (!summary->skipped) {
    pending.summary = summaries_.size();
    pending.space = *std::move(space);
    pending.evaluator =
        std::make_unique<WorkerEvaluator>(task.task, known->worker);
    pending_.push_back(std::move(pending));
  }
  return absl::OkStatus();
}

absl::Status TuneCall::FindPending(const std::vector<TaskEntry>& tasks) {
  Known known;
  known.recorded = FindRecorded(tasks);
  OPTRAIL_ASSIGN_OR_RETURN(known.store, LoadStore(context_, tasks));
  // Without ceilings at hand the roofline is left out: measuring them takes
  // longer than what it is worth here.
  known.ceilings = KeptCeilings(context_);
  known.objective = ObjectiveKey(options_.tune.objectives);
  known.worker = options_.worker;
  known.worker.compilers = Compilers(tasks);
  if (known.worker.used == nullptr) {
    known.worker.used = std::make_shared<UsedWorkers>();
  }
  known.worker.hardware = context_.hardware;
  for (const TaskEntry& task : tasks) {
    TuneSummary summary;
    summary.task = task.task;
    summary.count = task.count;
    OPTRAIL_RETURN_IF_ERROR(FindPending(task, &known, &summary));
    summaries_.push_back(std::move(summary));
  }
  if (options_.forget_trials || pending_.empty()) return absl::OkStatus();
  // Listing reads every session file, so it is done once. What this call
  // records is of other tasks.
  absl::StatusOr<tracker::SessionList> earlier = history_.ListSessions();
  if (!earlier.ok()) return absl::OkStatus();
  earlier_ = std::move(earlier->sessions);
  for (Pending& pending : pending_) {
    pending.setup.known_trials =
        KnownTrials(history_, earlier_, pending.task->task);
  }
  return absl::OkStatus();
}

// Just before the task's session opens: tasks of this call that were tuned
// before it count among its sources, too.
void TuneCall::Begin(Pending& pending) {
  proto::Session& header = pending.setup.header;
  header.set_started_unix_ns(Clock::Real()->WallNs());
  header.set_session_id(tracker::NewRecordId(header.started_unix_ns()));
  // Also without sources of its own: the header may be that of an earlier
  // sitting.
  pending.setup.load_sources = [this, space = pending.space.bound.get()](
                                   const proto::Session& begun) {
    return LoadTransferSources(history_, begun.source_session_ids(), *space);
  };
  pending.setup.load_source_sessions = [this](const proto::Session& begun) {
    return LoadSourceSessions(history_, begun.source_session_ids());
  };
  if (options_.forget_trials) return;
  for (std::string& id : ChooseTransferSessions(earlier_, pending.task->task)) {
    header.add_source_session_ids(std::move(id));
  }
}

std::vector<std::string> TuneCall::NotesOn(const proto::Session& session,
                                           const Pending& pending) const {
  std::vector<std::string> notes;
  const int64_t tried =
      session.trials_size() - session.warm_start_trial_count();
  const int64_t asked = pending.tune.budget.trials();
  if (session.stop_reason() == proto::TRIALS_SPENT && tried < asked) {
    notes.push_back(absl::StrCat(
        "the search had ended with ", tried,
        " trials when it was interrupted; next: --retune, which goes on to ",
        asked));
  }
  if (const std::string kept = tuning::IncumbentText(session);
      !kept.empty() && !options_.incumbent) {
    notes.push_back(kept);
  }
  if ((options_.tune.batch_invariant || options_.tune.class_of_default) &&
      session.has_winner()) {
    const std::string numerics = tuning::NumericsOf(session, session.winner());
    notes.push_back(absl::StrCat(
        "numerics ", numerics.empty() ? "as in the store" : numerics));
  }
  if (pending.session != nullptr && pending.session->ranking_cut()) {
    notes.push_back(tuning::kRankingCut);
  }
  return notes;
}

absl::Status TuneCall::Record(Pending& pending,
                              absl::StatusOr<proto::Session> session) {
  TuneSummary& summary = summaries_[pending.summary];
  if (summary.skipped) return absl::OkStatus();
  if (!session.ok()) {
    BreakOff(session.status(), &summary);
    return absl::OkStatus();
  }
  if (!options_.keep) {
    pending.recorded = true;
    summary.session = *std::move(session);
    return absl::OkStatus();
  }
  // Recorded first, then the journal goes: killed in between, the next start
  // finds a finished journal whose session the history already has.
  if (recorded_.has_value()) {
    OPTRAIL_RETURN_IF_ERROR(recorded_->Add(session->session_id()));
  }
  const absl::Status recorded = history_.AppendSession(*session);
  if (!recorded.ok() && !absl::IsAlreadyExists(recorded)) return recorded;
  pending.was_recorded = absl::IsAlreadyExists(recorded);
  const proto::Task& task = pending.task->task;
  // A stored config that stays keeps its entry, to the letter.
  if (session->has_winner() && !tuning::IncumbentStays(*session) &&
      (!options_.stored_only || session->proof().claimed())) {
    proto::TunedConfig tuned = TunedConfigOf(*session);
    tuned.set_bucket(BucketOf(pending, tuned));
    OPTRAIL_RETURN_IF_ERROR(
        tuning::WriteOverlay(context_.store, task.operator_name(),
                             task.hardware_id(), task.device_kind(), tuned));
  }
  for (const std::string& note : NotesOn(*session, pending)) {
    std::cerr << "note: " << ShortTaskText(task) << ": " << note << "\n";
  }
  pending.recorded = true;
  tracker::SessionInfo info;
  info.header = *session;
  info.header.clear_trials();
  info.trial_count = session->trials_size();
  earlier_.push_back(std::move(info));
  summary.session = *std::move(session);
  return absl::OkStatus();
}

std::string TuneCall::BucketOf(const Pending& pending,
                               const proto::TunedConfig& tuned) const {
  if (!pending.stored_bucket.empty() && pending.stored_verified &&
      pending.stored_config == tuned.config()) {
    return pending.stored_bucket;
  }
  if (!options_.bucket.empty() || pending.stored_bucket.empty()) {
    return options_.bucket;
  }
  std::cerr << "note: " << ShortTaskText(pending.task->task)
            << " stood for the range " << pending.stored_bucket
            << ", for which the new entry is not verified; next: the same "
            << "command with --shape=" << pending.stored_bucket << "\n";
  return tuned.shape();
}

void TuneCall::AskAhead(size_t i) {
  if (i >= pending_.size() || !options_.elsewhere.empty()) return;
  Pending& pending = pending_[i];
  // Elsewhere, whoever is opened or compiles disturbs what is measured.
  if (pending.session != nullptr ||
      pending.evaluator->policy().processes_ahead == 0) {
    return;
  }
  Begin(pending);
  absl::StatusOr<std::unique_ptr<tuning::Session>> session = OpenTuneSession(
      pending.setup, pending.tune, *pending.evaluator, *Clock::Real());
  // What goes wrong is said when its turn comes.
  if (!session.ok() || !(*session)->AskAhead().ok()) return;
  pending.session = *std::move(session);
}

bool TuneCall::AdvanceNext(size_t i) {
  if (i + 1 >= pending_.size()) return false;
  tuning::Session* const next = pending_[i + 1].session.get();
  if (next == nullptr || next->search_ended() || !next->IsReady()) return false;
  next->GoOn();
  // What goes wrong is said when its turn comes: it goes wrong again.
  return next->Advance().ok();
}

// Another command may tune the same task. What it finds answers this one, too,
// if nothing else is asked for.
absl::Status TuneCall::OpenWhenFree(Pending& pending) {
  return RetryWhileHeld(
      [&](bool waited) -> absl::Status {
        if (waited || pending.is_new) {
          OPTRAIL_RETURN_IF_ERROR(CheckIsNotTuned(pending));
        }
        Begin(pending);
        auto session = OpenTuneSession(pending.setup, pending.tune,
                                       *pending.evaluator, *Clock::Real());
        if (session.ok()) pending.session = *std::move(session);
        return session.status();
      },
      [&](const std::string& why) {
        std::cerr << "\nnote: " << ShortTaskText(pending.task->task)
                  << " waits: " << why << "\n";
      });
}

// Cancelled, and the task is skipped, if another command has tuned it since
// this one began.
absl::Status TuneCall::CheckIsNotTuned(Pending& pending) {
  if (options_.retune || HasTuneJournal(pending.setup, pending.tune)) {
    return absl::OkStatus();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(context_, {*pending.task}));
  if (FindTuned(store, *pending.task, ObjectiveKey(options_.tune.objectives),
                pending.space) == nullptr) {
    return absl::OkStatus();
  }
  summaries_[pending.summary].skipped = true;
  return absl::CancelledError("tuned by another command meanwhile");
}

absl::StatusOr<proto::Session> TuneCall::SearchAlone(size_t i) {
  turn_ = i;
  Pending& pending = pending_[i];
  if (pending.session == nullptr) {
    OPTRAIL_RETURN_IF_ERROR(OpenWhenFree(pending));
  }
  pending.session->GoOn();
  while (!pending.session->search_ended()) {
    // While all that is left of this search compiles, the next one measures.
    if (!pending.session->IsReady() && AdvanceNext(i)) {
      pending.session->GoOn();
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(pending.session->Advance());
    if (pending.session->all_asked()) AskAhead(i + 1);
  }
  return pending.session->Finish();
}

std::vector<Start> TuneCall::StartsOf(const std::vector<size_t>& some,
                                      int64_t known_unix_ns) const {
  std::vector<tracker::SessionInfo> known;
  if (options_.most_gain_first && some.size() > 1) {
    for (const tracker::SessionInfo& session : earlier_) {
      if (session.header.started_unix_ns() + session.header.elapsed_ns() <=
          known_unix_ns) {
        known.push_back(session);
      }
    }
  }
  std::vector<StartTask> tasks;
  for (const size_t i : some) {
    const TaskEntry& entry = *pending_[i].task;
    tasks.push_back({entry.task, static_cast<double>(entry.count)});
  }
  std::vector<Start> starts = StartOrder(GainPredictor(known, WorkOf), tasks);
  if (!options_.quiet) std::cerr << StartOrderText(tasks, starts);
  return starts;
}

void TuneCall::OrderPending() {
  std::vector<size_t> all(pending_.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<Pending> ordered;
  for (const Start& start : StartsOf(all, Clock::Real()->WallNs())) {
    ordered.push_back(std::move(pending_[start.task]));
  }
  pending_ = std::move(ordered);
}

absl::Status TuneCall::OneByOne() {
  constexpr int64_t kPerTask = 10'000;
  Progress progress("tuning", kPerTask * static_cast<int64_t>(pending_.size()),
                    ForProgress(/*counts=*/false));
  std::vector<double> shares(pending_.size());  // of each task that is done
  std::vector<double> earlier(pending_.size());
  const auto units = [&](const std::vector<double>& of_tasks) {
    return static_cast<int64_t>(
        kPerTask * std::accumulate(of_tasks.begin(), of_tasks.end(), 0.0));
  };
  OrderPending();
  bool is_told = false;  // that the budget is short
  for (size_t i = 0; i < pending_.size(); ++i) {
    pending_[i].tune.finalists_ahead = [this, i] { return turn_ == i; };
    pending_[i].tune.on_progress = [&, i](const tuning::TuneProgress& now) {
      if (!is_told && pending_[i].session != nullptr) {
        const std::string text = pending_[i].session->ShortBudgetText();
        if (!text.empty()) {
          progress.Clear();
          std::cerr << "note: " << ShortTaskText(pending_[i].task->task) << ": "
                    << text << "\n";
          is_told = true;
        }
      }
      shares[i] = now.share;
      earlier[i] = now.earlier_share;
      progress.SetEarlier(units(earlier));
      progress.Update(
          units(shares),
          absl::StrCat(Title(i), ProgressDetail(now, pending_[i].tune)));
    };
  }
  for (size_t i = 0; i < pending_.size(); ++i) {
    Pending& pending = pending_[i];
    progress.Update(units(shares), Title(i));
    absl::StatusOr<proto::Session> searched = SearchAlone(i);
    progress.Clear();  // for notes
    OPTRAIL_RETURN_IF_ERROR(Record(pending, std::move(searched)));
    shares[i] = 1;
    pending.session.reset();
    pending.evaluator->Rest();
    if (pending.recorded) {
      OPTRAIL_RETURN_IF_ERROR(RemoveTuneJournal(pending.setup, pending.tune));
    }
    if (options_.retune && pending.was_recorded) {
      // Another call had finished it and was killed before its journal went.
      OPTRAIL_RETURN_IF_ERROR(Record(pending, SearchAlone(i)));
      pending.session.reset();
      pending.evaluator->Rest();
      OPTRAIL_RETURN_IF_ERROR(RemoveTuneJournal(pending.setup, pending.tune));
    }
  }
  progress.Update(progress.total());
  progress.Finish();
  return absl::OkStatus();
}

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
    Begin(pending);
    absl::StatusOr<std::unique_ptr<tuning::Session>> session = OpenTuneSession(
        pending.setup, pending.tune, *pending.evaluator, *Clock::Real());
    if (session.ok()) {
      pending.session = *std::move(session);
    } else {
      BreakOff(session.status(), &summaries_[pending.summary]);
    }
  }
}

void TuneCall::SearchAll() {
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
  std::vector<size_t> index;  // into pending_
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
    index.push_back(i);
  }
  std::vector<proto::Task> searched_together;
  for (const size_t i : index) {
    searched_together.push_back(pending_[i].task->task);
  }
  for (size_t i = 0; i < tasks.size() && !options_.forget_trials; ++i) {
    tasks[i].task.siblings = NearestTasks(searched_together, i);
  }
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

absl::StatusOr<std::vector<TuneSummary>> TuneCall::Run(
    const std::vector<TaskEntry>& tasks) {
  OPTRAIL_RETURN_IF_ERROR(FindPending(tasks));
  if (!pending_.empty()) {
    OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryIsWritable(context_.history));
    OPTRAIL_RETURN_IF_ERROR(CheckFolderIsWritable(context_.store));
    const InterruptNote note(tuning::kInterruptedTuning);
    OPTRAIL_RETURN_IF_ERROR(together() ? Together() : OneByOne());
  }
  if (recorded_.has_value()) OPTRAIL_RETURN_IF_ERROR(recorded_->Remove());
  return std::move(summaries_);
}

}  // namespace

absl::Status CheckTotalTrials(const TuneDriverOptions& options, size_t tasks) {
  if (options.total_trials == 0 ||
      options.total_trials >= static_cast<int64_t>(tasks)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a total of ", options.total_trials, " trials (--total_trials) for ",
      tasks, " tasks; expected at least one each"));
}

absl::StatusOr<std::vector<TuneSummary>> TuneTasks(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const TuneDriverOptions& options) {
  for (const TaskEntry& entry : tasks) {
    const proto::Task& task = entry.task;
    OPTRAIL_RETURN_IF_ERROR(
        tuning::CheckOverlayFile(context.store, task.operator_name(),
                                 task.hardware_id(), task.device_kind()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(tracker::History history,
                           tracker::History::Open(context.history));
  return TuneCall(context, options, std::move(history)).Run(tasks);
}

}  // namespace optrail::suites
