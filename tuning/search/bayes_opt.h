#ifndef OPTRAIL_TUNING_SEARCH_BAYES_OPT_H_
#define OPTRAIL_TUNING_SEARCH_BAYES_OPT_H_

// Bayesian optimisation with a Gaussian process (Jones, Schonlau and Welch,
// 1998; Srinivas et al., 2010). Each round the process is conditioned on the
// logarithms of the costs; in turn the config with the lowest optimistic
// estimate, mean - kappa * sd, and that with the largest expected improvement
// comes next. docs/method/search.md explains the choices and what each was
// worth.
//
//  - Costs above a quantile of the successes are cut there, failures too: how
//    bad a bad config is says little about where the good ones are.
//  - A space that can be listed is looked at in full after every fit of the
//    parameters, in between only its most promising part. A larger one is
//    sampled, and the neighbours of the best configs are added.
//  - A cost that is predicted has a variance of its own, beyond the noise that
//    the process finds, and is improved on at the model's mean.
//  - In a round of several, what was chosen is supposed to come out at its mean
//    before the next is chosen (kriging believer: Ginsbourger et al., 2010).
//  - Transfer: what the sources agree on (source_knowledge.h) is the prior mean
//    of the process, and the search starts where they were best. Each source is
//    also a linear term of the covariance, so that the trials decide whom to
//    follow.
//  - Several objectives without weights: every round minimises a Chebyshev
//    norm with random weights (ParEGO: Knowles, 2006).

#include <memory>
#include <vector>

#include "tuning/model/config_features.h"
#include "tuning/model/gaussian_process.h"
#include "tuning/model/gp_posterior.h"
#include "tuning/search/sibling_trials.h"
#include "tuning/search/source_knowledge.h"
#include "tuning/search/strategy_base.h"

namespace optrail::tuning {

class BayesOpt final : public StrategyBase {
 public:
  BayesOpt(absl::string_view name, const Domain& domain,
           const StrategyOptions& options);

  absl::optional<double> ExpectedImprovement() const override {
    return expected_improvement_;
  }

  // In turn the lowest reading and the lowest estimate of the model, which
  // smooths noise but also what is truly special.
  std::vector<Levels> Finalists(int count) const override;

  void Overhear(int sibling, const Trial& trial) override;

 private:
  std::vector<Levels> Propose(int count) override;

  // The first configs: where the sources were best, or points far from all
  // others.
  std::vector<Levels> Design(int count, int wanted);
  Levels FarFromAll(const std::vector<Levels>& chosen);

  // `task`: 0 for this one, 1 and more for its siblings.
  GpInput MakeInput(const Levels& levels, int task = 0) const;
  // The mean of a config by the sources; 0 without them.
  float PriorMean(const Levels& levels) const;

  // One value per trial that tells something, and which trial that is.
  struct Targets {
    std::vector<int> trials;
    std::vector<double> costs;   // log cost, capped, less an offset, in units
    std::vector<double> values;  // costs - PriorMean; their mean is zero
    double unit = 1;             // of log cost
    double offset = 0;           // in units
  };
  Targets MakeTargets();
  // How much of the logarithm of an objective counts in the costs.
  double ShareOf(int objective) const;
  // The input of a trial of this task, less certain where it is predicted. Its
  // extra_noise is in the unit of these targets and stays until the next refit,
  // while the unit changes a little with every trial: an approximation.
  GpInput TrialInput(const Targets& targets, int trial) const;
  // The cost, as in Targets, on which the next config has to improve.
  double LeastCost(const Targets& targets) const;
  // From the first usable trial of a sibling on, the task is a knob of the
  // model.
  void JoinSiblings();
  // These are of modelled_siblings_: the model's inputs, costs and values.
  std::vector<GpInput> SiblingInputs() const;
  std::vector<double> SiblingCosts(const Targets& targets) const;
  std::vector<double> SiblingValues(const Targets& targets) const;
  std::vector<double> LogCosts();

  // Brings the posterior up to date.
  void Update(Targets& targets);
  void Refit(Targets& targets);
  // Goes on as if there had been no sources.
  void ForgetSources();
  void ListCandidates();
  void RefillPool();
  void SamplePool();
  void AddNeighboursOfBest();
  void AddToPool(Levels levels, CandidateSet& set);

  // The bound looks where little is known, the improvement where much is hoped
  // for; neither alone does as well.
  static bool ChosenByBound(int started) { return started % 2 == 0; }
  // The candidate to try after so many others; -1 if none is left.
  int NextCandidate(int started, double best,
                    const std::vector<char>& taken) const;

  SourceKnowledge knowledge_;
  const ConfigFeatures config_features_;
  std::unique_ptr<ConfigFeatures> features_;  // with the task, if any other is
  std::unique_ptr<GaussianProcess> gp_;
  std::unique_ptr<GaussianProcess> gp_without_sources_;
  std::unique_ptr<GpPosterior> posterior_;

  std::vector<Levels> listed_;  // all configs, if they can be listed
  std::vector<float> listed_prior_;
  std::unique_ptr<CandidateSet> all_;
  std::vector<Levels> pool_;
  std::vector<float> pool_prior_;  // PriorMean
  // Trials that the posterior has, in its order: those of siblings, and behind
  // them which ones of this task.
  std::vector<SiblingTrial> modelled_siblings_;
  std::vector<int> modelled_;
  int fitted_at_ = 0;
  int neighbours_of_ = -1;
  absl::optional<double> expected_improvement_;

  SiblingTrials siblings_;
  std::vector<SiblingTrial> overheard_;  // the usable ones of siblings_
  bool has_siblings_ = false;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_BAYES_OPT_H_
