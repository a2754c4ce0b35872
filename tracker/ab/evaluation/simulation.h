#ifndef OPTRAIL_TRACKER_AB_EVALUATION_SIMULATION_H_
#define OPTRAIL_TRACKER_AB_EVALUATION_SIMULATION_H_

// Simulated A/B comparisons: what the sequential test does, counted over many
// comparisons whose truth is known. For tests and for the table of
// docs/method/ab.md.

#include <cstdint>

#include "base/stats/paired_test.h"

namespace optrail::tracker {

enum class Noise {
  kNormal,
  // One process in ten is an outlier that is ten spreads too slow.
  kOutliers,
  // Shifted log-normal: skewed to the slow side, as machines are.
  kSkewed,
};

struct SimulationOptions {
  int comparisons = 2000;
  int benchmarks = 1;   // in each comparison
  double effect = 0;    // B is this much slower, relatively, in each of them
  double spread = .01;  // between processes, relative
  Noise noise = Noise::kNormal;
  int max_rounds = 40;
  uint64_t seed = 1;
  PairedTestOptions test;  // false_alarm_rate is of the whole comparison
};

struct SimulationResult {
  int comparisons = 0;
  int any_slower = 0;  // comparisons that called a benchmark slower
  int any_faster = 0;
  // The shares of the verdicts, of all benchmarks.
  double slower = 0, faster = 0, unchanged = 0, cannot_tell = 0;
  double mean_rounds = 0;
};

SimulationResult Simulate(const SimulationOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_AB_EVALUATION_SIMULATION_H_
