#ifndef OPTRAIL_TRACKER_CONVERGENCE_FINDINGS_H_
#define OPTRAIL_TRACKER_CONVERGENCE_FINDINGS_H_

// What is wrong with tuning sessions, what shows it, and what to do about it.
//
//   std::vector<SessionAnalysis> sessions = ...;  // AnalyzeSession of each
//   for (const Finding& finding : FindFaults(sessions)) Print(finding);
//
// Made to stay quiet: a finding needs an effect that matters and evidence that
// chance does not give. Definitions and measured rates:
// docs/method/convergence.md. One cause gives one finding: sessions of a task
// that share a fault are named by the same finding, and what a fault of the
// tuner itself explains is not reported again per task.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tracker/convergence/convergence.h"

namespace optrail::tracker {

enum class FindingKind {
  // Findings on one session:
  kDoesNotConverge,      // still improving when the budget ended
  kOscillates,           // readings of the same config scatter
  kConvergedTooEarly,    // sat on a plateau without having looked around
  kMostTrialsFail,       // invalid, out of memory, crashed, ...
  kMostTrialsContended,  // the machine was busy
  kWinnersCurse,         // won by a lucky reading
  // Across sessions.
  kTimeExploded,          // a trial costs many times what it did
  kLosesOnOtherShapes,    // slower than the default where it was not tuned
  kPriorMisleads,         // ranks configs against the readings
  kSlowerToConverge,      // needs more trials than it did
  kConvergedToWorse,      // ends at a slower config than it did
  kTunerWorse,            // the same over several tasks since a commit
  kTunerWorseOnHardware,  // the same on one hardware against another
};

inline constexpr FindingKind kAllFindingKinds[] = {
    FindingKind::kDoesNotConverge,      FindingKind::kOscillates,
    FindingKind::kConvergedTooEarly,    FindingKind::kMostTrialsFail,
    FindingKind::kMostTrialsContended,  FindingKind::kWinnersCurse,
    FindingKind::kTimeExploded,         FindingKind::kLosesOnOtherShapes,
    FindingKind::kPriorMisleads,        FindingKind::kSlowerToConverge,
    FindingKind::kConvergedToWorse,     FindingKind::kTunerWorse,
    FindingKind::kTunerWorseOnHardware,
};

// "does_not_converge", ...: for policies, flags and JSON.
absl::string_view FindingKindName(FindingKind kind);
absl::optional<FindingKind> ParseFindingKind(absl::string_view name);

// The thing that a remedy changes.
enum class Lever {
  kKnobRange,
  kConstraint,
  kStrategy,
  kPrior,
  kBudget,
  kMeasurement,
  kBisect,
};
absl::string_view LeverName(Lever lever);  // "knob_range", ...

// A search like the session's, but for what is set here.
struct SearchChange {
  std::string space_textproto;
  int64_t trials = 0;  // more than the session's
  std::string strategy;
};

// The share of the cost that goes: 0.2 for a fifth.
struct RemedyGain {
  double value = 0;
  double low = 0, high = 0;
};

struct Remedy {
  Lever lever;
  std::string text;
  // How --try applies it (diagnosis/try_remedies.h); absent: only a person can.
  absl::optional<SearchChange> change = absl::nullopt;
  // It is expected to bring this over the session's winner: half of what the
  // session's trials show, which is the most that is expected. Absent: they
  // show nothing of it.
  absl::optional<RemedyGain> predicted = absl::nullopt;
  // Set by --try, with how it was found; or why nothing was tried.
  absl::optional<RemedyGain> realised = absl::nullopt;
  std::string outcome = "";
};

struct Finding {
  FindingKind kind;
  std::string task;  // for people; empty if it is about several
  std::vector<std::string> session_ids;
  std::vector<std::string> evidence;  // the newest session first
  std::vector<Remedy> remedies;       // the most promising first
};

// Every threshold. Effects are fractions of a time unless named otherwise.
struct FindingOptions {
  // Sessions with fewer trials are too short to speak of convergence.
  int min_trials = 20;

  // An effect below this is not worth anyone's time, however sure.
  double min_effect = .05;
  // The same between two sessions, whose searches differ by chance.
  double min_effect_between_sessions = .10;
  // Beyond how many standard deviations of noise an effect counts.
  double sigmas = 3;

  // Does not converge: at least this many new bests in the last quarter. Were
  // the order of trials chance alone, their number would be nearly Poisson with
  // mean ln(4/3) = 0.29: three or more in 0.3% of sessions.
  int late_improvements = 3;

  // Oscillates: standard deviation between processes that measured the same
  // config, or between first and verified readings. 5% hides what tuning is
  // after; quiet machines show 0.5% to 2%.
  double max_noise = .05;

  // Winner's curse: verified over first reading of the winner. The best of
  // 1000 equal configs read with 1% noise looks 3.2% too fast.
  double max_curse = .08;

  // Converged too early: share of trials after the best was reached ...
  double max_plateau_share = .75;
  // ... while the levels visited are below this part of what as many random
  // trials visit.
  double min_coverage = .6;

  // Most trials fail: the lower 95% bound (Clopper-Pearson) of their share.
  double max_useless_share = .5;
  // Or: so many ran out of memory and so many worked, told apart exactly.
  double min_memory_share = .25;
  int min_separated_trials = 5;
  double max_contended_share = .5;

  // Time exploded: time per trial over that of earlier sessions of the task,
  // and this many robust deviations of their logarithms.
  double time_ratio = 3;
  double time_sigmas = 5;
  int min_earlier_sessions = 3;
  // Spread of earlier sessions is not believed to be smaller than this.
  double min_spread = .02;

  // Loses on other shapes: at least so many, the median that much slower than
  // the default there.
  int min_other_shapes = 2;
  double max_loss_on_other_shapes = .10;

  // Prior misleads: readings needed, the rank correlation that the upper 97.5%
  // bound stays below, and the percentile that the best config stays below.
  int min_prior_readings = 20;
  double min_prior_correlation = .2;
  double min_prior_percentile = .5;

  // Slower to converge and a worse tuner: chance of a false alarm per test,
  // the ratio of trials to 95%, sessions needed, permutations.
  double alpha = .005;
  double trials_ratio = 2;
  int min_sessions = 8;
  int permutations = 4000;
};

// All sessions at once, in any order. The same sessions give the same findings
// in the same order: by kind, then task.
std::vector<Finding> FindFaults(absl::Span<const SessionAnalysis> sessions,
                                const FindingOptions& options = {});

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_FINDINGS_H_
