#include "suites/tune_driver.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "tracker/history.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"

namespace optrail::suites {
namespace {

using tuning::CanonicalText;

// Trials of this very task in earlier sessions, the newest reading of each
// config. Unreadable session files are `optrail history verify`'s affair.
std::vector<proto::Trial> KnownTrials(
    const tracker::History& history,
    const std::vector<tracker::SessionInfo>& sessions,
    const proto::Task& task) {
  std::vector<proto::Trial> trials;
  const std::string key = tuning::TrialKey(task, proto::Config());
  absl::flat_hash_set<std::string> seen;
  for (auto info = sessions.rbegin(); info != sessions.rend(); ++info) {
    if (tuning::TrialKey(info->header.task(), proto::Config()) != key) continue;
    const absl::StatusOr<proto::Session> session =
        history.ReadSession(info->id());
    if (!session.ok()) continue;
    for (const proto::Trial& trial : session->trials()) {
      // What the config itself decides. A reading under contention, one that
      // was cut short against the best of its time, a deadline or memory limit
      // of that day, a crash: worth another try.
      switch (trial.outcome()) {
        case proto::OK:
        case proto::INVALID:
        case proto::COMPILE_ERROR:
        case proto::WRONG_RESULT:
        case proto::UNSUPPORTED:
          break;
        default:
          continue;
      }
      if (seen.insert(CanonicalText(trial.config())).second) {
        trials.push_back(trial);
      }
    }
  }
  return trials;
}

const proto::Finalist* FindFinalist(const proto::Session& session,
                                    const proto::Config& config) {
  for (const proto::Finalist& finalist : session.finalists()) {
    if (CanonicalText(finalist.config()) == CanonicalText(config)) {
      return &finalist;
    }
  }
  return nullptr;
}

const proto::Finalist* DefaultFinalist(const proto::Session& session) {
  for (const proto::Finalist& finalist : session.finalists()) {
    if (finalist.is_default()) return &finalist;
  }
  return nullptr;
}

proto::TunedConfig TunedConfigOf(const proto::Session& session) {
  proto::TunedConfig tuned;
  const proto::Finalist* winner = FindFinalist(session, session.winner());
  const proto::Finalist* fallback = DefaultFinalist(session);
  tuned.set_shape(CanonicalText(session.task().shape()));
  tuned.set_config(CanonicalText(session.winner()));
  tuned.set_threads(session.task().threads());
  tuned.set_cache_mode(session.task().cache_mode());
  tuned.set_kernel_id(session.task().kernel_id());
  tuned.set_time_ns(winner->time_ns());
  if (fallback != nullptr && fallback->outcome() == proto::OK) {
    tuned.set_default_time_ns(fallback->time_ns());
  }
  tuned.set_processes(winner->measurements_size());
  int samples = 0;
  for (const proto::Measurement& measurement : winner->measurements()) {
    samples += measurement.clean_sample_count();
  }
  tuned.set_samples(samples);
  tuned.set_commit(session.commit().id());
  tuned.set_date(absl::FormatTime(
      "%Y-%m-%d", absl::FromUnixNanos(session.started_unix_ns()),
      absl::UTCTimeZone()));
  tuned.set_session_id(session.session_id());
  return tuned;
}

proto::Session HeaderFor(const TaskEntry& task, const TaskSpace& space,
                         const RunContext& context) {
  proto::Session header;
  header.set_started_unix_ns(Clock::Real()->WallNs());
  header.set_session_id(tracker::NewRecordId(header.started_unix_ns()));
  *header.mutable_task() = task.task;
  *header.mutable_hardware() = context.hardware;
  *header.mutable_toolchain() = context.toolchain;
  *header.mutable_commit() = context.commit;
  header.set_space_textproto(task.entry->space.contents);
  header.set_space_hash(space.space->hash());
  if (const auto count = space.bound->count(); count.has_value()) {
    header.set_valid_config_count(*count);
  }
  return header;
}

std::string ProgressDetail(const TuneProgress& progress) {
  std::string detail = progress.phase == "search"
                           ? absl::StrCat(progress.trials, " trials")
                           : progress.phase;
  if (progress.best_time_ns > 0) {
    absl::StrAppend(&detail, ", best ",
                    FormatDurationNs(progress.best_time_ns));
  }
  return detail;
}

}  // namespace

absl::StatusOr<tuning::TunedConfigStore> LoadStore(const RunContext& context) {
  tuning::StoreOptions options;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(/*with_test_only=*/true)) {
    for (const ops::EmbeddedFile& file : entry->tuned) {
      options.checked_in.push_back({file.path, file.contents});
    }
  }
  options.overlay_directory = context.store;
  OPTRAIL_ASSIGN_OR_RETURN(tuning::TunedConfigStore store,
                           tuning::TunedConfigStore::Load(options));
  for (const std::string& warning : store.warnings()) {
    std::cerr << "warning: " << warning << "\n";
  }
  return store;
}

const proto::TunedConfig* FindTuned(const tuning::TunedConfigStore& store,
                                    const proto::Task& task,
                                    const tuning::BoundSpace& space) {
  tuning::LookupRequest request;
  request.operator_name = task.operator_name();
  request.shape = &task.shape();
  request.threads = task.threads();
  request.cache_mode = task.cache_mode();
  request.hardware_id = task.hardware_id();
  request.device_kind = task.device_kind();
  request.kernel_id = task.kernel_id();
  const auto is_valid = [&](const proto::Config& config) {
    return space.Validate(config).ok();
  };
  const tuning::ConfigPredicate predicate(is_valid);
  request.is_valid = &predicate;
  const tuning::LookupResult found = store.Lookup(request);
  return found.source == tuning::LookupSource::kExact && !found.unverified
             ? found.tuned
             : nullptr;
}

absl::StatusOr<std::vector<TuneSummary>> TuneTasks(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const TuneDriverOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(context));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(context.history));

  struct Pending {
    const TaskEntry* task;
    TaskSpace space;
    size_t summary;
  };
  std::vector<TuneSummary> summaries;
  std::vector<Pending> pending;
  for (const TaskEntry& task : tasks) {
    TuneSummary summary;
    summary.task = task.task;
    absl::StatusOr<TaskSpace> space = BindTask(task, context.hardware);
    if (!space.ok()) {
      summary.error = std::string(space.status().message());
    } else if (!options.retune &&
               FindTuned(store, task.task, *space->bound) != nullptr) {
      summary.skipped = true;
    } else {
      pending.push_back({&task, *std::move(space), summaries.size()});
    }
    summaries.push_back(std::move(summary));
  }

  // Progress is in milliseconds of the time budgets where there are any, else
  // in trials.
  const proto::Budget& budget = options.tune.budget;
  const bool by_time = budget.has_time_ns() && budget.time_ns() > 0;
  constexpr int64_t kNsPerMs = 1'000'000;
  const int64_t per_task =
      by_time ? budget.time_ns() / kNsPerMs : budget.trials();
  ProgressOptions progress_options;
  progress_options.quiet = options.quiet || pending.empty();
  Progress progress("tuning", per_task * static_cast<int64_t>(pending.size()),
                    progress_options);
  // Listing reads every session file, so it is done once. What this loop
  // records is of other tasks.
  std::vector<tracker::SessionInfo> earlier;
  if (!options.forget_trials && !pending.empty()) {
    absl::StatusOr<tracker::SessionList> list = history.ListSessions();
    if (list.ok()) earlier = std::move(list->sessions);
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    const TaskEntry& task = *pending[i].task;
    TuneSummary& summary = summaries[pending[i].summary];
    TuneOptions tune = options.tune;
    tune.journal_directory = JoinPath(context.state, "tuning");
    const std::string title = absl::StrCat(
        "[", i + 1, "/", pending.size(), "] ", ShortTaskText(task.task), ": ");
    tune.on_progress = [&](const TuneProgress& now) {
      const int64_t spent = by_time ? now.elapsed_ns / kNsPerMs : now.trials;
      progress.Update(
          static_cast<int64_t>(i) * per_task + std::min(spent, per_task),
          absl::StrCat(title, ProgressDetail(now)));
    };
    progress.Update(static_cast<int64_t>(i) * per_task, title);

    TuneSetup setup;
    setup.header = HeaderFor(task, pending[i].space, context);
    setup.space = pending[i].space.bound.get();
    if (!options.forget_trials) {
      setup.known_trials = KnownTrials(history, earlier, task.task);
    }
    WorkerEvaluator evaluator(task.task, options.worker);
    absl::StatusOr<proto::Session> session =
        RunTuneSession(setup, tune, evaluator, *Clock::Real());
    if (!session.ok()) {
      summary.error = std::string(session.status().message());
      continue;
    }
    // Recorded first, then the journal goes: killed in between, the next start
    // finds a finished journal whose session the history already has.
    const absl::Status recorded = history.AppendSession(*session);
    if (!recorded.ok() && !absl::IsAlreadyExists(recorded)) return recorded;
    if (session->has_winner()) {
      OPTRAIL_RETURN_IF_ERROR(tuning::WriteOverlay(
          context.store, task.task.operator_name(), task.task.hardware_id(),
          task.task.device_kind(), TunedConfigOf(*session)));
    }
    OPTRAIL_RETURN_IF_ERROR(RemoveTuneJournal(setup, tune));
    summary.session = *std::move(session);
  }
  progress.Finish();
  return summaries;
}

std::string FormatTuneSummaries(const std::vector<TuneSummary>& summaries,
                                OutputFormat format) {
  Table table({{"task"},
               {"default", Align::kRight, "default_time_ns"},
               {"tuned", Align::kRight, "tuned_time_ns"},
               {"speed-up", Align::kRight, "speedup"},
               {"trials", Align::kRight},
               {"failed", Align::kRight},
               {"stopped"},
               {"config"}});
  for (const TuneSummary& summary : summaries) {
    std::vector<Cell> row = {ShortTaskText(summary.task)};
    if (!summary.session.has_value()) {
      row.insert(row.end(), 5, Cell::None());
      row.push_back(summary.skipped ? "in the store" : "failed");
      row.push_back(summary.error);
      table.AddRow(std::move(row));
      continue;
    }
    const proto::Session& session = *summary.session;
    const proto::Finalist* fallback = DefaultFinalist(session);
    const proto::Finalist* winner =
        session.has_winner() ? FindFinalist(session, session.winner())
                             : nullptr;
    const auto time = [](const proto::Finalist* finalist) {
      return finalist != nullptr && finalist->has_time_ns()
                 ? Cell::Number(finalist->time_ns(),
                                FormatDurationNs(finalist->time_ns()))
                 : Cell::None();
    };
    row.push_back(time(fallback));
    row.push_back(time(winner));
    if (winner != nullptr && fallback != nullptr && fallback->has_time_ns()) {
      const double speedup = fallback->time_ns() / winner->time_ns();
      row.push_back(Cell::Number(speedup, absl::StrFormat("%.2fx", speedup)));
    } else {
      row.push_back(Cell::None());
    }
    const int warm = session.warm_start_trial_count();
    int failed = 0;
    for (int i = warm; i < session.trials_size(); ++i) {
      const proto::Outcome outcome = session.trials(i).outcome();
      failed += outcome != proto::OK && outcome != proto::CENSORED &&
                outcome != proto::CONTENDED;
    }
    row.push_back(Cell::Integer(session.trials_size() - warm));
    row.push_back(Cell::Integer(failed));
    const bool contended =
        std::any_of(session.finalists().begin(), session.finalists().end(),
                    [](const proto::Finalist& finalist) {
                      return finalist.outcome() == proto::CONTENDED;
                    });
    row.push_back(winner == nullptr
                      ? contended ? "machine too busy" : "no config works"
                      : absl::AsciiStrToLower(
                            proto::StopReason_Name(session.stop_reason())));
    row.push_back(session.has_winner() ? CanonicalText(session.winner()) : "");
    table.AddRow(std::move(row));
  }
  return table.Format(format, TerminalWidth());
}

}  // namespace optrail::suites
