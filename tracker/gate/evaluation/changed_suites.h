#ifndef OPTRAIL_TRACKER_GATE_EVALUATION_CHANGED_SUITES_H_
#define OPTRAIL_TRACKER_GATE_EVALUATION_CHANGED_SUITES_H_

// Simulated gates of suites of which a part changed on a machine that drifts:
// is half a suite taken for the machine?
//
//   const SuiteFigures figures = GateChangedSuites(/*gates=*/100, /*seed=*/1);
//   figures[0].missed   // green though a benchmark is 8% slower
//
// A gate has 5 to 40 benchmarks, of which none to all are changed by -50 to
// +50%, by one common step or each by its own, under a drift of 0 to 3% from
// run to run, with and without calibration loops, in pairs and not.

#include <array>
#include <cstdint>
#include <string>

namespace optrail::tracker {

struct SuiteCounts {
  std::string name;
  int gates = 0;
  int green = 0, red = 0, inconclusive = 0;
  // Green though a benchmark is slower by 8% or more.
  int missed = 0;
  // A benchmark that did not change is red.
  int false_red = 0;
  // Gates without any change that are green, of all without one.
  int unchanged_green = 0, unchanged = 0;
};

// All, pairs, calibrated, without calibration or drift, without calibration
// under drift.
using SuiteFigures = std::array<SuiteCounts, 5>;

SuiteFigures GateChangedSuites(int gates, uint64_t seed);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_EVALUATION_CHANGED_SUITES_H_
