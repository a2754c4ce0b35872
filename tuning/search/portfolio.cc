// A portfolio of strategies that shifts trials to what works: every round goes
// to the member with the highest area-under-curve credit plus an exploration
// bonus (OpenTuner's meta-technique: Ansel et al., PACT 2014). All members
// learn from all trials.

#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "tuning/search/strategy_base.h"

namespace optrail::tuning {
namespace {

constexpr size_t kWindow = 50;
constexpr double kExploration = 0.05;

class Portfolio final : public StrategyBase {
 public:
  Portfolio(absl::string_view name, const Domain& domain,
            const StrategyOptions& options)
      : StrategyBase(name, domain, options),
        least_cost_(std::numeric_limits<double>::infinity()) {
    // The warm start reaches the members through Learn. The first member serves
    // while there is nothing to choose by.
    StrategyOptions own = options;
    own.warm_start.clear();
    for (const StrategyEntry* member :
         {&kBayesOpt, &kGreedyIls, &kGeneticAlgorithm}) {
      members_.push_back(member->make(member->name, domain, own));
    }
  }

  absl::optional<double> ExpectedImprovement() const override {
    return members_.front()->ExpectedImprovement();
  }

 private:
  // One trial of a member, and whether it was a new best.
  struct Use {
    int member;
    bool improved;
  };

  std::vector<Levels> Propose(int count) override {
    const int member = Choose();
    std::vector<Levels> round = members_[member]->Ask(count);
    for (const Levels& levels : round) asked_by_[levels] = member;
    return round;
  }

  void Learn(const Observation& observation) override {
    for (const auto& member : members_) {
      member->Inform({observation.levels, observation.outcome,
                      observation.objectives, observation.deviation,
                      observation.predicted});
    }
    const bool improved = observation.cost < least_cost_;
    if (improved) least_cost_ = observation.cost;
    const auto asked = asked_by_.find(observation.levels);
    if (asked == asked_by_.end()) return;
    recent_.push_back({asked->second, improved});
    if (recent_.size() > kWindow) recent_.pop_front();
    asked_by_.erase(asked);
  }

  int Choose() const {
    int chosen = 0;
    for (int m = 1; m < static_cast<int>(members_.size()); ++m) {
      if (Credit(m) > Credit(chosen)) chosen = m;
    }
    return chosen;
  }

  double Credit(int member) const {
    // A new best counts the more the later it was: the area under the curve of
    // the member's successes.
    double area = 0;
    int uses = 0;
    for (const Use& use : recent_) {
      if (use.member != member) continue;
      ++uses;
      if (use.improved) area += uses;
    }
    const double credit = uses > 0 ? 2 * area / (uses * (uses + 1.0)) : 0;
    const double bonus =
        std::sqrt(2 * std::log(1.0 + recent_.size()) / (1.0 + uses));
    return credit + kExploration * bonus;
  }

  std::vector<std::unique_ptr<StrategyBase>> members_;
  // Who asked for what is outstanding.
  absl::flat_hash_map<Levels, int> asked_by_;
  std::deque<Use> recent_;
  double least_cost_;
};

}  // namespace

extern constexpr StrategyEntry kPortfolio = {"portfolio", Make<Portfolio>};

}  // namespace optrail::tuning
