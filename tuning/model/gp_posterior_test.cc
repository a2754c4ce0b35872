#include "tuning/model/gp_posterior.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tuning/model/dense_ops.h"

namespace optrail::tuning {
namespace {

std::vector<KnobLevels> Knobs() {
  std::vector<KnobLevels> knobs(3);
  for (int k = 0; k < 3; ++k) {
    knobs[k].ordinal = k < 2;
    for (int l = 0; l < 6; ++l) {
      knobs[k].labels.push_back(std::to_string(l));
      if (k < 2) knobs[k].ints.push_back(int64_t{1} << l);
    }
  }
  return knobs;
}

GpInput RandomInput(Rng& rng) {
  GpInput input;
  for (int k = 0; k < 3; ++k) {
    input.levels.push_back(static_cast<uint16_t>(rng.UniformInt(6)));
  }
  input.sources = {static_cast<float>(rng.UniformReal() - 0.5)};
  // Some targets are less certain than others.
  if (rng.UniformReal() < .3) input.extra_noise = rng.UniformReal();
  return input;
}

// Mean and variance by the textbook: K^-1 from one dense inversion.
struct Dense {
  Dense(const GaussianProcess& gp, const std::vector<GpInput>& inputs,
        const std::vector<double>& targets)
      : gp(gp), inputs(inputs), n(static_cast<int>(inputs.size())) {
    std::vector<double> k(n * n), inverse(n * n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        k[i * n + j] = gp.Covariance(inputs[i], inputs[j]) +
                       (i == j ? gp.noise() + inputs[i].extra_noise : 0);
      }
    }
    EXPECT_TRUE(Cholesky(k.data(), n));
    InvertLower(k.data(), n, inverse.data());
    precision.resize(n * n);
    GramOfLower(inverse.data(), n, precision.data());
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) {
        precision[i * n + j] = precision[j * n + i];
      }
    }
    alpha.resize(n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        alpha[i] += precision[i * n + j] * targets[j];
      }
    }
  }
  double Mean(const GpInput& x) const {
    double mean = 0;
    for (int i = 0; i < n; ++i) mean += gp.Covariance(inputs[i], x) * alpha[i];
    return mean;
  }
  double Variance(const GpInput& x) const {
    double variance = gp.Variance(x);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        variance -= gp.Covariance(inputs[i], x) * precision[i * n + j] *
                    gp.Covariance(inputs[j], x);
      }
    }
    return variance;
  }
  const GaussianProcess& gp;
  const std::vector<GpInput>& inputs;
  int n;
  std::vector<double> precision, alpha;
};

class GpPosteriorTest : public ::testing::Test {
 protected:
  GpPosteriorTest() : features_(knobs_), gp_(features_, 1), rng_(7) {
    for (int i = 0; i < 40; ++i) {
      inputs_.push_back(RandomInput(rng_));
      const Levels& l = inputs_.back().levels;
      targets_.push_back(std::sin(l[0]) + 0.3 * l[1] + (l[2] == 2 ? -1 : 0));
    }
    for (int i = 0; i < 700; ++i) candidates_.push_back(RandomInput(rng_));
    gp_.Fit(inputs_, targets_, 15);
  }

  CandidateSet Candidates() const {
    CandidateSet set(features_, 1);
    for (const GpInput& candidate : candidates_) set.Add(candidate);
    return set;
  }

  const std::vector<KnobLevels> knobs_ = Knobs();
  const ConfigFeatures features_;
  GaussianProcess gp_;
  Rng rng_;
  std::vector<GpInput> inputs_, candidates_;
  std::vector<double> targets_;
};

TEST_F(GpPosteriorTest, AgreesWithTheTextbook) {
  GpPosterior posterior(features_);
  posterior.Reset(gp_, inputs_);
  posterior.SetTargets(targets_);
  std::vector<float> mean, variance;
  posterior.Predict(Candidates(), mean, variance);
  const Dense dense(gp_, inputs_, targets_);
  for (size_t c = 0; c < candidates_.size(); c += 13) {
    EXPECT_NEAR(mean[c], dense.Mean(candidates_[c]), 5e-3);
    EXPECT_NEAR(variance[c], dense.Variance(candidates_[c]), 5e-3);
  }
  const std::vector<double> at_trials = posterior.MeansAtTrials();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    EXPECT_NEAR(at_trials[i], dense.Mean(inputs_[i]), 1e-6);
  }
}

TEST_F(GpPosteriorTest, TrialByTrialIsTheSameAsAllAtOnce) {
  GpPosterior grown(features_);
  grown.Reset(gp_, {inputs_.begin(), inputs_.begin() + 10});
  grown.Keep(Candidates());
  for (size_t i = 10; i < inputs_.size(); ++i) grown.Append(inputs_[i]);
  grown.SetTargets(targets_);
  GpPosterior whole(features_);
  whole.Reset(gp_, inputs_);
  whole.SetTargets(targets_);
  whole.Keep(Candidates());
  for (int c = 0; c < grown.pool_size(); c += 11) {
    EXPECT_NEAR(grown.mean(c), whole.mean(c), 1e-3);
    EXPECT_NEAR(grown.variance(c), whole.variance(c), 1e-3);
  }
}

TEST_F(GpPosteriorTest, FantasiesLowerTheVarianceAndAreForgotten) {
  GpPosterior posterior(features_);
  posterior.Reset(gp_, inputs_);
  posterior.SetTargets(targets_);
  posterior.Keep(Candidates());
  const float mean = posterior.mean(5), variance = posterior.variance(5);
  posterior.Remember();
  posterior.Append(candidates_[5]);
  EXPECT_LT(posterior.variance(5), variance);
  EXPECT_EQ(posterior.mean(5), mean);
  posterior.Restore();
  EXPECT_EQ(posterior.variance(5), variance);
  EXPECT_EQ(posterior.trials(), static_cast<int>(inputs_.size()));
}

TEST_F(GpPosteriorTest, ExtendAddsCandidatesAsIfTheyHadBeenThere) {
  GpPosterior posterior(features_);
  posterior.Reset(gp_, inputs_);
  posterior.SetTargets(targets_);
  CandidateSet some(features_, 1);
  for (int i = 0; i < 300; ++i) some.Add(candidates_[i]);
  posterior.Keep(std::move(some));
  posterior.Extend(absl::MakeConstSpan(candidates_).subspan(300));
  const Dense dense(gp_, inputs_, targets_);
  ASSERT_EQ(posterior.pool_size(), 700);
  for (const int c : {0, 255, 256, 299, 300, 511, 512, 699}) {
    EXPECT_NEAR(posterior.mean(c), dense.Mean(candidates_[c]), 5e-3) << c;
  }
}

TEST_F(GpPosteriorTest, FitFindsWhatMatters) {
  // Only the first knob matters: the fit must say so.
  std::vector<double> targets;
  double mean = 0;
  for (const GpInput& input : inputs_) {
    targets.push_back(input.levels[0] - 2.5);
    mean += targets.back() / inputs_.size();
  }
  for (double& target : targets) target -= mean;
  GaussianProcess gp(features_, 1);
  const double before = gp.Fit(inputs_, targets, 1);
  EXPECT_GT(gp.Fit(inputs_, targets, 60), before);
  GpInput base = inputs_[0], other_first = base, other_second = base;
  base.levels = {0, 0, 0};
  other_first.levels = {5, 0, 0};
  other_second.levels = {0, 5, 0};
  EXPECT_LT(gp.Covariance(base, other_first),
            gp.Covariance(base, other_second));
}

// Distances of few levels are kept in a table, of many computed.
TEST(GaussianProcessTest, ManyLevelsAreAsFarApartAsFew) {
  const auto covariance = [](int levels, int a, int b) {
    std::vector<KnobLevels> knobs(1);
    knobs[0].ordinal = true;
    for (int l = 0; l < levels; ++l) {
      knobs[0].labels.push_back(std::to_string(l));
      knobs[0].ints.push_back(-l);  // not positive: distances go by level
    }
    const ConfigFeatures features(knobs);
    const GaussianProcess gp(features, 0);
    GpInput x, y;
    x.levels = {static_cast<uint16_t>(a)};
    y.levels = {static_cast<uint16_t>(b)};
    // The posterior takes distances from here.
    const float r2 = gp.DistanceTable(x.levels)[b];
    const double t = std::sqrt(5.0 * r2);
    EXPECT_NEAR(gp.Covariance(x, y),
                gp.scale() * (1 + t + t * t / 3) * std::exp(-t), 1e-5);
    return gp.Covariance(x, y);
  };
  EXPECT_NEAR(covariance(3001, 300, 1500), covariance(11, 1, 5), 1e-5);
  EXPECT_EQ(covariance(3001, 7, 7), covariance(11, 7, 7));
  EXPECT_GT(covariance(3001, 7, 8), covariance(11, 7, 8));
}

}  // namespace
}  // namespace optrail::tuning
