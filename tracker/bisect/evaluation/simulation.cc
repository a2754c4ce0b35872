#include "tracker/bisect/evaluation/simulation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/stats/statistics.h"
#include "tracker/bisect/noisy_bisection.h"

namespace optrail::tracker {

BisectSimulationResult Simulate(const BisectSimulation& simulation) {
  BisectSimulationResult result;
  Rng rng(simulation.seed);
  const auto measure = [&](bool bad, int rounds) {
    std::vector<double> log_ratios(rounds);
    for (double& value : log_ratios) {
      value = (bad ? std::log1p(simulation.effect) : 0) +
              simulation.spread * (rng.Gaussian() - rng.Gaussian());
    }
    BisectMeasurement measurement;
    measurement.log_ratio = Mean(log_ratios);
    measurement.standard_error = WidenedStandardError(
        StandardDeviation(log_ratios) / std::sqrt(rounds), rounds);
    return measurement;
  };
  for (int i = 0; i < simulation.searches; ++i) {
    const int culprit =
        1 + static_cast<int>(rng.UniformInt(simulation.commits));
    std::vector<bool> broken(simulation.commits + 1);
    for (int k = 1; k < simulation.commits; ++k) {
      broken[k] = rng.UniformReal() < simulation.broken;
    }
    const BisectMeasurement effect = measure(true, simulation.effect_rounds);
    BisectOptions options;
    options.log_effect = effect.log_ratio;
    options.effect_standard_error = effect.standard_error;
    options.expected_standard_error =
        effect.standard_error *
        std::sqrt(1. * simulation.effect_rounds / simulation.rounds);
    // Nodes of a fleet build for every look; the command sets it alike.
    if (simulation.at_once > 1) options.build_cost = 0;
    NoisyBisection search(simulation.commits, options);
    while (true) {
      const std::vector<int> batch = search.NextBatch(simulation.at_once);
      if (batch.empty()) break;
      ++result.turns;
      for (const int commit : batch) {
        if (broken[commit]) {
          search.Skip(commit);
        } else {
          search.Tell(commit, measure(commit >= culprit, simulation.rounds));
        }
      }
    }
    const BisectAnswer answer = search.Answer();
    result.right += answer.first <= culprit && culprit <= answer.last;
    result.sure += answer.is_sure;
    result.builds += search.builds();
    result.most_builds = std::max(result.most_builds, 1. * search.builds());
    result.measurements += search.measurements();
    result.named += answer.last - answer.first + 1;
  }
  for (double* mean : {&result.right, &result.sure, &result.builds,
                       &result.measurements, &result.turns, &result.named}) {
    *mean /= simulation.searches;
  }
  return result;
}

}  // namespace optrail::tracker
