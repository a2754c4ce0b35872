#ifndef OPTRAIL_TUNING_SCHEDULE_EVOLUTION_H_
#define OPTRAIL_TUNING_SCHEDULE_EVOLUTION_H_

// Evolutionary search over traces (as in Ansor, Zheng et al. 2020, and
// MetaSchedule, Shao et al. 2022): programs measured so far and fresh ones are
// varied and crossed for a few generations under a cost model, and the most
// promising that nobody has tried is measured next; now and then any at all,
// since a model is only right where it has seen something.
//
//   EvolutionOptions options;
//   options.seed = 7;
//   Evolution evolution(algorithm, machine, options);
//   while (const auto next = evolution.Next()) {
//     evolution.Tell(next->trace, Measure(*next));
//   }
//
// Deterministic: what comes next is fixed by the options and what was told. It
// knows no configs, sessions or clocks: trace_source.h does.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "base/random.h"
#include "tuning/schedule/algorithm.h"
#include "tuning/schedule/cost_model.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace.h"

namespace optrail::tuning {

struct EvolutionOptions {
  uint64_t seed = 1;
  // cost_model.h; "" draws at random, without varying what was measured.
  std::string model = "trees";
  // Traces that were fast for other shapes, most promising first: tried after
  // the rules' own, as far as they fit.
  std::vector<Trace> seeds;
  // Before the model is asked: half are drawn at random, half are what was
  // tried by then, varied. And the share of random ones later.
  int first_random = 16;
  double exploring_share = 0.2;
  int population = 128;
  int generations = 4;
};

struct Candidate {
  Trace trace;
  std::string steps;
  std::vector<float> features;
};

class Evolution {
 public:
  // The options name a model that there is.
  Evolution(const Algorithm& algorithm, const Machine& machine,
            const EvolutionOptions& options);

  // A program that was neither returned nor told before; nullopt where many
  // tries find none.
  absl::optional<Candidate> Next();

  // `cost` is positive and to be minimised; nullopt: it failed. Traces that do
  // not fit the algorithm are forgotten.
  void Tell(const Trace& trace, absl::optional<double> cost);

  // Costs as the model guesses them, for those who judge it; nothing before it
  // was trained.
  std::vector<float> Guess(const std::vector<Candidate>& candidates);

 private:
  struct Measured {
    Trace trace;
    std::vector<float> features;
    absl::optional<double> cost;
  };

  absl::optional<Candidate> Derived(Decisions decisions);
  absl::optional<Candidate> Given();
  absl::optional<Candidate> Fresh();
  absl::optional<Candidate> Near();
  absl::optional<Candidate> Evolved();
  void TrainIfStale();

  const Algorithm algorithm_;
  const Machine machine_;
  const EvolutionOptions options_;
  Rng rng_;
  std::unique_ptr<CostModel> model_;  // nullptr: random
  std::vector<Measured> measured_;
  std::set<std::string> seen_;  // steps: traces may differ and mean the same
  size_t given_ = 0;            // of the rules' own and the seeds
  int returned_ = 0;
  size_t trained_on_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_EVOLUTION_H_
