#ifndef OPTRAIL_REPORTS_KNOB_EFFECTS_H_
#define OPTRAIL_REPORTS_KNOB_EFFECTS_H_

// Estimates the effect of each knob from the trials of a tuning session.
//
//   for (const KnobEffect& effect : KnobEffects(session)) ...
//
// These describe the trials that were made. A strategy does not draw configs
// uniformly, so an effect is an estimate and is labelled as one.

#include <vector>

#include "absl/types/optional.h"
#include "reports/report_data.h"

namespace optrail::reports {

// Values of the first objective at one level of a knob, over the OK trials.
struct LevelValues {
  int level = 0;  // index into Knob::levels
  int count = 0;
  double min = 0;
  double lower_quartile = 0;
  double median = 0;
  double upper_quartile = 0;
  double max = 0;
};

struct KnobEffect {
  int knob = 0;  // index into TuningSession::knobs
  // Share of the variance of log(value) that this knob explains alone: epsilon
  // squared (Kelley, "An unbiased correlation ratio measure", 1935), which
  // unlike eta squared does not favour knobs with many levels. Cut at zero.
  // Absent with fewer than two levels, or too few trials to estimate.
  absl::optional<double> importance;
  std::vector<LevelValues> levels;  // those tried, in the knob's order
};

// One per knob, most important first; ties keep the knobs' order.
std::vector<KnobEffect> KnobEffects(const TuningSession& session);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_KNOB_EFFECTS_H_
