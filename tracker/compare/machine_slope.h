#ifndef OPTRAIL_TRACKER_COMPARE_MACHINE_SLOPE_H_
#define OPTRAIL_TRACKER_COMPARE_MACHINE_SLOPE_H_

// How the time of a benchmark follows the calibration loops beside it: a ridge
// regression over processes, robust to wild ones.
//
//   const MachineSlope slope = MachineSlope::Fit(logs, states);
//   log_time - slope.Explains(state)   // as on the undisturbed machine
//
// The prior is physical: code bound by the core takes in proportion to loops
// that are too, other code less. Until the machine's state has varied, what it
// does to the benchmark is not known, and VarianceOf() says so.
//
// Loops run before and after the samples of a process, so what they say of a
// neighbour that comes and goes is a guess: Disturbance() is how much of the
// correction is one.

#include <array>

#include "absl/types/span.h"

namespace optrail::tracker {

// What calibration loops beside a process, and how many of its samples were
// contended, say of the machine.
struct MachineState {
  enum Witness {
    kClock,      // a loop in registers: the clock rate alone
    kL1,         // the caches of a core over kClock: who shares the core
    kL2,         //
    kL3,         // beyond them
    kMemory,     //
    kContended,  // the share of samples that were, where medians are told
    kWitnesses
  };

  // Logarithms of the loops' times.
  std::array<double, kWitnesses> values = {};

  // Of the fastest readings while samples were taken, else of medians before
  // and after; the two do not compare.
  bool fastest = false;
};

class MachineSlope {
 public:
  MachineSlope() = default;  // explains nothing

  // As many values as states, at least one, of processes in runs of
  // `processes`, which share the state of the machine.
  static MachineSlope Fit(absl::Span<const double> values,
                          absl::Span<const MachineState> states,
                          double processes);

  bool exists() const { return exists_; }
  // Against the undisturbed state of those that it was fitted on.
  double Explains(const MachineState& state) const;
  // What of that neighbours may have added, which is not negative.
  double Disturbance(const MachineState& state) const;
  // The effect of a step of the state.
  double Effect(const MachineState& step) const;
  double VarianceOf(const MachineState& step) const;

 private:
  static constexpr int kStates = MachineState::kWitnesses;
  using Vector = std::array<double, kStates>;
  using Matrix = std::array<Vector, kStates>;

  static Matrix Inverse(Matrix m);

  bool exists_ = false;
  Vector calm_ = {};
  Vector slope_ = {};
  Matrix covariance_ = {};
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_MACHINE_SLOPE_H_
