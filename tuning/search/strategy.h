#ifndef OPTRAIL_TUNING_SEARCH_STRATEGY_H_
#define OPTRAIL_TUNING_SEARCH_STRATEGY_H_

// Strategy chooses which config to try next. It sees a Domain and the trials it
// is told, and nothing of kernels, clocks or files.
//
//   StrategyOptions options;
//   options.seed = 7;
//   OPTRAIL_ASSIGN_OR_RETURN(  // strategies.h
//       auto strategy, MakeStrategy("default", domain, options));
//   while (!stop) {
//     const std::vector<Levels> batch = strategy->Ask(options.batch);
//     if (batch.empty()) break;                  // see StopReason()
//     strategy->Tell(MeasureAll(batch));         // in the order of the batch
//   }
//
// The contract every strategy keeps (strategy_contract_test.cc):
//  - Deterministic: what Ask returns is fixed by the domain, the options and
//    the trials told before.
//  - Resumable, in either of two ways. Ask again from the start and answer from
//    the journal what is in it; or Tell the journal's trials, in order, to a
//    new strategy with the same options, and go on with Ask: it returns first
//    what remains of the round that was interrupted. Both give the trials of an
//    uninterrupted session whose driver asks for rounds of options.batch.
//  - Never proposes a config twice, nor one that it was told of.
//  - Ask returns fewer configs than wanted, in the end none, when the space (or
//    what top_k leaves of it) is exhausted.
//  - A failed trial counts as tried, and models treat it as slow; a censored
//    one as a lower bound; of a contended one nothing is concluded.
//
// Measuring a config again (to verify finalists) is the driver's affair and
// does not pass through here.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

struct Trial {
  Levels levels;
  proto::Outcome outcome = proto::OK;
  // To be minimised; [0] is the cost, for instance the time in ns. Positive for
  // OK (models work on logarithms; a value that is not is shifted). May be
  // empty unless the outcome is OK or CENSORED. An OK trial with too few or
  // non-finite objectives is treated as a failure.
  std::vector<double> objectives;
  // The relative standard deviation of objectives[predicted] where it is
  // predicted and was not read; a model trusts it less. 0: all were read.
  double deviation = 0;
  int predicted = 0;
};

// Trials of another task over the same knobs: another hardware, a nearby shape.
// Their costs are never compared with this task's, only their order and spread.
struct TransferSource {
  std::string name;
  std::vector<Trial> trials;  // levels are this domain's
};

// A trial whose objective exceeds the limit can't be a result.
struct ObjectiveLimit {
  int objective = 0;
  double at_most = std::numeric_limits<double>::infinity();
};

struct StrategyOptions {
  uint64_t seed = 1;
  // Trials per round. A strategy plans for it (a whole round is chosen before
  // the first answer of it arrives).
  int batch = 1;
  // Trials expected in all; 0 if unknown. Only annealing-like schedules use it.
  int budget = 0;
  // Trials of this very task known already. They are not proposed again.
  std::vector<Trial> warm_start;
  std::vector<TransferSource> sources;

  // More than one objective: with weights the strategy minimises the weighted
  // sum of logarithms (a product of powers); without, it spreads over the
  // Pareto front.
  int objectives = 1;
  std::vector<double> weights;
  std::vector<ObjectiveLimit> limits;

  // Measure only the top_k configs by Domain::Prior; 0 measures any.
  int top_k = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual absl::string_view name() const = 0;

  // Up to `count` configs, none tried or asked before. Empty: see StopReason().
  virtual std::vector<Levels> Ask(int count) = 0;

  // Trials in the order in which they were asked. Trials that were not asked
  // (see the contract) are welcome at any time.
  virtual void Tell(absl::Span<const Trial> trials) = 0;

  // A config that is worth a trial, since it was best in another task: Ask
  // returns it before anything else. False, and nothing changes, if it is not
  // valid here or was asked or told before. Whoever resumes by Tell has to
  // suggest it again at the same place.
  virtual bool Suggest(const Levels& levels) = 0;

  // A trial of a task with the same knobs that is searched at the same time,
  // with levels of this domain, which need not be valid. `sibling` counts these
  // tasks from 0. Nothing but later choices changes; a strategy may ignore it.
  virtual void Overhear(int sibling, const Trial& trial) {}

  // Why the last Ask returned nothing, such as "space exhausted"; else empty.
  virtual std::string StopReason() const = 0;

  // The expected improvement of the best untried config as a fraction of the
  // best cost so far (0.01: one percent); nullopt if the strategy has no model.
  virtual absl::optional<double> ExpectedImprovement() const {
    return absl::nullopt;
  }

  // Up to `count` of the configs told, the most likely best first: what to
  // verify as finalists. Strategies with a model account for noise; the others
  // sort by cost. Only configs that are OK and within the limits.
  virtual std::vector<Levels> Finalists(int count) const = 0;

  // The OK trials within the limits that no other beats in every objective, in
  // the order told.
  virtual std::vector<Trial> ParetoFront() const = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_STRATEGY_H_
