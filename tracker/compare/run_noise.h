#ifndef OPTRAIL_TRACKER_COMPARE_RUN_NOISE_H_
#define OPTRAIL_TRACKER_COMPARE_RUN_NOISE_H_

// How the levels of runs vary, benchmark by benchmark, and how often a run is a
// bad one: all its processes were disturbed.
//
//   const std::vector<RunNoise> noise =
//       LearnRunNoise(benchmarks, /*factor=*/true);
//   SlowRunsTail(noise[j].slow, /*runs=*/1, /*by=*/.1)
//
// Bad runs are learned of all benchmarks together and of each, the variance of
// others by empirical Bayes over the benchmarks of the suite (Smyth, 2004). The
// worst run counts for nothing: that there was a bad one is no reason to take
// whatever is slow for another. Nor does the worst of three benchmarks or more
// count for the others.

#include <vector>

#include "tracker/compare/lower_level.h"

namespace optrail::tracker {

// No level of a run is believed to be known better: clocks have a resolution,
// and a few runs can agree by chance. A standard deviation of the logarithm.
constexpr double kLeastRunSpread = .0015;

// How often all processes of a run are disturbed, and by how much, where
// nothing is known; and what that is worth, in runs.
constexpr SlowValues kSlowRuns = {.004, .03};
constexpr double kSlowRunsWeight = 20;

struct RunNoise {
  double variance = 0;  // of the level of a run that is not bad
  double degrees = 0;
  SlowValues slow = kSlowRuns;  // runs
};

// The runs of one benchmark. More is worse.
struct BenchmarkRuns {
  // Levels of runs by stretch of one level, and the place of each run.
  std::vector<ValueGroup> stretches;
  std::vector<std::vector<int>> places;
  ValueGroup candidates;         // several of the candidate, if any
  double expected_variance = 0;  // see below
  SlowValues slow_processes;
  double processes = 1;  // of a run
  bool calibrated = false;
};

// The variance of the level of a run that the variance of its processes alone
// explains.
double ExpectedRunVariance(double process_variance, double processes);

// `factor`: what benchmarks share was taken out.
std::vector<RunNoise> LearnRunNoise(
    const std::vector<BenchmarkRuns>& benchmarks, bool factor);

// The probability that as many runs are all bad ones and look worse by `by`.
double SlowRunsTail(const SlowValues& slow, int runs, double by);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_RUN_NOISE_H_
