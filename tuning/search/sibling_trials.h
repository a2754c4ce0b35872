#ifndef OPTRAIL_TUNING_SEARCH_SIBLING_TRIALS_H_
#define OPTRAIL_TUNING_SEARCH_SIBLING_TRIALS_H_

// SiblingTrials keeps what a model overhears from tasks with the same knobs
// (Strategy::Overhear), and says what it means for the task that listens.
//
//   SiblingTrials heard;
//   heard.Add({trial.levels, sibling, std::log(cost)});
//   const std::vector<SiblingTrial> usable = heard.Usable();
//   const std::vector<double> here = LogCostsHere(usable, cost_of, mean_log);
//
// Tasks differ in size, so that a sibling's costs count only after a shift: by
// the mean difference of the configs that both have tried, else by that of the
// means. A failure counts as slow. So a sibling of which nothing has worked yet
// says nothing: nobody knows how slow its failures are.

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tuning/search/strategy.h"

namespace optrail::tuning {

// Costs above this quantile of the successes are cut there, a task's own and
// its siblings'.
inline constexpr double kCapQuantile = 0.8;

// Siblings that are listened to.
inline constexpr int kMostSiblings = 4;

struct SiblingTrial {
  Levels levels;
  int sibling = 0;
  double log_cost = 0;  // infinite for a failure
};

class SiblingTrials {
 public:
  // Keeps the trial if there is room: for so many trials in all that a task
  // rarely needs more before it knows enough by itself, and for the first of
  // each sibling, however many others were heard before it. Changes nothing for
  // a sibling beyond kMostSiblings.
  void Add(SiblingTrial trial);

  // The trials of siblings of which something has worked, in the order heard.
  std::vector<SiblingTrial> Usable() const;

 private:
  int CountOf(int sibling) const;
  // Makes room by the last trial of the sibling that has most.
  void DropOne();

  std::vector<SiblingTrial> trials_;
};

// The logarithm of what each trial would have cost in a task where a config
// costs `cost_of` (not finite or not positive: it has not worked there) and the
// mean logarithm is `mean_log` (nullopt: nothing has worked). Failures and the
// slowest are capped. `trials` are usable ones.
std::vector<double> LogCostsHere(
    absl::Span<const SiblingTrial> trials,
    absl::FunctionRef<double(const Levels&)> cost_of,
    absl::optional<double> mean_log);

// How much the siblings' successes scatter, each around its sibling's mean.
struct SiblingSpread {
  double squares = 0;  // of the deviations of log_cost, summed
  int freedom = 0;     // trials less one for each sibling
};
SiblingSpread SpreadOf(absl::Span<const SiblingTrial> trials);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_SIBLING_TRIALS_H_
