#ifndef OPTRAIL_TRACKER_DETECT_SLOPES_H_
#define OPTRAIL_TRACKER_DETECT_SLOPES_H_

// Tells steps from slopes. Partitioning into levels turns a slow ramp into a
// staircase; here the stairs are weighed against straight lines.
//
//   Slopes slopes = SeparateSlopes(values, stairs, noise_variance, penalty);
//   slopes.steps      // changes that stay a jump with lines on either side
//   slopes.drift      // what to subtract so that only steps remain

#include <vector>

#include "absl/types/span.h"

namespace optrail::tracker {

// Least squares on any range of the values in O(1).
class RangeFits {
 public:
  explicit RangeFits(absl::Span<const double> values);

  struct Line {
    double residual = 0;  // sum of squares
    double slope = 0;     // per point
  };
  Line Level(int begin, int end) const;
  Line Slope(int begin, int end) const;

 private:
  struct Sums {
    double value = 0, moment = 0, square = 0;
  };
  std::vector<Sums> sums_;  // of the values before
};

struct Slopes {
  std::vector<int> steps;
  // The continuous part that the lines account for, one value per point;
  // empty if no segment slopes.
  std::vector<double> drift;
};

// Chooses among `stairs` by optimal partitioning in which a segment is a level
// or a line, a line costing `slope_share` of the penalty more: a slope is one
// parameter where a step is two, a height and a place. (The stairs are also
// the only places where it may cut, which keeps the cost at O(stairs^2).) A cut
// beside a line is a step only if a line with one kink anywhere between the
// neighbouring cuts fits worse than the jump by more than the penalty. Sums of
// squares are in units of `noise_variance`; values should have their outliers
// clipped. O(points + stairs^2).
Slopes SeparateSlopes(absl::Span<const double> values,
                      absl::Span<const int> stairs, double noise_variance,
                      double penalty, double slope_share);

// By how much the sum of squares over [begin, end) is larger for the best line
// with one kink than for two levels that meet at `middle`. Large for a step;
// small or negative where a ramp may just have begun. O(end - begin).
double StepOverKink(absl::Span<const double> values, int begin, int middle,
                    int end);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_SLOPES_H_
