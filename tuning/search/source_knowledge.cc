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
// What is looked at for that, at most.
constexpr size_t kStructureTrials = 4096;
constexpr size_t kStructureQueries = 256;

absl::optional<double> LogCost(const Trial& trial) {
  if (trial.outcome != TrialOutcome::kOk || trial.objectives.empty()) {
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

// The mean value of the configs (other than `query`) that differ from it in the
// fewest knobs.
double MeanOfNearest(size_t query, absl::Span<const Levels* const> configs,
                     absl::Span<const double> values) {
  int least = std::numeric_limits<int>::max();
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    if (i == query) continue;
    const int differ = KnobsThatDiffer(*configs[query], *configs[i]);
    if (differ > least) continue;
    if (differ < least) {
      least = differ;
      sum = 0;
      count = 0;
    }
    sum += values[i];
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

// How well a config's value is known from its nearest neighbours': their
// correlation.
double Structure(absl::Span<const Trial> trials,
                 const std::function<double(const Trial&)>& value_of) {
  std::vector<const Levels*> configs;
  std::vector<double> values;
  const size_t stride = trials.size() / kStructureTrials + 1;
  for (size_t i = 0; i < trials.size(); i += stride) {
    configs.push_back(&trials[i].levels);
    values.push_back(value_of(trials[i]));
  }
  std::vector<double> own, nearest;
  const size_t query_stride = configs.size() / kStructureQueries + 1;
  for (size_t q = 0; q < configs.size(); q += query_stride) {
    own.push_back(values[q]);
    nearest.push_back(MeanOfNearest(q, configs, values));
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
    if (Structure(sources[k].trials, value_of) < kLeastStructure) continue;
    units_[k] = unit;
    for (const Trial& trial : sources[k].trials) {
      std::vector<float>& row = values_[trial.levels];
      row.resize(sources.size(), std::numeric_limits<float>::quiet_NaN());
      row[k] = static_cast<float>((value_of(trial) - mean) / unit);
    }
  }
}

void SourceKnowledge::Believe(absl::Span<const TransferSource> sources) {
  for (size_t k = 0; k < sources.size(); ++k) {
    if (units_[k] > 0) believed_.push_back(static_cast<int>(k));
  }
  // Mean products of standardised values, over the configs both have.
  std::vector<std::vector<double>> sums(sources.size(),
                                        std::vector<double>(sources.size()));
  std::vector<std::vector<double>> counts = sums;
  // Not in the order of the map, which differs from process to process.
  for (const int a : believed_) {
    for (const Trial& trial : sources[a].trials) {
      const std::vector<float>& row = values_.at(trial.levels);
      for (const int b : believed_) {
        if (b >= a || std::isnan(row[b])) continue;
        sums[a][b] += static_cast<double>(row[a]) * row[b];
        counts[a][b] += 1;
      }
    }
  }
  const auto correlation = [&](int a, int b) {
    if (a < b) std::swap(a, b);
    return counts[a][b] > 0 ? sums[a][b] / counts[a][b] : 0.0;
  };
  double mean_correlation = kCorrelationOfOne;
  while (believed_.size() > 1) {
    size_t worst = 0;
    double least = std::numeric_limits<double>::infinity();
    mean_correlation = 0;
    for (size_t i = 0; i < believed_.size(); ++i) {
      double mean = 0;
      for (size_t j = 0; j < believed_.size(); ++j) {
        if (i != j) mean += correlation(believed_[i], believed_[j]);
      }
      mean /= static_cast<double>(believed_.size() - 1);
      mean_correlation += mean / static_cast<double>(believed_.size());
      if (mean < least) {
        least = mean;
        worst = i;
      }
    }
    if (least >= kLeastCorrelation) break;
    // Of two that disagree nobody knows which is right.
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
