#include "reports/knob_effects.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/statistics.h"

namespace optrail::reports {
namespace {

bool HasTime(const Trial& trial) {
  return trial.outcome == "OK" && std::isfinite(trial.time_ns) &&
         trial.time_ns > 0;
}

absl::optional<double> EpsilonSquared(
    const std::vector<std::vector<double>>& groups) {
  int n = 0;
  int k = 0;
  double sum = 0;
  for (const std::vector<double>& group : groups) {
    if (!group.empty()) ++k;
    n += group.size();
    for (double time : group) sum += std::log(time);
  }
  if (k < 2 || n - k < 2) return absl::nullopt;
  const double mean = sum / n;
  double between = 0;
  double within = 0;
  for (const std::vector<double>& group : groups) {
    if (group.empty()) continue;
    double group_sum = 0;
    for (double time : group) group_sum += std::log(time);
    const double group_mean = group_sum / group.size();
    between += group.size() * (group_mean - mean) * (group_mean - mean);
    for (double time : group) {
      within += (std::log(time) - group_mean) * (std::log(time) - group_mean);
    }
  }
  const double total = between + within;
  if (!(total > 0)) return absl::nullopt;
  return std::max(0.0, (between - (k - 1) * within / (n - k)) / total);
}

}  // namespace

std::vector<KnobEffect> KnobEffects(const TuningSession& session) {
  std::vector<KnobEffect> effects;
  for (int k = 0; k < session.knobs.size(); ++k) {
    std::vector<std::vector<double>> times(session.knobs[k].levels.size());
    for (const Trial& trial : session.trials) {
      if (!HasTime(trial) || k >= trial.levels.size()) continue;
      const int level = trial.levels[k];
      if (level < 0 || level >= times.size()) continue;
      times[level].push_back(trial.time_ns);
    }
    KnobEffect effect;
    effect.knob = k;
    effect.importance = EpsilonSquared(times);
    for (int level = 0; level < times.size(); ++level) {
      std::vector<double>& at = times[level];
      if (at.empty()) continue;
      std::sort(at.begin(), at.end());
      effect.levels.push_back({level, static_cast<int>(at.size()), at.front(),
                               Quantile(at, 0.25), Quantile(at, 0.5),
                               Quantile(at, 0.75), at.back()});
    }
    effects.push_back(std::move(effect));
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const KnobEffect& a, const KnobEffect& b) {
                     return a.importance.value_or(-1) >
                            b.importance.value_or(-1);
                   });
  return effects;
}

Convergence Converge(const TuningSession& session) {
  Convergence result;
  for (int i = 0; i < session.trials.size(); ++i) {
    const Trial& trial = session.trials[i];
    ++result.outcomes[trial.outcome];
    if (!HasTime(trial)) continue;
    if (!result.best_ns || trial.time_ns < *result.best_ns) {
      result.best_ns = trial.time_ns;
      result.improvements.push_back({i, trial.time_ns});
    }
  }
  for (const Improvement& step : result.improvements) {
    if (!result.trials_to_95_percent &&
        *result.best_ns >= 0.95 * step.time_ns) {
      result.trials_to_95_percent = step.trial + 1;
    }
    if (!result.trials_to_99_percent &&
        *result.best_ns >= 0.99 * step.time_ns) {
      result.trials_to_99_percent = step.trial + 1;
    }
  }
  return result;
}

absl::optional<double> WinnersCurse(const TuningSession& session) {
  for (const Finalist& finalist : session.finalists) {
    if (finalist.is_winner && finalist.first_time_ns > 0 &&
        std::isfinite(finalist.verified_time_ns)) {
      return finalist.verified_time_ns / finalist.first_time_ns - 1;
    }
  }
  return absl::nullopt;
}

absl::optional<double> VerifiedSpeedup(const TuningSession& session) {
  absl::optional<double> winner;
  absl::optional<double> fallback;
  for (const Finalist& finalist : session.finalists) {
    if (!(finalist.verified_time_ns > 0)) continue;
    if (finalist.is_winner) winner = finalist.verified_time_ns;
    if (finalist.is_default) fallback = finalist.verified_time_ns;
  }
  if (!winner || !fallback) return absl::nullopt;
  return *fallback / *winner;
}

std::string ConfigText(const TuningSession& session, const Trial& trial) {
  std::string text;
  for (size_t k = 0; k < session.knobs.size() && k < trial.levels.size(); ++k) {
    const int level = trial.levels[k];
    if (level < 0 || level >= session.knobs[k].levels.size()) continue;
    absl::StrAppend(&text, text.empty() ? "" : ",", session.knobs[k].name, "=",
                    session.knobs[k].levels[level]);
  }
  return text;
}

}  // namespace optrail::reports
