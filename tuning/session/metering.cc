#include "tuning/session/metering.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/stats/statistics.h"
#include "tuning/model/config_features.h"
#include "tuning/model/gaussian_process.h"
#include "tuning/model/gp_posterior.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

// A model needs some trials; those that are far slower than others teach it
// nothing of what could be the best.
constexpr size_t kFirstReadings = 3;
constexpr double kNear = 1.5;
// Two configs this near each other are told apart by reading them.
constexpr double kSlack = .02;
// Fewer points say nothing of knobs: the line alone is used.
constexpr size_t kFewestForKnobs = 5;
// How far a config is from the line, before anything is known of its knobs.
constexpr double kFirstDeviation = .05;
constexpr int kFitSteps = 30;

// The line a + b t through the points that has the least relative squared
// error, with neither term below zero.
struct Line {
  double a = 0, b = 0;
  double At(double t) const { return a + b * t; }
};

Line LineThrough(const std::vector<double>& t, const std::vector<double>& y) {
  // Weighted by 1/y^2.
  double sw = 0, st = 0, stt = 0, sy = 0, sty = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    const double w = 1 / (y[i] * y[i]);
    sw += w;
    st += w * t[i];
    stt += w * t[i] * t[i];
    sy += w * y[i];
    sty += w * t[i] * y[i];
  }
  const double determinant = sw * stt - st * st;
  Line line;
  if (determinant > 1e-9 * sw * stt) {
    line.a = (sy * stt - st * sty) / determinant;
    line.b = (sw * sty - st * sy) / determinant;
  }
  if (line.a < 0 || line.b < 0 || determinant <= 1e-9 * sw * stt) {
    // The better of the two ends: what is proportional to time, or constant.
    line = {0, sty / stt};
    if (t.size() > 1 && line.b < 0) line = {sy / sw, 0};
  }
  return line;
}

// Configs as the models see them: a level per knob, among the values that
// occur.
class KnobTable {
 public:
  void Add(const proto::Config& config) {
    for (const proto::KnobValue& value : config.set()) {
      values_[value.knob()].insert(KeyOf(value));
    }
  }
  std::vector<KnobLevels> Knobs() const {
    std::vector<KnobLevels> knobs;
    for (const auto& [name, keys] : values_) {
      KnobLevels knob;
      knob.name = name;
      knob.ordinal = true;
      for (const auto& [number, label] : keys) {
        knob.ordinal &= label.empty();
        knob.ints.push_back(number);
        knob.labels.push_back(label.empty() ? std::to_string(number) : label);
      }
      if (!knob.ordinal) knob.ints.clear();
      knobs.push_back(std::move(knob));
    }
    return knobs;
  }
  Levels LevelsOf(const proto::Config& config) const {
    std::map<std::string, Key> set;
    for (const proto::KnobValue& value : config.set()) {
      set[value.knob()] = KeyOf(value);
    }
    Levels levels;
    for (const auto& [name, keys] : values_) {
      const auto found = set.find(name);
      const auto at =
          found == set.end() ? keys.begin() : keys.lower_bound(found->second);
      levels.push_back(static_cast<uint16_t>(std::distance(keys.begin(), at)));
    }
    return levels;
  }

 private:
  using Key = std::pair<int64_t, std::string>;
  static Key KeyOf(const proto::KnobValue& value) {
    if (value.value_case() == proto::KnobValue::kInt) return {value.int_(), ""};
    return {0, CanonicalText(value)};
  }
  std::map<std::string, std::set<Key>> values_;
};

// The compile facts of every metered trial, as numbers around zero.
class FactTable {
 public:
  explicit FactTable(absl::Span<const proto::Trial> trials) {
    if (trials.empty()) return;
    for (const proto::Fact& fact : trials[0].facts()) {
      std::vector<double> values;
      for (const proto::Trial& trial : trials) {
        if (const auto value = LogOf(trial, fact.name())) {
          values.push_back(*value);
        }
      }
      if (values.size() < trials.size()) continue;
      const double deviation = StandardDeviation(values);
      if (deviation > 0) facts_[fact.name()] = {Mean(values), deviation};
    }
  }
  int size() const { return static_cast<int>(facts_.size()); }
  // What is not told is like the others.
  std::vector<float> Of(const proto::Trial& trial) const {
    std::vector<float> values;
    for (const auto& [name, scale] : facts_) {
      const auto value = LogOf(trial, name);
      values.push_back(
          value ? static_cast<float>((*value - scale.first) / scale.second)
                : 0);
    }
    return values;
  }

 private:
  static absl::optional<double> LogOf(const proto::Trial& trial,
                                      const std::string& name) {
    for (const proto::Fact& fact : trial.facts()) {
      if (fact.name() == name) {
        return std::log1p(
            static_cast<double>(std::max<int64_t>(fact.value(), 0)));
      }
    }
    return absl::nullopt;
  }
  std::map<std::string, std::pair<double, double>> facts_;
};

}  // namespace

bool Metering::IsMetered(const proto::Trial& trial) const {
  if (trial.outcome() != proto::OK || !ValueOf(trial, kTimeMetric)) {
    return false;
  }
  return std::all_of(costly_.begin(), costly_.end(),
                     [&](const std::string& metric) {
                       const auto value = ValueOf(trial, metric);
                       return value && *value > 0;
                     });
}

void Metering::Add(const proto::Trial& trial) {
  ++trials_;
  if (IsMetered(trial)) ++readings_;
  AddKnown(trial);
}

void Metering::AddKnown(const proto::Trial& trial) {
  const absl::optional<double> time_ns = ValueOf(trial, kTimeMetric);
  if (trial.outcome() == proto::OK && time_ns &&
      (!best_time_ns_ || *time_ns < *best_time_ns_)) {
    best_time_ns_ = time_ns;
    fastest_ = trial.config();
  }
  if (IsMetered(trial)) metered_.push_back(trial);
}

std::vector<Metering::Prediction> Metering::Predict(
    size_t metric, absl::Span<const proto::Trial* const> trials) const {
  std::vector<double> times, values;
  for (const proto::Trial& trial : metered_) {
    times.push_back(*ValueOf(trial, kTimeMetric));
    values.push_back(*ValueOf(trial, costly_[metric]));
  }
  const Line line = LineThrough(times, values);
  std::vector<double> residuals;
  double squares = kFirstDeviation * kFirstDeviation;
  for (size_t i = 0; i < values.size(); ++i) {
    residuals.push_back(std::log(values[i] / line.At(times[i])));
    squares += residuals.back() * residuals.back();
  }
  const double deviation =
      std::sqrt(squares / static_cast<double>(values.size()));
  std::vector<Prediction> predictions;
  for (const proto::Trial* trial : trials) {
    predictions.push_back({line.At(*ValueOf(*trial, kTimeMetric)), deviation});
  }
  if (metered_.size() < kFewestForKnobs) return predictions;

  KnobTable table;
  for (const proto::Trial& trial : metered_) table.Add(trial.config());
  for (const proto::Trial* trial : trials) table.Add(trial->config());
  const std::vector<KnobLevels> knobs = table.Knobs();
  const ConfigFeatures features(knobs);
  if (features.features().empty()) return predictions;
  const FactTable facts(metered_);
  const auto input_of = [&](const proto::Trial& trial) {
    return GpInput{table.LevelsOf(trial.config()), facts.Of(trial)};
  };
  std::vector<GpInput> inputs;
  for (const proto::Trial& trial : metered_) {
    inputs.push_back(input_of(trial));
  }
  const double scale = std::max(StandardDeviation(residuals), 1e-4);
  for (double& residual : residuals) residual /= scale;
  GaussianProcess process(features, facts.size());
  process.Fit(inputs, residuals, kFitSteps);
  GpPosterior posterior(features);
  posterior.Reset(process, std::move(inputs));
  posterior.SetTargets(residuals);
  CandidateSet candidates(features, facts.size());
  for (const proto::Trial* trial : trials) candidates.Add(input_of(*trial));
  std::vector<float> mean, variance;
  posterior.Predict(candidates, mean, variance);
  for (size_t i = 0; i < predictions.size(); ++i) {
    predictions[i].value *= std::exp(scale * mean[i]);
    // The process believes in more than it has seen; the points do not.
    predictions[i].relative_deviation =
        std::min(deviation, scale * std::sqrt(std::max(variance[i], 0.f)));
  }
  return predictions;
}

bool Metering::Lacks(const proto::Trial& trial, size_t metric) const {
  return !metered_.empty() && trial.outcome() == proto::OK &&
         ValueOf(trial, kTimeMetric) && !ValueOf(trial, costly_[metric]);
}

void Metering::AddPrediction(size_t metric, const Prediction& prediction,
                             double deviations, proto::Trial* trial) const {
  proto::MetricSamples* value = trial->add_objectives();
  value->set_metric(costly_[metric]);
  value->add_values(prediction.value *
                    std::exp(deviations * prediction.relative_deviation));
}

std::vector<proto::Trial> Metering::Completed(
    absl::Span<const proto::Trial> trials, double deviations) const {
  std::vector<proto::Trial> completed(trials.begin(), trials.end());
  for (size_t metric = 0; metric < costly_.size(); ++metric) {
    std::vector<proto::Trial*> lacking;
    for (proto::Trial& trial : completed) {
      if (Lacks(trial, metric)) lacking.push_back(&trial);
    }
    if (lacking.empty()) continue;
    const std::vector<Prediction> predictions = Predict(
        metric,
        std::vector<const proto::Trial*>(lacking.begin(), lacking.end()));
    for (size_t i = 0; i < lacking.size(); ++i) {
      AddPrediction(metric, predictions[i], deviations, lacking[i]);
    }
  }
  return completed;
}

proto::Trial Metering::Completed(const proto::Trial& trial,
                                 double deviations) const {
  return Completed(absl::MakeConstSpan(&trial, 1), deviations)[0];
}

PredictedTrial Metering::CompletedFor(
    const std::vector<proto::Objective>& objectives,
    const proto::Trial& trial) const {
  PredictedTrial completed;
  completed.trial = trial;
  std::map<std::string, double> deviations;  // by metric
  for (size_t metric = 0; metric < costly_.size(); ++metric) {
    if (!Lacks(trial, metric)) continue;
    const proto::Trial* const lacking = &trial;
    const Prediction prediction =
        Predict(metric, absl::MakeConstSpan(&lacking, 1))[0];
    AddPrediction(metric, prediction, /*deviations=*/0, &completed.trial);
    deviations[costly_[metric]] = prediction.relative_deviation;
  }
  for (size_t i = 0; i < objectives.size(); ++i) {
    for (const std::string& metric : MetricsOf({objectives[i]})) {
      const auto found = deviations.find(metric);
      if (found == deviations.end()) continue;
      completed.objective = static_cast<int>(i);
      completed.deviation = found->second;
      return completed;
    }
  }
  return completed;
}

double Metering::MeterBelowNs(
    const proto::Config& config,
    const std::vector<proto::Objective>& objectives) const {
  const bool follows_best = std::any_of(
      objectives.begin(), objectives.end(),
      [](const auto& objective) { return objective.has_limit_over_best(); });
  const int most = follows_best ? kMeteredTrials - 1 : kMeteredTrials;
  if (readings_ >= most) return 0;
  if (!best_time_ns_) return std::numeric_limits<double>::infinity();
  if (metered_.size() < kFirstReadings) return kNear * *best_time_ns_;
  // The search gets better: readings are kept for what it finds later.
  if (budget_ > 0 &&
      readings_ >= kFirstReadings + (most - kFirstReadings) *
                                        static_cast<double>(trials_) /
                                        static_cast<double>(budget_)) {
    return 0;
  }
  absl::optional<double> best;
  for (const proto::Trial& trial : metered_) {
    const auto values = ValuesOf(objectives, trial);
    const auto cost = Cost(objectives, values);
    if (cost && WithinLimits(objectives, values) && (!best || *cost < *best)) {
      best = cost;
    }
  }
  if (!best) return std::numeric_limits<double>::infinity();
  proto::Trial trial;
  *trial.mutable_config() = config;
  trial.set_outcome(proto::OK);
  const auto is_worth_it = [&](double time_ns) {
    trial.set_time_ns(time_ns);
    const proto::Trial completed = Completed(trial, /*deviations=*/-1);
    const auto values = ValuesOf(objectives, completed);
    const auto cost = Cost(objectives, values);
    return cost && *cost <= *best * (1 + kSlack) &&
           WithinLimits(objectives, values);
  };
  double below = 0, above = 4 * *best_time_ns_;
  constexpr int kHalvings = 8;  // to 2% of the best time
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (below + above) / 2;
    (is_worth_it(middle) ? below : above) = middle;
  }
  return below;
}

}  // namespace optrail::tuning
