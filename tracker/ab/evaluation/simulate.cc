// Prints the table of docs/method/ab.md: what the sequential test does, by
// simulation.
//
//   bazel run -c opt //tracker/ab/evaluation:simulate -- [comparisons]

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/stats/statistics.h"
#include "tracker/ab/evaluation/simulation.h"

int main(int argc, char** argv) {
  using optrail::tracker::Noise;
  optrail::tracker::SimulationOptions options;
  if (argc > 1) options.comparisons = std::atoi(argv[1]);
  if (options.comparisons <= 0) {
    std::fprintf(stderr, "simulate: expected a number of comparisons\n");
    return 2;
  }
  std::printf(
      "| noise | spread | benchmarks | B is slower by | slower | 95%% bound | "
      "faster | unchanged | can't tell | rounds |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  const auto print = [&](const char* noise) {
    const auto result = Simulate(options);
    std::printf(
        "| %s | %.0f%% | %d | %.0f%% | %.2f%% | %.2f%% | %.2f%% | %.1f%% | "
        "%.1f%% | %.1f |\n",
        noise, 100 * options.spread, options.benchmarks, 100 * options.effect,
        100. * result.any_slower / result.comparisons,
        100 * optrail::ClopperPearsonUpper(result.any_slower,
                                           result.comparisons, .95),
        100. * result.any_faster / result.comparisons, 100 * result.unchanged,
        100 * result.cannot_tell, result.mean_rounds);
    std::fflush(stdout);
  };
  for (const double spread : {.01, .03}) {
    for (const double effect : {0., .02, .05, .20}) {
      options.spread = spread;
      options.effect = effect;
      print("normal");
    }
  }
  options.effect = 0;
  const std::pair<Noise, const char*> kNoises[] = {
      {Noise::kNormal, "normal"},
      {Noise::kOutliers, "outliers"},
      {Noise::kSkewed, "skewed"}};
  for (const auto& [noise, name] : kNoises) {
    options.noise = noise;
    for (const double spread : {.01, .03}) {
      options.spread = spread;
      if (noise != Noise::kNormal) print(name);
    }
  }
  options.noise = Noise::kNormal;
  options.spread = .03;
  options.benchmarks = 20;
  const int comparisons = options.comparisons;
  options.comparisons = (comparisons + 9) / 10;
  print("normal");

  // Nothing ends these but a false alarm: what 150 looks cost altogether.
  std::printf("\n150 looks, no minimum effect, never \"unchanged\":\n\n");
  options.benchmarks = 1;
  options.comparisons = comparisons;
  options.max_rounds = 150;
  options.test.min_effect = options.test.detect_effect = 0;
  for (const auto& [noise, name] : kNoises) {
    options.noise = noise;
    print(name);
  }
  return 0;
}
