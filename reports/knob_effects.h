#ifndef OPTRAIL_REPORTS_KNOB_EFFECTS_H_
#define OPTRAIL_REPORTS_KNOB_EFFECTS_H_

// What a tuning session shows about its search: how it converged, what each
// knob did, which configs failed.
//
//   for (const KnobEffect& effect : KnobEffects(session)) ...
//
// These describe the trials that were made. A strategy does not draw configs
// uniformly, so an effect is an estimate and is labelled as one.

#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "reports/report_data.h"

namespace optrail::reports {

// Times at one level of a knob, over the OK trials.
struct LevelTimes {
  int level = 0;  // index into Knob::levels
  int count = 0;
  double min_ns = 0;
  double lower_quartile_ns = 0;
  double median_ns = 0;
  double upper_quartile_ns = 0;
  double max_ns = 0;
};

struct KnobEffect {
  int knob = 0;  // index into TuningSession::knobs
  // Share of the variance of log(time) that this knob explains alone: epsilon
  // squared (Kelley, "An unbiased correlation ratio measure", 1935), which
  // unlike eta squared does not favour knobs with many levels. Cut at zero.
  // Absent with fewer than two levels, or too few trials to estimate.
  absl::optional<double> importance;
  std::vector<LevelTimes> levels;  // those tried, in the knob's order
};

// One per knob, most important first; ties keep the knobs' order.
std::vector<KnobEffect> KnobEffects(const TuningSession& session);

// A trial that was better than all before it.
struct Improvement {
  int trial = 0;
  double time_ns = 0;
};

struct Convergence {
  std::vector<Improvement> improvements;
  absl::optional<double> best_ns;
  // 1-based number of the first trial within 5% and 1% of the best.
  absl::optional<int> trials_to_95_percent;
  absl::optional<int> trials_to_99_percent;
  std::map<std::string, int> outcomes;
};

Convergence Converge(const TuningSession& session);

// verified / first - 1 of the winner: how lucky its first reading was.
absl::optional<double> WinnersCurse(const TuningSession& session);

// default / winner, both verified beside each other.
absl::optional<double> VerifiedSpeedup(const TuningSession& session);

// "mr=6,nr=32" of a trial.
std::string ConfigText(const TuningSession& session, const Trial& trial);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_KNOB_EFFECTS_H_
