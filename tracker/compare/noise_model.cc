#include "tracker/compare/noise_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/statistics.h"
#include "tracker/compare/machine_slope.h"
#include "tracker/compare/robust.h"
#include "tracker/compare/shared_factor.h"
#include "tracker/compare/steps.h"

namespace optrail::tracker {
namespace {

// No level of a run is believed to be known better: clocks have a resolution,
// and a few runs can agree by chance. Standard deviations of the logarithm.
constexpr double kLeastSpread = .0015;
constexpr double kLeastProcessSpread = 1e-4;

// The variance between runs beyond their processes, over that between
// processes, where nothing else is known. Fitted on recorded sets
// (docs/gating.md).
constexpr double kRunShare = .2;
constexpr double kRunShareWeight = 3;  // in benchmarks
constexpr double kPriorDegrees = 8;    // what that is worth
constexpr double kFewestPriorDegrees = 4;
constexpr double kMostPriorDegrees = 40;
constexpr double kMostDegrees = 120;
constexpr double kTypicalProcesses = 5;
// Of what benchmarks share, where few runs tell.
constexpr double kFactorSpread = .01, kFactorDegrees = 3;
// Standard deviations by which a bad run is worse.
constexpr double kBad = 4.5;
// Degrees of freedom of the spread between a candidate's processes below which
// it does not count as noisier than its history.
constexpr double kSpreadPriorDegrees = 6;
// So many times the variance of its history's is no news.
constexpr double kNoisier = 2;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<double> Values(const std::vector<ProcessLog>& cell) {
  std::vector<double> values;
  for (const ProcessLog& process : cell) values.push_back(process.value);
  return values;
}

// Of a cell around its median, scaled to the variance of one process: the
// median of n normal values takes up about that much of it.
void AddSpread(const std::vector<ProcessLog>& cell,
               std::vector<double>* deviations) {
  const size_t n = cell.size();
  if (n < 2) return;
  const std::vector<double> values = Values(cell);
  const double center = Median(values);
  const double left = n < 5 ? 1 - 1. / n : 1 - .56 / n;
  for (const double value : values) {
    deviations->push_back((value - center) / std::sqrt(left));
  }
}

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

// Everything about the levels of runs, benchmark by benchmark.
class Model {
 public:
  explicit Model(const Panel& panel)
      : panel_(panel),
        benchmarks_(Count(panel)),
        runs_(static_cast<int>(panel.runs.size())) {}

  PanelEstimate Estimate() {
    LearnProcesses();
    TakeLevels();
    LearnMachine();
    LearnShared();
    LearnRuns();
    PanelEstimate estimate;
    ScoreCandidates();
    for (int j = 0; j < benchmarks_; ++j) {
      estimate.benchmarks.push_back(EstimateBenchmark(j));
    }
    estimate.shared = EstimateShared();
    estimate.bad_runs = CountBadRuns();
    return estimate;
  }

 private:
  struct Noise {
    double process_variance = 0;
    double process_degrees = 0;
    double run_variance = 0;  // of a run's level
    double degrees = 0;
    double processes = kTypicalProcesses;  // per run, as it was learned
  };

  // Where a benchmark's level is taken from.
  struct Base {
    std::vector<int> runs;
    double level = 0;
    double weight = 0;  // effective number of runs
    std::vector<int> far_off;
  };

  static int Count(const Panel& panel) {
    return static_cast<int>(
        panel.candidate.empty() ? 0 : panel.candidate.front().size());
  }

  int Sign(int j) const {
    return panel_.worse_signs.empty() ? 1 : panel_.worse_signs[j];
  }

  int LevelStart(int j) const {
    return panel_.level_starts.empty() ? 0 : panel_.level_starts[j];
  }

  void LearnProcesses() {
    noise_.resize(benchmarks_);
    for (int j = 0; j < benchmarks_; ++j) {
      std::vector<double> deviations;
      int cells = 0;
      double processes = 0;
      const auto add = [&](const PanelRun& run) {
        AddSpread(run[j], &deviations);
        cells += run[j].size() > 1;
        processes += run[j].size() > 1 ? run[j].size() : 0;
      };
      for (const PanelRun& run : panel_.runs) add(run);
      for (const PanelRun& run : panel_.candidate) add(run);
      Noise& noise = noise_[j];
      noise.process_variance =
          std::max(WinsorisedVariance(deviations),
                   kLeastProcessSpread * kLeastProcessSpread);
      noise.process_degrees = static_cast<double>(deviations.size()) - cells;
      if (cells > 0) noise.processes = processes / cells;
    }
  }

  double LevelOf(const std::vector<ProcessLog>& cell, int j) const {
    return HuberLocation(Values(cell), std::sqrt(noise_[j].process_variance));
  }

  void TakeLevels() {
    const auto take = [&](const std::vector<PanelRun>& runs) {
      Deviations levels;
      for (const PanelRun& run : runs) {
        levels.emplace_back();
        for (int j = 0; j < benchmarks_; ++j) {
          levels.back().push_back(LevelOf(run[j], j));
        }
      }
      return levels;
    };
    levels_ = take(panel_.runs);
    candidate_levels_ = take(panel_.candidate);
  }

  // Takes out what calibration loops explain, where both sides have them.
  void LearnMachine() {
    slopes_.resize(benchmarks_);
    for (int j = 0; j < benchmarks_; ++j) {
      const auto known = [&](const PanelRun& run) {
        return run[j].empty() || StateOf(run[j]).has_value();
      };
      bool all = true;
      for (const int r : panel_.baseline) all = all && known(panel_.runs[r]);
      for (const PanelRun& run : panel_.candidate) all = all && known(run);
      if (!all) continue;
      std::vector<double> values;
      std::vector<MachineState> states;
      for (int r = 0; r < runs_; ++r) {
        const auto state = StateOf(panel_.runs[r][j]);
        if (!state.has_value() || std::isnan(levels_[r][j])) continue;
        values.push_back(levels_[r][j]);
        states.push_back(*state);
      }
      if (values.empty()) continue;
      slopes_[j] = MachineSlope::Fit(values, states, std::sqrt(Prior(j)));
      const auto adjust = [&](const std::vector<PanelRun>& runs,
                              Deviations& levels) {
        for (size_t r = 0; r < runs.size(); ++r) {
          const auto state = StateOf(runs[r][j]);
          if (state.has_value()) levels[r][j] -= slopes_[j].Explains(*state);
        }
      };
      adjust(panel_.runs, levels_);
      adjust(panel_.candidate, candidate_levels_);
    }
  }

  static absl::optional<MachineState> StateOf(
      const std::vector<ProcessLog>& cell) {
    std::vector<double> core, memory;
    for (const ProcessLog& process : cell) {
      if (!process.machine.has_value()) return absl::nullopt;
      core.push_back(process.machine->core);
      memory.push_back(process.machine->memory);
    }
    if (core.empty()) return absl::nullopt;
    return MachineState{Median(core), Median(memory)};
  }

  // The factor and the steps of levels depend on each other: two turns.
  void LearnShared() {
    centers_.assign(benchmarks_, std::vector<double>(runs_, 0));
    rests_ = levels_;
    shifts_.assign(runs_, std::vector<double>(benchmarks_, 0));
    for (int turn = 0; turn < 2; ++turn) {
      FindSteps();
      Deviations deviations = levels_;
      for (int r = 0; r < runs_; ++r) {
        for (int j = 0; j < benchmarks_; ++j) {
          deviations[r][j] -= centers_[j][r];
        }
      }
      factor_ = SharedFactor::Fit(deviations, kLeastSpread);
      factors_.assign(runs_, 0);
      for (int r = 0; r < runs_; ++r) {
        const SharedFactor::Score score = factor_.ScoreOf(deviations[r]);
        factors_[r] = score.factor;
        for (int j = 0; j < benchmarks_; ++j) {
          shifts_[r][j] = factor_.loading(j) * score.without[j];
          rests_[r][j] = levels_[r][j] - shifts_[r][j];
        }
      }
    }
    FindSteps();
  }

  // Levels of the stretches between steps, by run.
  void FindSteps() {
    steps_.assign(benchmarks_, {});
    for (int j = 0; j < benchmarks_; ++j) {
      std::vector<double> values;
      std::vector<int> places;
      for (int r = 0; r < runs_; ++r) {
        if (std::isnan(rests_[r][j])) continue;
        values.push_back(rests_[r][j]);
        places.push_back(r);
      }
      const double expected = std::sqrt(Prior(j));
      const std::vector<int> starts = FindLevelSteps(values, expected);
      for (size_t s = 0; s < starts.size(); ++s) {
        const size_t end =
            s + 1 < starts.size() ? starts[s + 1] : values.size();
        const std::vector<double> stretch(values.begin() + starts[s],
                                          values.begin() + end);
        const double center = HuberLocation(stretch, expected);
        const int first = s == 0 ? 0 : places[starts[s]];
        const int last = s + 1 < starts.size() ? places[starts[s + 1]] : runs_;
        for (int r = first; r < last; ++r) centers_[j][r] = center;
        steps_[j].push_back(first);
      }
    }
  }

  // Empirical Bayes over the benchmarks of the suite.
  void LearnRuns() {
    std::vector<double> variances(benchmarks_), degrees(benchmarks_);
    std::vector<double> shares, expected_spreads;
    for (int j = 0; j < benchmarks_; ++j) {
      std::vector<double> deviations;
      for (int r = 0; r < runs_; ++r) {
        if (std::isnan(rests_[r][j])) continue;
        deviations.push_back(rests_[r][j] - centers_[j][r]);
      }
      AddCandidateDeviations(j, &deviations);
      const double n = static_cast<double>(deviations.size());
      double used = static_cast<double>(steps_[j].size());
      if (panel_.candidate.size() > 1) ++used;
      if (factor_.exists()) used += 2;
      degrees[j] = n - used;
      if (degrees[j] < 1) continue;
      variances[j] = HeavyTailedVariance(deviations) * n / degrees[j];
      if (!panel_.window) {
        variances[j] = std::min(variances[j], DriftingVariance(j));
      }
      if (variances[j] <= 0 || degrees[j] < 3) continue;
      shares.push_back(std::log(std::max(variances[j], Floor()) / Prior(j)));
      expected_spreads.push_back(TriGamma(degrees[j] / 2));
    }
    double center = 0, prior_degrees = kPriorDegrees;
    if (!shares.empty()) {
      const double count = static_cast<double>(shares.size());
      center = Median(shares) * count / (count + kRunShareWeight);
      double excess = kRunShareWeight * TriGamma(kPriorDegrees / 2);
      for (size_t i = 0; i < shares.size(); ++i) {
        excess += std::pow(shares[i] - Median(shares), 2) *
                      (count > 1 ? count / (count - 1) : 1) -
                  expected_spreads[i];
      }
      excess /= count + kRunShareWeight;
      prior_degrees = excess <= 0
                          ? kMostPriorDegrees
                          : std::clamp(DegreesOf(excess), kFewestPriorDegrees,
                                       kMostPriorDegrees);
    }
    for (int j = 0; j < benchmarks_; ++j) {
      const double own = std::max(0., degrees[j]);
      const double prior = Prior(j) * std::exp(center);
      noise_[j].run_variance =
          std::max(Floor() / 4, (prior_degrees * prior + own * variances[j]) /
                                    (prior_degrees + own));
      noise_[j].degrees = std::min(kMostDegrees, prior_degrees + own);
    }
  }

  // Where a level creeps, how far a run is from between its neighbours is noise
  // and the rest is not; a baseline that is no window is a neighbour.
  double DriftingVariance(int j) const {
    constexpr double kDrifts = 2.5, kWidening = 1.25;
    std::vector<double> deviations, bends;
    for (int r = 0; r < runs_; ++r) {
      if (std::isnan(rests_[r][j])) continue;
      deviations.push_back(rests_[r][j] - centers_[j][r]);
    }
    for (size_t i = 2; i < deviations.size(); ++i) {
      bends.push_back(
          (deviations[i - 2] - 2 * deviations[i - 1] + deviations[i]) /
          std::sqrt(6.));
    }
    const double neighbours = HeavyTailedVariance(bends);
    return !bends.empty() &&
                   HeavyTailedVariance(deviations) > kDrifts * neighbours
               ? kWidening * neighbours
               : std::numeric_limits<double>::infinity();
  }

  // Several runs of the candidate tell about noise, too.
  void AddCandidateDeviations(int j, std::vector<double>* deviations) const {
    std::vector<double> levels;
    for (const std::vector<double>& run : candidate_levels_) {
      if (!std::isnan(run[j])) levels.push_back(run[j]);
    }
    // The factor is not out yet: of a suite that has one they tell nothing.
    if (levels.size() < 2 || factor_.exists()) return;
    const double center = HuberLocation(levels, std::sqrt(Prior(j)));
    for (const double level : levels) deviations->push_back(level - center);
  }

  static double Floor() { return kLeastSpread * kLeastSpread; }
  double Prior(int j) const {
    return (kRunShare + 1 / noise_[j].processes) * noise_[j].process_variance +
           Floor();
  }

  // The variance of the level of a run of `processes`.
  double RunVariance(int j, double processes) const {
    const Noise& noise = noise_[j];
    return std::max(
        noise.run_variance / 2,
        noise.run_variance +
            noise.process_variance * (1 / processes - 1 / noise.processes));
  }

  Base BaseOf(int j) const {
    Base base;
    std::vector<int> present;
    for (const int r : panel_.baseline) {
      if (!std::isnan(rests_[r][j]) && r >= LevelStart(j)) present.push_back(r);
    }
    if (panel_.window) present = CurrentLevel(j, std::move(present));
    std::vector<double> values;
    for (const int r : present) values.push_back(rests_[r][j]);
    const double scale = std::sqrt(noise_[j].run_variance);
    base.level = HuberLocation(values, scale);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < present.size(); ++i) {
      const double weight = HuberWeight(values[i] - base.level, scale);
      sum += weight;
      squares += weight * weight;
      if (weight < .5) base.far_off.push_back(present[i]);
    }
    base.runs = std::move(present);
    base.weight = squares > 0 ? sum * sum / squares : 0;
    return base;
  }

  // The last stretch of a window, unless it is worse than the one before: what
  // became worse and was never confirmed or acknowledged is no norm.
  std::vector<int> CurrentLevel(int j, std::vector<int> runs) const {
    if (runs.empty()) return runs;
    double level = centers_[j][runs.front()];
    int first = 0, end = static_cast<int>(runs.size());
    for (size_t i = 1; i < runs.size(); ++i) {
      const double next = centers_[j][runs[i]];
      if (next == centers_[j][runs[i - 1]]) continue;
      if (Sign(j) * (next - level) < 0) {
        first = static_cast<int>(i);
        end = static_cast<int>(runs.size());
        level = next;
      } else {
        end = std::min(end, static_cast<int>(i));
      }
    }
    return {runs.begin() + first, runs.begin() + end};
  }

  void ScoreCandidates() {
    bases_.clear();
    for (int j = 0; j < benchmarks_; ++j) bases_.push_back(BaseOf(j));
    for (const std::vector<double>& run : candidate_levels_) {
      std::vector<double> deviations = run;
      for (int j = 0; j < benchmarks_; ++j) deviations[j] -= bases_[j].level;
      candidate_scores_.push_back(factor_.ScoreOf(deviations));
    }
  }

  BenchmarkEstimate EstimateBenchmark(int j) const {
    BenchmarkEstimate estimate;
    const Noise& noise = noise_[j];
    const Base& base = bases_[j];
    estimate.process_spread = std::sqrt(noise.process_variance);
    estimate.run_spread = std::sqrt(noise.run_variance);
    estimate.baseline_runs = static_cast<int>(base.runs.size());
    estimate.far_off = base.far_off;
    if (!base.runs.empty()) estimate.first_baseline_run = base.runs.front();

    std::vector<double> rests, spread;
    std::vector<double> raw, shifts, explained;
    double variance = 0;
    for (size_t c = 0; c < panel_.candidate.size(); ++c) {
      const std::vector<ProcessLog>& cell = panel_.candidate[c][j];
      if (cell.empty()) continue;
      const double shift = factor_.loading(j) * candidate_scores_[c].without[j];
      rests.push_back(candidate_levels_[c][j] - shift);
      raw.push_back(LevelOf(cell, j));
      shifts.push_back(candidate_scores_[c].without[j]);
      variance += RunVariance(j, static_cast<double>(cell.size()));
      AddSpread(cell, &spread);
    }
    if (rests.empty() || base.runs.empty() || noise.degrees < 1 ||
        noise.process_degrees + runs_ < 2) {
      return estimate;
    }
    estimate.possible = true;
    const double n = static_cast<double>(rests.size());
    variance /= n * n;
    // A candidate whose processes disagree more than they used to is known
    // less well.
    double squares = 0;
    for (const double value : spread) squares += value * value;
    const double own = spread.empty() ? 0 : spread.size() - n;
    const double shrunken =
        (kSpreadPriorDegrees * noise.process_variance +
         squares * own / std::max<double>(1, spread.size())) /
        (kSpreadPriorDegrees + own);
    estimate.candidate_process_spread = std::sqrt(shrunken);
    variance *= std::max(1., shrunken / noise.process_variance / kNoisier);

    double processes = 0;
    std::vector<double> base_shifts;
    for (const int r : base.runs) {
      processes += panel_.runs[r][j].size();
      base_shifts.push_back(shifts_[r][j]);
    }
    processes /= base.runs.size();
    variance += RunVariance(j, processes) / base.weight;
    const double scale = std::sqrt(noise.run_variance);
    const double level = n > 2 ? HuberLocation(rests, scale) : Mean(rests);
    // Runs that disagree say that one of them is bad, not which.
    double between = 0;
    for (const double rest : rests) between += std::pow(rest - level, 2);
    if (n > 1) {
      variance = std::max(variance, between / (n - 1) / n / kNoisier);
    }
    estimate.log_ratio = level - base.level;
    estimate.log_candidate = Mean(raw);
    if (factor_.exists()) {
      const double loading = factor_.loading(j);
      const double before =
          Median(base_shifts) / (std::abs(loading) < .05 ? .05 : loading);
      variance +=
          factor_.loading_variance(j) * std::pow(Mean(shifts) - before, 2);
    }
    variance += SlopeVariance(j, base.runs);
    std::vector<double> raw_base;
    for (const int r : base.runs) {
      raw_base.push_back(LevelOf(panel_.runs[r][j], j));
    }
    estimate.log_machine = estimate.log_candidate -
                           HuberLocation(raw_base, scale) - estimate.log_ratio;
    estimate.standard_error = std::sqrt(variance);
    estimate.degrees_of_freedom = noise.degrees;
    return estimate;
  }

  // How much further than `runs` the candidate's machine state is, times what
  // is not known of its effect.
  double SlopeVariance(int j, const std::vector<int>& runs) const {
    const absl::optional<MachineState> step = StateStep(j, runs);
    return step.has_value() ? slopes_[j].VarianceOf(*step) : 0;
  }

  absl::optional<MachineState> StateStep(int j,
                                         const std::vector<int>& runs) const {
    if (!slopes_[j].exists()) return absl::nullopt;
    MachineState step;
    int count = 0;
    for (const PanelRun& run : panel_.candidate) {
      if (run[j].empty()) continue;
      const MachineState state = *StateOf(run[j]);
      step.core += state.core;
      step.memory += state.memory;
      ++count;
    }
    if (count == 0 || runs.empty()) return absl::nullopt;
    std::vector<double> core, memory;
    for (const int r : runs) {
      const MachineState state = *StateOf(panel_.runs[r][j]);
      core.push_back(state.core);
      memory.push_back(state.memory);
    }
    step.core = step.core / count - Median(core);
    step.memory = step.memory / count - Median(memory);
    return step;
  }

  int CountBadRuns() const {
    std::vector<double> deviations;
    for (const double factor : factors_) {
      deviations.push_back(factor - Median(factors_));
    }
    const double shared = std::sqrt(WinsorisedVariance(deviations));
    int bad = 0;
    for (int r = 0; r < runs_; ++r) {
      bool far = factor_.exists() &&
                 deviations[r] > kBad * std::max(shared, kFactorSpread);
      for (int j = 0; j < benchmarks_ && !far; ++j) {
        far = !std::isnan(rests_[r][j]) &&
              Sign(j) * (rests_[r][j] - centers_[j][r]) >
                  kBad * std::sqrt(noise_[j].run_variance);
      }
      bad += far;
    }
    return bad;
  }

  SharedEstimate EstimateShared() const {
    SharedEstimate shared;
    if (!factor_.exists() || candidate_scores_.empty() ||
        panel_.baseline.empty()) {
      return shared;
    }
    std::vector<double> before, now, deviations;
    for (const int r : panel_.baseline) before.push_back(factors_[r]);
    for (const auto& score : candidate_scores_) now.push_back(score.factor);
    const double center = Median(factors_);
    for (const double factor : factors_) deviations.push_back(factor - center);
    const double n = static_cast<double>(deviations.size());
    const double variance = (kFactorDegrees * kFactorSpread * kFactorSpread +
                             n * HeavyTailedVariance(deviations)) /
                            (kFactorDegrees + n);
    shared.exists = true;
    shared.log_change = Mean(now) - HuberLocation(before, std::sqrt(variance));
    std::vector<double> slope_variances, explained;
    for (int j = 0; j < benchmarks_; ++j) {
      const auto step = StateStep(j, bases_[j].runs);
      if (!step.has_value()) continue;
      slope_variances.push_back(slopes_[j].VarianceOf(*step));
      explained.push_back(slopes_[j].Effect(*step));
    }
    double slope_variance = 0;
    if (!explained.empty()) {
      shared.log_calibration = Median(explained);
      slope_variance = Median(slope_variances);
    }
    shared.standard_error =
        std::sqrt(variance * (1. / before.size() + 1. / now.size()) +
                  candidate_scores_.front().variance + slope_variance);
    shared.degrees_of_freedom = kFactorDegrees + n - 1;
    return shared;
  }

  const Panel& panel_;
  const int benchmarks_;
  const int runs_;
  std::vector<Noise> noise_;
  Deviations levels_, candidate_levels_;  // [run][benchmark], the calibrated
  Deviations rests_;                      // levels without what is shared
  Deviations shifts_;                     // what is shared
  std::vector<std::vector<double>> centers_;  // [benchmark][run]
  std::vector<std::vector<int>> steps_;
  std::vector<MachineSlope> slopes_;
  SharedFactor factor_;
  std::vector<double> factors_;
  std::vector<Base> bases_;
  std::vector<SharedFactor::Score> candidate_scores_;
};

}  // namespace

PanelEstimate EstimateChanges(const Panel& panel) {
  return Model(panel).Estimate();
}

}  // namespace optrail::tracker
