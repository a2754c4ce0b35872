#include "tracker/convergence/convergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/statistics.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

using tuning::CanonicalText;

// Without verification nothing is known of the noise; what the quietest
// machines show is assumed, so that a plateau ends where it should.
constexpr double kAssumedNoise = .01;

absl::optional<double> Positive(bool present, double value) {
  if (!present || !std::isfinite(value) || value <= 0) return absl::nullopt;
  return value;
}

TrialPoint PointOf(const proto::Trial& trial) {
  TrialPoint point;
  point.config = trial.config();
  point.config_text = CanonicalText(trial.config());
  point.outcome = trial.outcome();
  if (trial.outcome() == proto::OK) {
    point.time_ns = Positive(trial.has_time_ns(), trial.time_ns());
  }
  point.elapsed_ns = std::max<int64_t>(trial.elapsed_ns(), 0);
  point.compile_ns = std::max<int64_t>(trial.compile_ns(), 0);
  point.detail = trial.detail();
  return point;
}

FinalistPoint PointOf(const proto::Finalist& finalist) {
  FinalistPoint point;
  point.config = finalist.config();
  point.config_text = CanonicalText(finalist.config());
  point.is_default = finalist.is_default();
  point.first_time_ns = Positive(true, finalist.first_time_ns());
  if (finalist.outcome() == proto::OK) {
    point.verified_time_ns =
        Positive(finalist.has_time_ns(), finalist.time_ns());
  }
  for (const proto::Measurement& measurement : finalist.measurements()) {
    const auto median =
        Positive(measurement.has_median_ns(), measurement.median_ns());
    if (median) point.process_medians_ns.push_back(*median);
  }
  return point;
}

void Count(proto::Outcome outcome, OutcomeCounts& counts) {
  switch (outcome) {
    case proto::OK:
      ++counts.ok;
      return;
    case proto::CENSORED:
      ++counts.censored;
      return;
    case proto::CONTENDED:
      ++counts.contended;
      return;
    case proto::OUT_OF_MEMORY:
      ++counts.out_of_memory;
      return;
    case proto::INVALID:
    case proto::UNSUPPORTED:
    case proto::COMPILE_ERROR:
    case proto::LAUNCH_ERROR:
      ++counts.invalid;
      return;
    default:  // an outcome of a newer writer is a failure
      ++counts.failed;
      return;
  }
}

absl::optional<double> ProcessNoise(
    const std::vector<FinalistPoint>& finalists) {
  std::vector<double> deviations;
  for (const FinalistPoint& finalist : finalists) {
    const std::vector<double>& medians = finalist.process_medians_ns;
    if (medians.size() < 2) continue;
    const double center = Median(medians);
    // A deviation from the sample's own center is too small by this factor.
    const double n = static_cast<double>(medians.size());
    const double correction = std::sqrt(n / (n - 1));
    for (double median : medians) {
      deviations.push_back(std::abs(std::log(median / center)) * correction);
    }
  }
  if (deviations.size() < 4) return absl::nullopt;
  // Deviations of the middle value are zero and would pull a median down, so
  // the scale is taken from the 68% quantile: one sigma for normal noise.
  return Quantile(deviations, .6827);
}

void AnalyzeProgress(SessionAnalysis& analysis) {
  double best = std::numeric_limits<double>::quiet_NaN();
  for (int i = 0; i < analysis.trial_count(); ++i) {
    const TrialPoint& trial = analysis.trials[i];
    if (trial.time_ns && !(*trial.time_ns >= best)) {
      best = *trial.time_ns;
      analysis.improvements.push_back({i, best});
    }
    analysis.best_so_far_ns.push_back(best);
  }
  if (analysis.improvements.empty()) return;
  analysis.best_ns = best;
  const double noise =
      std::max(kAssumedNoise, std::max(analysis.process_noise.value_or(0),
                                       analysis.search_noise.value_or(0)));
  bool near_best = false;
  for (const Improvement& step : analysis.improvements) {
    const double reached = best / step.time_ns;
    if (!analysis.trials_to_95_percent && reached >= .95) {
      analysis.trials_to_95_percent = step.trial + 1;
    }
    if (!analysis.trials_to_99_percent && reached >= .99) {
      analysis.trials_to_99_percent = step.trial + 1;
    }
    if (!near_best && -std::log(reached) <= 2 * noise) {
      near_best = true;
      analysis.plateau_trials = analysis.trial_count() - step.trial - 1;
    }
  }
}

void AnalyzeFinalists(const proto::Session& session,
                      SessionAnalysis& analysis) {
  for (const proto::Finalist& finalist : session.finalists()) {
    analysis.finalists.push_back(PointOf(finalist));
  }
  analysis.process_noise = ProcessNoise(analysis.finalists);
  const std::string winner =
      session.has_winner() ? CanonicalText(session.winner()) : "";
  std::vector<double> shifts;
  absl::optional<double> default_ns;
  for (const FinalistPoint& finalist : analysis.finalists) {
    if (!finalist.verified_time_ns) continue;
    if (finalist.is_default) default_ns = finalist.verified_time_ns;
    if (finalist.first_time_ns && !finalist.is_default) {
      shifts.push_back(
          std::log(*finalist.verified_time_ns / *finalist.first_time_ns));
    }
    if (!session.has_winner() || finalist.config_text != winner) continue;
    analysis.winner_ns = finalist.verified_time_ns;
    if (finalist.first_time_ns) {
      analysis.winners_curse =
          *finalist.verified_time_ns / *finalist.first_time_ns - 1;
    }
  }
  if (!shifts.empty()) analysis.finalists_curse = std::expm1(Median(shifts));
  if (shifts.size() >= 3) {
    analysis.search_noise = MedianAbsoluteDeviation(shifts);
  }
  if (default_ns && analysis.winner_ns) {
    analysis.speedup_over_default = *default_ns / *analysis.winner_ns;
  }
}

void AnalyzeCost(SessionAnalysis& analysis) {
  if (analysis.trials.empty()) return;
  double total_ns = 0;
  for (const TrialPoint& trial : analysis.trials) {
    total_ns += static_cast<double>(trial.elapsed_ns);
  }
  if (total_ns <= 0) {
    total_ns = static_cast<double>(analysis.header.elapsed_ns());
  }
  if (total_ns > 0) {
    analysis.time_per_trial_ns = total_ns / analysis.trial_count();
  }
}

double Share(int part, int whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / whole;
}

}  // namespace

double SessionAnalysis::useless_share() const {
  return Share(outcomes.useless(), trial_count());
}

double SessionAnalysis::contended_share() const {
  return Share(outcomes.contended, trial_count());
}

double SessionAnalysis::plateau_share() const {
  return Share(plateau_trials, trial_count());
}

SessionAnalysis AnalyzeSession(const proto::Session& session) {
  SessionAnalysis analysis;
  analysis.header = session;
  analysis.header.clear_trials();
  analysis.header.clear_finalists();
  analysis.task_text = tuning::TaskText(session.task());
  analysis.task_key =
      absl::StrCat(analysis.task_text, "@", session.task().hardware_id());
  // What saves energy is slower on purpose.
  const std::string objectives = tuning::ObjectivesText(session.objectives());
  if (!objectives.empty()) {
    absl::StrAppend(&analysis.task_text, " for ", objectives);
    absl::StrAppend(&analysis.task_key, "|", objectives);
  }
  // A damaged count must not reach beyond the trials.
  const int first =
      std::min<int>(std::max<int>(session.warm_start_trial_count(), 0),
                    session.trials_size());
  for (int i = first; i < session.trials_size(); ++i) {
    analysis.trials.push_back(PointOf(session.trials(i)));
    Count(session.trials(i).outcome(), analysis.outcomes);
  }
  AnalyzeFinalists(session, analysis);
  AnalyzeProgress(analysis);
  AnalyzeCost(analysis);
  return analysis;
}

}  // namespace optrail::tracker
