#ifndef OPTRAIL_TUNING_SEARCH_PORTFOLIO_H_
#define OPTRAIL_TUNING_SEARCH_PORTFOLIO_H_

// A portfolio of strategies that shifts trials to what works: every round goes
// to the member with the highest area-under-curve credit plus an exploration
// bonus (OpenTuner's meta-technique: Ansel et al., PACT 2014). All members
// learn from all trials.

#include <deque>
#include <memory>
#include <vector>

#include "tuning/search/strategy_base.h"

namespace optrail::tuning {

class Portfolio final : public StrategyBase {
 public:
  Portfolio(absl::string_view name, const Domain& domain,
            const StrategyOptions& options);

  absl::optional<double> ExpectedImprovement() const override;

 private:
  // One trial of a member, and whether it was a new best.
  struct Use {
    int member;
    bool improved;
  };

  std::vector<Levels> Propose(int count) override;
  void Learn(const Observation& observation) override;
  int Choose() const;
  double Credit(int member) const;

  std::vector<std::unique_ptr<StrategyBase>> members_;
  // Who asked for what is outstanding.
  absl::flat_hash_map<Levels, int> asked_by_;
  std::deque<Use> recent_;
  double least_cost_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_PORTFOLIO_H_
