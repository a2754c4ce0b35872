#include "carbon/indices.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/stats/statistics.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/meter_window.h"
#include "tuning/proto/session_clock.h"
#include "tuning/session/objective.h"

namespace optrail::carbon {
namespace {

constexpr int kRunsOfAHabit = 5;

const proto::Finalist* FinalistOf(const proto::Session& session,
                                  const proto::Config& config) {
  for (const proto::Finalist& finalist : session.finalists()) {
    if (tuning::CanonicalText(finalist.config()) ==
        tuning::CanonicalText(config)) {
      return &finalist;
    }
  }
  return nullptr;
}

// Joules of a call, as verified or as the windows of its processes read.
absl::optional<double> JoulesOf(const proto::Finalist& finalist) {
  if (const auto verified = tuning::ValueOf(finalist, tuning::kJoules)) {
    return verified;
  }
  std::vector<double> read;
  for (const proto::Measurement& measurement : finalist.measurements()) {
    const auto joules = tuning::MeteredPerCall(measurement, tuning::kJoules);
    if (joules) read.push_back(*joules);
  }
  if (read.empty()) return absl::nullopt;
  return Median(read);
}

absl::optional<double> RatioOf(absl::optional<double> over,
                               absl::optional<double> under) {
  if (!over || !under || !(*over > 0) || !(*under > 0)) return absl::nullopt;
  return *over / *under;
}

absl::optional<double> EfficiencyOf(const proto::Session& session) {
  if (tuning::ClockNs(session) <= 0) return absl::nullopt;
  int64_t useful_ns = 0;
  for (int i = session.warm_start_trial_count(); i < session.trials_size();
       ++i) {
    const proto::Trial& trial = session.trials(i);
    if (trial.outcome() == proto::OK) useful_ns += trial.elapsed_ns();
  }
  const double share = static_cast<double>(useful_ns) /
                       static_cast<double>(tuning::ClockNs(session));
  return std::min(share, 1.0);
}

}  // namespace

SessionGain GainOf(const proto::Session& session, const PowerModel& model) {
  SessionGain gain;
  gain.efficiency = EfficiencyOf(session);
  gain.spent = EnergyOfSession(session, model);
  const proto::Finalist* fallback = nullptr;
  for (const proto::Finalist& finalist : session.finalists()) {
    if (finalist.is_default()) fallback = &finalist;
  }
  const proto::Finalist* const winner =
      session.has_winner() ? FinalistOf(session, session.winner()) : nullptr;
  if (fallback == nullptr || winner == nullptr) return gain;
  gain.time_ratio = RatioOf(tuning::ValueOf(*fallback, tuning::kTimeMetric),
                            tuning::ValueOf(*winner, tuning::kTimeMetric));
  absl::optional<double> before = JoulesOf(*fallback),
                         after = JoulesOf(*winner);
  gain.energy_ratio = RatioOf(before, after);
  if (!before || !after) {
    // The records lack joules: a model's power stands in, times the time.
    const double watts =
        gain.spent.seconds > 0 ? gain.spent.joules / gain.spent.seconds : 0;
    if (!gain.time_ratio || watts <= 0) return gain;
    before = watts * fallback->time_ns() * 1e-9;
    after = watts * winner->time_ns() * 1e-9;
    gain.estimated = true;
  }
  gain.estimated |= gain.spent.estimated;
  gain.joules_saved_per_call = *before - *after;
  if (gain.spent.known && *before > *after) {
    gain.break_even_calls = gain.spent.joules / (*before - *after);
  }
  return gain;
}

TuningIndex IndexOf(const std::vector<const proto::Session*>& sessions,
                    const PowerModel& model) {
  TuningIndex index;
  std::set<uint64_t> seeds;
  std::vector<double> log_times, log_energies, efficiencies;
  for (const proto::Session* session : sessions) {
    const SessionGain gain = GainOf(*session, model);
    if (!gain.time_ratio) continue;
    ++index.sessions;
    seeds.insert(session->seed());
    log_times.push_back(std::log(*gain.time_ratio));
    if (gain.energy_ratio) log_energies.push_back(std::log(*gain.energy_ratio));
    if (gain.efficiency) efficiencies.push_back(*gain.efficiency);
  }
  index.seeds = static_cast<int>(seeds.size());
  index.with_energy = static_cast<int>(log_energies.size());
  if (!log_times.empty()) index.performance = std::exp(Mean(log_times));
  if (!log_energies.empty()) index.energy = std::exp(Mean(log_energies));
  if (!efficiencies.empty()) index.efficiency = Mean(efficiencies);
  if (!log_energies.empty() && index.efficiency > 0) {
    index.index =
        std::cbrt(index.performance * index.energy * index.efficiency);
  }
  return index;
}

Maturity MaturityOf(const MaturityEvidence& evidence) {
  struct Level {
    const char* name;
    bool reached;
    std::string missing;
  };
  const Level levels[] = {
      {"records", evidence.runs > 0,
       "a recorded run; next: optrail bench --record"},
      {"follows", evidence.runs >= kRunsOfAHabit && evidence.commits >= 2,
       absl::StrCat("at least ", kRunsOfAHabit,
                    " runs of at least 2 commits; there are ", evidence.runs,
                    " of ", evidence.commits)},
      {"tunes", evidence.proven_sessions > 0,
       "a tuning session whose winner was proven; next: optrail tune"},
      {"meters", evidence.checked_windows > 0,
       "joules whose two sources agree; next: optrail bench --objective=joules "
       "--record on a machine with a meter"},
      {"certifies", evidence.verified_certificates > 0,
       "a certificate that verifies; next: optrail carbon certify"},
  };
  Maturity maturity;
  maturity.name = "nothing";
  for (const Level& level : levels) {
    if (!level.reached) {
      maturity.missing = level.missing;
      return maturity;
    }
    ++maturity.level;
    maturity.name = level.name;
  }
  return maturity;
}

}  // namespace optrail::carbon
