#include "tracker/ab/evaluation/simulation.h"

#include <cmath>
#include <vector>

#include "base/random.h"

namespace optrail::tracker {
namespace {

double ProcessNoise(Noise noise, double spread, Rng& rng) {
  switch (noise) {
    case Noise::kNormal:
      break;
    case Noise::kOutliers:
      if (rng.UniformReal() < .1) return 10 * spread;
      break;
    case Noise::kSkewed:
      return spread * (std::exp(rng.Gaussian()) - 1) / 2;
  }
  return spread * rng.Gaussian();
}

}  // namespace

SimulationResult Simulate(const SimulationOptions& options) {
  PairedTestOptions test = options.test;
  test.false_alarm_rate /= options.benchmarks;
  Rng rng(options.seed);
  SimulationResult result;
  result.comparisons = options.comparisons;
  const double shift = std::log1p(options.effect);
  for (int i = 0; i < options.comparisons; ++i) {
    std::vector<std::vector<double>> values(options.benchmarks);
    std::vector<PairedVerdict> verdicts(options.benchmarks);
    int rounds = 0;
    bool open = true;
    while (open && rounds < options.max_rounds) {
      ++rounds;
      open = false;
      for (int b = 0; b < options.benchmarks; ++b) {
        values[b].push_back(shift +
                            ProcessNoise(options.noise, options.spread, rng) -
                            ProcessNoise(options.noise, options.spread, rng));
        verdicts[b] = PairedTest(values[b], test).verdict;
        open = open || verdicts[b] == PairedVerdict::kCannotTell;
      }
    }
    result.mean_rounds += rounds;
    int slower = 0, faster = 0;
    for (const PairedVerdict verdict : verdicts) {
      slower += verdict == PairedVerdict::kHigher;
      faster += verdict == PairedVerdict::kLower;
      result.unchanged += verdict == PairedVerdict::kUnchanged;
      result.cannot_tell += verdict == PairedVerdict::kCannotTell;
    }
    result.slower += slower;
    result.faster += faster;
    result.any_slower += slower > 0;
    result.any_faster += faster > 0;
  }
  result.mean_rounds /= options.comparisons;
  const double all = 1. * options.comparisons * options.benchmarks;
  result.slower /= all;
  result.faster /= all;
  result.unchanged /= all;
  result.cannot_tell /= all;
  return result;
}

}  // namespace optrail::tracker
