#include "suites/tune/tune_driver.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/writable_folder.h"
#include "base/hash/hash.h"
#include "base/process/interrupt_note.h"
#include "base/status_macros.h"
#include "ops/core/backend_space.h"
#include "ops/core/operator.h"
#include "suites/tune/elsewhere.h"
#include "suites/tune/known_trials.h"
#include "suites/tune/objectives.h"
#include "suites/tune/task_store.h"
#include "suites/tune/transfer_sources.h"
#include "suites/tune/tune_call.h"
#include "suites/worker/measurement_settings.h"
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

RecordedByCall::RecordedByCall(const std::string& folder,
                               const std::vector<TaskEntry>& tasks,
                               const TuneDriverOptions& options) {
  const TuneOptions& tune = options.tune;
  std::string asked = absl::StrCat(
      tune.strategy, " ", tune.seed, " ", tune.finalists, " ", tune.rank_rounds,
      " ", tune.race_factor, " ", tune.class_of_default, " ",
      tune.batch_invariant, " ", options.forget_trials, " ",
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
  for (absl::string_view id : absl::StrSplit(*found, '\n', absl::SkipEmpty())) {
    ids_.emplace_back(id);
  }
}

absl::Status RecordedByCall::Add(const std::string& session_id) {
  ids_.push_back(session_id);
  return WriteFileAtomically(path_,
                             absl::StrCat(absl::StrJoin(ids_, "\n"), "\n"));
}

absl::Status RecordedByCall::Remove() {
  const absl::Status removed = RemoveFile(path_);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

void BreakOff(const absl::Status& error, TuneSummary* summary) {
  summary->error = std::string(error.message());
  summary->broke_off = true;
}

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
    pending.stored_numerics = replaced.tuned->numerics();
    pending.stored_default_numerics = replaced.tuned->default_numerics();
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
  if (is_tuned && options_.keep && !options_.stored_only) {
    OPTRAIL_RETURN_IF_ERROR(KeepLimit(task, *stored.tuned));
  }
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

absl::Status TuneCall::OpenSession(Pending& pending) {
  Begin(pending);
  OPTRAIL_ASSIGN_OR_RETURN(pending.session,
                           OpenTuneSession(pending.setup, pending.tune,
                                           *pending.evaluator, *Clock::Real()));
  return absl::OkStatus();
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
    SetNumerics(pending, &tuned);
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

absl::Status TuneCall::KeepLimit(const TaskEntry& task,
                                 const proto::TunedConfig& stored) const {
  const std::string limit = options_.tune.NumericsLimit();
  if (limit.empty() || limit == stored.numerics_limit()) {
    return absl::OkStatus();
  }
  proto::TunedConfig limited = stored;
  limited.set_numerics_limit(limit);
  return tuning::WriteOverlay(context_.store, task.task.operator_name(),
                              task.task.hardware_id(), task.task.device_kind(),
                              limited);
}

void TuneCall::SetNumerics(const Pending& pending,
                           proto::TunedConfig* tuned) const {
  tuned->set_numerics_limit(options_.tune.NumericsLimit());
  if (!pending.stored_verified) return;
  if (tuned->numerics().empty() && pending.stored_config == tuned->config()) {
    tuned->set_numerics(pending.stored_numerics);
  }
  if (tuned->default_numerics().empty()) {
    tuned->set_default_numerics(pending.stored_default_numerics);
  }
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
