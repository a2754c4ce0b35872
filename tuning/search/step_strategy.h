#ifndef OPTRAIL_TUNING_SEARCH_STEP_STRATEGY_H_
#define OPTRAIL_TUNING_SEARCH_STEP_STRATEGY_H_

// StepStrategy is the frame of the classic metaheuristics, which think in
// steps: choose some configs, see all their costs, choose the next. A step may
// name configs that are known already; they cost no trial. A step that is wider
// than a round is handed out over several rounds, and a round waits for the
// step it belongs to.
//
// With options.sources the first trials are the configs that were best there
// (SourceKnowledge::starts), if the sources can be believed. A start design
// then counts them among its points. That is all the transfer there is: what
// misleads costs those few trials, though a local search may set out from them.

#include <deque>
#include <vector>

#include "tuning/search/strategy_base.h"

namespace optrail::tuning {

class StepStrategy : public StrategyBase {
 public:
  using StrategyBase::StrategyBase;

 protected:
  // The configs of the next step, at least one. The costs of the last step's
  // are known: CostOf (infinite for failures). `count` is how many trials the
  // driver would like; a strategy that moves one config at a time may try that
  // many at once. Never called twice for the same step.
  virtual std::vector<Levels> Step(int count) = 0;

  // Up to `count` distinct valid configs far from each other: each is the
  // farthest of some uniform samples from those before it. The samples keep to
  // where the constraints leave configs, the distance keeps them apart.
  std::vector<Levels> SpreadSample(int count);

  // What a population begins with: the best of what is known (the warm start,
  // the sources' configs), at most half of `count`, and a spread sample that
  // keeps away from those. At least one config.
  std::vector<Levels> StartDesign(int count);

  // The cheapest `count` of `configs`, the cheapest first; unknown ones count
  // as failed.
  std::vector<Levels> Cheapest(int count, std::vector<Levels> configs) const;

  // A valid config near `target` (one coordinate per knob in units of levels):
  // `from`, which must be valid, moved towards it knob by knob in random order
  // as long as it stays valid.
  Levels MoveTowards(const Levels& from, const std::vector<double>& target);

  // A config not seen yet that differs from `levels` in as few knobs as
  // possible: a random neighbour, else a neighbour's neighbour, and so on.
  // Every knob is as likely to change as any other, however many levels it has,
  // and steps of an ordinal one of every scale are. Empty if there is none
  // within a few moves.
  Levels UnseenNear(const Levels& levels);

 private:
  std::vector<Levels> Propose(int count) final;
  // Appends `count` configs to `design`.
  void Spread(int count, std::vector<Levels>& design);
  // Another level of a random knob, perhaps not valid.
  Levels RandomChange(Levels levels);

  bool began_ = false;
  std::deque<Levels> queue_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_STEP_STRATEGY_H_
