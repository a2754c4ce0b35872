#include "tuning/search/portfolio.h"

#include <cmath>
#include <limits>

#include "tuning/search/bayes_opt.h"
#include "tuning/search/genetic_algorithm.h"
#include "tuning/search/greedy_ils.h"

namespace optrail::tuning {
namespace {

constexpr size_t kWindow = 50;
constexpr double kExploration = 0.05;

}  // namespace

Portfolio::Portfolio(absl::string_view name, const Domain& domain,
                     const StrategyOptions& options)
    : StrategyBase(name, domain, options),
      least_cost_(std::numeric_limits<double>::infinity()) {
  // The warm start reaches the members through Learn. The first member serves
  // while there is nothing to choose by.
  StrategyOptions own = options;
  own.warm_start.clear();
  members_.push_back(std::make_unique<BayesOpt>("bayes_opt", domain, own));
  members_.push_back(std::make_unique<GreedyIls>("greedy_ils", domain, own));
  members_.push_back(
      std::make_unique<GeneticAlgorithm>("genetic_algorithm", domain, own));
}

double Portfolio::Credit(int member) const {
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

int Portfolio::Choose() const {
  int chosen = 0;
  for (int m = 1; m < static_cast<int>(members_.size()); ++m) {
    if (Credit(m) > Credit(chosen)) chosen = m;
  }
  return chosen;
}

std::vector<Levels> Portfolio::Propose(int count) {
  const int member = Choose();
  std::vector<Levels> round = members_[member]->Ask(count);
  for (const Levels& levels : round) asked_by_[levels] = member;
  return round;
}

void Portfolio::Learn(const Observation& observation) {
  for (const auto& member : members_) {
    member->Inform(
        {observation.levels, observation.outcome, observation.objectives});
  }
  const bool improved = observation.cost < least_cost_;
  if (improved) least_cost_ = observation.cost;
  const auto asked = asked_by_.find(observation.levels);
  if (asked == asked_by_.end()) return;
  recent_.push_back({asked->second, improved});
  if (recent_.size() > kWindow) recent_.pop_front();
  asked_by_.erase(asked);
}

absl::optional<double> Portfolio::ExpectedImprovement() const {
  return members_.front()->ExpectedImprovement();
}

}  // namespace optrail::tuning
