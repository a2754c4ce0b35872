#ifndef OPTRAIL_TUNING_SEARCH_EVOLUTIONARY_TREES_H_
#define OPTRAIL_TUNING_SEARCH_EVOLUTIONARY_TREES_H_

// Evolutionary search on a cost model of gradient-boosted trees (Chen et al.,
// "Learning to optimize tensor programs", 2018; Zheng et al., "Ansor", 2020): a
// population evolves under the model's prediction, and of what it ends in the
// best are measured; a few of the trials are random so that the model sees more
// than what it likes.

#include <vector>

#include "tuning/model/config_features.h"
#include "tuning/model/tree_model.h"
#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class EvolutionaryTrees final : public StepStrategy {
 public:
  EvolutionaryTrees(absl::string_view name, const Domain& domain,
                    const StrategyOptions& options);

 private:
  std::vector<Levels> Step(int count) override;
  void Train();
  std::vector<Levels> Evolve(int count);

  ConfigFeatures features_;
  TreeModel model_;
  int trained_at_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_EVOLUTIONARY_TREES_H_
