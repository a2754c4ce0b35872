#ifndef OPTRAIL_TRACKER_BISECT_EVALUATION_SIMULATION_H_
#define OPTRAIL_TRACKER_BISECT_EVALUATION_SIMULATION_H_

// Simulated bisections whose culprit is known, for tests and for the table of
// docs/method/ab.md.

#include <cstdint>

namespace optrail::tracker {

struct BisectSimulation {
  int searches = 200;
  int commits = 64;        // from the good to the bad one
  double effect = .05;     // relative
  double spread = .01;     // between processes, relative
  int rounds = 6;          // pairs of processes per measurement
  int effect_rounds = 12;  // of the bad commit, before the search
  int at_once = 1;         // commits that are measured at the same time
  double broken = 0;       // share of commits that do not build
  uint64_t seed = 1;
};

struct BisectSimulationResult {
  double right = 0;   // share of searches whose answer holds the culprit
  double sure = 0;    // share that ended sure
  double builds = 0;  // mean, without the good and the bad commit
  double most_builds = 0;
  double measurements = 0;
  double turns = 0;  // mean, of as many at once
  double named = 0;  // commits in the answer, mean
};

BisectSimulationResult Simulate(const BisectSimulation& simulation);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_BISECT_EVALUATION_SIMULATION_H_
