#ifndef OPTRAIL_TUNING_SEARCH_BAYES_OPT_H_
#define OPTRAIL_TUNING_SEARCH_BAYES_OPT_H_

// Bayesian optimisation with a Gaussian process (Jones, Schonlau and Welch,
// 1998; Srinivas et al., 2010, for the acquisition). Each round the process is
// conditioned on the logarithms of the costs and the config with the lowest
// optimistic estimate, mean - kappa * sd, comes next; docs/search.md explains
// the choices and what each was worth.
//
//  - Costs above a quantile of the successes are cut there, failures too: how
//    bad a bad config is says little about where the good ones are.
//  - A space that can be listed is looked at in full after every fit of the
//    parameters, in between only its most promising part. A larger one is
//    sampled, and the neighbours of the best configs are added.
//  - In a round of several, what was chosen is supposed to come out at its mean
//    before the next is chosen (kriging believer: Ginsbourger et al., 2010).
//  - Transfer: the search starts at each source's best config; a source is also
//    a linear term of the covariance, whose weight the fit finds, so that one
//    that misleads is ignored.
//  - Several objectives without weights: every round minimises a Chebyshev
//    norm with random weights (ParEGO: Knowles, 2006).

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tuning/model/config_features.h"
#include "tuning/model/gaussian_process.h"
#include "tuning/model/gp_posterior.h"
#include "tuning/search/strategy_base.h"

namespace optrail::tuning {

class BayesOpt final : public StrategyBase {
 public:
  BayesOpt(absl::string_view name, const Domain& domain,
           const StrategyOptions& options);

  absl::optional<double> ExpectedImprovement() const override {
    return expected_improvement_;
  }

 private:
  std::vector<Levels> Propose(int count) override;

  // The first configs: the sources' best, then points far from all others.
  Levels NextOfDesign(const std::vector<Levels>& chosen);

  GpInput MakeInput(const Levels& levels) const;
  // One target per trial that tells something, and which trial that is.
  struct Targets {
    std::vector<int> trials;
    std::vector<double> values;  // zero mean, unit variance
    double unit = 1;             // of log cost
  };
  Targets MakeTargets();
  std::vector<double> LogCosts();

  // Brings the posterior up to date.
  void Update(const Targets& targets);
  void Refit(const Targets& targets);
  void RefillPool();
  void AddNeighboursOfBest();

  ConfigFeatures features_;
  GaussianProcess gp_;
  GpPosterior posterior_;
  std::vector<absl::flat_hash_map<Levels, float>> source_values_;
  std::vector<Levels> source_bests_;

  std::vector<Levels> listed_;  // all configs, if they can be listed
  std::unique_ptr<CandidateSet> all_;
  std::vector<Levels> pool_;
  // Which trials the posterior has, in its order.
  std::vector<int> modelled_;
  int fitted_at_ = 0;
  int neighbours_of_ = -1;
  absl::optional<double> expected_improvement_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_BAYES_OPT_H_
