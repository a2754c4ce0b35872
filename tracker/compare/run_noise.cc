#include "tracker/compare/run_noise.h"

#include <algorithm>
#include <cmath>

#include "base/stats/statistics.h"
#include "tracker/compare/robust.h"

namespace optrail::tracker {
namespace {

constexpr double kFloor = kLeastRunSpread * kLeastRunSpread;
// The variance between runs beyond their processes, over that between
// processes, where nothing else is known. Fitted on recorded sets
// (docs/method/gating.md).
constexpr double kRunShare = .2;
constexpr double kRunShareWeight = 3;  // in benchmarks
constexpr double kPriorDegrees = 8;    // what that is worth
constexpr double kFewestPriorDegrees = 4;
constexpr double kMostPriorDegrees = 40;
constexpr double kMostDegrees = 120;
// Degrees of freedom that the benchmark's part of the factor takes.
constexpr double kFactorDegrees = 2;
// What the suite says of bad runs is worth so many of a benchmark.
constexpr double kSuiteWeight = 30;
// How often calibration loops do not see that all processes are slow.
constexpr double kUnseen = .1;
// A bad run is often followed by another: how often, beside chance.
constexpr double kBadSpell = .3;

double TriGamma(double x) {
  double sum = 0;
  for (; x < 10; ++x) sum += 1 / (x * x);
  const double y = 1 / (x * x);
  return sum + 1 / x + y / 2 + y / x * (1. / 6 - y * (1. / 30 - y / 42));
}

// The degrees of freedom whose log chi-squared varies by `variance`.
double DegreesOf(double variance) {
  double low = .1, high = 1e4;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (TriGamma(middle / 2) > variance ? low : high) = middle;
  }
  return low;
}

// Counts runs: how many, how many of them slow, and by how much together.
struct SlowCount {
  double runs = 0, slow = 0, excess = 0;

  void Add(const SlowCount& other) {
    runs += other.runs;
    slow += other.slow;
    excess += other.excess;
  }
  void Take(const SlowCount& other) {
    runs -= other.runs;
    slow -= other.slow;
    excess -= other.excess;
  }
};

// What was counted, but for `left_out`, and what is believed.
SlowValues Rate(const SlowCount& counted, const SlowCount& left_out,
                const SlowValues& believed, double weight) {
  const double slow = counted.slow - left_out.slow + weight * believed.share;
  const double excess = counted.excess - left_out.excess +
                        weight * believed.share * believed.excess;
  return {slow / (counted.runs - left_out.runs + weight), excess / slow};
}

// Where processes are often slow, sooner or later all of a run are.
SlowValues AllSlow(const BenchmarkRuns& benchmark, const SlowValues& suite) {
  const double share =
      std::pow(benchmark.slow_processes.share, benchmark.processes) *
      (benchmark.calibrated ? kUnseen : 1);
  return {suite.share + share, (suite.share * suite.excess +
                                share * benchmark.slow_processes.excess) /
                                   (suite.share + share)};
}

SlowValuesFit Fit(const BenchmarkRuns& benchmark) {
  std::vector<ValueGroup> groups = benchmark.stretches;
  if (benchmark.candidates.values.size() > 1) {
    groups.push_back(benchmark.candidates);
  }
  SlowValuesPrior prior;
  prior.slow = kSlowRuns;
  prior.weight = kSlowRunsWeight;
  prior.variance = benchmark.expected_variance;
  prior.variance_degrees = 1;
  std::vector<double> below;
  for (const ValueGroup& group : groups) {
    const double middle = Median(group.values);
    for (const double value : group.values) {
      if (value < middle) below.push_back(value - middle);
    }
  }
  if (!below.empty()) prior.start_variance = WinsorisedVariance(below);
  return FitSlowValues(groups, prior, kFloor);
}

// Returns the suite's slow runs by what is counted of each, without the worst.
SlowValues OfSuite(const std::vector<SlowCount>& by_run) {
  SlowCount all, worst;
  for (const SlowCount& run : by_run) {
    all.Add(run);
    if (run.excess > worst.excess) worst = run;
  }
  return Rate(all, worst, kSlowRuns, kSlowRunsWeight);
}

// By benchmark. Of three benchmarks or more, the one that lost most in slow
// runs speaks for itself alone: its code may have been slow for a while, which
// says nothing of the others.
std::vector<SlowValues> LearnSlowRuns(
    const std::vector<BenchmarkRuns>& benchmarks,
    const std::vector<SlowValuesFit>& fits) {
  constexpr size_t kFewestToLeaveOneOut = 3;
  std::vector<SlowCount> by_run, by_benchmark(benchmarks.size()),
      worst_of(benchmarks.size());
  std::vector<std::vector<SlowCount>> by_run_of(benchmarks.size());
  for (size_t j = 0; j < benchmarks.size(); ++j) {
    for (size_t s = 0; s < benchmarks[j].stretches.size(); ++s) {
      const std::vector<double>& values = benchmarks[j].stretches[s].values;
      const LowerLevel& found = fits[j].levels[s];
      for (size_t i = 0; i < values.size(); ++i) {
        const double undisturbed = found.undisturbed[i];
        const double slow = undisturbed < .5 ? 1 - undisturbed : 0;
        const SlowCount one = {1, slow,
                               slow * std::max(0., values[i] - found.level)};
        const auto place = static_cast<size_t>(benchmarks[j].places[s][i]);
        by_run.resize(std::max(by_run.size(), place + 1));
        by_run[place].Add(one);
        by_run_of[j].resize(std::max(by_run_of[j].size(), place + 1));
        by_run_of[j][place].Add(one);
        by_benchmark[j].Add(one);
        if (one.excess > worst_of[j].excess) worst_of[j] = one;
      }
    }
  }
  const SlowValues suite = OfSuite(by_run);
  SlowValues others = suite;
  size_t worst = benchmarks.size();
  if (benchmarks.size() >= kFewestToLeaveOneOut) {
    worst = static_cast<size_t>(
        std::max_element(by_benchmark.begin(), by_benchmark.end(),
                         [](const SlowCount& a, const SlowCount& b) {
                           return a.excess < b.excess;
                         }) -
        by_benchmark.begin());
    for (size_t r = 0; r < by_run_of[worst].size(); ++r) {
      by_run[r].Take(by_run_of[worst][r]);
    }
    others = OfSuite(by_run);
  }
  std::vector<SlowValues> slow;
  for (size_t j = 0; j < benchmarks.size(); ++j) {
    slow.push_back(Rate(by_benchmark[j], worst_of[j],
                        AllSlow(benchmarks[j], j == worst ? suite : others),
                        kSuiteWeight));
  }
  return slow;
}

}  // namespace

double ExpectedRunVariance(double process_variance, double processes) {
  return (kRunShare + 1 / processes) * process_variance + kFloor;
}

std::vector<RunNoise> LearnRunNoise(
    const std::vector<BenchmarkRuns>& benchmarks, bool factor) {
  const size_t count = benchmarks.size();
  std::vector<SlowValuesFit> fits;
  for (const BenchmarkRuns& benchmark : benchmarks) {
    fits.push_back(Fit(benchmark));
  }
  const std::vector<SlowValues> slow = LearnSlowRuns(benchmarks, fits);
  std::vector<double> variances(count), degrees(count);
  std::vector<double> shares, expected_spreads;
  for (size_t j = 0; j < count; ++j) {
    degrees[j] = fits[j].degrees - (factor ? kFactorDegrees : 0);
    if (degrees[j] < 1) continue;
    variances[j] = fits[j].variance * fits[j].degrees / degrees[j];
    if (variances[j] <= 0 || degrees[j] < 3) continue;
    shares.push_back(std::log(std::max(variances[j], kFloor) /
                              benchmarks[j].expected_variance));
    expected_spreads.push_back(TriGamma(degrees[j] / 2));
  }
  double center = 0, prior_degrees = kPriorDegrees;
  if (!shares.empty()) {
    const double n = static_cast<double>(shares.size());
    center = Median(shares) * n / (n + kRunShareWeight);
    double excess = kRunShareWeight * TriGamma(kPriorDegrees / 2);
    for (size_t i = 0; i < shares.size(); ++i) {
      excess +=
          std::pow(shares[i] - Median(shares), 2) * (n > 1 ? n / (n - 1) : 1) -
          expected_spreads[i];
    }
    excess /= n + kRunShareWeight;
    prior_degrees = excess <= 0
                        ? kMostPriorDegrees
                        : std::clamp(DegreesOf(excess), kFewestPriorDegrees,
                                     kMostPriorDegrees);
  }
  std::vector<RunNoise> noise;
  for (size_t j = 0; j < count; ++j) {
    const double own = std::max(0., degrees[j]);
    const double prior = benchmarks[j].expected_variance * std::exp(center);
    noise.push_back(
        {std::max(kFloor / 4, (prior_degrees * prior + own * variances[j]) /
                                  (prior_degrees + own)),
         std::min(kMostDegrees, prior_degrees + own), slow[j]});
  }
  return noise;
}

double SlowRunsTail(const SlowValues& slow, int runs, double by) {
  const double one = slow.Tail(by);
  return one * std::pow(std::min(1., kBadSpell + one), std::max(0, runs - 1));
}

}  // namespace optrail::tracker
