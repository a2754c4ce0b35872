#include "suites/tune/task_store.h"

#include <iostream>
#include <set>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "ops/core/registry.h"
#include "suites/tune/objectives.h"
#include "suites/tune/tune_summary.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/numerics.h"
#include "tuning/session/objective.h"

namespace optrail::suites {

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

tuning::LookupResult FindEntry(const tuning::TunedConfigStore& store,
                               const TaskEntry& task,
                               const std::string& objective,
                               const tuning::ConfigPredicate* is_valid) {
  tuning::LookupRequest request = tuning::RequestOf(task.task);
  request.objective = objective;
  request.is_valid = is_valid;
  const tuning::LookupResult found = store.Lookup(request);
  return found.source == tuning::LookupSource::kExact ? found
                                                      : tuning::LookupResult();
}

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

const proto::TunedConfig* FindTuned(const tuning::TunedConfigStore& store,
                                    const TaskEntry& task,
                                    const std::string& objective,
                                    const TaskSpace& space) {
  const tuning::LookupResult found = FindExact(store, task, objective, space);
  return found.unverified ? nullptr : found.tuned;
}

proto::TunedConfig TunedConfigOf(const proto::Session& session) {
  proto::TunedConfig tuned;
  const proto::Finalist* winner = WinningFinalist(session);
  const proto::Finalist* fallback = DefaultFinalist(session);
  tuned.set_shape(tuning::CanonicalText(session.task().shape()));
  tuned.set_config(tuning::CanonicalText(session.winner()));
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

}  // namespace optrail::suites
