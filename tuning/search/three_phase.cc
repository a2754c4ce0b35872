// Explore, exploit, refine: a spread sample of the space, then recombinations
// of the best configs found, then every neighbour of the very best until none
// is better. The first two take fixed shares of options.budget; when refinement
// has reached a local optimum the three begin again, smaller.

#include <algorithm>
#include <utility>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kDefaultBudget = 200;
// Shares of the budget, and of what follows after a restart.
constexpr double kExploreShare = 0.08;
constexpr double kExploitShare = 0.12;
constexpr int kLeastTrials = 6;
constexpr int kElite = 8;
// Of the children of exploitation, this part moves to a neighbour.
constexpr double kMutation = 0.5;

class ThreePhase final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  enum class Phase { kExplore, kExploit, kRefine };

  std::vector<Levels> Step(int count) override {
    const int budget = options().budget > 0 ? options().budget : kDefaultBudget;
    const double smaller = 1.0 / (1 + cycle_);
    const int spent = static_cast<int>(history().size()) - phase_began_;
    const auto share = [&](double part) {
      return std::max(kLeastTrials, static_cast<int>(part * smaller * budget));
    };
    if (phase_ == Phase::kExplore) {
      if (!explored_ || best() < 0) {
        explored_ = true;
        return StartDesign(share(kExploreShare));
      }
      phase_ = Phase::kExploit;
      phase_began_ = static_cast<int>(history().size());
      return Exploit(count);
    }
    if (phase_ == Phase::kExploit) {
      if (spent < share(kExploitShare)) return Exploit(count);
      phase_ = Phase::kRefine;
    }
    std::vector<Levels> step = Refine(count);
    if (step.empty()) {
      phase_ = Phase::kExplore;
      phase_began_ = static_cast<int>(history().size());
      ++cycle_;
      return SpreadSample(share(kExploreShare));
    }
    return step;
  }

  std::vector<Levels> Exploit(int count) {
    const std::vector<Levels> elite = Finalists(kElite);
    std::vector<Levels> step;
    for (int i = 0; i < count && !elite.empty(); ++i) {
      const Levels& mother = elite[rng().UniformInt(elite.size())];
      const Levels& father = elite[rng().UniformInt(elite.size())];
      std::vector<double> genes(mother.begin(), mother.end());
      for (size_t k = 0; k < genes.size(); ++k) {
        if (rng()() & 1) genes[k] = father[k];
      }
      Levels child = MoveTowards(mother, genes);
      if (Seen(child) || rng().UniformReal() < kMutation) {
        child = UnseenNear(child);
      }
      if (!child.empty()) step.push_back(std::move(child));
    }
    return step;
  }

  std::vector<Levels> Refine(int count) {
    std::vector<Levels> step;
    // The best config's neighbours, and so that a single lucky one does not end
    // it, the runner-up's.
    for (const Levels& centre : Finalists(2)) {
      for (const Neighbourhood kind :
           {Neighbourhood::kAdjacent, Neighbourhood::kHamming}) {
        std::vector<Levels> neighbours = domain().Neighbours(centre, kind);
        rng().Shuffle(neighbours);
        for (Levels& neighbour : neighbours) {
          if (static_cast<int>(step.size()) == count) return step;
          if (!Seen(neighbour)) step.push_back(std::move(neighbour));
        }
        if (!step.empty()) return step;
      }
    }
    return step;
  }

  Phase phase_ = Phase::kExplore;
  bool explored_ = false;
  int phase_began_ = 0;  // history size
  int cycle_ = 0;
};

}  // namespace

extern constexpr StrategyEntry kThreePhase = {"three_phase", Make<ThreePhase>};

}  // namespace optrail::tuning
