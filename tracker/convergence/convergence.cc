#include "tracker/convergence/convergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/series/value_text.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/session_text.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/session/objective.h"
#include "tuning/session/results.h"

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

using Objectives = std::vector<proto::Objective>;

absl::optional<double> CostOf(const Objectives& objectives,
                              const Values& values) {
  // One objective keeps its value to the last bit; several give a product.
  if (objectives.size() == 1) {
    const double value = values[0].value_or(0);
    return value > 0 ? Positive(true, tuning::CostOf(objectives[0], value))
                     : absl::nullopt;
  }
  const absl::optional<double> cost = tuning::Cost(objectives, values);
  return Positive(cost.has_value(), cost.value_or(0));
}

bool IsTimeAlone(const Objectives& objectives) {
  return objectives.size() == 1 &&
         objectives[0].metric() == tuning::kTimeMetric &&
         objectives[0].unit() == tuning::TimeObjective().unit();
}

TrialPoint PointOf(const Objectives& objectives, const proto::Trial& trial) {
  TrialPoint point;
  point.config = trial.config();
  point.config_text = CanonicalText(trial.config());
  point.outcome = trial.outcome();
  point.values = tuning::ValuesOf(objectives, trial);
  if (trial.outcome() == proto::OK) {
    point.cost = CostOf(objectives, point.values);
  }
  point.elapsed_ns = std::max<int64_t>(trial.elapsed_ns(), 0);
  point.compile_ns = std::max<int64_t>(trial.compile_ns(), 0);
  point.detail = trial.detail();
  return point;
}

// The search's reading of the config. A record holds times; other metrics are
// with the trials.
Values FirstValues(const proto::Session& session, const Objectives& objectives,
                   const std::string& config_text, double first_time_ns) {
  if (IsTimeAlone(objectives)) return {Positive(true, first_time_ns)};
  for (const proto::Trial& trial : session.trials()) {
    if (trial.outcome() == proto::OK &&
        CanonicalText(trial.config()) == config_text) {
      return tuning::ValuesOf(objectives, trial);
    }
  }
  return Values(objectives.size());
}

FinalistPoint PointOf(const proto::Session& session,
                      const Objectives& objectives,
                      const proto::Finalist& finalist) {
  FinalistPoint point;
  point.config = finalist.config();
  point.config_text = CanonicalText(finalist.config());
  point.outcome = finalist.outcome();
  point.is_default = finalist.is_default();
  point.is_winner = session.has_winner() &&
                    point.config_text == CanonicalText(session.winner());
  const Values first = FirstValues(session, objectives, point.config_text,
                                   finalist.first_time_ns());
  point.first_cost = CostOf(objectives, first);
  if (point.first_cost) point.first_value = first[0];
  if (finalist.outcome() == proto::OK) {
    const Values verified = tuning::ValuesOf(objectives, finalist);
    point.verified_cost = CostOf(objectives, verified);
    if (point.verified_cost) point.verified_value = verified[0];
  }
  for (const proto::Measurement& measurement : finalist.measurements()) {
    const auto cost =
        CostOf(objectives, tuning::ValuesOf(objectives, measurement));
    if (cost) point.process_costs.push_back(*cost);
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
    const std::vector<double>& medians = finalist.process_costs;
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
    if (trial.cost && !(*trial.cost >= best) &&
        tuning::WithinLimits(analysis.objectives, trial.values)) {
      best = *trial.cost;
      analysis.improvements.push_back({i, best});
    }
    analysis.best_so_far.push_back(best);
  }
  if (analysis.improvements.empty()) return;
  analysis.best_cost = best;
  const double noise =
      std::max(kAssumedNoise, std::max(analysis.process_noise.value_or(0),
                                       analysis.search_noise.value_or(0)));
  bool near_best = false;
  for (const Improvement& step : analysis.improvements) {
    const double reached = best / step.cost;
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

// The default's cost over the winner's. A gain is a share of cost saved, or of
// value gained (tuning::GainOf, of which this is the inverse): of half the cost
// 50% or 100%.
double SpeedupOf(const Objectives& objectives, double gain) {
  const bool of_value = tuning::GainOf(objectives, .5) > .75;
  return of_value ? 1 + gain : 1 / (1 - gain);
}

void AnalyzeProof(const proto::Session& session, SessionAnalysis& analysis) {
  if (!session.has_proof()) return;
  const auto& all = analysis.finalists;
  const bool default_stays =
      std::any_of(all.begin(), all.end(), [](const FinalistPoint& finalist) {
        return finalist.is_winner && finalist.is_default;
      });
  if (session.proof().claimed()) {
    analysis.speedup_over_default =
        Positive(true, SpeedupOf(analysis.objectives, session.proof().gain()));
  } else if (default_stays) {
    analysis.speedup_over_default = 1;
  }
}

void AnalyzeFinalists(const proto::Session& session,
                      SessionAnalysis& analysis) {
  for (const proto::Finalist& finalist : session.finalists()) {
    analysis.finalists.push_back(
        PointOf(session, analysis.objectives, finalist));
  }
  analysis.process_noise = ProcessNoise(analysis.finalists);
  std::vector<double> shifts;
  absl::optional<double> default_cost;
  for (const FinalistPoint& finalist : analysis.finalists) {
    if (!finalist.verified_cost) continue;
    if (finalist.is_default) default_cost = finalist.verified_cost;
    if (finalist.first_cost && !finalist.is_default) {
      shifts.push_back(
          std::log(*finalist.verified_cost / *finalist.first_cost));
    }
    if (!finalist.is_winner) continue;
    analysis.winner_cost = finalist.verified_cost;
    analysis.winner_value = finalist.verified_value;
    if (finalist.first_cost) {
      analysis.winners_curse =
          *finalist.verified_cost / *finalist.first_cost - 1;
    }
  }
  if (!shifts.empty()) analysis.finalists_curse = std::expm1(Median(shifts));
  if (shifts.size() >= 3) {
    analysis.search_noise = MedianAbsoluteDeviation(shifts);
  }
  if (default_cost && analysis.winner_cost) {
    analysis.speedup_over_default = *default_cost / *analysis.winner_cost;
  }
}

void FindFront(const proto::Session& session, SessionAnalysis& analysis) {
  if (analysis.objectives.size() < 2) return;
  const std::vector<tuning::Result> results = tuning::ResultsOf(session);
  for (const int i : tuning::FrontOf(analysis.objectives, results)) {
    const int trial = results[i].trial - analysis.warm_start_trials;
    // What was known before is on the front and no trial of this session.
    if (trial >= 0) analysis.front.push_back({trial, results[i].values});
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

bool SessionAnalysis::is_time() const { return IsTimeAlone(objectives); }

absl::optional<double> SessionAnalysis::best_value() const {
  if (improvements.empty()) return absl::nullopt;
  return trials[improvements.back().trial].values[0];
}

SessionAnalysis AnalyzeSession(const proto::Session& session) {
  SessionAnalysis analysis;
  analysis.header = session;
  analysis.header.clear_trials();
  analysis.header.clear_finalists();
  if (session.has_proof()) {
    analysis.header.mutable_proof()->clear_candidate_measurements();
    analysis.header.mutable_proof()->clear_default_measurements();
  }
  analysis.objectives = tuning::ObjectivesOf(session);
  analysis.task_text = tuning::SessionTaskText(session);
  analysis.task_key = absl::StrCat(tuning::TaskText(session.task()), "@",
                                   session.task().hardware_id());
  // We answer for operators from commit to commit. A program is its author's,
  // and another one is another task (docs/guide/tune_any_program.md).
  if (session.has_command()) {
    absl::StrAppend(&analysis.task_key, "|", session.task().kernel_id());
  }
  // A config that saves energy is slower on purpose.
  const std::string objectives = tuning::ObjectivesText(session.objectives());
  if (!objectives.empty()) {
    absl::StrAppend(&analysis.task_text, " for ", objectives);
    absl::StrAppend(&analysis.task_key, "|", objectives);
  }
  // A damaged count must not reach beyond the trials.
  analysis.warm_start_trials =
      std::min<int>(std::max<int>(session.warm_start_trial_count(), 0),
                    session.trials_size());
  for (int i = analysis.warm_start_trials; i < session.trials_size(); ++i) {
    const proto::Trial& trial = session.trials(i);
    analysis.trials.push_back(PointOf(analysis.objectives, trial));
    Count(trial.outcome(), analysis.outcomes);
    ++analysis.trials_by_outcome[tuning::OutcomeName(trial.outcome())];
  }
  AnalyzeFinalists(session, analysis);
  AnalyzeProof(session, analysis);
  if (session.has_proof()) analysis.proof_text = tuning::ProofText(session);
  analysis.no_winner_text = tuning::NoWinnerText(session);
  AnalyzeProgress(analysis);
  FindFront(session, analysis);
  AnalyzeCost(analysis);
  return analysis;
}

std::string ProgressText(const SessionAnalysis& session) {
  const int trials = session.trial_count();
  std::string text = absl::StrCat(trials, trials == 1 ? " trial" : " trials");
  if (session.warm_start_trials > 0) {
    absl::StrAppend(&text, " beside ", session.warm_start_trials,
                    " of earlier sessions");
  }
  if (const auto best = session.best_value()) {
    absl::StrAppend(&text, ", the best of them with ", session.metric(), " ",
                    FormatValue(*best, session.unit()), " after trial ",
                    session.improvements.back().trial + 1);
  }
  if (session.trials_to_95_percent) {
    absl::StrAppend(&text, ", within 5% of it after trial ",
                    *session.trials_to_95_percent);
  }
  return text;
}

std::string WinnerText(const SessionAnalysis& session) {
  if (!session.header.has_winner()) {
    return session.no_winner_text.empty()
               ? ""
               : absl::StrCat("winner none: ", session.no_winner_text);
  }
  std::string text =
      absl::StrCat("winner ", CanonicalText(session.header.winner()));
  if (session.winner_value) {
    absl::StrAppend(&text, " with ", session.metric(), " ",
                    FormatValue(*session.winner_value, session.unit()));
  }
  if (session.header.has_proof()) {
    absl::StrAppend(&text, ": ", session.proof_text);
  } else if (session.speedup_over_default) {
    absl::StrAppend(&text, ": not proven; as a finalist ",
                    absl::StrFormat("%.3gx", *session.speedup_over_default),
                    " as good as the default");
  }
  return text;
}

std::string FinalistsText(const SessionAnalysis& session) {
  int read = 0, worse = 0;
  for (const FinalistPoint& finalist : session.finalists) {
    if (!finalist.first_cost || !finalist.verified_cost ||
        finalist.is_default) {
      continue;
    }
    ++read;
    worse += *finalist.verified_cost > *finalist.first_cost;
  }
  if (read == 0 || !session.finalists_curse) return "";
  std::string text =
      absl::StrCat(worse, " of ", read, read == 1 ? " finalist" : " finalists",
                   " cost more when measured again than when first read (",
                   FormatChange(*session.finalists_curse), " in the median");
  if (session.winners_curse) {
    absl::StrAppend(&text, "; the winner ",
                    FormatChange(*session.winners_curse));
  }
  return absl::StrCat(text, ")");
}

}  // namespace optrail::tracker
