#include "reports/knob_effects.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/stats/statistics.h"

namespace optrail::reports {
namespace {

absl::optional<double> EpsilonSquared(
    const std::vector<std::vector<double>>& groups) {
  int n = 0;
  int k = 0;
  double sum = 0;
  for (const std::vector<double>& group : groups) {
    if (!group.empty()) ++k;
    n += group.size();
    for (double value : group) sum += std::log(value);
  }
  if (k < 2 || n - k < 2) return absl::nullopt;
  const double mean = sum / n;
  double between = 0;
  double within = 0;
  for (const std::vector<double>& group : groups) {
    if (group.empty()) continue;
    double group_sum = 0;
    for (double value : group) group_sum += std::log(value);
    const double group_mean = group_sum / group.size();
    between += group.size() * (group_mean - mean) * (group_mean - mean);
    for (double value : group) {
      within += (std::log(value) - group_mean) * (std::log(value) - group_mean);
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
    std::vector<std::vector<double>> values(session.knobs[k].levels.size());
    for (size_t i = 0; i < session.levels.size(); ++i) {
      const tracker::TrialPoint& trial = session.of.trials[i];
      const int level = session.levels[i][k];
      // What has a cost has a value of the first objective.
      if (!trial.cost || level < 0 || !(trial.values[0] > 0)) continue;
      values[level].push_back(*trial.values[0]);
    }
    KnobEffect effect;
    effect.knob = k;
    effect.importance = EpsilonSquared(values);
    for (int level = 0; level < values.size(); ++level) {
      std::vector<double>& at = values[level];
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

}  // namespace optrail::reports
