// Evolutionary search on a cost model of gradient-boosted trees (Chen et al.,
// "Learning to optimize tensor programs", 2018; Zheng et al., "Ansor", 2020): a
// population evolves under the model's prediction, and of what it ends in the
// best are measured; a few of the trials are random so that the model sees more
// than what it likes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tuning/model/config_features.h"
#include "tuning/model/tree_model.h"
#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kStart = 16;
constexpr int kElite = 24;
constexpr int kPopulation = 128;
constexpr int kGenerations = 3;
constexpr double kRandomTrials = 0.1;
constexpr double kMutation = 0.6;
// The model is trained anew when the trials have grown by this factor.
constexpr double kRetrainGrowth = 1.06;

class EvolutionaryTrees final : public StepStrategy {
 public:
  EvolutionaryTrees(absl::string_view name, const Domain& domain,
                    const StrategyOptions& options)
      : StepStrategy(name, domain, options), features_(domain.knobs()) {}

 private:
  std::vector<Levels> Step(int count) override {
    if (history().size() < kStart || best() < 0) return SpreadSample(kStart);
    Train();
    std::vector<Levels> step = Evolve(count);
    for (Levels& levels : step) {
      if (rng().UniformReal() < kRandomTrials) {
        Levels random = RandomUnseen();
        if (!random.empty()) levels = std::move(random);
      }
    }
    if (step.empty()) {
      Levels near = UnseenNear(history()[best()].levels);
      step.push_back(near.empty() ? history()[best()].levels : near);
    }
    return step;
  }

  void Train() {
    const int n = static_cast<int>(history().size());
    if (trained_at_ > 0 && n < trained_at_ * kRetrainGrowth) return;
    trained_at_ = n;
    // Failures count as the slowest success.
    double slowest = -std::numeric_limits<double>::infinity();
    const auto log_cost = [](const Observation& o) {
      return std::log(std::max(o.cost, std::numeric_limits<double>::min()));
    };
    for (const Observation& o : history()) {
      if (std::isfinite(o.cost)) slowest = std::max(slowest, log_cost(o));
    }
    std::vector<std::vector<float>> rows;
    std::vector<float> targets;
    for (const Observation& o : history()) {
      if (o.outcome == proto::CONTENDED) continue;
      rows.push_back(features_.Columns(o.levels));
      targets.push_back(
          static_cast<float>(std::isfinite(o.cost) ? log_cost(o) : slowest));
    }
    model_.Train(rows, targets);
  }

  std::vector<Levels> Evolve(int count) {
    std::vector<Levels> population = Finalists(kElite);
    absl::flat_hash_set<Levels> known(population.begin(), population.end());
    while (static_cast<int>(population.size()) < kPopulation) {
      population.push_back(domain().Sample(rng()));
      known.insert(population.back());
    }
    std::vector<std::pair<float, Levels>> ranked;
    for (int generation = 0; generation < kGenerations; ++generation) {
      std::vector<std::vector<float>> rows;
      for (const Levels& levels : population) {
        rows.push_back(features_.Columns(levels));
      }
      const std::vector<float> predicted = model_.Predict(rows);
      for (size_t i = 0; i < population.size(); ++i) {
        ranked.emplace_back(predicted[i], population[i]);
      }
      std::sort(ranked.begin(), ranked.end());
      if (ranked.size() > kPopulation) ranked.resize(kPopulation);
      if (generation + 1 == kGenerations) break;
      population.clear();
      const int64_t parents = std::min<int64_t>(ranked.size(), kPopulation / 2);
      for (int i = 0; i < kPopulation; ++i) {
        // The smaller of two ranks: better parents more often.
        const auto pick = [&]() -> const Levels& {
          const int64_t a = rng().UniformInt(parents);
          const int64_t b = rng().UniformInt(parents);
          return ranked[std::min(a, b)].second;
        };
        const Levels& mother = pick();
        const Levels& father = pick();
        std::vector<double> genes(mother.begin(), mother.end());
        for (size_t k = 0; k < genes.size(); ++k) {
          if (rng()() & 1) genes[k] = father[k];
          if (rng().UniformReal() < kMutation / genes.size()) {
            genes[k] = rng().UniformInt(domain().knobs()[k].size());
          }
        }
        Levels child = MoveTowards(mother, genes);
        if (known.insert(child).second) population.push_back(std::move(child));
      }
      if (population.empty()) break;
    }
    std::vector<Levels> step;
    for (auto& [cost, levels] : ranked) {
      if (static_cast<int>(step.size()) == count) break;
      if (!Seen(levels)) step.push_back(std::move(levels));
    }
    return step;
  }

  ConfigFeatures features_;
  TreeModel model_;
  int trained_at_ = 0;
};

}  // namespace

extern constexpr StrategyEntry kEvolutionaryTrees = {"evolutionary_trees",
                                                     Make<EvolutionaryTrees>};

}  // namespace optrail::tuning
