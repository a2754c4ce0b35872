// Prints the tables of docs/method/ab.md: noisy bisections of simulated
// commits.
//
//   bazel run -c opt //tracker/bisect/evaluation:simulate -- [searches]

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "tracker/bisect/evaluation/simulation.h"

int main(int argc, char** argv) {
  optrail::tracker::BisectSimulation simulation;
  if (argc > 1) simulation.searches = std::atoi(argv[1]);
  if (simulation.searches <= 0) {
    std::fprintf(stderr, "simulate: expected a number of searches\n");
    return 2;
  }
  std::printf(
      "| commits | slower by | spread | broken | right | sure | builds | most "
      "| "
      "log2(commits) | measurements | commits named |\n"
      "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  const auto print = [&] {
    const auto result = Simulate(simulation);
    std::printf(
        "| %d | %.0f%% | %.0f%% | %.0f%% | %.1f%% | %.1f%% | %.1f | %.0f | "
        "%.1f | %.1f | %.2f |\n",
        simulation.commits, 100 * simulation.effect, 100 * simulation.spread,
        100 * simulation.broken, 100 * result.right, 100 * result.sure,
        result.builds, result.most_builds, std::log2(simulation.commits),
        result.measurements, result.named);
    std::fflush(stdout);
  };
  for (const int commits : {8, 64, 512}) {
    simulation.commits = commits;
    for (const double effect : {.05, .20}) {
      for (const double spread : {.01, .03}) {
        simulation.effect = effect;
        simulation.spread = spread;
        print();
      }
    }
  }
  simulation.commits = 64;
  simulation.effect = .05;
  simulation.spread = .01;
  simulation.broken = .2;
  print();
  simulation.broken = 0;
  std::printf(
      "\n| commits | slower by | spread | at once | right | turns | "
      "measurements |\n|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const double spread : {.01, .03}) {
    for (const int at_once : {1, 2, 3, 7}) {
      simulation.spread = spread;
      simulation.at_once = at_once;
      const auto result = Simulate(simulation);
      std::printf("| %d | %.0f%% | %.0f%% | %d | %.1f%% | %.1f | %.1f |\n",
                  simulation.commits, 100 * simulation.effect, 100 * spread,
                  at_once, 100 * result.right, result.turns,
                  result.measurements);
    }
  }
  return 0;
}
