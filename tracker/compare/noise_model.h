#ifndef OPTRAIL_TRACKER_COMPARE_NOISE_MODEL_H_
#define OPTRAIL_TRACKER_COMPARE_NOISE_MODEL_H_

// How much did each benchmark change between two sides, and how sure is that?
// The sources of variation are learned from the runs of a history.
//
//   Panel panel;                       // runs in series order, benchmarks
//   panel.baseline = {5, 6, 7, 8, 9};  // in the same order in each
//   panel.candidate.push_back(run);
//   const PanelEstimate estimate = EstimateChanges(panel);
//   // estimate.benchmarks[j].log_ratio, .standard_error, ...
//
// The model (docs/method/gating.md), in logarithms:
//
//   process = level of the code           what is asked for
//           + slope x calibration loops   the machine, as it says itself
//           + loading x shared factor     the machine, as all benchmarks say
//           + effect of the run           variance by benchmark, learned
//           + effect of the process       variance by benchmark, learned
//           + now and then: neighbours    a share and a mean excess, learned
//
// The last is never negative, for runs as for processes (lower_level.h), so a
// level is that of the undisturbed ones, and whether a slow run is a bad run or
// slow code is a matter of probability: SlowRunsTail().
//
// Each variance is the benchmark's own, drawn towards what its suite has in
// common by as much as the suite's benchmarks resemble each other (Smyth,
// "Linear models and empirical Bayes methods", 2004), so that one run a side
// carries the variance between runs. Lasting steps of a level in the
// history are taken out before noise is learned.
//
// What the candidate's benchmarks share is bounded by what the history shows:
// see factor_posterior.h.
//
// It decides nothing: compare.h makes verdicts of it.

#include <vector>

#include "absl/types/optional.h"
#include "tracker/compare/lower_level.h"
#include "tracker/compare/process_levels.h"
#include "tracker/compare/run_noise.h"

namespace optrail::tracker {

// What one run has of each benchmark; empty where it has nothing.
using PanelRun = std::vector<std::vector<ProcessLog>>;

// What the model consists of, each of which an evaluation can leave out
// (docs/method/gating.md has what that costs).
struct NoiseTerms {
  bool calibration = true;    // slopes of calibration loops
  bool shared_factor = true;  // what benchmarks share
  bool factor_doubt = true;   // the machine may be what it was before
  bool steps = true;          // lasting steps of a level in the history
  bool bad_runs = true;       // a slow run is perhaps a bad one
  bool loneliness = true;     // a level that one process supports is unsure
  bool surprise = true;       // a candidate with many slow processes is unsure
};

struct Panel {
  std::vector<PanelRun> runs;  // what noise is learned from, in series order
  std::vector<int> baseline;   // which of them are the baseline
  std::vector<PanelRun> candidate;
  // The baseline is a window over a history: it begins anew where a benchmark
  // became better, and leaves out runs where it became worse for a while.
  bool window = false;
  // By run, what its level may be off by because it was measured differently
  // than the candidate: a standard deviation of the logarithm, the same error
  // in all such runs. Empty: nothing.
  std::vector<double> doubts;
  // By benchmark: the first of `runs` that may count as baseline, because a
  // change before it is known. Empty: all may.
  std::vector<int> level_starts;
  // By benchmark: 1 where more is worse, -1 where less is. Empty: 1.
  std::vector<int> worse_signs;
  NoiseTerms terms;
};

struct BenchmarkEstimate {
  // False where a side has no process, or nothing measures noise.
  bool possible = false;
  double log_ratio = 0;  // candidate over baseline, the machine taken out
  double standard_error = 0;
  double degrees_of_freedom = 0;
  // The change if the shared factor is as far from its estimate as the history
  // allows: the machine may have done more, or less. Equal to log_ratio where
  // that is beyond doubt.
  double log_ratio_low = 0;
  double log_ratio_high = 0;
  // The part of the raw change that the machine's state explains.
  double log_machine = 0;
  double log_candidate = 0;  // level of the candidate
  double process_spread = 0;
  double candidate_process_spread = 0;
  double run_spread = 0;  // of a run's level, its processes included
  // Runs that are disturbed as a whole.
  SlowValues slow_runs;
  int candidate_runs = 0;
  int first_baseline_run = 0;  // after level_starts and what `window` says
  int baseline_runs = 0;
  std::vector<int> baseline;  // of `runs`: those that the level is of
  // Indices of `runs` in the baseline that are more likely bad than not, and
  // left out.
  std::vector<int> far_off;
  // How much worse the candidate is than the newest run of a window, in
  // logarithms, where that run was left out because it was better: it may be
  // the level by now.
  absl::optional<double> worse_than_newest;
};

struct PanelEstimate {
  std::vector<BenchmarkEstimate> benchmarks;
  // How much the machine's shared factor varied in the history, a standard
  // deviation of the logarithm; absent without a factor.
  absl::optional<double> factor_spread;
};

PanelEstimate EstimateChanges(const Panel& panel);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_NOISE_MODEL_H_
