#ifndef OPTRAIL_TUNING_SEARCH_STRATEGY_BASE_H_
#define OPTRAIL_TUNING_SEARCH_STRATEGY_BASE_H_

// StrategyBase keeps the promises of strategy.h that are the same for every
// strategy: no repeats, resumption, warm start, exhaustion, costs, the Pareto
// front. A strategy adds Propose, and Learn if it keeps a state.

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/random.h"
#include "tuning/search/strategy.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

// A trial as strategies see it: one number to minimise.
struct Observation {
  Levels levels;
  proto::Outcome outcome = proto::OK;
  // Infinity for a failure, a config over a limit, and a contended one.
  double cost = 0;
  // The cost is a lower bound.
  bool censored = false;
  // Empty for failures.
  std::vector<double> objectives;
  // Those of Trial.
  double deviation = 0;
  int predicted = 0;
};

class StrategyBase : public Strategy {
 public:
  StrategyBase(absl::string_view name, const Domain& domain,
               const StrategyOptions& options);

  // Learns the warm start; MakeStrategy calls it once after construction.
  void Start();

  // Learns a trial as Tell does, but never takes it for a journal's: for a
  // strategy that leads others and tells each what the rest found.
  void Inform(const Trial& trial);

  absl::string_view name() const override { return name_; }
  std::vector<Levels> Ask(int count) final;
  void Tell(absl::Span<const Trial> trials) final;
  bool Suggest(const Levels& levels) final;
  std::string StopReason() const override { return stop_reason_; }
  std::vector<Levels> Finalists(int count) const override;
  std::vector<Trial> ParetoFront() const override;

 protected:
  // Up to `count` (at least one) configs to try. Those seen already are
  // dropped. Nothing new: the base tries a random config instead.
  virtual std::vector<Levels> Propose(int count) = 0;

  // Called for every trial told, in order.
  virtual void Learn(const Observation& observation) {}

  const Domain& domain() const { return domain_; }
  const StrategyOptions& options() const { return options_; }
  Rng& rng() { return rng_; }

  // Asked, told or about to be asked.
  bool Seen(absl::Span<const uint16_t> levels) const {
    return seen_.contains(Levels(levels.begin(), levels.end()));
  }
  // Asked and not yet answered, in the order asked.
  const std::vector<Levels>& outstanding() const { return outstanding_; }
  // Everything told, warm start first.
  const std::vector<Observation>& history() const { return history_; }
  // The cost of a config that was told (infinite for a failure); NaN for
  // others.
  double CostOf(absl::Span<const uint16_t> levels) const;
  // The index in history() of the cheapest OK trial; -1 if there is none.
  int best() const { return best_; }

  Observation Observe(const Trial& trial) const;

  // Uniform over the configs not seen, empty if none is left.
  Levels RandomUnseen();

 private:
  std::vector<Levels> NextRound(int count);
  void Record(const Trial& trial);

  const std::string name_;
  const Domain& domain_;
  const StrategyOptions options_;
  Rng rng_;
  absl::flat_hash_set<Levels> seen_;
  absl::flat_hash_map<Levels, int> told_;  // index in history_
  std::vector<Levels> outstanding_;
  // Outstanding configs that the next Ask hands out: suggestions, and what Tell
  // drew while replaying a journal.
  std::vector<Levels> undelivered_;
  std::vector<Observation> history_;
  int best_ = -1;
  std::string stop_reason_;
};

// A strategy by its name. Each stands in a file of its own.
struct StrategyEntry {
  const char* name;
  std::unique_ptr<StrategyBase> (*make)(absl::string_view name,
                                        const Domain& domain,
                                        const StrategyOptions& options);
};

template <class T>
std::unique_ptr<StrategyBase> Make(absl::string_view name, const Domain& domain,
                                   const StrategyOptions& options) {
  return std::make_unique<T>(name, domain, options);
}

extern const StrategyEntry kBayesOpt, kDifferentialEvolution,
    kEvolutionaryTrees, kExhaustive, kGeneticAlgorithm, kGreedyIls,
    kLatinHypercube, kParticleSwarm, kPortfolio, kRandomSearch,
    kSimulatedAnnealing, kThreePhase;

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_STRATEGY_BASE_H_
