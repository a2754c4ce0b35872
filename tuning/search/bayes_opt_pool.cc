// BayesOpt's candidates: which configs its model is asked about, and which of
// them comes next.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tuning/search/acquisition.h"
#include "tuning/search/bayes_opt.h"

namespace optrail::tuning {
namespace {

// Optimism of the lower confidence bound, and of the expected improvement: the
// fit underestimates the uncertainty, because it is sure of its parameters.
constexpr double kKappa = 2.4;
constexpr double kSdFactor = 1.2;

// Candidates kept up to date between fits.
constexpr int kPool = 4096;
constexpr int kSampled = 3072;
constexpr int kBestWithNeighbours = 5;

}  // namespace

void BayesOpt::AddToPool(Levels levels, CandidateSet& set) {
  const GpInput input = MakeInput(levels);
  set.Add(input);
  pool_prior_.push_back(knowledge_.Expected(input.sources));
  pool_.push_back(std::move(levels));
}

void BayesOpt::SamplePool() {
  CandidateSet set(*features_, gp_->sources());
  absl::flat_hash_set<Levels> known;
  const auto add = [&](const Levels& levels) {
    if (Seen(levels) || !known.insert(levels).second) return;
    AddToPool(levels, set);
  };
  for (const Levels& levels : knowledge_.starts()) add(levels);
  for (int i = 0; i < kSampled; ++i) add(domain().Sample(rng()));
  for (const Levels& best : StrategyBase::Finalists(kBestWithNeighbours)) {
    for (const Levels& levels :
         domain().Neighbours(best, Neighbourhood::kHamming)) {
      add(levels);
    }
  }
  posterior_->Keep(std::move(set));
  neighbours_of_ = best();
}

void BayesOpt::RefillPool() {
  pool_.clear();
  pool_prior_.clear();
  if (all_ == nullptr) return SamplePool();
  if (listed_.size() <= static_cast<size_t>(kPool)) {
    pool_ = listed_;
    pool_prior_ = listed_prior_;
    posterior_->Keep(*all_);
    return;
  }
  std::vector<float> mean, variance;
  posterior_->Predict(*all_, mean, variance);
  std::vector<float> score(mean.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    score[i] = listed_prior_[i] + mean[i] -
               static_cast<float>(kKappa) * std::sqrt(variance[i]);
  }
  std::vector<int> order(mean.size());
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + kPool, order.end(),
                   [&](int a, int b) {
                     return score[a] != score[b] ? score[a] < score[b] : a < b;
                   });
  order.resize(kPool);
  std::sort(order.begin(), order.end());
  CandidateSet set(*features_, gp_->sources());
  for (const int i : order) AddToPool(listed_[i], set);
  posterior_->Keep(std::move(set));
}

void BayesOpt::AddNeighboursOfBest() {
  if (all_ != nullptr || best() == neighbours_of_) return;
  neighbours_of_ = best();
  std::vector<GpInput> inputs;
  for (Levels& levels :
       domain().Neighbours(history()[best()].levels, Neighbourhood::kHamming)) {
    if (Seen(levels)) continue;
    inputs.push_back(MakeInput(levels));
    pool_prior_.push_back(knowledge_.Expected(inputs.back().sources));
    pool_.push_back(std::move(levels));
  }
  posterior_->Extend(inputs);
}

int BayesOpt::NextCandidate(int started, double best,
                            const std::vector<char>& taken) const {
  const bool by_bound = ChosenByBound(started);
  int chosen = -1;
  double highest = -std::numeric_limits<double>::infinity();
  for (int c = 0; c < posterior_->pool_size(); ++c) {
    const double mean = posterior_->mean(c) + pool_prior_[c];
    const double sd = std::sqrt(posterior_->variance(c));
    const double score =
        by_bound ? kKappa * sd - mean
                 : LogExpectedImprovementOf(best - mean, kSdFactor * sd);
    if (score > highest && !taken[c] && !Seen(pool_[c])) {
      highest = score;
      chosen = c;
    }
  }
  return chosen;
}

}  // namespace optrail::tuning
