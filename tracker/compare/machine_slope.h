#ifndef OPTRAIL_TRACKER_COMPARE_MACHINE_SLOPE_H_
#define OPTRAIL_TRACKER_COMPARE_MACHINE_SLOPE_H_

// How the time of a benchmark follows calibration loops: a ridge regression on
// two of them, robust to a bad run.
//
//   const MachineSlope slope = MachineSlope::Fit(logs, states, .01);
//   log_time - slope.Explains(state)   // as on the machine of the history
//
// The prior is physical: code bound by the core takes in proportion to a loop
// that is too, other code less. Until the machine's state has varied, what it
// does to the benchmark is not known, and VarianceOf() says so.

#include <array>

#include "absl/types/span.h"
#include "tracker/compare/machine_state.h"

namespace optrail::tracker {

class MachineSlope {
 public:
  MachineSlope() = default;  // explains nothing

  // As many values as states, at least one. `expected` is the standard
  // deviation of one value where they are too few to tell.
  static MachineSlope Fit(absl::Span<const double> values,
                          absl::Span<const MachineState> states,
                          double expected);

  bool exists() const { return exists_; }
  // Against the median state that it was fitted on.
  double Explains(const MachineState& state) const;
  // Of a step of the state.
  double Effect(const MachineState& step) const;
  double VarianceOf(const MachineState& step) const;

 private:
  bool exists_ = false;
  MachineState center_;
  std::array<double, 2> slope_ = {0, 0};
  std::array<double, 3> covariance_ = {0, 0, 0};  // 00, 01, 11
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_MACHINE_SLOPE_H_
