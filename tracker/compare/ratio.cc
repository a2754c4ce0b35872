#include "tracker/compare/ratio.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/distributions.h"
#include "base/statistics.h"
#include "base/status_macros.h"

namespace optrail::tracker {
namespace {

// One side, in logarithms. A group is a run.
struct LogSide {
  std::vector<double> means;  // of the groups
  std::vector<int> sizes;
  int processes = 0;
  double sum_of_squares = 0;  // within groups

  int groups() const { return static_cast<int>(means.size()); }
  double degrees_of_freedom() const { return processes - groups(); }
  double variance() const { return sum_of_squares / degrees_of_freedom(); }
};

absl::StatusOr<LogSide> ToLogs(const ProcessGroups& groups,
                               absl::string_view side) {
  LogSide logs;
  for (const std::vector<double>& group : groups) {
    if (group.empty()) continue;
    double sum = 0;
    for (const double value : group) {
      if (!(value > 0) || !std::isfinite(value)) {
        return absl::InvalidArgumentError(
            absl::StrCat(side, " has the value ", value,
                         ", a ratio needs positive, finite ones"));
      }
      sum += std::log(value);
    }
    const double mean = sum / static_cast<double>(group.size());
    for (const double value : group) {
      logs.sum_of_squares += std::pow(std::log(value) - mean, 2);
    }
    logs.means.push_back(mean);
    logs.sizes.push_back(static_cast<int>(group.size()));
    logs.processes += static_cast<int>(group.size());
  }
  return logs;
}

// A variance with what it is worth.
struct Component {
  double variance = 0;
  double degrees_of_freedom = 0;
};

// Between processes: both sides pooled, and the prior where it may be believed.
Component ProcessComponent(const LogSide& baseline, const LogSide& candidate,
                           const RatioOptions& options) {
  Component pooled;
  pooled.degrees_of_freedom =
      baseline.degrees_of_freedom() + candidate.degrees_of_freedom();
  const double sum = baseline.sum_of_squares + candidate.sum_of_squares;
  if (pooled.degrees_of_freedom > 0) {
    pooled.variance = sum / pooled.degrees_of_freedom;
  }
  if (options.prior.has_value() && options.prior->degrees_of_freedom > 0 &&
      pooled.variance <= options.prior->process_variance) {
    const double prior_df = std::min(options.prior->degrees_of_freedom,
                                     options.max_prior_degrees_of_freedom);
    pooled.degrees_of_freedom += prior_df;
    pooled.variance = (sum + prior_df * options.prior->process_variance) /
                      pooled.degrees_of_freedom;
  }
  pooled.variance =
      std::max(pooled.variance, std::pow(options.min_process_spread, 2));
  return pooled;
}

// Between runs, by the method of moments of a one-way random-effects analysis
// of variance with unequal groups (Searle, Casella, McCulloch, "Variance
// Components", 1992, 3.6).
struct RunComponent {
  double variance = 0;  // beyond what processes explain; at least 0
  double mean_square = 0;
  double degrees_of_freedom = 0;
  double processes_per_run = 1;
};

RunComponent BetweenRuns(const LogSide& baseline, const LogSide& candidate,
                         double process_variance) {
  RunComponent runs;
  double sum = 0;
  double effective_sizes = 0;
  for (const LogSide* side : {&baseline, &candidate}) {
    if (side->groups() < 2) continue;
    double mean = 0;
    double squares = 0;
    for (int i = 0; i < side->groups(); ++i) {
      mean += side->sizes[i] * side->means[i] / side->processes;
      squares += static_cast<double>(side->sizes[i]) * side->sizes[i];
    }
    for (int i = 0; i < side->groups(); ++i) {
      sum += side->sizes[i] * std::pow(side->means[i] - mean, 2);
    }
    effective_sizes += side->processes - squares / side->processes;
    runs.degrees_of_freedom += side->groups() - 1;
  }
  if (runs.degrees_of_freedom == 0) return runs;
  runs.mean_square = sum / runs.degrees_of_freedom;
  runs.processes_per_run = effective_sizes / runs.degrees_of_freedom;
  runs.variance = std::max(
      0.0, (runs.mean_square - process_variance) / runs.processes_per_run);
  return runs;
}

// The best linear estimate of a side's level for these variances, and the
// coefficients of the variances in its own variance.
struct Level {
  double mean = 0;
  double process_coefficient = 0;
  double run_coefficient = 0;
};

Level EstimateLevel(const LogSide& side, double process_variance,
                    double run_variance) {
  std::vector<double> weights;
  double total = 0;
  for (const int size : side.sizes) {
    weights.push_back(1 / (run_variance + process_variance / size));
    total += weights.back();
  }
  Level level;
  for (int i = 0; i < side.groups(); ++i) {
    const double weight = weights[i] / total;
    level.mean += weight * side.means[i];
    level.process_coefficient += weight * weight / side.sizes[i];
    level.run_coefficient += weight * weight;
  }
  return level;
}

// Welch's squared standard error of the difference, 0 where a side has too few
// processes for it.
Component WelchError(const LogSide& baseline, const LogSide& candidate) {
  Component error;
  double denominator = 0;
  for (const LogSide* side : {&baseline, &candidate}) {
    if (side->degrees_of_freedom() < 1) return {};
    const double part = side->variance() / side->processes;
    error.variance += part;
    denominator += part * part / side->degrees_of_freedom();
  }
  error.degrees_of_freedom =
      denominator > 0 ? error.variance * error.variance / denominator : 0;
  return error;
}

// The squared standard error of the difference of levels.
Component DifferenceError(const LogSide& baseline, const LogSide& candidate,
                          const Component& process, const RunComponent& runs,
                          const Level& baseline_level,
                          const Level& candidate_level) {
  const double process_coefficient =
      baseline_level.process_coefficient + candidate_level.process_coefficient;
  if (runs.variance == 0) {
    Component error = {process_coefficient * process.variance,
                       process.degrees_of_freedom};
    const Component welch = WelchError(baseline, candidate);
    // Sides of the same size have the same error by both: not a matter of
    // rounding.
    return welch.variance > error.variance * (1 + 1e-9) ? welch : error;
  }
  // Satterthwaite (1946): the error is a linear combination of the mean squares
  // within and between runs.
  const double run_coefficient =
      baseline_level.run_coefficient + candidate_level.run_coefficient;
  const double between =
      run_coefficient / runs.processes_per_run * runs.mean_square;
  const double within =
      (process_coefficient - run_coefficient / runs.processes_per_run) *
      process.variance;
  Component error;
  error.variance =
      process_coefficient * process.variance + run_coefficient * runs.variance;
  error.degrees_of_freedom =
      error.variance * error.variance /
      (between * between / runs.degrees_of_freedom +
       within * within / std::max(1.0, process.degrees_of_freedom));
  return error;
}

// The t with P(T > t) = p for p < .5: Newton's method on the logarithm of the
// tail, which is convex, from the normal quantile. Comparisons ask for many;
// this takes a few evaluations of the distribution function.
double UpperTQuantile(double p, double degrees_of_freedom) {
  const double df = degrees_of_freedom;
  if (!(df >= 2 && p > 0 && p < .5)) return -StudentTQuantile(p, df);
  const double log_scale = std::lgamma((df + 1) / 2) - std::lgamma(df / 2) -
                           .5 * std::log(df * std::acos(-1.0));
  double t = -NormalQuantile(p);
  for (int i = 0; i < 100; ++i) {
    const double tail = StudentTCdf(-t, df);
    const double density =
        std::exp(log_scale - (df + 1) / 2 * std::log1p(t * t / df));
    const double step = std::log(tail / p) * tail / density;
    t += step;
    if (std::abs(step) <= 1e-10 * t) break;
  }
  return t;
}

std::vector<double> Flatten(const ProcessGroups& groups) {
  std::vector<double> values;
  for (const std::vector<double>& group : groups) {
    values.insert(values.end(), group.begin(), group.end());
  }
  return values;
}

}  // namespace

SpreadPrior EstimateSpread(const ProcessGroups& groups) {
  const absl::StatusOr<LogSide> logs = ToLogs(groups, "");
  if (!logs.ok() || logs->degrees_of_freedom() <= 0) return {};
  return {logs->variance(), logs->degrees_of_freedom()};
}

absl::StatusOr<Ratio> CompareProcesses(const ProcessGroups& baseline_groups,
                                       const ProcessGroups& candidate_groups,
                                       const RatioOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const LogSide baseline,
                           ToLogs(baseline_groups, "the baseline"));
  OPTRAIL_ASSIGN_OR_RETURN(const LogSide candidate,
                           ToLogs(candidate_groups, "the candidate"));
  if (baseline.processes == 0 || candidate.processes == 0) {
    return absl::FailedPreconditionError("a side has no processes");
  }
  const Component process = ProcessComponent(baseline, candidate, options);
  if (process.degrees_of_freedom < 1) {
    return absl::FailedPreconditionError(
        "one process on each side says nothing about noise");
  }
  const RunComponent runs = BetweenRuns(baseline, candidate, process.variance);
  const Level baseline_level =
      EstimateLevel(baseline, process.variance, runs.variance);
  const Level candidate_level =
      EstimateLevel(candidate, process.variance, runs.variance);
  const Component error = DifferenceError(baseline, candidate, process, runs,
                                          baseline_level, candidate_level);

  Ratio ratio;
  ratio.log_ratio = candidate_level.mean - baseline_level.mean;
  ratio.standard_error = std::sqrt(error.variance);
  ratio.degrees_of_freedom = error.degrees_of_freedom;
  const double t = ratio.log_ratio / ratio.standard_error;
  ratio.p_greater = StudentTCdf(-t, ratio.degrees_of_freedom);
  ratio.p_less = StudentTCdf(t, ratio.degrees_of_freedom);
  ratio.p_two_sided =
      std::min(1.0, 2 * std::min(ratio.p_greater, ratio.p_less));
  const double half_width =
      UpperTQuantile((1 - options.confidence) / 2, ratio.degrees_of_freedom) *
      ratio.standard_error;
  ratio.ratio = std::exp(ratio.log_ratio);
  ratio.low = std::exp(ratio.log_ratio - half_width);
  ratio.high = std::exp(ratio.log_ratio + half_width);

  const std::vector<double> x = Flatten(baseline_groups);
  const std::vector<double> y = Flatten(candidate_groups);
  ratio.baseline = Median(x);
  ratio.candidate = Median(y);
  const RankTest ranks = MannWhitneyU(x, y);
  ratio.probability_above =
      ranks.u / (static_cast<double>(x.size()) * static_cast<double>(y.size()));
  ratio.mann_whitney_p = ranks.p_value;

  ratio.process_spread = std::sqrt(process.variance);
  ratio.run_spread = std::sqrt(runs.variance);
  ratio.baseline_processes = baseline.processes;
  ratio.candidate_processes = candidate.processes;
  ratio.baseline_runs = baseline.groups();
  return ratio;
}

double MinimumDetectableEffect(double standard_error, double degrees_of_freedom,
                               double alpha, double power, double min_effect) {
  // Found is what exceeds both the critical value, which itself varies with the
  // estimated error, and min_effect. The first is a matter of the noncentral t
  // distribution, in the normal approximation of Johnson and Welch (1940).
  const double critical = UpperTQuantile(alpha, degrees_of_freedom);
  const double margin = NormalQuantile(power);
  const double noncentrality =
      critical * (1 - 1 / (4 * degrees_of_freedom)) +
      margin * std::sqrt(1 + critical * critical / (2 * degrees_of_freedom));
  return std::expm1(std::max(noncentrality * standard_error,
                             std::log1p(min_effect) + margin * standard_error));
}

absl::optional<int> ProcessesNeeded(double process_spread, double effect,
                                    double min_effect, double alpha,
                                    double power, int limit) {
  const auto suffices = [&](int n) {
    return MinimumDetectableEffect(process_spread * std::sqrt(2.0 / n),
                                   2 * n - 2, alpha, power,
                                   min_effect) <= effect;
  };
  int low = 1;  // does not suffice
  int high = limit;
  if (limit < 2 || !suffices(limit)) return absl::nullopt;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (suffices(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace optrail::tracker
