#include "suites/tune/known_trials.h"

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/meter_window.h"
#include "tuning/session/numerics.h"

namespace optrail::suites {
namespace {

// A reading under contention, one that was cut short against the best of its
// time, a deadline or memory limit of that day, a crash: worth another try.
bool ConfigDecided(proto::Outcome outcome) {
  switch (outcome) {
    case proto::OK:
    case proto::INVALID:
    case proto::COMPILE_ERROR:
    case proto::WRONG_RESULT:
    case proto::UNSUPPORTED:
      return true;
    default:
      return false;
  }
}

// What a strategy is told of `trial`, which `session_id` holds.
proto::Trial Known(const proto::Trial& trial, const std::string& session_id) {
  proto::Trial known;
  *known.mutable_config() = trial.config();
  known.set_outcome(trial.outcome());
  if (trial.has_time_ns()) known.set_time_ns(trial.time_ns());
  *known.mutable_objectives() = trial.objectives();
  // Bits are of the kernel, as the time is: its trial need not be repeated.
  tuning::CopyNumerics(trial, &known);
  for (const proto::Measurement& measurement : trial.measurements()) {
    // The readings of meters, without the samples.
    for (const auto& metered : tuning::MeteredMetrics(measurement)) {
      proto::MetricSamples* read = known.add_objectives();
      read->set_metric(metered.metric);
      read->set_unit(metered.unit);
      read->set_direction(metered.direction);
      read->mutable_values()->Add(metered.per_call.begin(),
                                  metered.per_call.end());
    }
  }
  // A warm-start trial of that session knows where it comes from; in an older
  // record it has its samples with it.
  known.set_session_id(trial.session_id().empty() ? session_id
                                                  : trial.session_id());
  return known;
}

}  // namespace

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
      if (ConfigDecided(trial.outcome()) &&
          seen.insert(tuning::CanonicalText(trial.config())).second) {
        trials.push_back(Known(trial, session->session_id()));
      }
    }
  }
  return trials;
}

}  // namespace optrail::suites
