#include "tuning/search/source_knowledge.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/types/optional.h"

namespace optrail::tuning {
namespace {

constexpr double kCapQuantile = 0.8;
// A source whose mean correlation with the others is less is not believed.
constexpr double kLeastCorrelation = 0.15;
constexpr double kCorrelationOfOne = 0.5;
// Configs to begin with: losses (of log cost) count up to the first, and a
// config that gains less than the second over all sources is not worth it.
constexpr float kLossCap = 0.7f;
constexpr double kLeastGain = 0.02;
constexpr size_t kMaxStarts = 8;
// A source whose values correlate less than this with those of their nearest
// neighbours is noise. Recorded kernels have .6 to .9 (.4 where only 60 configs
// are known), shuffled ones -.1 to .1 (sd .1 for 60 configs).
constexpr double kLeastStructure = 0.25;
// The most trials that are looked at for that.
constexpr size_t kSampleTrials = 4096;
constexpr size_t kSampleQueries = 256;
// Two sources are compared by the configs that both have if these are so many,
// else by nearest configs.
constexpr int kLeastCommon = 50;

absl::optional<double> LogCost(const Trial& trial) {
  if (trial.outcome != proto::OK || trial.objectives.empty()) {
    return absl::nullopt;
  }
  const double cost = trial.objectives[0];
  if (!(cost > 0) || !std::isfinite(cost)) return absl::nullopt;
  return std::log(cost);
}

int KnobsThatDiffer(const Levels& a, const Levels& b) {
  int count = 0;
  for (size_t k = 0; k < a.size(); ++k) count += a[k] != b[k];
  return count;
}

// Some of a source's trials.
struct Sample {
  std::vector<const Levels*> configs;
  std::vector<double> values;
};

Sample Thinned(absl::Span<const Trial> trials,
               const std::function<double(const Trial&)>& value_of) {
  Sample sample;
  const size_t stride = trials.size() / kSampleTrials + 1;
  for (size_t i = 0; i < trials.size(); i += stride) {
    sample.configs.push_back(&trials[i].levels);
    sample.values.push_back(value_of(trials[i]));
  }
  return sample;
}

// The mean value of the configs, other than `config` itself, that differ from
// it in the fewest knobs.
double MeanOfNearest(const Levels& config, const Sample& sample) {
  int least = std::numeric_limits<int>::max();
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < sample.configs.size(); ++i) {
    if (sample.configs[i] == &config) continue;
    const int differ = KnobsThatDiffer(config, *sample.configs[i]);
    if (differ > least) continue;
    if (differ < least) {
      least = differ;
      sum = 0;
      count = 0;
    }
    sum += sample.values[i];
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

double Correlation(absl::Span<const double> x, absl::Span<const double> y) {
  const double n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

// How well the values of `asked` are known from the nearest configs of
// `known`: their correlation. A source with itself: its structure.
double NearestCorrelation(const Sample& asked, const Sample& known) {
  std::vector<double> own, nearest;
  const size_t stride = asked.configs.size() / kSampleQueries + 1;
  for (size_t i = 0; i < asked.configs.size(); i += stride) {
    own.push_back(asked.values[i]);
    nearest.push_back(MeanOfNearest(*asked.configs[i], known));
  }
  return Correlation(own, nearest);
}

}  // namespace

SourceKnowledge::SourceKnowledge(const Domain& domain,
                                 absl::Span<const TransferSource> sources) {
  LearnValues(sources);
  Believe(sources);
  if (!empty()) ChooseStarts(domain, sources);
}

void SourceKnowledge::LearnValues(absl::Span<const TransferSource> sources) {
  units_.assign(sources.size(), 0);
  for (size_t k = 0; k < sources.size(); ++k) {
    std::vector<double> logs;
    for (const Trial& trial : sources[k].trials) {
      if (const absl::optional<double> cost = LogCost(trial)) {
        logs.push_back(*cost);
      }
    }
    if (logs.empty()) continue;
    std::sort(logs.begin(), logs.end());
    const double cap =
        logs[static_cast<size_t>(kCapQuantile * (logs.size() - 1))];
    const auto value_of = [cap](const Trial& trial) {
      return std::min(cap, LogCost(trial).value_or(cap));
    };
    const double n = static_cast<double>(sources[k].trials.size());
    double mean = 0, squares = 0;
    for (const Trial& trial : sources[k].trials) {
      const double value = value_of(trial);
      mean += value / n;
      squares += value * value / n;
    }
    const double unit = std::sqrt(std::max(squares - mean * mean, 0.0));
    if (!(unit > 1e-6)) continue;  // everything cost the same
    const Sample sample = Thinned(sources[k].trials, value_of);
    if (NearestCorrelation(sample, sample) < kLeastStructure) continue;
    units_[k] = unit;
    for (const Trial& trial : sources[k].trials) {
      std::vector<float>& row = values_[trial.levels];
      row.resize(sources.size(), std::numeric_limits<float>::quiet_NaN());
      row[k] = static_cast<float>((value_of(trial) - mean) / unit);
    }
  }
}

double SourceKnowledge::Agreement(absl::Span<const TransferSource> sources,
                                  int a, int b) const {
  double sum = 0;
  int common = 0;
  // Not in the order of the map, which differs from process to process.
  for (const Trial& trial : sources[a].trials) {
    const std::vector<float>& row = values_.at(trial.levels);
    if (std::isnan(row[b])) continue;
    sum += static_cast<double>(row[a]) * row[b];
    ++common;
  }
  // More than 1 where two searches share what is good for both.
  if (common >= kLeastCommon) return std::min(1.0, sum / common);
  // Two searches rarely tried the same configs. Nearest ones understate how
  // much the sources agree: doubt is on the safe side.
  const auto sample = [&](int k) {
    return Thinned(sources[k].trials, [this, k](const Trial& trial) {
      return static_cast<double>(values_.at(trial.levels)[k]);
    });
  };
  const Sample of_a = sample(a), of_b = sample(b);
  return (NearestCorrelation(of_a, of_b) + NearestCorrelation(of_b, of_a)) / 2;
}

void SourceKnowledge::Believe(absl::Span<const TransferSource> sources) {
  for (size_t k = 0; k < sources.size(); ++k) {
    if (units_[k] > 0) believed_.push_back(static_cast<int>(k));
  }
  std::vector<std::vector<double>> correlations(
      sources.size(), std::vector<double>(sources.size(), 1.0));
  for (const int a : believed_) {
    for (const int b : believed_) {
      if (b >= a) break;
      correlations[a][b] = correlations[b][a] = Agreement(sources, a, b);
    }
  }
  double mean_correlation = kCorrelationOfOne;
  while (believed_.size() > 1) {
    size_t worst = 0;
    double least = std::numeric_limits<double>::infinity();
    mean_correlation = 0;
    for (size_t i = 0; i < believed_.size(); ++i) {
      double mean = 0;
      for (size_t j = 0; j < believed_.size(); ++j) {
        if (i != j) mean += correlations[believed_[i]][believed_[j]];
      }
      mean /= static_cast<double>(believed_.size() - 1);
      mean_correlation += mean / static_cast<double>(believed_.size());
      if (mean < least) {
        least = mean;
        worst = i;
      }
    }
    if (least >= kLeastCorrelation) break;
    // If two sources disagree, nobody knows which is right.
    if (believed_.size() == 2) believed_.clear();
    if (!believed_.empty()) believed_.erase(believed_.begin() + worst);
  }
  sources_ = static_cast<int>(believed_.size());
  if (empty()) return;
  weight_ = static_cast<float>(mean_correlation /
                               (1 + (sources_ - 1) * mean_correlation));
  unit_ = 0;
  for (const int k : believed_) unit_ += units_[k] / sources_;
}

std::vector<float> SourceKnowledge::Values(const Levels& levels) const {
  std::vector<float> result(sources_, 0.0f);
  const auto it = values_.find(levels);
  if (it == values_.end()) return result;
  for (int i = 0; i < sources_; ++i) {
    const float value = it->second[believed_[i]];
    if (!std::isnan(value)) result[i] = value;
  }
  return result;
}

float SourceKnowledge::Expected(const std::vector<float>& values) const {
  float sum = 0;
  for (const float value : values) sum += value;
  return weight_ * sum;
}

void SourceKnowledge::ChooseStarts(const Domain& domain,
                                   absl::Span<const TransferSource> sources) {
  absl::flat_hash_map<Levels, std::vector<float>> losses;
  for (int k = 0; k < sources_; ++k) {
    const std::vector<Trial>& trials = sources[believed_[k]].trials;
    double least = std::numeric_limits<double>::infinity();
    for (const Trial& trial : trials) {
      least = std::min(least, LogCost(trial).value_or(least));
    }
    for (const Trial& trial : trials) {
      const absl::optional<double> cost = LogCost(trial);
      if (!cost || *cost - least >= kLossCap) continue;
      if (!domain.IsValid(trial.levels)) continue;
      std::vector<float>& loss = losses[trial.levels];
      loss.resize(sources_, kLossCap);
      loss[k] = static_cast<float>(*cost - least);
    }
  }
  std::vector<float> left(sources_, kLossCap);
  while (starts_.size() < kMaxStarts) {
    double most = kLeastGain;
    const std::pair<const Levels, std::vector<float>>* chosen = nullptr;
    for (const auto& candidate : losses) {
      double gain = 0;
      for (int k = 0; k < sources_; ++k) {
        gain += std::max(0.0f, left[k] - candidate.second[k]);
      }
      // The map's order is arbitrary: ties go by the levels.
      if (gain > most || (gain == most && chosen != nullptr &&
                          candidate.first < chosen->first)) {
        most = gain;
        chosen = &candidate;
      }
    }
    if (chosen == nullptr) return;
    starts_.push_back(chosen->first);
    for (int k = 0; k < sources_; ++k) {
      left[k] = std::min(left[k], chosen->second[k]);
    }
  }
}

}  // namespace optrail::tuning
